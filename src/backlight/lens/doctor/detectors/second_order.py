"""What `autograd.grad` returned: gradients that cannot be differentiated again, and inputs that were not used."""

from dataclasses import dataclass
from types import FrameType
from typing import Any

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import nodes_behind
from backlight.lens.doctor.source import Spot, spot_of_frame
from backlight.lens.doctor.weak_id_dict import WeakIdDict

MARKED_IN = ("torch/autograd/function.py", "backlight/autograd/function.py")


@dataclass(frozen=True)
class Given:
    """A gradient that `autograd.grad` returned: the call, and whether it was to be recorded."""

    spot: Spot
    create_graph: bool
    once: str | None  # a Function on the way that is marked @once_differentiable


class Gradients(Detector):
    """Remembers what `autograd.grad` returned, and reports inputs that were not used, which is legal."""

    def __init__(self, watch):
        super().__init__(watch)
        self.given: WeakIdDict[Given] = WeakIdDict()

    def begin(self) -> None:
        """Watch autograd.grad."""
        self.watch.after(self.engine.module.autograd, "grad", self._remember)

    def _remember(self, frame: FrameType, found: tuple, args: tuple, kwargs: dict[str, Any]) -> None:
        spot = spot_of_frame(frame)
        if spot is None:
            return
        spot = spot.without_frame()
        create_graph = bool(kwargs.get("create_graph", args[4] if len(args) > 4 else False))
        outputs = args[0] if args else kwargs["outputs"]
        first = outputs[0] if isinstance(outputs, (list, tuple)) else outputs
        once = once_differentiable_in(getattr(first, "grad_fn", None)) if create_graph else None
        for tensor in found:
            if tensor is not None:
                self.given[tensor] = Given(spot, create_graph, once)
        missing = [number for number, tensor in enumerate(found) if tensor is None]
        if missing:
            seen = f"input {missing[0]} of {len(found)} was not used: its gradient is None"
            self.report("BL606", spot.place, seen)


def once_differentiable_in(node: Any) -> str | None:
    """Return the name of a Function marked @once_differentiable in the graph behind a node."""
    for inner in nodes_behind([node]):
        function = getattr(inner, "_forward_cls", None) or getattr(type(inner), "function", None)
        backward = getattr(function, "backward", None)
        code = getattr(backward, "__code__", None)
        if hasattr(backward, "__wrapped__") and code is not None and code.co_filename.endswith(MARKED_IN):
            return function.__name__
    return None
