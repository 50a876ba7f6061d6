"""What `autograd.grad` returned: gradients that cannot be differentiated again, and inputs that were not used.

NOTE [A residual of an equation]
A derivative without a graph is added to what was computed of the same inputs by the same parameters, and the sum is
squared in the loss: the residual of an equation, one term of which is a constant for the training. Parameters that
are moved along their own gradient, synthetic gradients and other targets for gradients are no such sums.
"""

from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.corrections.lines import with_keyword
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor, is_computed, nodes_behind
from backlight.lens.doctor.places import Instruction, brief, brief_at
from backlight.lens.doctor.source import Spot, spot_of_frame
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

SQUARES = {"pow", "square", "abs", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}
KEEPS = {"mul", "div", "true_divide", "mean", "sum", "squeeze", "reshape", "view", "flatten", "getitem", "__getitem__"}
LEAVES = {"detach", "data", "item", "tolist", "numpy", "__array__", "__float__", "backward"}
DEEP = 200  # nodes of a graph that are looked at
MARKED_IN = ("torch/autograd/function.py", "backlight/autograd/function.py")


@dataclass(frozen=True)
class Given:
    """A gradient that `autograd.grad` returned: the call, and whether it was to be recorded."""

    spot: Spot
    create_graph: bool
    once: str | None  # a Function on the way that is marked @once_differentiable
    parameters: frozenset[int] = frozenset()  # ids of those that the output was computed by
    inputs: frozenset[int] = frozenset()  # ids of the tensors whose gradients were asked for


