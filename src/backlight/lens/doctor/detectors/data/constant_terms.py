"""Terms of a loss that are numbers: `loss + 0.1 * other.item()` has the gradient of `loss`.

NOTE [A term without a gradient]
A number, or a tensor of one element without a graph, that was computed from parameters is added to a loss, and backward
starts from the sum. It changes the loss's value and no gradient. Penalties on weights are looked at by `Penalties`. In
`x + (f(x) - x).detach()` that is meant: the value is f's, the gradient x's.
"""

import ast

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.penalties import Penalties
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of
from backlight.lens.doctor.source import Spot, assignments, spelled, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

LEAVES = {"item", "tolist", "detach", "numpy"}
SCALES = {"mul", "div", "true_divide", "add", "radd", "mean", "sum"}


class ConstantTerms(Detector):
    """Finds them (see NOTE [A term without a gradient])."""

    calls = frozenset(SCALES)

    def __init__(self, watch):
        super().__init__(watch)
        self.sums: WeakIdDict[tuple[Instruction, str]] = WeakIdDict()  # losses with such a term -> line, how it left
        self.lines: dict[Instruction, str | None] = {}  # lines that add a number -> how it left the graph
        self.done: set[Instruction] = set()

    def called(self, call: Call) -> None:
        """Look at a sum."""
        out = call.out
        if not self.engine.is_tensor(out) or out.dim() or not is_computed(out):
            return
        inputs, name = self.watch.inputs, self.watch.name
        line = Instruction(call.code, call.lasti)
        if name in ("add", "radd"):
            how = self._leaving(call, line, inputs)
            if how is not None:
                self.sums[out] = line, how
                return
        for one in inputs:
            if one in self.sums and one.dim() == 0:
                self.sums[out] = self.sums.get(one)

    def _leaving(self, call: Call, line: Instruction, inputs: list) -> str | None:
        """Return how the constant of a sum left the graph; None if it is none that did."""
        if len(inputs) == 2:
            constant = next((one for one in inputs if not one.requires_grad and one.dim() == 0), None)
            if constant is None or constant in self.watch.detectors[Penalties].weights:
                return None
            flow = self.watch.flow
            info = flow.of(constant)
            loss = inputs[0] if constant is inputs[1] else inputs[1]
            if not info.leaves or not info.leaves & flow.of(loss).leaves:
                return None
            cuts = flow.cuts_in(info.cuts)
            if _keeps_gradient_of(spot_of(line).expression):
                return None
            return f"{cuts[-1].call} at {cuts[-1].line}" if cuts and cuts[-1].recording else None
        if not any(isinstance(one, float) for one in call.args):
            return None
        if line not in self.lines:
            self.lines[line] = _number_of_tensor(spot_of(line))
        return self.lines[line]

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Report a loss with such a term."""
        line, how = self.sums.get(tensor, (None, ""))
        if line is None or line in self.done:
            return
        self.done.add(line)
        self.report(
            "constant-in-loss",
            place_of(line),
            f"The term added at {brief_at(line)} has no graph: {how} removed it.",
            f"backward() at {brief(place)} starts from the sum; the term changes its value, but no gradient.",
        )


def _keeps_gradient_of(node: ast.AST | None) -> bool:
    """Return whether a sum is x + (… - x).detach()."""
    if not isinstance(node, ast.BinOp):
        return False
    for kept, other in ((node.left, node.right), (node.right, node.left)):
        taken = other.func.value if isinstance(other, ast.Call) and isinstance(other.func, ast.Attribute) else None
        if isinstance(taken, ast.BinOp) and isinstance(taken.op, ast.Sub) and ast.dump(taken.right) == ast.dump(kept):
            return True
    return False


def _number_of_tensor(spot: Spot) -> str | None:
    """Return `.item()` if one side of a sum is computed by it, written there or in the name's only assignment."""
    node = spot.expression
    if isinstance(node, ast.AugAssign):
        sides = [node.value]
    elif isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
    else:
        return None
    for side in sides:
        made = assignments(spot.scope, side.id) if isinstance(side, ast.Name) and spot.scope is not None else ()
        value = made[0].value if len(made) == 1 else side
        how = _leaves(value)
        if how is not None and not any(_leaves(other) for other in sides if other is not side):
            return how
    return None


def _leaves(node: ast.AST) -> str | None:
    """Return how an expression leaves the graph: only products and quotients may stand around `x.item()`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return _leaves(node.left) or _leaves(node.right)
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in LEAVES:
        return f"{node.func.attr}()"
    return "float()" if spelled(node.func) == "float" else None
