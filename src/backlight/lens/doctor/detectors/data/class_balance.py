"""Classes and their number: weights that favour the frequent ones, batches of a single class.

NOTE [Weights of classes]
Weights are to make up for rare classes. They are the wrong way round if over the whole run the more frequent class
has the greater weight, in the same order for all classes, and the weights are nearly a power of the counts. Two
weights are always a power of two counts: they must be nearly the counts, or their roots. Others are costs of a mistake.

NOTE [Batches of one class]
Eight batches in a row that one model gets hold one class each, and the class changes seldom: the data are sorted, and
not shuffled.
"""

from dataclasses import dataclass, field

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.slips.loaders import Loaders
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

MAKES = {"div", "true_divide", "rdiv", "reciprocal", "pow", "mul", "softmax", "tensor", "sqrt", "log", "add", "to"}
BINARY = "binary_cross_entropy_with_logits"
ROWS, UNEQUAL, ALIKE = 48, 1.4, 0.97
POWERS, NEAR = (0.5, 1.0), 0.15
BATCHES, SMALLEST, MOST = 8, 4, 1000


@dataclass(slots=True)
class Counted:
    """The classes that one line's loss was given: how many of each, with which weights."""

    line: Instruction
    counts: np.ndarray
    weights: np.ndarray | None = None
    made: Instruction | None = None


@dataclass(slots=True)
class Batches:
    """The first batches that one model's loss was given, as long as each holds one class."""

    alone: list[int] = field(default_factory=list)
    mixed: bool = False


class ClassBalance(Detector):
    """Finds them (see NOTE [Weights of classes], NOTE [Batches of one class])."""

    calls = frozenset({"cross_entropy", "nll_loss", BINARY, *MAKES})

    def __init__(self, watch):
        super().__init__(watch)
        self.made: WeakIdDict[Instruction] = WeakIdDict()  # vectors without a graph -> line
        self.lines: dict[tuple, Counted] = {}
        self.batches: dict[tuple, Batches] = {}  # of a line and the parameters behind its scores

    def called(self, call: Call) -> None:
        """Count the classes of a loss."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        line = Instruction(call.code, call.lasti)
        if name in MAKES:
            if self.engine.is_tensor(out) and out.dim() < 2 and not out.requires_grad:
                before = self.made.get(inputs[0]) if name == "to" and inputs else None
                self.made[out] = before or line
        elif len(inputs) > 1 and is_computed(inputs[0]) and not inputs[1].requires_grad:
            self._count(call, line, name, *inputs[:2])

    def _count(self, call: Call, line: Instruction, name: str, scores: Tensor, target: Tensor) -> None:
        values = self.values(target)
        classes = 2 if name == BINARY else scores.shape[1] if scores.dim() > 1 else 0
        if values is None or not values.size or not 1 < classes <= MOST or (values.dtype.kind != "i" and classes != 2):
            return
        if values.min() < 0 or values.max() >= classes or (name == BINARY and np.any((values != 0) & (values != 1))):
            return
        known = self.lines.setdefault((line, classes), Counted(line, np.zeros(classes)))
        known.counts += np.bincount(values.astype(np.int64).ravel(), minlength=classes)
        given = call.args[2] if name != BINARY and len(call.args) > 2 else None
        weight = call.kwargs.get("pos_weight" if name == BINARY else "weight", given)
        if self.engine.is_tensor(weight) and known.weights is None and (given := self.values(weight)) is not None:
            if given.size == (1 if name == BINARY else classes):
                given = given.astype(np.float64).ravel()
                known.weights = np.array([1.0, given[0]]) if name == BINARY else given
                known.made = self.made.get(weight)
        if name != BINARY and values.ndim == 1:
            self._look_at_batch(line, self.watch.flow.of(scores).leaves, values)

    def _look_at_batch(self, line: Instruction, leaves: int, values: np.ndarray) -> None:
        known = self.batches.setdefault((line, leaves), Batches())
        if known.mixed or len(known.alone) >= BATCHES:
            return
        if values.size < SMALLEST or values.min() != values.max():
            known.mixed = True
            return
        known.alone.append(int(values[0]))
        changes = sum(one != other for one, other in zip(known.alone, known.alone[1:]))
        if len(known.alone) == BATCHES and 0 < changes <= BATCHES // 3:
            loaders = self.watch.detectors[Loaders]
            where = line if loaders.open is None else loaders.open.made or line
            self.report(
                "batches-of-one-class",
                place_of(where),
                f"The first {BATCHES} batches that the loss at {brief_at(line)} got contain one class each: "
                f"{', '.join(map(str, known.alone))}.",
            )

    def end(self, problem: BaseException | None) -> None:
        """Compare weights with counts."""
        for one in self.lines.values():
            seen = one.counts > 0
            if one.weights is None or seen.sum() < 2 or one.counts.sum() < ROWS or (one.weights[seen] <= 0).any():
                continue
            weights, counts = np.log(one.weights[seen]), np.log(one.counts[seen])
            if np.ptp(weights) < np.log(UNEQUAL) or np.ptp(counts) < np.log(UNEQUAL):
                continue
            if np.corrcoef(weights, counts)[0, 1] > ALIKE and (len(counts) > 2 or _is_power(weights, counts)):
                rare, often = int(np.argmin(one.counts[seen])), int(np.argmax(one.counts[seen]))
                where = one.made or one.line
                self.report(
                    "weights-favour-frequent",
                    place_of(where),
                    f"The loss at {brief_at(one.line)} got {int(one.counts[seen][often])} samples of one class, with "
                    f"weight {short(float(one.weights[seen][often]))}, and {int(one.counts[seen][rare])} of another, "
                    f"with weight {short(float(one.weights[seen][rare]))}.",
                )


def _is_power(weights: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether two weights are as their counts, or as the roots of these, both given as logarithms."""
    exponent = np.ptp(weights) / np.ptp(counts)
    return bool(min(abs(exponent - one) / one for one in POWERS) < NEAR)
