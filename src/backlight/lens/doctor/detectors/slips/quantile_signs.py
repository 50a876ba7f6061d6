"""The loss of a quantile with the error's sign turned: it learns the opposite quantile.

NOTE [Which side of a quantile]
max(q · e, (q - 1) · e) with e = target - output is least at the quantile q; with e = output - target at 1 - q. The two
factors are read off the source, what e is off the graph.
"""

import ast

from backlight.dispatch.observers import Call
from backlight.lens.doctor.corrections.lines import replace
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.source import Spot, spelled, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

CHOOSES = {"maximum", "max", "where"}
TWICE = 2


class QuantileSigns(Detector):
    """Finds them (see NOTE [Which side of a quantile])."""

    calls = frozenset({*CHOOSES, "sub", "mul"})

    def __init__(self, watch):
        super().__init__(watch)
        self.errors: WeakIdDict[Instruction] = WeakIdDict()  # output - target
        self.products: WeakIdDict[Instruction] = WeakIdDict()
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow a difference to the choice between its two multiples."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not self.engine.is_tensor(out) or not out.requires_grad:
            return
        if name == "sub":
            if len(inputs) == 2 and inputs[0].requires_grad and not inputs[1].requires_grad:
                self.errors[out] = Instruction(call.code, call.lasti)
        elif name == "mul":
            known = next((one for one in inputs if one in self.errors), None)
            if known is not None:
                self.products[out] = self.errors.get(known)
        else:
            self._look(call, [one for one in inputs if one in self.products])

    def _look(self, call: Call, products: list[Tensor]) -> None:
        line = Instruction(call.code, call.lasti)
        if len(products) != 2 or self.products.get(products[0]) != self.products.get(products[1]):
            return
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] != TWICE:
            return
        spot, made = spot_of(line), self.products.get(products[0])
        factors = _factors(spot)
        if factors is None:
            return
        quantile, error = factors
        self.report(
            "quantile-of-other-side",
            place_of(made),
            f"{error} at {brief_at(made)} is the output minus the target, and {brief_at(line)} weights it by "
            f"{quantile} "
            f"where it is positive, by 1 - {quantile} where it is negative.",
            f"The minimum is where a fraction 1 - {quantile} of the targets is below the output.",
            corrected=_turned(spot_of(made)),
        )


def _factors(spot: Spot) -> tuple[str, str] | None:
    """Return what q and e are called in `max(q * e, (q - 1) * e)`; None if it is not written so."""
    call = spot.call
    products = [one for one in call.args if isinstance(one, ast.BinOp)] if call is not None else []
    if len(products) != 2 or not all(isinstance(one.op, ast.Mult) for one in products):
        return None
    texts = [{spot.text(one.left), spot.text(one.right)} for one in products]
    common = texts[0] & texts[1]
    if len(common) != 1:
        return None
    error = common.pop()
    sides = [one.left if spot.text(one.right) == error else one.right for one in products]
    for one, other in (sides, sides[::-1]):
        quantile = spelled(one)
        less = isinstance(other, ast.BinOp) and isinstance(other.op, ast.Sub) and spelled(other.left) == quantile
        if quantile is not None and less and isinstance(other.right, ast.Constant) and other.right.value == 1:
            return quantile, error
    return None


def _turned(spot: Spot) -> str | None:
    """`error = output - target` → `error = target - output`."""
    node = spot.expression
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub) or isinstance(node.right, ast.BinOp):
        return None
    left, right = spot.text(node.left), spot.text(node.right)
    simple = not isinstance(node.left, (ast.BinOp, ast.UnaryOp))
    return spot.edited(replace(node, f"{right} - {left}")) if simple else None
