"""A loss, or a tensor on the way to it, that was built anew from numbers or a detached copy; a leaf that was lost.

NOTE [When a rebound name is a mistake]
`w = w - lr * w.grad` under no_grad() makes a new tensor under the old name, and the leaf is lost. That may be meant. It
is a mistake when the result is stored where `w` was, and a backward is started from something that was computed of it,
though it no longer requires grad. (Where it still does, its `.grad` is read later, of which the engines themselves
warn.)
"""

from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from backlight.dispatch.observers import Call
from backlight.engine.provenance import frame_of
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of, counted, name_in, path_from, replaced
from backlight.lens.doctor.flow import FlowCut, Leaf
from backlight.lens.doctor.graph import Optimizer, Tensor, is_parameter
from backlight.lens.doctor.places import brief, place_of, place_of_frame
from backlight.lens.doctor.source import stored_in
from backlight.lens.doctor.weak_id_dict import OUTLIVED, WeakIdDict
from backlight.lens.records.record import Place

NUMBERS = {"item", "tolist", "__float__"}
COPIES = {"tensor", "as_tensor", "asarray", "new_tensor"}


@dataclass(slots=True)
class WithoutGrad:
    """A leaf whose `.grad` was None where one was expected: what is known of it, the line, what to call it there."""

    leaf: Leaf
    place: Place | None
    name: str


