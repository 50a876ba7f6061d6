"""Focal losses whose weight is turned round: what the model knows already weighs most.

NOTE [Which examples count]
A focal loss multiplies each example's cross entropy ce by (1 - p) ** γ, p = exp(-ce) being the probability of its
class. p ** γ times ce goes the other way: the worse an example is known, the less it counts.
"""

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

LOSSES = {"cross_entropy", "binary_cross_entropy_with_logits", "binary_cross_entropy", "nll_loss"}
POWERS = {"pow", "square"}
THRICE = 3


class FocalWeights(Detector):
    """Finds them (see NOTE [Which examples count])."""

    calls = frozenset({*LOSSES, *POWERS, "neg", "exp", "mul", "detach"})

    def __init__(self, watch):
        super().__init__(watch)
        self.losses: WeakIdDict[Instruction] = WeakIdDict()  # one number for each example
        self.negative: WeakIdDict[None] = WeakIdDict()
        self.known: WeakIdDict[None] = WeakIdDict()  # probabilities of the classes
        self.weights: WeakIdDict[Instruction] = WeakIdDict()  # powers of these
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow a loss into its own weight."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out):
            return
        first, line = inputs[0], Instruction(call.code, call.lasti)
        if name in LOSSES:
            if out.requires_grad and out.numel() > 1:
                self.losses[out] = line
        elif not len(self.losses):
            return
        elif name == "neg":
            if first in self.losses:
                self.negative[out] = None
        elif name == "exp":
            if first in self.negative:
                self.known[out] = None
        elif name == "detach":
            self._keep(first, out)
        elif name in POWERS:
            if first in self.known and (name == "square" or _power(call) > 0):
                self.weights[out] = line
        elif len(inputs) == 1:
            self._keep(first, out)
        else:
            weight = next((one for one in inputs if one in self.weights), None)
            if weight is not None and any(one in self.losses for one in inputs):
                self._count(line, self.weights.get(weight))

    def _keep(self, first: Tensor, out: Tensor) -> None:
        """Follow what is multiplied by a number, or detached."""
        for table in (self.losses, self.weights):
            if first in table:
                table[out] = table.get(first)
        if first in self.known:
            self.known[out] = None

    def _count(self, line: Instruction, power: Instruction) -> None:
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] == THRICE:
            self.report(
                "focal-weight-turned",
                place_of(power),
                f"{brief_at(power)} raises exp(-loss), the probability of the right class, to a power; "
                f"{brief_at(line)} multiplies the loss by it.",
            )


def _power(call: Call) -> float:
    exponent = call.args[1] if len(call.args) > 1 else call.kwargs.get("exponent")
    return float(exponent) if isinstance(exponent, (int, float)) else 1.0
