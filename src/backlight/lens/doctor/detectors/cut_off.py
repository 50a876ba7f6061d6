"""Leaves that no gradient ever gets to, though one was expected: where is the cut?

NOTE [When a gradient was expected]
Many tensors get no gradient and should not: target networks, what a detached loss was computed from. One is missed only
if an optimizer that steps holds the tensor (and other gradients of its do arrive), or if the user's own code read its
`.grad` after a backward and found None; and if none has come up to the end, its own or the block's.
"""

import ast
from dataclasses import dataclass, replace
from types import FrameType

from backlight.lens.doctor.corrections.lines import leaf_again, without_call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.optimizers import Optimizers
from backlight.lens.doctor.evidence import counted, listed, name_in, path_from
from backlight.lens.doctor.flow import FlowCut, Leaf
from backlight.lens.doctor.graph import Optimizer, Tensor
from backlight.lens.doctor.places import brief, brief_at, place_of, place_of_frame
from backlight.lens.doctor.source import spot_of, spot_of_frame
from backlight.lens.doctor.weak_id_dict import OUTLIVED, WeakIdDict
from backlight.lens.records.record import Place

LISTS = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)
MOST = 6  # names in one sentence
CURES = {
    "detach": "remove .detach(), or detach only what must be a constant",
    "data": "use the tensor itself instead of .data",
    "numpy": "compute it with tensor functions instead of NumPy's",
    "item": "use the tensor: .item() is for printing",
    "tolist": "use the tensor: .tolist() is for printing",
    "tensor": "combine tensors with torch.stack or torch.cat instead of torch.tensor([...])",
    "copy": "use the tensor itself: torch.tensor(t) is a copy without history",
    "argmax": "argmax has no derivative: use softmax weights, or a loss on the scores themselves",
}


@dataclass(slots=True)
class Missing:
    """A leaf without the gradient that it should have.

    Args:
        name: what to call it.
        leaf: what is known of it.
        why: a gradient was expected, at `place`.
        wanted: whether it still was when the leaf was last seen.
        cut: what is between the leaf and the losses.
    """

    name: str
    leaf: Leaf
    why: str
    place: Place | None
    wanted: bool
    cut: FlowCut | None = None


