"""The last time of padded sequences: what a recurrent layer returned after it read the padding.

NOTE [The last time of padded rows]
Rows of different lengths end in padding: the token of `padding_idx`, or else 0, or vectors of zeros, at the end of a
row and nowhere else in it. Half of the rows or more end so, in runs of different length. They are followed through what
works time by time, and through convolutions that keep the length. A recurrent layer that gets them unpacked reads the
padding, too, and its last time, `out[:, -1]`, or its last state is what comes of that. It is
reported if a training uses it in three steps.
"""

from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of, users_frames
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

LAYERS = {"lstm", "gru", "rnn_tanh", "rnn_relu"}
KEEPS = {"dropout", "linear", "relu", "tanh", "gelu", "silu", "sigmoid", "layer_norm", "add", "mul", "to", "float"}
KEEPS |= {
    "view_of_rows",
    "convolution",
    "contiguous",
    "conv1d",
    "batch_norm",
    "leaky_relu",
    "elu",
    "sub",
    "div",
    "clone",
}
SWAPS = {"transpose", "permute", "swapaxes", "mT"}
CHOOSES = {"getitem", "__getitem__", "select", "slice", "narrow"}
THRICE, LOOKS, PART, LEAST = 3, 30, 0.5, 4


@dataclass(frozen=True, slots=True)
class Padded:
    """How many rows of how many end in padding, the runs' least and largest length, which dims are rows and times."""

    rows: int
    of: int
    least: int
    most: int
    batch: int = 0
    time: int = 1


