"""Targets that are drawn anew: a denoiser is compared with other noise than was mixed into its input.

NOTE [Another noise]
The target of a loss is what a random op returned and nothing else has used, while noise of the same shape was drawn
before and mixed into what the model got: added to another tensor, by itself or scaled.
"""

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

DRAWS = {"randn", "randn_like", "normal"}
LOSSES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}
MIXES = {"add", "sub"}
TWICE = 2


class NoiseTargets(Detector):
    """Finds them (see NOTE [Another noise])."""

    calls = frozenset({*DRAWS, *LOSSES, *MIXES, "mul"})

    def __init__(self, watch):
        super().__init__(watch)
        self.fresh: WeakIdDict[Instruction] = WeakIdDict()
        self.scaled: WeakIdDict[Instruction] = WeakIdDict()  # noise times something
        self.mixed: dict[tuple, Instruction] = {}  # shapes of noise that was mixed in since the last backward
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow noise into inputs, and look at targets."""
        name, inputs = self.watch.name, self.watch.inputs
        if name in DRAWS:
            if self.engine.is_tensor(call.out):
                self.fresh[call.out] = Instruction(call.code, call.lasti)
        elif name == "mul":
            made = next((one for tensor in inputs if (one := self._used(tensor)) is not None), None)
            if made is not None and self.engine.is_tensor(call.out):
                self.scaled[call.out] = made
        elif name in MIXES:
            for one in inputs:
                made = self._used(one)
                if made is not None and len(inputs) > 1:
                    self.mixed[tuple(one.shape)] = made
        elif len(inputs) > 1 and is_computed(inputs[0]) and inputs[1] in self.fresh:
            self._look(Instruction(call.code, call.lasti), inputs[1])

    def _used(self, tensor: Tensor) -> Instruction | None:
        """Return where noise was drawn that an op uses; from now on it is not fresh."""
        return self.fresh.pop(tensor) or self.scaled.get(tensor)

    def _look(self, line: Instruction, target: Tensor) -> None:
        used = self.mixed.get(tuple(target.shape))
        if used is None:
            return
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] == TWICE:
            self.report(
                "target-is-other-noise",
                place_of(line),
                f"The target at {brief_at(line)} was drawn at {brief_at(self.fresh.get(target))}, and "
                "nothing else uses "
                "it.",
                f"The noise in the model's input is another sample of the same shape, drawn at {brief_at(used)}.",
            )

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """A step is over."""
        self.mixed.clear()
