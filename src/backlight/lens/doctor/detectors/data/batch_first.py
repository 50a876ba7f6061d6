"""Layers without batch_first that get (batch, time, features): they mix the samples of a batch.

NOTE [Batch or time]
A recurrent layer or one of a transformer without batch_first takes (time, batch, features). It got the batch first
if its first dim has as many rows as the loss has targets, its second has not, and neither is 1. What is taken of its
output by `out[:, -1]`, and attention alone, is looked at in slips/mixed_rows.py.
"""

from dataclasses import dataclass
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.slips.softmax_dims import LOSSES
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.graph import Module, is_computed
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, place_of_frame
from backlight.lens.records.record import Place

FOUND = {"BL783", "BL781"}
TWICE, LOOKS = 2, 12


@dataclass(frozen=True, slots=True)
class Ran:
    """A layer without batch_first: its kind, the two first sizes of its output, where it ran and was made."""

    kind: str
    first: int
    second: int
    place: Place
    made: Instruction | None


class BatchFirst(Detector):
    """Finds them (see NOTE [Batch or time])."""

    calls = frozenset(LOSSES)

    def __init__(self, watch):
        super().__init__(watch)
        self.ran: dict[tuple, Ran] = {}  # lines -> what ran there
        self.times: dict[tuple, int] = {}
        self.wrong: dict[tuple, tuple[Ran, Instruction, int]] = {}
        self.steps = 0

    def left(self, module: Module, path: str, out: Any) -> None:
        """Note such a layer's output."""
        if self.steps >= LOOKS:
            return
        recurrent = isinstance(module, self.engine.module.nn.RNNBase)  # attention alone is seen by `MixedRows`
        batch_first = module.batch_first if recurrent else None
        if batch_first is None:
            batch_first = getattr(getattr(module, "self_attn", None), "batch_first", None)
        first = out[0] if isinstance(out, tuple) else out
        if batch_first is not False or not self.engine.is_tensor(first) or first.dim() != 3 or not is_computed(first):
            return
        place = place_of_frame()
        if place is not None:
            made = self.watch.detectors[Constructions].modules.get(module)
            self.ran[place.file, place.line] = Ran(type(module).__name__, first.shape[0], first.shape[1], place, made)

    def called(self, call: Call) -> None:
        """Compare with the number of targets."""
        inputs = self.watch.inputs
        if not self.ran or self.steps >= LOOKS or len(inputs) < 2 or not is_computed(inputs[0]):
            return
        target = inputs[1]
        if not target.dim() or target.requires_grad or target.numel() != target.shape[0]:
            return
        for where, one in self.ran.items():
            if one.first == target.shape[0] != one.second and one.second > 1 and one.first > 1:
                self.wrong[where] = one, Instruction(call.code, call.lasti), target.shape[0]

    def backward_called(self, tensor: Any, keep: bool, place: Place | None) -> None:
        """Count a step."""
        self.steps += 1
        for where, found in self.wrong.items():
            self.times[where] = self.times.get(where, 0) + 1
            if self.times[where] == TWICE and not self.session.has(FOUND):
                self._report(*found)
        self.ran.clear()
        self.wrong.clear()

    def _report(self, one: Ran, loss: Instruction, rows: int) -> None:
        self.report(
            "batch-taken-for-time",
            one.place if one.made is None else place_of(one.made),
            f"{one.kind}, which runs at {brief(one.place)}, takes (time, batch, features): batch_first is False.",
            f"It got {one.first} times and {one.second} samples, and the loss at {brief_at(loss)} has {rows} targets: "
            f"the first dim of its input is the batch.",
            title="a layer treats the batch dim as time: samples are mixed",
            cure=f"Make {one.kind} with batch_first=True, or pass x.transpose(0, 1).",
        )
