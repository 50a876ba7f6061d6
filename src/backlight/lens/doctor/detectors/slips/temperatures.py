"""Scores that are multiplied by a temperature, which they should be divided by.

NOTE [A temperature]
softmax(scores / T) is sharper the smaller T is. A product with what the program calls a temperature, a number that is
not learned, goes the other way, if a softmax or a cross entropy takes it. Below 1 that is never meant. Above 1 a name
may mean the scale of cosines, so that a softmax of scores must go into a divergence, as a distillation's does.
"""

import ast
import re

from backlight.dispatch.observers import Call
from backlight.lens.doctor.corrections.lines import replace
from backlight.lens.doctor.detector import Detector, numbers_of
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.places import Instruction, brief_at
from backlight.lens.doctor.source import Spot, spelled, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

TEMPERATURE = re.compile(r"(?:^|_)(?:temp|temps|temperature|tau)$|^T$")
TURNED = {"inv", "inverse", "recip", "reciprocal"}
TAKES = {"softmax", "log_softmax", "cross_entropy", "logsumexp", "gumbel_softmax"}
KEEPS = {"view", "reshape", "masked_fill", "sub", "squeeze", "unsqueeze", "transpose", "flatten", "add", "getitem"}
TWICE = 2


class Temperatures(Detector):
    """Finds them (see NOTE [A temperature])."""

    calls = frozenset({*TAKES, *KEEPS, "mul", "kl_div"})

    def __init__(self, watch):
        super().__init__(watch)
        self.warmed: WeakIdDict[tuple[Instruction, float]] = WeakIdDict()
        self.soft: WeakIdDict[tuple[Instruction, float]] = WeakIdDict()  # softmax of such, above 1
        self.plain: set[Instruction] = set()  # lines of other products
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow a product to the softmax."""
        name, inputs = self.watch.name, self.watch.inputs
        if not inputs or not self.watch.outs:
            return
        if name == "mul":
            self._multiplied(call)
            return
        if name == "kl_div":
            for one in inputs[:2]:
                if one in self.soft:
                    self._count(*self.soft.get(one))
            return
        known = self.warmed.get(inputs[0])
        if known is None:
            return
        if name in KEEPS:
            self.warmed[self.watch.outs[0]] = known
        elif known[1] < 1:
            self._count(*known)
        else:
            self.soft[self.watch.outs[0]] = known

    def _multiplied(self, call: Call) -> None:
        line = Instruction(call.code, call.lasti)
        number = next(iter(numbers_of(call)), None)
        if line in self.plain or number is None or number <= 0 or number == 1:
            return
        if line not in self.times and _factors(spot_of(call)) is None:
            self.plain.add(line)
            return
        self.warmed[call.out] = line, float(number)

    def _count(self, line: Instruction, number: float) -> None:
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] != TWICE:
            return
        spot = spot_of(line)
        scores, temperature = _factors(spot)
        corrected = None
        if isinstance(spot.expression, ast.BinOp):
            text = spot.text(scores)
            text = f"({text})" if isinstance(scores, (ast.BinOp, ast.UnaryOp, ast.IfExp)) else text
            if text.startswith("((") and text.endswith("))"):
                text = text[1:-1]
            corrected = spot.edited(replace(spot.expression, f"{text} / {spot.text(temperature)}"))
        self.report(
            "multiplied-by-temperature",
            spot.place,
            f"{brief_at(line)} multiplies scores by {spelled(temperature)}, which is {short(number)}, before a "
            f"softmax.",
            "The distribution becomes flatter, although this temperature should make it sharper."
            if number < 1
            else "The distribution becomes sharper, although this temperature should make it flatter.",
            corrected=corrected,
        )


def _factors(spot: Spot) -> tuple[ast.AST, ast.AST] | None:
    """Return the scores and the temperature of a product; None if neither factor has such a name."""
    node = spot.expression
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        pair = node.left, node.right
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "mul" and node.args:
        pair = node.func.value, node.args[0]
    else:
        return None
    for scores, temperature in (pair, pair[::-1]):
        name = (spelled(temperature) or "").rpartition(".")[2]
        if TEMPERATURE.search(name) and not TURNED & set(name.split("_")):
            return scores, temperature
    return None
