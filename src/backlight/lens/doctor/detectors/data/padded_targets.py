"""Padding that is counted in a loss: targets of padded positions, which no ignore_index leaves out.

NOTE [Targets of padding]
What goes into an embedding ends in padding, as in NOTE [The last time of padded rows], and the targets have as many
entries. They have one and the same class wherever the input is padding, and hardly anywhere else (once a row, where it
ends): a class of its own, that a cross entropy of all positions learns. The embedding has a `padding_idx`, or the file
speaks of padding: a last state that rows do not leave looks the same. A loss with weights of the classes, or one for
each position, is left alone.
"""

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.data.last_steps import runs_of
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.source import spot_of
from backlight.lens.records.record import Place

LOSSES = {"cross_entropy", "nll_loss"}
THRICE, LOOKS, PART = 3, 30, 0.1


class PaddedTargets(Detector):
    """Finds them (see NOTE [Targets of padding])."""

    calls = frozenset({*LOSSES, "embedding"})

    def __init__(self, watch):
        super().__init__(watch)
        self.padding: dict[Instruction, np.ndarray] = {}  # where inputs are padding, since the last backward
        self.found: dict[Instruction, tuple[Instruction, int, float]] = {}
        self.times: dict[Instruction, int] = {}
        self.steps = 0
        self.speaks: dict[str, bool] = {}  # whether a file has a word of padding

    def called(self, call: Call) -> None:
        """Compare the padding of inputs with the targets."""
        if self.steps >= LOOKS:
            return
        line = Instruction(call.code, call.lasti)
        if self.watch.name == "embedding":
            self._embedded(call, line)
        elif self.padding and len(self.watch.inputs) == 2 and is_computed(self.watch.inputs[0]):
            self._look(call, line, self.watch.inputs[1])

    def _embedded(self, call: Call, line: Instruction) -> None:
        tokens = next((one for one in self.watch.inputs if not one.dtype.is_floating_point), None)
        values = None if tokens is None or tokens.dim() != 2 or not call.out.requires_grad else self.values(tokens)
        if values is None:
            return
        index = call.kwargs.get("padding_idx", call.args[2] if len(call.args) > 2 else None)
        if index is None and not self._speaks_of_padding(line):
            return
        padding = values == (index if isinstance(index, int) and index >= 0 else 0)
        if runs_of(padding) is not None:
            self.padding[line] = padding.copy()

    def _speaks_of_padding(self, line: Instruction) -> bool:
        file = line.code.co_filename
        if file not in self.speaks:
            self.speaks[file] = any("pad" in text.lower() for text in spot_of(line).lines)
        return self.speaks[file]

    def _look(self, call: Call, line: Instruction, target: Tensor) -> None:
        if target.dtype.is_floating_point or "none" in (call.kwargs.get("reduction"), *call.args[3:]):
            return
        values = self.values(target)
        ignored = call.kwargs.get("ignore_index", call.args[4] if len(call.args) > 4 else -100)
        for where, padding in self.padding.items():
            if values is None or values.size != padding.size:
                continue
            flat, hidden = values.reshape(padding.shape), padding
            classes = np.unique(flat[hidden])
            if len(classes) != 1 or classes[0] == ignored or classes[0] < 0:
                continue
            elsewhere = ((flat == classes[0]) & ~hidden).sum(axis=1)
            if hidden.mean() >= PART and (elsewhere <= 1).all():
                self.found[line] = where, int(classes[0]), float(hidden.mean())

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Count what a step was given."""
        self.steps += 1
        for line, (where, wanted, part) in self.found.items():
            self.times[line] = self.times.get(line, 0) + 1
            if self.times[line] == THRICE:
                self.report(
                    "padding-in-loss",
                    place_of(line),
                    f"{part:.0%} of the positions that {brief_at(where)} got are padding, and the target is class "
                    f"{wanted} at all of them.",
                    f"{brief_at(line)} takes the mean over all positions.",
                    cure=f"Pass ignore_index={wanted}.",
                )
        self.padding.clear()
        self.found.clear()
