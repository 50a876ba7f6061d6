"""Losses that go the wrong way: one that falls without a bound, a cost that the training makes greater.

NOTE [When the direction is wrong]
Losses may be negative (log-densities, rewards). One that has no bound falls further in each stretch of a run than in
the one before it, to a hundred times its first size below zero. A cost (a mean square, a cross entropy) that is
negated, or minimised by an optimizer with `maximize=True`, is a mistake if nothing else trains the same parameters, one
optimizer is all that there is, and the cost rose.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector, numbers_of
from backlight.lens.doctor.detectors.training.roots import COSTS, Roots
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Optimizer, Tensor
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

LEAST, BOUND, KEPT = 12, 100.0, 100_000
RISES = 5
EXPLAINED = ("BL744", "BL746", "BL743", "BLA15")
FOLLOWS = ("BL724", "BL805", "BL820")  # what a loss without a bound ends in


@dataclass(slots=True)
class Series:
    """The values that one line's backward started from; the lines of the losses that are parts of the last."""

    place: Place | None
    root: Instruction | None
    values: list[float] = field(default_factory=list)
    parts: list[tuple[Instruction, float]] = field(default_factory=list)


@dataclass(slots=True)
class Negated:
    """A line that makes a cost negative: which cost, its line, the values of the cost."""

    cost: str
    made: Instruction
    line: Instruction
    values: list[float] = field(default_factory=list)


class Directions(Detector):
    """Follows the values of losses (see NOTE [When the direction is wrong])."""

    calls = frozenset({*COSTS, "neg", "mul", "rsub", "sub", "mean", "sum", "div", "true_divide", "add"})

    def __init__(self, watch):
        super().__init__(watch)
        self.series: dict[tuple, Series] = {}
        self.parts: list[tuple[Instruction, float]] = []  # scalars made since the last backward
        self.costs: WeakIdDict[tuple[str, Instruction]] = WeakIdDict()
        self.negated: WeakIdDict[tuple[Instruction, str, Instruction]] = WeakIdDict()
        self.lines: dict[Instruction, Negated] = {}
        self.other_roots = False  # whether a backward began at anything but a negated cost
        self.maximised: dict[Instruction, Negated] = {}
        self.last_cost: tuple[Instruction, str, float] | None = None
        self.optimizers: WeakIdDict[None] = WeakIdDict()
        self.count = 0
        self.models = False

    def called(self, call: Call) -> None:
        """Note scalars, costs and negated costs."""
        out = call.out
        if not self.engine.is_tensor(out) or out.dim() or not out.requires_grad or out.is_leaf:
            return
        line, name = Instruction(call.code, call.lasti), self.watch.name
        value = self.number(out)
        if value is not None and len(self.parts) < 200:
            self.parts.append((line, value))
        if name in COSTS:
            self.costs[out] = name, line
            return
        source = next((known for one in self.watch.inputs if (known := self.costs.get(one)) is not None), None)
        if source is not None and _negates(name, call):
            self.negated[out] = line, *source
        elif (
            source is not None and len(self.watch.inputs) == 1 and name in ("mean", "sum", "div", "true_divide", "mul")
        ):
            self.costs[out] = source

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Follow the value of a root."""
        parts, self.parts = self.parts, []
        value = self.number(tensor) if tensor.numel() == 1 else None
        if value is None or place is None:
            self.other_roots = True
            return
        root = self.watch.detectors[Roots].line_of(tensor)
        series = self.series.setdefault((place.file, place.line), Series(place, root))
        if len(series.values) < KEPT:
            series.values.append(value)
        series.parts = parts
        known, cost = self.negated.get(tensor), self.costs.get(tensor)
        self.last_cost = None if cost is None else (cost[1], cost[0], value)
        if known is not None:
            line, name, made = known
            self.lines.setdefault(line, Negated(name, made, line)).values.append(-value)
        else:
            self.other_roots = True

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note a step that makes a cost greater."""
        if optimizer not in self.optimizers:
            self.optimizers[optimizer] = None
            self.count += 1
        kind = self.engine.module.nn.Parameter
        self.models = self.models or all(isinstance(one, kind) for one in params)
        maximises = all(group.get("maximize", False) for group in optimizer.param_groups)
        if maximises and self.last_cost is not None and place is not None:
            line, name, value = self.last_cost
            self.maximised.setdefault(line, Negated(name, line, line)).values.append(value)

    def end(self, problem: BaseException | None) -> None:
        """Report what went the wrong way."""
        if self.count == 1 and self.models:
            for one in self.lines.values() if not self.other_roots else ():
                self._report_maximised(one, f"{brief_at(one.line)} makes it negative, and the result is minimised.")
            for one in self.maximised.values():
                self._report_maximised(one, "The optimizer was made with maximize=True.", "remove maximize=True")
        if not self.session.has(EXPLAINED):
            for series in self.series.values():
                if _has_no_bound([one for one in series.values if math.isfinite(one)]):
                    self.session.discard(FOLLOWS)
                    self._report_unbounded(series)

    def _report_maximised(self, one: Negated, how: str, cure: str | None = None) -> None:
        values = one.values
        if len(values) < RISES or not values[-1] > values[0]:
            return
        self.report(
            "cost-maximised",
            place_of(one.line),
            f"{one.cost} at {brief_at(one.made)} rose from {short(values[0])} to {short(values[-1])} in {len(values)} "
            f"backwards. {how}",
            title=f"training increases {one.cost}",
            cure=cure,
        )

    def _report_unbounded(self, series: Series) -> None:
        values = [one for one in series.values if math.isfinite(one)]
        last = values[-1]
        part = next((one for one in series.parts if one[1] < 0.5 * last), None)
        first = [short(values[round(k * (len(values) - 1) / 4)]) for k in range(5)]
        at = part[0] if part is not None else series.root
        evidence = [f"The loss of backward() at {brief(series.place)} over the run: {', '.join(first)}."]
        if part is not None:
            evidence.append(f"Most of it is the term made at {brief_at(part[0])}: {short(part[1])} in the last step.")
        self.report("loss-without-bound", series.place if at is None else place_of(at), *evidence)


def _negates(name: str, call: Call) -> bool:
    if name == "neg":
        return True
    numbers = numbers_of(call)
    if name in ("mul", "div", "true_divide"):
        return len(numbers) == 1 and numbers[0] < 0
    return name == "rsub" and bool(numbers)


def _has_no_bound(values: list[Any]) -> bool:
    """Return whether a series falls far below zero, and faster and faster."""
    if len(values) < LEAST:
        return False
    size = max(1.0, max(abs(one) for one in values[:3]))
    quarter = len(values) // 4
    marks = [values[-1 - k * quarter] for k in range(3, -1, -1)]
    falls = [before - after for before, after in zip(marks, marks[1:])]
    return (
        values[-1] < -BOUND * size and falls[-1] > 0 and falls[-1] > 0.5 * falls[-2] and min(values) >= 2 * values[-1]
    )
