"""What `autograd.grad` returned: gradients that cannot be differentiated again, and inputs that were not used."""

import sys
import weakref
from dataclasses import dataclass
from functools import wraps

from backlight.lens.doctor import corrections
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.errors.scene import Scene, shown
from backlight.lens.doctor.rule_index import rule
from backlight.lens.doctor.source import Spot, spot_of_frame
from backlight.lens.finding import Finding

MANY = 10_000  # gradients that are remembered


@dataclass(frozen=True)
class Given:
    """A gradient that `autograd.grad` returned: a weak reference, the call, and whether it was to be recorded."""

    reference: weakref.ref
    spot: Spot
    create_graph: bool
    once: str | None  # a Function on the way that is marked @once_differentiable


class Gradients(Detector):
    """Remembers what `autograd.grad` returned, and reports inputs that were not used, which is legal."""

    def begin(self) -> None:
        """Stand in for autograd.grad."""
        self.given: dict[int, Given] = {}
        self.session.patch(self.engine.module.autograd, "grad", self._stand_in)

    def _stand_in(self, original):
        @wraps(original)
        def grad(outputs, inputs, *args, **kwargs):
            found = original(outputs, inputs, *args, **kwargs)
            spot = spot_of_frame(sys._getframe(1))
            if spot is not None:
                self._remember(outputs, found, spot.without_frame(), args, kwargs)
            return found

        return grad

    def _remember(self, outputs, found: tuple, spot: Spot, args: tuple, kwargs: dict) -> None:
        create_graph = bool(kwargs.get("create_graph", args[2] if len(args) > 2 else False))
        first = outputs[0] if isinstance(outputs, (list, tuple)) else outputs
        once = once_differentiable_in(getattr(first, "grad_fn", None)) if create_graph else None
        for tensor in found:
            if tensor is not None:
                self.given[id(tensor)] = Given(weakref.ref(tensor), spot, create_graph, once)
        while len(self.given) > MANY:
            del self.given[next(iter(self.given))]
        missing = [number for number, tensor in enumerate(found) if tensor is None]
        if missing:
            seen = f"input {missing[0]} of {len(found)} was not used: its gradient is None"
            self.session.add(rule("BL606").found(place=spot.place, evidence=(seen,)))

    def of(self, tensor) -> Given | None:
        """Return where a gradient came from, if autograd.grad returned it."""
        given = self.given.get(id(tensor))
        return given if given is not None and given.reference() is tensor else None


def once_differentiable_in(node) -> str | None:
    """Return the name of a Function marked @once_differentiable in the graph behind a node."""
    seen, stack = set(), [node]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        function = getattr(node, "_forward_cls", None) or getattr(type(node), "function", None)
        backward = getattr(function, "backward", None)
        code = getattr(backward, "__code__", None)
        if hasattr(backward, "__wrapped__") and code is not None and code.co_filename.endswith(MARKED_IN):
            return function.__name__
        stack += [inner for inner, _ in node.next_functions]
    return None


MARKED_IN = ("torch/autograd/function.py", "backlight/autograd/function.py")


def not_recorded(scene: Scene, tensor) -> Finding | None:
    """A gradient is differentiated that has no graph: BL603 or BL605."""
    detectors = [one for one in scene.session.detectors if isinstance(one, Gradients)]
    given = next((found for found in (one.of(tensor) for one in detectors) if found is not None), None)
    if given is None:
        return None
    came = f"it is what autograd.grad returned at {shown(given.spot.place)}"
    if given.once is not None:
        seen = f"{given.once}, on the way, is marked @once_differentiable"
        return rule("BL605").found(place=scene.place, evidence=(scene.said, came, seen))
    if given.create_graph:
        seen = "it was recorded (create_graph=True), and does not depend on anything that requires grad"
        return rule("BL208").found(place=scene.place, evidence=(scene.said, came, seen), cause=CONSTANT)
    corrected = corrections.with_keyword(given.spot, "create_graph", "True")
    return rule("BL603").found(
        place=scene.place, evidence=(scene.said, came), corrected=corrected, corrected_at=given.spot.place
    )


CONSTANT = "The gradient is constant, as that of a linear function is: its own derivative is zero everywhere."