class CutOff(Detector):
    """Finds leaves that miss their gradient (see NOTE [When a gradient was expected])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.missing: WeakIdDict[Missing] = WeakIdDict(outlived=OUTLIVED)

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note parameters without a gradient if others have one."""
        if len(self.missing):
            for param, grad in zip(params, grads):
                self._look_again(param, grad)
        if all(grad is None for grad in grads):
            return
        for param, grad in zip(params, grads):
            if grad is None and param.requires_grad:
                self._expect(param, f"held by the optimizer that steps at {brief(place)}", place)

    def read_grad(self, tensor: Tensor, grad: Tensor | None, frame: FrameType) -> None:
        """Note a None that the user found."""
        if grad is not None or not self.watch.flow.backwards or not tensor.is_leaf:
            return
        place = place_of_frame(frame)
        if tensor.requires_grad:
            self._expect(tensor, f".grad was read at {brief(place)}, and was None", place)
        else:
            self._read_without(tensor, frame, place)

    def _expect(self, tensor: Tensor, why: str, place: Place | None) -> None:
        leaf = self.watch.flow.of(tensor).leaf
        if not leaf.reached and tensor not in self.missing:
            wanted = not self._is_replaced(tensor)
            self.missing[tensor] = Missing(self.watch.flow.name_of(tensor), leaf, why, place, wanted)

    def _is_replaced(self, tensor: Tensor) -> bool:
        return tensor in self.watch.detectors[Optimizers].gone

    def _look_again(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Note whether a leaf that missed its gradient still does."""
        known = self.missing.get(tensor)
        if known is not None:
            known.wanted = grad is None and tensor.requires_grad and not self._is_replaced(tensor)
            if known.name.startswith("a tensor"):
                known.name = self.watch.flow.name_of(tensor)

    def _read_without(self, tensor: Tensor, frame: FrameType, place: Place | None) -> None:
        """Report `.grad` of a plain tensor that does not require grad, and took part in what was differentiated."""
        flow = self.watch.flow
        line = flow.constants.get(tensor)
        if isinstance(tensor, self.engine.module.nn.Parameter) or line is None:
            return
        name = name_in(frame, tensor) or "the tensor"
        spot = spot_of_frame(frame)
        again = None if spot is None else leaf_again(spot, name)
        self.report(
            "grad-without-requires-grad",
            place,
            f"{name}.requires_grad is False; it was used at {brief_at(line)} beside tensors that require grad.",
            f"{name}.grad is None, {counted(flow.backwards, 'backward')} later.",
            title=f".grad of {name} is None: it does not require grad",
            cause=None if again is None else f"the loop assigns {name} a new tensor, which does not require grad",
            cure=None if again is None else "make it a leaf again in each step: .detach().requires_grad_()",
            corrected=None if again is None else again[1],
            corrected_at=None if again is None else again[0].place,
        )

    def end(self, problem: BaseException | None) -> None:
        """Report what is still missing, what has the same cause together."""
        self._look_at_copies()
        groups: dict[tuple, list[Missing]] = {}
        for tensor in self.missing.alive():
            self._look_again(tensor, tensor.grad)
        for _, known in self.missing.histories():
            if known.leaf.reached or not known.wanted:
                continue
            known.cut = cut = self._cut_of(known.leaf)
            never = cut is None and not known.leaf.recorded
            key = ("never",) if never else ("cut", cut.code, cut.lasti) if cut else ("unused",)
            groups.setdefault(key, []).append(known)
        if self.session.has({"BL110"}):  # the program ended early, at the None: what it would have used is not known
            groups = {key: members for key, members in groups.items() if key[0] == "cut" and self.watch.flow.root_cuts}
        for (kind, *_), members in groups.items():
            self._report(kind, members)

    def _look_at_copies(self) -> None:
        """Offer the tensor itself where `torch.tensor(t)` has a part in a loss."""
        flow = self.watch.flow
        for cut in filter(_copies_one, flow.cuts_in(flow.root_cuts)):
            found = self.session.drop("BL505", place_of(cut))
            if found is not None:
                corrected = _uncopied(cut)
                seen = (
                    *found.evidence,
                    f"What {cut.call} returned is used in a loss, but no gradient passes through it.",
                )
                self.session.add(replace(found, evidence=seen, cure=CURES["copy"], corrected=corrected))

    def _cut_of(self, leaf: Leaf) -> FlowCut | None:
        """Return the cut between a leaf and the losses: one on the way to a root, if that is known."""
        flow = self.watch.flow
        cuts = flow.cuts_before(leaf, flow.root_cuts) or flow.cuts_before(leaf, -1 if flow.root_cuts == 0 else 0)
        left = self._left_by(leaf)
        there = [] if left is None else [cut for cut in cuts if cut.line == left.line]  # h.detach().numpy()
        return (there or cuts or [None])[0]

    def _left_by(self, leaf: Leaf) -> FlowCut | None:
        """Return the call by which a leaf's values went to NumPy after they were detached.

        What NumPy computes is not followed: if cuts on the way to a root are known, the others do not matter.
        """
        flow = self.watch.flow
        gone = flow.cuts_before(leaf, flow.root_cuts) or flow.cuts_before(leaf, -1)
        return next((cut for cut in gone if cut.name in ("numpy", "__array__")), None)

    def _report(self, kind: str, members: list[Missing]) -> None:
        flow = self.watch.flow
        first = members[0]
        leaf, cut, place = first.leaf, first.cut, first.place
        if kind == "cut" and any(one.upstream & leaf.bit and one.reached for one in flow.leaves):
            return  # its values went into a leaf that got the gradient: Rebuilt reports these
        names = [one.name for one in members]
        who = listed(names, MOST)
        evidence = [f"{who}: no gradient came in {counted(flow.backwards, 'backward')}; {first.why}."]
        cure, corrected, path, place = None, None, (), flow.first_backward or place
        if kind == "never":
            evidence.append(f"No recorded op used {'it' if len(names) == 1 else 'them'}.")
            title = f"{who} never contributed to the loss"
            cause = "the layer is created in __init__ and not used in forward, or used only in a branch that never ran"
        elif kind == "unused":
            title = f"{who} ran, but the loss does not depend on the result"
            cause = "the loss does not use this output"
            if leaf.used is not None:
                evidence.append(f"First used at {brief_at(leaf.used)}.")
        else:
            title = f"{who} cut off from the loss by {cut.call} at {cut.line}"
            cause = f"{cut.call} returns a tensor without history" if cut.recording else "the op ran under no_grad()"
            left = self._left_by(leaf) if cut.name in ("detach", "data") else None
            cure = CURES.get(cut.name) if cut.recording else "compute it outside the no_grad() block"
            evidence.append(f"Their values go through {cut.call} at {cut.line}, whose result does not require grad.")
            if left is not None:
                cause, cure = "results of NumPy have no history: no gradient passes through them", CURES["numpy"]
                evidence.append(f"They are converted to NumPy there, by {left.call} at {left.line}.")
            path = path_from("loss", f"✂ {cut.call} at {cut.line}", names[0])
            place = place_of(cut)
            if _copies_one(cut):
                cause, cure, corrected = (
                    f"{cut.call} copies the values without the graph",
                    CURES["copy"],
                    _uncopied(cut),
                )
                self.session.drop("BL505", place)  # the warning of the same line, which knows less
        self.report(
            "parameters-cut-off", place, *evidence, title=title, cause=cause, cure=cure, corrected=corrected, path=path
        )


def _copies_one(cut: FlowCut) -> bool:
    """Return whether a cut is `torch.tensor(t)` of one tensor, not of a list."""
    call = spot_of(cut).call
    alone = call is not None and len(call.args) == 1 and not isinstance(call.args[0], LISTS)
    return cut.recording and cut.name in ("tensor", "new_tensor") and alone


def _uncopied(cut: FlowCut) -> str | None:
    """`torch.tensor(loss)` → `loss`."""
    spot = spot_of(cut)
    return without_call(spot) if not spot.call.keywords else None
