"""Legal things that are often misunderstood: kept gradients, `backward(inputs=…)`, writes that join the graph."""

import sys
from functools import wraps

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.places import place_of, place_of_frame
from backlight.lens.doctor.rule_index import rule


class Legal(Detector):
    """Adds notes; it checks nothing if notes were not requested."""

    def begin(self) -> None:
        """Stand in for retain_grad."""
        if self.session.notes:
            self.session.patch(self.engine.module.Tensor, "retain_grad", self._retain_grad)

    def _retain_grad(self, original):
        @wraps(original)
        def retain_grad(tensor):
            original(tensor)
            name = "BL105" if tensor.is_leaf else "BL106"
            seen = f"retain_grad() was called on a tensor of shape {list(tensor.shape)}"
            self.session.add(rule(name).found(place=place_of_frame(sys._getframe(1)), evidence=(seen,)))

        return retain_grad

    def started(self, run: Run) -> None:
        """Note a backward that is to end at tensors that are no leaves."""
        if not self.session.notes or run.inputs is None or not run.into_grad:
            return
        computed = [node.name() for node, _ in run.inputs if not self.engine.is_leaf_node(node)]
        if computed:
            seen = f"inputs= names what {computed[0]} computed: it gets a .grad, and what lies before it none"
            self.session.add(rule("BL215").found(place=place_of(run.code, run.lasti), evidence=(seen,)))

    def called(self, call: Call) -> None:
        """Note a write to a view, and a write that made a tensor part of the graph."""
        if not self.session.notes or not call.args or call.out is not call.args[0] or not _writes(call.name):
            return
        tensor = call.out
        if not self.engine.is_tensor(tensor) or tensor.grad_fn is None:
            return
        if tensor._is_view():
            name, seen = "BL312", f"{call.name} wrote to a view of shape {list(tensor.shape)}, and so to its base"
        elif _joined(tensor.grad_fn):
            name, seen = "BL313", f"{call.name} brought in what requires grad: the tensor has a grad_fn now"
        else:
            return
        self.session.add(rule(name).found(place=place_of(call.code, call.lasti), evidence=(seen,)))


def _writes(name: str) -> bool:
    """Return whether an op of this name writes in place: `add_`, `__iadd__`."""
    return name.startswith("__i") if name.endswith("__") else name.endswith("_") and name not in FLAGS


FLAGS = ("requires_grad_", "detach_")


def _joined(node) -> bool:
    """Return whether a node's first input, the tensor as it was before the write, required no grad."""
    inputs = [inner for inner, _ in node.next_functions]
    return len(inputs) > 1 and inputs[0] is None and any(inner is not None for inner in inputs)
