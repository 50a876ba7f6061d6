"""`w = w - lr * w.grad` under no_grad(): a new tensor under the old name, and the leaf is lost.

NOTE [When a rebound name is a mistake]
`w - lr * w.grad` may be meant. It is a mistake when its result is stored where `w` was, and a backward is started from
something that was computed of it, though it no longer requires grad. (Where it still does, its `.grad` is read later,
of which the engines themselves warn.)
"""

from types import CodeType, FrameType

from backlight.dispatch.observers import Call
from backlight.engine.provenance import frame_of
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of, name_in
from backlight.lens.doctor.graph import Tensor, is_parameter
from backlight.lens.doctor.places import brief, place_of
from backlight.lens.doctor.source import stored_in
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

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
            f"What backward() at {brief(place)} starts from was computed of it, and does not require grad either.",
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
