"""`w = w - lr * w.grad` under no_grad(): a new tensor under the old name, and the leaf is lost.

NOTE [When a rebound name is a mistake]
`w - lr * w.grad` may be meant. It is a mistake when its result is stored where `w` was, and a backward is started from
something that was computed of it, though it no longer requires grad. (Where it still does, its `.grad` is read later,
of which the engines themselves warn.)
"""

import weakref
from types import CodeType

from backlight.dispatch.observers import Call
from backlight.engine.provenance import frame_of
from backlight.lens.doctor.bytecode import stored_in
from backlight.lens.doctor.part import Part, code_of, is_wanting, name_in, said
from backlight.lens.doctor.places import place_of
from backlight.lens.doctor.rule_index import rule
from backlight.lens.records.record import Place

SCALING = {"mul", "div", "neg", "sign", "sub", "add", "rsub", "sqrt", "pow", "detach", "clone", "data"}
UPDATES = {"sub", "add", "rsub"}


class Rebinding(Part):
    """Follows gradients into updates (see NOTE [When a rebound name is a mistake])."""

    calls = frozenset(SCALING)

    def __init__(self, silent):
        super().__init__(silent)
        self.from_grads: dict[
            int, tuple
        ] = {}  # tensors computed from a leaf's .grad -> (weak reference, id of the leaf)
        self.updates: dict[tuple[CodeType, int], str] = {}  # lines that lose requires_grad -> the leaf's name

    def read_grad(self, tensor, grad, frame) -> None:
        """Note a gradient that the user takes."""
        if grad is not None and is_wanting(tensor):
            self._note(grad, id(tensor))

    def called(self, call: Call) -> None:
        """Follow what is computed from gradients."""
        name = self.silent.name
        if not self.from_grads or not self.engine.is_tensor(call.out):
            return
        tensors = [one for one in call.args if self.engine.is_tensor(one)]
        leaf = next((known for one in tensors if (known := self._leaf_of(one)) is not None), None)
        if leaf is None or call.out.requires_grad or any(call.out is one for one in tensors):
            return
        changed = next((one for one in tensors if id(one) == leaf), None)
        if changed is None:
            self._note(call.out, leaf)
        elif name in UPDATES and is_wanting(changed):
            self._look_at_update(call, changed)

    def _look_at_update(self, call: Call, leaf) -> None:
        name, stored = name_in(frame_of(call.code), leaf), stored_in(call.code, call.lasti)
        if stored is not None and stored in (name, ""):
            self.updates[call.code, call.lasti] = name or "the parameter"

    def going_back(self, tensor, keep, place) -> None:
        """Report a backward that has nowhere to go since an update lost requires_grad."""
        if tensor.requires_grad or not self.updates:
            return
        for cut in self.silent.flow.cuts_in(self.silent.flow.of(tensor).cuts):
            name = self.updates.get((cut.code, cut.lasti))
            if name is not None:
                self._report(name, place_of(cut.code, cut.lasti), place)
                return

    def _report(self, name: str, update: Place, place: Place | None) -> None:
        evidence = (
            f"{name} got a new value at {said(update)}, under no_grad(): the result does not require grad.",
            f"What backward() at {said(place)} starts from was computed of it, and does not require grad either.",
        )
        found = rule("parameter-rebound-in-no-grad").found(
            place=place, evidence=evidence, corrected=in_place(update), corrected_at=update
        )
        self.session.add(found)

    def _note(self, tensor, leaf: int) -> None:
        key, from_grads = id(tensor), self.from_grads
        from_grads[key] = weakref.ref(tensor, lambda _: from_grads.pop(key, None)), leaf

    def _leaf_of(self, tensor) -> int | None:
        known = self.from_grads.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None


def in_place(place: Place) -> str | None:
    """Return `w -= lr * w.grad` for `w = w - lr * w.grad`, also after `with ...:`."""
    text = code_of(place)
    head, colon, statement = text.rpartition(": ") if text.startswith("with ") else ("", "", text)
    name, equals, rest = (part.strip() for part in statement.partition("="))
    for sign in "-+":
        if equals and rest.startswith(name) and rest.removeprefix(name).lstrip().startswith(sign):
            return f"{head}{colon}{name} {sign}= {rest.partition(sign)[2].strip()}"
    return None
