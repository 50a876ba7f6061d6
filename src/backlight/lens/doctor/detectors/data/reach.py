"""Outputs that cannot reach their targets: scores behind a relu, a sigmoid for targets above 1.

NOTE [Out of reach]
Scores of a classification are of both signs; the last layer's relu cuts off those below 0, and their gradients. In a
regression it is a mistake if a fifth of the targets or more, in three calls of a loss, lies outside of what the last
activation can return.
"""

from dataclasses import dataclass

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

CLASSES = {"cross_entropy", "binary_cross_entropy_with_logits"}
SQUARES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}
RANGES = {"relu": (0.0, np.inf), "sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "softmax": (0.0, 1.0)}
RANGES |= {"softplus": (0.0, np.inf)}
KEEPS = {
    "squeeze",
    "unsqueeze",
    "view",
    "reshape",
    "flatten",
    "getitem",
    "__getitem__",
    "select",
    "transpose",
    "permute",
}
RATES = {"exp", "softplus", "relu"}
CALLS, PART = 3, 0.2


@dataclass(frozen=True, slots=True)
class Bounded:
    """What bounds a tensor: the activation, its line, where its layer was made."""

    name: str
    line: Instruction
    made: Instruction | None


class Reach(Detector):
    """Finds them (see NOTE [Out of reach])."""

    calls = frozenset({*CLASSES, *SQUARES, *RANGES, *KEEPS, "exp"})

    def __init__(self, watch):
        super().__init__(watch)
        self.bounded: WeakIdDict[Bounded] = WeakIdDict()
        self.positive: WeakIdDict[Bounded] = WeakIdDict()  # never below 0
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow an activation to a loss."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs:
            return
        line = Instruction(call.code, call.lasti)
        if name in RANGES or name == "exp":
            if self.engine.is_tensor(out) and is_computed(out):
                made = Bounded(name, line, self.watch.detectors[Constructions].line_of_layer())
                if name in RANGES:
                    self.bounded[out] = made
                if name in RATES:
                    self.positive[out] = made
            return
        if name in KEEPS and inputs[0] in self.positive and self.engine.is_tensor(out):
            self.positive[out] = self.positive.get(inputs[0])
        known = self.bounded.get(inputs[0])
        if known is None:
            return
        if name in KEEPS:
            if self.engine.is_tensor(out):
                self.bounded[out] = known
        elif len(inputs) > 1 and self.times.get(line, 0) < CALLS:
            self._look(line, name, known, inputs[1])

    def _look(self, line: Instruction, loss: str, known: Bounded, target: Tensor) -> None:
        if loss in CLASSES:
            if known.name not in ("relu", "tanh"):
                return
            why = f"{loss} at {brief_at(line)} expects scores of both signs and any magnitude."
        else:
            values = self.values(target)
            least, most = RANGES[known.name]
            if target.requires_grad or values is None or not values.size:
                return
            if np.mean((values < least) | (values > most)) < PART:
                self.times[line] = 0
                return
            why = (
                f"The targets of {loss} at {brief_at(line)} range from {short(float(values.min()))} to "
                f"{short(float(values.max()))}."
            )
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] == CALLS:
            self._report(known, loss, why)

    def _report(self, known: Bounded, loss: str, why: str) -> None:
        least, most = RANGES[known.name]
        span = "no value below 0" if most == np.inf else f"values from {short(least)} to {short(most)}"
        where = known.made or known.line
        self.report(
            "target-out-of-reach",
            place_of(where),
            f"The model ends in {known.name}, at {brief_at(where)}, which returns {span}.",
            why,
            title=f"{known.name} bounds the input of {loss}, but the targets are not bounded",
            cure=f"Remove the last {known.name}.",
        )
