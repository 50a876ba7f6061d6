"""Legal things that are often misunderstood: kept gradients, `backward(inputs=…)`, writes that join the graph."""

from types import FrameType

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Node
from backlight.lens.doctor.places import place_of, place_of_frame

FLAGS = ("requires_grad_", "detach_")


class Legal(Detector):
    """Adds notes only."""

    only_notes = True

    def begin(self) -> None:
        """Watch retain_grad."""
        self.watch.after(self.engine.module.Tensor, "retain_grad", self._retained)

    def _retained(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        (tensor,) = args
        seen = f"retain_grad() was called on a tensor of shape {list(tensor.shape)}"
        self.report("BL105" if tensor.is_leaf else "BL106", place_of_frame(frame), seen)

    def started(self, run: Run) -> None:
        """Note a backward that is to end at tensors that are no leaves."""
        if run.inputs is None or not run.accumulate_grad:
            return
        computed = [node.name() for node, _ in run.inputs if not self.engine.is_leaf_node(node)]
        if computed:
            seen = f"inputs= contains a result of {computed[0]}: it gets a .grad, and the tensors before it get none"
            self.report("BL215", place_of(run), seen)

    def called(self, call: Call) -> None:
        """Note a write to a view, and a write that made a tensor part of the graph."""
        tensor = call.out
        if not call.args or tensor is not call.args[0] or not _writes(call.name):
            return
        if not self.engine.is_tensor(tensor) or tensor.grad_fn is None:
            return
        place = place_of(call)
        if tensor._is_view():
            seen = f"{call.name} wrote to a view of shape {list(tensor.shape)}, and so to its base"
            self.report("BL312", place, seen)
        elif _joined(tensor.grad_fn):
            seen = f"{call.name} wrote values that require grad: the tensor has a grad_fn now"
            self.report("BL313", place, seen)


def _writes(name: str) -> bool:
    """Return whether an op of this name writes in place: `add_`, `__iadd__`."""
    return name.startswith("__i") if name.endswith("__") else name.endswith("_") and name not in FLAGS


def _joined(node: Node) -> bool:
    """Return whether a node's first input, the tensor as it was before the write, required no grad."""
    inputs = [inner for inner, _ in node.next_functions]
    return len(inputs) > 1 and inputs[0] is None and any(inner is not None for inner in inputs)