class Rebuilt(Detector):
    """Finds leaves that stand where a computed tensor should, and values that leave the graph on the way."""

    calls = frozenset({*COPIES, "tolist"})

    def __init__(self, watch):
        super().__init__(watch)
        self.of_number: tuple[Leaf, Place | None] | None = None  # the last loss, if a leaf made of a number; backward
        self.reads: WeakIdDict[WithoutGrad] = WeakIdDict(outlived=OUTLIVED)

    def called(self, call: Call) -> None:
        """Report torch.tensor([...]) of tensors that require grad, and of tolist()."""
        if call.name in COPIES and call.args and isinstance(call.args[0], (list, tuple)):
            lost = [one for one in self.watch.tensors_in(call.args[0]) if one.requires_grad]
            if lost and self.engine.module.is_grad_enabled():
                self._report_list(call, lost)
        elif call.name == "tolist" and call.args and call.args[0].requires_grad:
            seen = f"The tensor, of shape {tuple(call.args[0].shape)}, requires grad; the list has no graph."
            self.report("tolist-requires-grad", place_of(call), seen)

    def _report_list(self, call: Call, lost: list) -> None:
        place, first = place_of(call), lost[0]
        maker = "a leaf" if first.grad_fn is None else f"computed by {first.grad_fn.name()}"
        scalars = all(one.dim() == 0 for one in lost) and len(lost) == len(call.args[0])
        alone = scalars and not call.kwargs and len(call.args) == 1
        self.report(
            "tensor-of-tensors",
            place,
            f"{counted(len(lost), 'tensor')} in the list require{'s' if len(lost) == 1 else ''} grad "
            f"(the first is {maker}); the result requires grad: {call.out.requires_grad}.",
            corrected=replaced(code_of(place), "torch.tensor(", "torch.stack(") if alone else None,
        )

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Report a loss that is a leaf, and was made of numbers that came from tensors that require grad."""
        flow = self.watch.flow
        info = flow.of(tensor)
        leaf = info.leaf
        if leaf is None or not leaf.upstream:
            made = leaf is not None and info.name in COPIES and tensor.numel() == 1
            self.of_number = (leaf, place) if made else None
            return
        behind = [one for one in flow.leaves_in(leaf.upstream) if not one.reached]
        if behind:
            self._report_loss(leaf, place, behind, flow.cuts_in(leaf.cuts))

    def _report_loss(self, leaf: Leaf, place: Place | None, behind: list[Leaf], cuts: list[FlowCut]) -> None:
        names = ", ".join(self._name(one) for one in behind[:4])
        self.report(
            "loss-rebuilt-as-leaf",
            place if leaf.code is None else place_of(leaf),
            f"What backward() at {brief(place)} starts from is a leaf: no op made it, and it has no graph.",
            *(f"Its value was taken out of the graph by {cut.name}() at {cut.line}." for cut in cuts[:2]),
            f"No gradient reaches {names}.",
            path=path_from("loss (a leaf)", *(f"✂ {cut.name}()" for cut in cuts[:1]), names),
        )

    def _name(self, leaf: Leaf) -> str:
        tensor = leaf.tensor()
        return leaf.name or "a leaf" if tensor is None else self.watch.flow.name_of(tensor)

    def read_grad(self, tensor: Tensor, grad: Tensor | None, frame: FrameType) -> None:
        """Note a leaf's None that the user found."""
        if grad is None and is_parameter(tensor) and self.watch.flow.backwards:
            self._expect(tensor, place_of_frame(frame), name_in(frame, tensor))

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note parameters of an optimizer that have no gradient while others have."""
        if all(grad is None for grad in grads):
            self._look_for_number(params)
        else:
            for param, grad in zip(params, grads):
                if grad is None and param.requires_grad:
                    self._expect(param, place, None)

    def _look_for_number(self, params: list) -> None:
        """Report a loss that is a leaf made of a number, where numbers had left the graph of what is optimised.

        What Python computes with numbers is not followed; but nothing else explains such a loss.
        """
        if self.of_number is None:
            return
        flow = self.watch.flow
        cuts = [cut for cut in flow.cuts if cut.name in NUMBERS]
        leaves = [leaf for param in params if (leaf := flow.leaf_of(param)) is not None]
        behind = [leaf for leaf in leaves if not leaf.reached and any(cut.leaves & leaf.bit for cut in cuts)]
        if behind:
            self._report_loss(*self.of_number, behind, cuts)

    def _expect(self, tensor: Any, place: Place | None, name: str | None) -> None:
        if tensor not in self.reads:
            flow = self.watch.flow
            self.reads[tensor] = WithoutGrad(flow.of(tensor).leaf, place, name or flow.name_of(tensor))

    def end(self, problem: BaseException | None) -> None:
        """Report new leaves that got the gradient which a leaf before them misses."""
        flow = self.watch.flow
        for tensor, known in self.reads.histories():
            leaf = known.leaf
            if leaf.reached or (tensor is not None and not tensor.requires_grad):
                continue
            new = next((one for one in flow.leaves if one.upstream & leaf.bit and one.reached), None)
            if new is not None:
                self._report_new_leaf(leaf, new, known.place, known.name)

    def _report_new_leaf(self, old: Leaf, new: Leaf, place: Place | None, name: str) -> None:
        cuts = self.watch.flow.cuts_before(old, new.cuts)
        if any(cut.name in ("item", "tolist") for cut in cuts):
            return  # a loss made of numbers, reported already
        where = place if new.code is None else place_of(new)
        made = f"made at {brief(where)}" if new.code is not None else "a temporary"
        self.report(
            "detached-leaf",
            where,
            f"A tensor of shape {new.shape}, {made}, is a leaf; it got the gradient.",
            *(f"It was cut off from {name} by {cut.name}() at {cut.line}." for cut in cuts[:1]),
            f"{name}.grad was read at {brief(place)}, and is None.",
            path=path_from("loss", f"a leaf of shape {new.shape}", *(f"✂ {cut.name}()" for cut in cuts[:1]), name),
        )


SCALING = {"mul", "div", "neg", "sign", "sub", "add", "rsub", "sqrt", "pow", "detach", "clone", "data"}
UPDATES = {"sub", "add", "rsub"}


class Rebinding(Detector):
    """Follows gradients into updates (see NOTE [When a rebound name is a mistake])."""

    calls = frozenset(SCALING)

    def __init__(self, watch):
        super().__init__(watch)
        self.from_grads: WeakIdDict[int] = WeakIdDict()  # tensors computed from a leaf's .grad -> id of the leaf
        self.updates: dict[tuple[CodeType, int], str] = {}  # lines that lose requires_grad -> the leaf's name

    def read_grad(self, tensor: Tensor, grad: Tensor | None, frame: FrameType) -> None:
        """Note a gradient that the user takes."""
        if grad is not None and is_parameter(tensor):
            self.from_grads[grad] = id(tensor)

    def called(self, call: Call) -> None:
        """Follow what is computed from gradients."""
        if not self.from_grads or not self.engine.is_tensor(call.out):
            return
        tensors = [one for one in call.args if self.engine.is_tensor(one)]
        leaf = next((known for one in tensors if (known := self.from_grads.get(one)) is not None), None)
        if leaf is None or call.out.requires_grad or any(call.out is one for one in tensors):
            return
        changed = next((one for one in tensors if id(one) == leaf), None)
        if changed is None:
            self.from_grads[call.out] = leaf
        elif self.watch.name in UPDATES and is_parameter(changed):
            name, stored = name_in(frame_of(call.code), changed), stored_in(call.code, call.lasti)
            if stored is not None and stored in (name, ""):
                self.updates[call.code, call.lasti] = name or "the parameter"

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Report a backward that has nowhere to go since an update lost requires_grad."""
        if tensor.requires_grad or not self.updates:
            return
        for cut in self.watch.flow.cuts_in(self.watch.flow.of(tensor).cuts):
            name = self.updates.get((cut.code, cut.lasti))
            if name is not None:
                self._report(name, place_of(cut), place)
                return

    def _report(self, name: str, update: Place, place: Place | None) -> None:
        self.report(
            "parameter-rebound-in-no-grad",
            place,
            f"{name} got a new value at {brief(update)}, under no_grad(): the result does not require grad.",
            f"What backward() at {brief(place)} starts from was computed from it and does not require grad either.",
            corrected=in_place(update),
            corrected_at=update,
        )


def in_place(place: Place) -> str | None:
    """Return `w -= lr * w.grad` for `w = w - lr * w.grad`, also after `with ...:`."""
    text = code_of(place)
    head, colon, statement = text.rpartition(": ") if text.startswith("with ") else ("", "", text)
    name, equals, rest = (part.strip() for part in statement.partition("="))
    for sign in "-+":
        if equals and rest.startswith(name) and rest.removeprefix(name).lstrip().startswith(sign):
            return f"{head}{colon}{name} {sign}= {rest.partition(sign)[2].strip()}"
    return None
