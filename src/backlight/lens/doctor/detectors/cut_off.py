"""Leaves that no gradient ever gets to, though one was expected: where is the cut?

NOTE [When a gradient was expected]
Many tensors get no gradient and should not: target networks, what a detached loss was computed from. One is missed only
if an optimiser that steps holds the tensor (and other gradients of its do arrive), or if the user's own code read its
`.grad` after a backward and found None; and if none has come up to the end.
"""

import weakref

from backlight.lens.doctor.detectors.optimizers import Optimisers
from backlight.lens.doctor.flow import Cut, Leaf
from backlight.lens.doctor.part import Part, name_in, said, said_at, way
from backlight.lens.doctor.places import place_of, place_of_frame
from backlight.lens.doctor.report import counted
from backlight.lens.doctor.rule_index import rule
from backlight.lens.records.record import Place

MOST = 6  # names in one sentence
CURES = {
    "detach": "leave out .detach(), or detach only what is to be a constant",
    "data": "use the tensor itself instead of .data",
    "numpy": "compute it with tensors: the engine's own functions instead of NumPy's",
    "item": "keep the tensor: .item() is for printing",
    "tolist": "keep the tensor: .tolist() is for printing",
    "tensor": "join tensors by torch.stack or torch.cat instead of torch.tensor([...])",
    "argmax": "argmax has no derivative: use softmax weights, or a loss on the scores themselves",
}