class Gradients(Detector):
    """Remembers what `autograd.grad` returned, and reports inputs that were not used, which is legal."""

    def __init__(self, watch):
        super().__init__(watch)
        self.given: WeakIdDict[Given] = WeakIdDict()
        self.derived: WeakIdDict[Given] = WeakIdDict()  # what was computed from gradients without a graph
        self.sums: WeakIdDict[tuple[Given, Instruction]] = WeakIdDict()  # losses that such a number was added to
        self.residuals: WeakIdDict[tuple[Given, Instruction, bool]] = WeakIdDict()  # -> the sum, whether it is squared

    def called(self, call: Call) -> None:
        """Follow what is computed from gradients that were not recorded, up to a sum with a loss."""
        if not (self.derived or self.residuals) or call.name in LEAVES or not self.engine.is_tensor(call.out):
            return
        if not self.engine.module.is_grad_enabled():
            return
        out, inputs = call.out, self.watch.inputs
        given = next((known for one in inputs if (known := self.derived.get(one)) is not None), None)
        if given is not None and not self._reaches_parameters(out):
            self.derived[out] = given
        elif given is not None and self.watch.name in ("add", "sub") and self._is_residual(given, inputs):
            self.residuals[out] = given, Instruction(call.code, call.lasti), False
        elif residual := next((known for one in inputs if (known := self.residuals.get(one)) is not None), None):
            self._follow(residual, inputs, out)
        elif out.requires_grad and out.numel() == 1:
            summed = next((known for one in inputs if (known := self.sums.get(one)) is not None), None)
            joined = given is not None and self.watch.name in ("add", "sub") and all(_is_loss(one) for one in inputs)
            if joined and any(is_computed(one) for one in inputs):
                self.sums[out] = given, Instruction(call.code, call.lasti)
            elif summed is not None:
                self.sums[out] = summed

    def _is_residual(self, given: Given, inputs: list) -> bool:
        """Return whether a derivative is added to what the same inputs and parameters gave."""
        other = next((one for one in inputs if one not in self.derived), None)
        if other is None or not given.parameters or not is_computed(other) or id(other) in given.inputs:
            return False
        leaves, seen = self._parameters_behind(other), {id(one) for one in self._leaves_behind(other)}
        return len(given.parameters - leaves) <= 1 and bool(given.inputs & seen)  # a derivative has no last bias

    def _leaves_behind(self, tensor: Tensor) -> list:
        nodes = islice(nodes_behind([tensor.grad_fn]), DEEP)
        return [one for node in nodes if (one := getattr(node, "variable", None)) is not None]

    def _parameters_behind(self, tensor: Tensor) -> frozenset[int]:
        kind = self.engine.module.nn.Parameter
        return frozenset(id(one) for one in self._leaves_behind(tensor) if isinstance(one, kind))

    def _follow(self, residual: tuple[Given, Instruction, bool], inputs: list, out: Tensor) -> None:
        """Follow a residual through a square into sums of numbers."""
        given, line, squared = residual
        name = self.watch.name
        if name in SQUARES or (name == "mul" and len(inputs) > 1 and all(one in self.residuals for one in inputs)):
            self.residuals[out] = given, line, True
        elif name in KEEPS or (name in ("add", "sub") and (out.dim() == 0 or not squared)):
            self.residuals[out] = residual

    def _reaches_parameters(self, tensor: Tensor) -> bool:
        """Tell whether a graph leads to parameters: that of a residual may lead to the points of an equation alone."""
        if not tensor.requires_grad:
            return False
        leaves = [getattr(node, "variable", None) for node in islice(nodes_behind([tensor.grad_fn]), DEEP)]
        return len(leaves) == DEEP or any(isinstance(one, self.engine.module.nn.Parameter) for one in leaves)

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Report a penalty that the loss holds as a constant."""
        given, line = self.sums.get(tensor, (None, None))
        residual, summed, squared = self.residuals.get(tensor, (None, None, False))
        if given is None and squared:
            self.residuals.clear()
            self._report_residual(residual, summed, place)
        if given is None:
            return
        self.sums.clear()
        corrected = with_keyword(given.spot, "create_graph", "True")
        self.report(
            "penalty-without-create-graph",
            given.spot.place,
            f"autograd.grad at {brief(given.spot.place)} ran without create_graph=True: its results have no graph.",
            f"A number computed from it was added to the loss at {brief_at(line)}, for backward() at {brief(place)}.",
            corrected=corrected,
        )

    def _report_residual(self, given: Given, line: Instruction, place: Place | None) -> None:
        self.report(
            "penalty-without-create-graph",
            given.spot.place,
            f"autograd.grad at {brief(given.spot.place)} ran without create_graph=True: its results have no graph.",
            f"{brief_at(line)} adds it to another output of the same parameters for the same inputs, and the square "
            f"of the sum is in the loss of backward() at {brief(place)}.",
            title="a derivative in a residual is a constant: it was computed without create_graph=True",
            corrected=with_keyword(given.spot, "create_graph", "True"),
        )

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
        asked = args[1] if len(args) > 1 else kwargs["inputs"]
        asked = asked if isinstance(asked, (list, tuple)) else [asked]
        parameters = frozenset() if create_graph or not is_computed(first) else self._parameters_behind(first)
        once = once_differentiable_in(getattr(first, "grad_fn", None)) if create_graph else None
        for tensor in found:
            if tensor is not None:
                self.given[tensor] = known = Given(spot, create_graph, once, parameters, frozenset(map(id, asked)))
                if not create_graph:
                    self.derived[tensor] = known
        missing = [number for number, tensor in enumerate(found) if tensor is None]
        if missing:
            seen = f"input {missing[0]} of {len(found)} was not used: its gradient is None"
            self.report("BL606", spot.place, seen)


def _is_loss(tensor: Tensor) -> bool:
    """Return whether a tensor is one number."""
    return tensor.numel() == 1 and tensor.dim() == 0


def once_differentiable_in(node: Any) -> str | None:
    """Return the name of a Function marked @once_differentiable in the graph behind a node."""
    for inner in nodes_behind([node]):
        function = getattr(inner, "_forward_cls", None) or getattr(type(inner), "function", None)
        backward = getattr(function, "backward", None)
        code = getattr(backward, "__code__", None)
        if hasattr(backward, "__wrapped__") and code is not None and code.co_filename.endswith(MARKED_IN):
            return function.__name__
    return None