class LastSteps(Detector):
    """Finds them (see NOTE [The last time of padded rows])."""

    calls = frozenset({*LAYERS, *KEEPS, *SWAPS, *CHOOSES, "embedding", "squeeze"})

    def __init__(self, watch):
        super().__init__(watch)
        self.padded: WeakIdDict[Padded] = WeakIdDict()
        self.looked: WeakIdDict[None] = WeakIdDict()  # data that are not padded
        self.read: WeakIdDict[tuple[Padded, Instruction, bool]] = WeakIdDict()  # outputs and states, whether a state
        self.chosen: dict[Instruction, tuple[Padded, Instruction]] = {}  # since the last backward
        self.times: dict[Instruction, int] = {}
        self.steps = 0

    def begin(self) -> None:
        """Watch backlight's recurrent layers, which call no op of their own name."""
        nn = self.engine.module.nn
        for kind in () if self.engine.name == "torch" else (nn.LSTM, nn.GRU, nn.RNN):
            owner = next(one for one in kind.__mro__ if "forward" in vars(one))
            self.watch.after(owner, "forward", self._ran)

    def _ran(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        user, tensor = next(users_frames(frame), None), args[1] if len(args) > 1 else kwargs.get("input")
        if user is None or self.steps >= LOOKS or args[0].bidirectional or not self.engine.is_tensor(tensor):
            return
        found = self._found(tensor) if tensor.dim() == 3 and out[0].requires_grad else None
        if found is not None:
            states = out[1][0] if isinstance(out[1], tuple) else out[1]
            self._reads(args[0].batch_first, found, Instruction(user.f_code, user.f_lasti), out[0], states)

    def called(self, call: Call) -> None:
        """Follow padded rows into a recurrent layer, and what is taken of its output."""
        name, inputs, outs = self.watch.name, self.watch.inputs, self.watch.outs
        if self.steps >= LOOKS or not inputs or not outs:
            return
        if name in SWAPS:
            self._swap(inputs[0], outs[0])
        if not outs[0].requires_grad:
            return
        line = Instruction(call.code, call.lasti)
        if name == "embedding":
            found = self._of_tokens(call)
            if found is not None:
                self.padded[outs[0]] = found
        elif name in LAYERS:
            self._runs(call, line)
        elif name in KEEPS:
            found = self._found(inputs[0])
            if found is not None and _same_rows(found, inputs[0], outs[0]):
                self.padded[outs[0]] = found
        elif inputs[0] in self.read:
            found, layer, state = self.read.get(inputs[0])
            if _takes_state(call, name) if state else _takes_last(call, name, found.time):
                self.chosen[line] = found, layer

    def _swap(self, tensor: Tensor, out: Tensor) -> None:
        """Follow rows whose dims are moved, if sizes and strides show where to."""
        if tensor.dim() != 3 or out.dim() != 3:
            return
        known, read = self._found(tensor), self.read.get(tensor)
        if known is None and read is None:
            return
        order = _order(tensor, out)
        if order is not None and known is not None:
            self.padded[out] = replace(known, batch=order.index(known.batch), time=order.index(known.time))
        if order is not None and read is not None and not read[2]:
            found = replace(read[0], batch=order.index(read[0].batch), time=order.index(read[0].time))
            self.read[out] = found, read[1], False

    def _found(self, tensor: Tensor) -> Padded | None:
        """Return how rows end in padding: what is known of them, or what the values of data say."""
        found = self.padded.get(tensor)
        if found is not None or tensor.requires_grad or tensor in self.looked:
            return found
        if tensor.dim() != 3 or not tensor.dtype.is_floating_point:
            return None
        values = self.values(tensor)
        if values is not None and not values.all():
            found = _runs_either_way(~values.any(axis=2))
        if found is None:
            self.looked[tensor] = None
        else:
            self.padded[tensor] = found
        return found

    def _of_tokens(self, call: Call) -> Padded | None:
        tokens = next((one for one in self.watch.inputs if not one.dtype.is_floating_point), None)
        if tokens is None or tokens.dim() != 2:
            return None
        values = self.values(tokens)
        index = call.kwargs.get("padding_idx", call.args[2] if len(call.args) > 2 else None)
        index = 0 if index is None or not isinstance(index, int) or index < 0 else index
        return None if values is None else _runs_either_way(values == index)

    def _runs(self, call: Call, line: Instruction) -> None:
        """Note what a layer returns that read padding, and of which the last time is what came last."""
        tensor, outs = self.watch.inputs[0], self.watch.outs
        if tensor.dim() != 3 or not isinstance(call.args[-1], bool) or call.args[-2] is True:
            return
        found = self._found(tensor)
        if found is not None:
            self._reads(call.args[-1], found, line, outs[0], outs[1])

    def _reads(self, batch_first: bool, found: Padded, line: Instruction, out: Tensor, states: Tensor) -> None:
        if found.time == (1 if batch_first else 0) and found.batch == 1 - found.time:
            self.read[out] = found, line, False
            self.read[states] = found, line, True

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


def _runs_either_way(padding: np.ndarray) -> Padded | None:
    """Return how rows end in padding, with the batch first, (rows, times), or else the time, (times, rows)."""
    found = runs_of(padding)
    if found is None and (found := runs_of(padding.T)) is not None:
        return replace(found, batch=1, time=0)
    return found


def _same_rows(found: Padded, before: Tensor, after: Tensor) -> bool:
    if before.dim() != 3 or after.dim() != 3:  # on backlight a linear layer works on all times in one matrix
        return (
            2 in (before.dim(), after.dim()) and before.numel() // before.shape[-1] == after.numel() // after.shape[-1]
        )
    return all(before.shape[dim] == after.shape[dim] for dim in (found.batch, found.time))


def _order(before: Tensor, after: Tensor) -> list[int] | None:
    """Return which dim of one tensor each dim of a view of it is, if strides and sizes tell."""
    old = [*zip(before.shape, before.stride())]
    new = [*zip(after.shape, after.stride())]
    return [old.index(one) for one in new] if len(set(old)) == len(old) and set(old) == set(new) else None


def _takes_last(call: Call, name: str, time: int) -> bool:
    tensor, args = call.args[0], call.args
    last = (-1, tensor.shape[time] - 1)
    if name == "select":
        return len(args) > 2 and args[1] in (time, time - tensor.dim()) and args[2] in last
    if name == "narrow":
        return args[1:] == (time, tensor.shape[time] - 1, 1)
    if name == "slice":
        return len(args) > 3 and args[1] == time and args[2] in last and args[3] >= tensor.shape[time]
    index = args[1] if len(args) > 1 else None
    index = index if isinstance(index, tuple) else (index,)
    if index and index[0] is Ellipsis:
        index = (*(slice(None),) * (tensor.dim() - len(index) + 1), *index[1:])
    if len(index) <= time or any(one != slice(None) for one in index[:time]):
        return False
    chosen = index[time]
    if isinstance(chosen, slice):
        return chosen.step in (None, 1) and chosen.indices(tensor.shape[time])[:2] == (last[1], tensor.shape[time])
    return isinstance(chosen, int) and chosen in last


def _takes_state(call: Call, name: str) -> bool:
    index = call.args[1] if len(call.args) > 1 else call.kwargs.get("dim")
    if name in ("slice", "narrow"):
        return False
    if name == "select":
        return index == 0 and call.args[2] in (-1, call.args[0].shape[0] - 1)
    if isinstance(index, int) and name != "squeeze":
        return index in (-1, call.args[0].shape[0] - 1)
    return index == (0 if name == "squeeze" else -1)
