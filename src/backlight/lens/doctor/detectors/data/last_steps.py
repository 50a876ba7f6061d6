"""The last time of padded sequences: what a recurrent layer returned after it read the padding.

NOTE [The last time of padded rows]
Rows of different lengths end in padding: the token of `padding_idx`, or else 0, or vectors of zeros, at the end of a
row and nowhere else in it. Half of the rows or more end so, in runs of different length. A recurrent layer that gets
them unpacked reads the padding, too, and its last time, `out[:, -1]`, or its last state is what comes of that. It is
reported if a training uses it in three steps.
"""

from dataclasses import dataclass

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

LAYERS = {"lstm", "gru", "rnn_tanh", "rnn_relu"}
KEEPS = {"dropout", "linear", "relu", "tanh", "layer_norm", "add", "mul", "to", "float", "contiguous"}
CHOOSES = {"getitem", "__getitem__", "select"}
THRICE, LOOKS, PART, LEAST = 3, 30, 0.5, 4


@dataclass(frozen=True, slots=True)
class Padded:
    """How many rows of how many end in padding, and the runs' least and largest length."""

    rows: int
    of: int
    least: int
    most: int


class LastSteps(Detector):
    """Finds them (see NOTE [The last time of padded rows])."""

    calls = frozenset({*LAYERS, *KEEPS, *CHOOSES, "embedding", "squeeze"})

    def __init__(self, watch):
        super().__init__(watch)
        self.padded: WeakIdDict[Padded] = WeakIdDict()
        self.read: WeakIdDict[tuple[Padded, Instruction, bool]] = WeakIdDict()  # outputs and states, whether a state
        self.chosen: dict[Instruction, tuple[Padded, Instruction]] = {}  # since the last backward
        self.times: dict[Instruction, int] = {}
        self.steps = 0

    def called(self, call: Call) -> None:
        """Follow padded rows into a recurrent layer, and what is taken of its output."""
        name, inputs, outs = self.watch.name, self.watch.inputs, self.watch.outs
        if self.steps >= LOOKS or not inputs or not outs or not outs[0].requires_grad:
            return
        line = Instruction(call.code, call.lasti)
        if name == "embedding":
            found = self._of_tokens(call)
            if found is not None:
                self.padded[outs[0]] = found
        elif name in LAYERS:
            self._runs(call, line)
        elif name in KEEPS:
            if inputs[0] in self.padded and outs[0].shape[:2] == inputs[0].shape[:2]:
                self.padded[outs[0]] = self.padded.get(inputs[0])
        elif inputs[0] in self.read:
            found, layer, state = self.read.get(inputs[0])
            if _takes_state(call, name) if state else _takes_last(call, name):
                self.chosen[line] = found, layer

    def _of_tokens(self, call: Call) -> Padded | None:
        tokens = next((one for one in self.watch.inputs if not one.dtype.is_floating_point), None)
        if tokens is None or tokens.dim() != 2:
            return None
        values = self.values(tokens)
        index = call.kwargs.get("padding_idx", call.args[2] if len(call.args) > 2 else None)
        index = 0 if index is None or not isinstance(index, int) or index < 0 else index
        return None if values is None else runs_of(values == index)

    def _runs(self, call: Call, line: Instruction) -> None:
        """Note what a layer returns that read padding: batch_first only, in which `[:, -1]` is the last time."""
        tensor, outs = self.watch.inputs[0], self.watch.outs
        if tensor.dim() != 3 or call.args[-1] is not True or call.args[-2] is True:
            return
        found = self.padded.get(tensor)
        if found is None and not tensor.requires_grad:
            values = self.values(tensor)
            found = None if values is None else runs_of(~values.any(axis=2))
        if found is not None:
            self.read[outs[0]] = found, line, False
            self.read[outs[1]] = found, line, True

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Count what a step used."""
        self.steps += 1
        for line, (found, layer) in self.chosen.items():
            self.times[line] = self.times.get(line, 0) + 1
            if self.times[line] == THRICE:
                self._report(line, found, layer)
        self.chosen.clear()

    def _report(self, line: Instruction, found: Padded, layer: Instruction) -> None:
        self.report(
            "last-time-is-padding",
            place_of(line),
            f"{counted(found.rows, 'row')} of the {found.of} that the layer at {brief_at(layer)} got end in padding, "
            f"{found.least} to {found.most} times long.",
            f"{brief_at(line)} takes its last time step, which is after the padding in these rows.",
        )


def runs_of(padding: np.ndarray) -> Padded | None:
    """Return how rows end in padding, (rows, times); None if they do not, or if it stands elsewhere, too."""
    rows, times = padding.shape
    ends = np.where(padding.all(axis=1), times, np.argmin(padding[:, ::-1], axis=1))
    if rows < LEAST or (padding.sum(axis=1) != ends).any():
        return None
    some = ends[ends > 0]
    if len(some) < PART * rows or some.min() == some.max():
        return None
    return Padded(len(some), rows, int(some.min()), int(some.max()))


def _takes_last(call: Call, name: str) -> bool:
    if name == "select":
        return len(call.args) > 2 and call.args[1] == 1 and call.args[2] in (-1, call.args[0].shape[1] - 1)
    index = call.args[1] if len(call.args) > 1 else None
    return isinstance(index, tuple) and len(index) > 1 and index[0] == slice(None) and index[1] == -1


def _takes_state(call: Call, name: str) -> bool:
    index = call.args[1] if len(call.args) > 1 else call.kwargs.get("dim")
    if name == "select":
        return index == 0 and call.args[2] in (-1, call.args[0].shape[0] - 1)
    return index == (0 if name == "squeeze" else -1)