class CutOff(Part):
    """Finds leaves that miss their gradient (see NOTE [When a gradient was expected])."""

    def __init__(self, silent):
        super().__init__(silent)
        self.missing: dict[int, tuple] = {}  # a leaf -> (weak reference, why a gradient was expected, place)
        self.steps: dict[int, int] = {}  # optimiser -> steps that found some gradient
        self.ran: set[int] = set()  # modules

    def entered(self, module, path) -> None:
        """Note which modules run."""
        self.ran.add(id(module))

    def stepping(self, optimizer, params, grads, place) -> None:
        """Note parameters without a gradient if others have one."""
        if all(grad is None for grad in grads):
            return
        self.steps[id(optimizer)] = self.steps.get(id(optimizer), 0) + 1
        for param, grad in zip(params, grads):
            if grad is None and param.requires_grad:
                self._expect(param, f"held by the optimiser that steps at {said(place)}", place)

    def read_grad(self, tensor, grad, frame) -> None:
        """Note a None that the user found."""
        flow = self.silent.flow
        if grad is not None or not flow.backwards or not tensor.is_leaf:
            return
        place = place_of_frame(frame)
        if tensor.requires_grad:
            self._expect(tensor, f".grad was read at {said(place)}, and was None", place)
        else:
            self._read_without(tensor, frame, place)

    def _expect(self, tensor, why: str, place: Place | None) -> None:
        leaf, known = self._leaf_of(tensor), self.missing.get(id(tensor))
        if (leaf is None or not leaf.reached) and (known is None or known[0]() is not tensor):
            self.missing[id(tensor)] = weakref.ref(tensor), why, place

    def _read_without(self, tensor, frame, place: Place | None) -> None:
        """Report `.grad` of a plain tensor that does not require grad, and took part in what was differentiated."""
        flow = self.silent.flow
        if isinstance(tensor, self.engine.module.nn.Parameter) or id(tensor) not in flow.constants:
            return
        reference, code, lasti = flow.constants[id(tensor)]
        if reference() is not tensor:
            return
        name = name_in(frame, tensor) or "the tensor"
        evidence = (
            f"{name}.requires_grad is False; it was used at {said_at(code, lasti)} beside tensors that require grad.",
            f"{name}.grad is None, {counted(flow.backwards, 'backward')} later.",
        )
        title = f".grad of {name} is None: it does not require grad"
        found = rule("grad-without-requires-grad").found(place=place, evidence=evidence, title=title)
        self.session.add(found)

    def end(self, problem) -> None:
        """Report what is still missing, what has the same cause together."""
        groups: dict[tuple, list] = {}
        for reference, why, place in self.missing.values():
            tensor = reference()
            if tensor is None or self._is_well(tensor):
                continue
            leaf = self._leaf_of(tensor)
            cut = None if leaf is None else self._cut_of(leaf)
            never = leaf is None or (cut is None and not leaf.recorded)
            key = ("never",) if never else ("cut", cut.code, cut.lasti) if cut else ("unused",)
            groups.setdefault(key, []).append((tensor, leaf, cut, why, place))
        for (kind, *_), members in groups.items():
            self._report(kind, members)

    def _is_well(self, tensor) -> bool:
        """Return whether a gradient came after all, or is no longer wanted."""
        leaf = self._leaf_of(tensor)
        reached = leaf is not None and leaf.reached
        gone = self.silent.parts[Optimisers].is_gone(tensor)
        return reached or gone or not tensor.requires_grad or tensor.grad is not None

    def _leaf_of(self, tensor) -> Leaf | None:
        """Return what is known of a leaf; None if no op that was seen used it."""
        info = self.silent.flow.known(tensor)
        return None if info is None else info.leaf

    def _cut_of(self, leaf: Leaf) -> Cut | None:
        """Return the cut between a leaf and the losses: one on the way to a root, if that is known."""
        flow = self.silent.flow
        cuts = flow.cuts_before(leaf, flow.root_cuts) or flow.cuts_before(leaf, -1 if flow.root_cuts == 0 else 0)
        return cuts[0] if cuts else None

    def _left_by(self, leaf: Leaf) -> Cut | None:
        """Return the call by which a leaf's values went to NumPy after they were detached.

        What NumPy computes is not followed: if cuts on the way to a root are known, the others do not matter.
        """
        flow = self.silent.flow
        known = flow.cuts_before(leaf, flow.root_cuts)
        gone = known or flow.cuts_before(leaf, -1)
        return next((cut for cut in gone if cut.name in ("numpy", "__array__")), None)

    def _report(self, kind: str, members: list) -> None:
        flow = self.silent.flow
        _, leaf, cut, why, place = members[0]
        if kind == "cut" and self._is_new_leaf(leaf):
            return  # Rebuilt tells of these
        names = [flow.name_of(one[0]) for one in members]
        listed = ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")
        evidence = [f"{listed}: no gradient came in {counted(flow.backwards, 'backward')}; {why}."]
        cure, path, place = None, (), flow.first_backward or place
        if kind == "never":
            evidence.append("No op that was seen used it." if len(names) == 1 else "No op that was seen used them.")
            title = f"{listed} never took part in what the loss was computed from"
            cause = "a layer that is made in __init__ and not used in forward, or used only in a branch that never ran"
        elif kind == "unused":
            title = f"{listed} ran, and the loss does not depend on the result"
            cause = "an output that the loss leaves out"
            if leaf.used is not None:
                evidence.append(f"First used at {said_at(*leaf.used)}.")
        else:
            where = said_at(cut.code, cut.lasti)
            title = f"{listed} cut off from the loss by {_called(cut)} at {where}"
            cause = f"{_called(cut)} gives a tensor without history" if cut.recording else "the op ran under no_grad()"
            left = self._left_by(leaf) if cut.name in ("detach", "data") else None
            cure = CURES.get(cut.name) if cut.recording else "compute it outside of the no_grad() block"
            evidence.append(f"Their values go through {_called(cut)} at {where}, whose result does not require grad.")
            if left is not None:
                cause, cure = "what NumPy computes has no history: no gradient passes it", CURES["numpy"]
                evidence.append(f"They leave for NumPy there, by {_called(left)} at {said_at(left.code, left.lasti)}.")
            path = way("loss", f"✂ {_called(cut)} at {where}", names[0])
            place = place_of(cut.code, cut.lasti)
        found = rule("parameters-cut-off").found(
            place=place, evidence=tuple(evidence), title=title, cause=cause, cure=cure, path=path
        )
        self.session.add(found)

    def _is_new_leaf(self, leaf: Leaf) -> bool:
        """Return whether what a leaf's values went into became a leaf of its own, which got the gradient."""
        return any(one.upstream & leaf.bit and one.reached for one in self.silent.flow.leaves)


def _called(cut: Cut) -> str:
    return ".data" if cut.name == "data" else f"{cut.name}()"
