"""Rows of inputs and targets that were shuffled apart: `X = X[order]` without the same for y.

NOTE [Rows that belong together]
A data set is a tensor whose rows are chosen by an index or cut by a slice. What is chosen, and what is computed row by
row of it, keeps the way it was chosen. Inputs and target of one step that come from two data sets of the same length,
the same number of rows each, must have been chosen alike. It is reported if they were not in two steps, and the order
of an index makes the difference: slices, and all of an index, may be shifted on purpose, as for what comes next. A data
set that was made after the index was first used is left alone: what it is made of is not known.
"""

import weakref
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.slips.softmax_dims import LOSSES
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

CHOOSES = {"getitem", "__getitem__", "index_select", "index", "slice", "select"}  # the last three: backlight's
FIRST = {"linear", "conv1d", "conv2d", "lstm", "gru", "embedding", "matmul"}
LEAST, STEPS, LOOKS = 8, 2, 12


@dataclass(frozen=True, slots=True)
class Indexed:
    """Rows chosen by indices: a checksum of these less the first one, the first one, how many."""

    order: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """How rows were chosen: of which data set, of how many rows, by which indices and slices, at which line."""

    source: int
    rows: int
    steps: tuple
    line: Instruction | None
    used: int  # when an index was used first


class ShuffledRows(Detector):
    """Finds them (see NOTE [Rows that belong together])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.chosen: WeakIdDict[Chosen | None] = WeakIdDict()  # None: mixed of several
        self.sources: WeakIdDict[tuple[int, int]] = WeakIdDict()  # data sets -> number, when it was made
        self.made: WeakIdDict[int] = WeakIdDict()  # results of ops without a graph -> when
        self.parts: WeakIdDict[weakref.ref] = WeakIdDict()  # rows times a number -> the rows
        self.rows: WeakIdDict[tuple[Chosen, int]] = WeakIdDict()  # single rows -> what they are of, which one
        self.now = 0
        self.inputs: dict[Chosen, Instruction] = {}
        self.unknown = False  # whether a first layer got rows of unknown choice
        self.times: dict[Instruction, int] = {}
        self.done: set[Instruction] = set()
        self.steps = 0

    def called(self, call: Call) -> None:
        """Follow rows from the data set to the first layer and to the loss."""
        if self.steps >= LOOKS:
            return
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if name in LOSSES:
            if len(inputs) > 1 and is_computed(inputs[0]) and not inputs[1].requires_grad:
                self._look(Instruction(call.code, call.lasti), self._of(inputs[1]))
            return
        if not self.engine.is_tensor(out):
            return
        if out.requires_grad:
            if name in FIRST and inputs:
                self._enters(Instruction(call.code, call.lasti), name, inputs)
            return
        self.now += 1
        if name == "stack" and inputs and all(one in self.rows for one in inputs):
            self._collate(Instruction(call.code, call.lasti), inputs, out)
        elif name in CHOOSES and inputs and not inputs[0].requires_grad:
            self._choose(call, inputs[0], out)
        elif out.dim() and all(out is not one for one in inputs):
            self._computed(inputs, out)

    def _of(self, tensor: Tensor) -> Chosen | None:
        """Return how rows were chosen; a tensor of which nothing is known is a data set of its own."""
        if tensor in self.chosen:
            return self.chosen.get(tensor)
        if not tensor.dim() or tensor.shape[0] < LEAST:
            return None
        number, made = self.sources.get(tensor, (None, 0))
        if number is None:
            number, made = len(self.sources) + self.now * 1000, self.made.get(tensor, 0)
            self.sources[tensor] = number, made
        return Chosen(number, tensor.shape[0], (), None, made)

    def _choose(self, call: Call, tensor: Tensor, out: Tensor) -> None:
        name, args = self.watch.name, call.args
        if name in ("index_select", "slice") and args[1:2] != (0,):
            if name == "slice":
                self._computed([tensor], out)
            return
        if name == "slice":
            index = slice(*args[2:5])
        elif name == "index":
            index = args[1]
        else:
            index = args[-1] if len(args) > 1 else call.kwargs.get("index")
        index = index[0] if isinstance(index, (tuple, list)) and index and not isinstance(index[0], int) else index
        known = self._of(tensor)
        if name == "select" and args[1] == 0:
            index = args[2]
        if known is None:
            return
        if isinstance(index, (int, np.integer)):
            self.rows[out] = known, int(index)
            self.chosen[out] = None
            return
        if isinstance(index, slice):
            bounds = index.indices(tensor.shape[0])
            whole = bounds == (0, tensor.shape[0], 1)
            steps = known.steps if whole else (*known.steps, bounds)
            self.chosen[out] = Chosen(known.source, known.rows, steps, known.line, known.used)
            return
        values = self._indices(index)
        if values is None or values.ndim != 1:
            self.chosen[out] = None
            return
        line = Instruction(call.code, call.lasti)
        steps = *known.steps, _indexed(np.flatnonzero(values) if values.dtype.kind == "b" else values)
        self.chosen[out] = Chosen(known.source, known.rows, steps, line, self.now)

    def _collate(self, line: Instruction, rows: list, out: Tensor) -> None:
        """Note a batch that a loader stacks of single rows."""
        found = [self.rows.get(one) for one in rows]
        known = found[0][0]
        same = all(one == known for one, _ in found)
        steps = *known.steps, _indexed(np.array([index for _, index in found]))
        chosen = Chosen(known.source, known.rows, steps, known.line or line, known.used)
        self.chosen[out] = chosen if same else None

    def _indices(self, index: Any) -> np.ndarray | None:
        if self.engine.is_tensor(index):
            return None if index.requires_grad or index.dtype.is_floating_point else self.values(index)
        if isinstance(index, np.ndarray) and index.dtype.kind in "iub":
            return index
        if isinstance(index, (list, range)) and all(isinstance(one, (int, np.integer)) for one in index):
            return np.array(index)
        return None

    def _computed(self, inputs: list, out: Tensor) -> None:
        """Hand the choice on to what is computed row by row; note when a new data set is made."""
        self.made[out] = self.now
        if self.watch.name == "mul" and len(inputs) == 1:
            self.parts[out] = weakref.ref(inputs[0])
        elif any((part := self.parts.get(one)) is not None and part() in self.sources for one in inputs):
            self.chosen[out] = None  # mixed with rows in another order, as mixup does
            return
        known = [self.chosen.get(one) for one in inputs if one in self.chosen]
        sources = [one for one in inputs if one in self.sources]
        if not known and not sources:
            return
        if known and known[0] is not None and all(one == known[0] for one in known) and not sources:
            rows = {one.shape[0] for one in inputs if one in self.chosen and one.dim()}
            if rows == {out.shape[0]}:
                self.chosen[out] = known[0]
        elif not known and len(sources) == 1:
            if sources[0].shape[0] != out.shape[0]:
                return  # a mean, a size: a data set of its own
            number, made = self.sources.get(sources[0])
            self.chosen[out] = Chosen(number, out.shape[0], (), None, made)
        else:
            self.chosen[out] = None

    def _enters(self, line: Instruction, name: str, inputs: list) -> None:
        tensor = inputs[0]
        if tensor.requires_grad or not tensor.dim() or tensor.shape[0] < LEAST:
            return
        known = self._of(tensor)
        if known is None:
            self.unknown = True
        else:
            self.inputs.setdefault(known, line)

    def _look(self, line: Instruction, target: Chosen | None) -> None:
        if target is None or self.unknown or len(self.inputs) != 1 or line in self.done:
            return
        (given, first), *_ = self.inputs.items()
        if given.source == target.source or given.rows != target.rows or given.steps == target.steps:
            return
        one, other = _orders(given), _orders(target)
        if one == other or _count(given) != _count(target):
            return
        if (not one and given.used > target.used) or (not other and target.used > given.used):
            return  # made after the index was used
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] == STEPS:
            self.done.add(line)
            self._report(line, given, target, first)

    def _report(self, line: Instruction, given: Chosen, target: Chosen, first: Instruction) -> None:
        moved = given.line or target.line
        how = "the rows of the targets were not"
        if given.line is None:
            how = "the rows of the inputs were not"
        elif target.line is not None:
            how = f"the targets' by another index at {brief_at(target.line)}"
        whose = "inputs'" if given.line is not None else "targets'"
        self.report(
            "rows-shuffled-apart",
            place_of(moved),
            f"The {whose} rows were selected by an index at {brief_at(moved)}; {how}.",
            f"Both come from {given.rows} rows and are used in the loss at {brief_at(line)}: each prediction is "
            f"compared "
            "with the target of another row.",
            cure="Use one loader for both: TensorDataset(inputs, targets)." if "zip(" in place_of(moved).text else None,
        )

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """A step is over."""
        self.steps += 1
        self.inputs.clear()
        self.unknown = False


def _indexed(indices: np.ndarray) -> Indexed:
    indices = indices.astype(np.int64)
    first = int(indices[0]) if len(indices) else 0
    return Indexed(zlib.crc32((indices - first).tobytes()), first, len(indices))


def _orders(chosen: Chosen) -> list[tuple[int, int]]:
    """Return the orders in which indices chose rows, wherever these began."""
    return [(step.order, step.count) for step in chosen.steps if isinstance(step, Indexed)]


def _count(chosen: Chosen) -> int:
    """Return how many rows were chosen."""
    rows = chosen.rows
    for step in chosen.steps:
        rows = step.count if isinstance(step, Indexed) else len(range(*step))
    return rows
