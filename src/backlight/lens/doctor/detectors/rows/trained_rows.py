"""Rows of a test that the training has seen: splits that overlap, copies of rows that were made before the split.

NOTE [Rows seen before]
What a first layer gets in steps, and what it gets without gradients, is compared row by row, by value. A batch of a
test is new to the model as a whole, and one of the training rows, to follow the training, is known to it as a whole. A
batch of which a tenth or more is known and a tenth or more is new belongs to neither. To be sure: the last step brought
no new rows, so that all training rows are known; the evaluation does not go over all of them, as one of the whole data
does; the very same rows were evaluated twice, and no random sample. Rows are continuous numbers: states of a game and
one-hot codes come again. A new optimizer begins anew, as each fold of a cross-validation does.
"""

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.records.record import Place

FIRST = {"linear", "conv1d", "conv2d", "convolution", "lstm", "gru", "matmul"}
LEAST, SHARE, COLUMNS, HASHED, MOST, NUMBERS = 10, 0.1, 3, 32, 200_000, 4_000_000
BATCHES = 400  # of one evaluation
WHOLE = 0.5  # least part of a row's numbers that are no whole ones


class TrainedRows(Detector):
    """Finds them (see NOTE [Rows seen before])."""

    calls = frozenset(FIRST)

    def __init__(self, watch):
        super().__init__(watch)
        self.trained: set[int] = set()
        self.pending: dict[Instruction, np.ndarray] = {}  # of this step
        self.new = 0  # rows that the last step brought
        self.evaluations: dict[Instruction, list[np.ndarray]] = {}  # since the last backward: line -> batches it got
        self.mixed: dict[tuple, int] = {}  # evaluations with known and new rows -> how often they were the same
        self.multipliers = np.random.default_rng(5).integers(1, 2**62, HASHED, dtype=np.uint64) | np.uint64(1)
        self.optimizers = 0
        self.over = False

    def called(self, call: Call) -> None:
        """Note the rows that a first layer gets."""
        inputs, outs = self.watch.inputs, self.watch.outs
        if self.over or not inputs or not outs or inputs[0].requires_grad or inputs[0].dim() < 2:
            return
        rows = inputs[0]
        if not rows.dtype.is_floating_point or rows.shape[0] < LEAST or rows.numel() > NUMBERS:
            return
        recorded = outs[0].requires_grad
        if (not recorded and not self.trained) or self.watch.flow.of(rows).leaves:
            return
        line = Instruction(call.code, call.lasti)
        hashes = self._hashes(rows)
        if hashes is None:
            return
        if recorded:
            self.pending[line] = hashes
        elif len(self.evaluations) < LEAST:
            batches = self.evaluations.setdefault(line, [])
            if len(batches) < BATCHES:
                batches.append(hashes)

    def _hashes(self, tensor: Tensor) -> np.ndarray | None:
        """Return a number for each row, which tells rows apart."""
        values = self.values(tensor)
        if values is None or values.dtype.kind != "f":
            return None
        rows = values.reshape(len(values), -1)
        if rows.shape[1] < COLUMNS:
            return None
        rows = rows[:, :: -(-rows.shape[1] // HASHED)].astype(np.float32)
        if np.mean(rows[:LEAST] % 1 != 0) < WHOLE:
            return None
        bits = np.ascontiguousarray(rows).view(np.uint32).astype(np.uint64)
        return (bits * self.multipliers[: bits.shape[1]]).sum(axis=1, dtype=np.uint64)

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Judge an evaluation, and note what is trained on."""
        made = self.watch.detectors[Constructions].made
        if made != self.optimizers:
            self.optimizers = made
            self.trained.clear()
            self.mixed.clear()
            self.evaluations.clear()
        self._judge()
        before = len(self.trained)
        for hashes in self.pending.values():
            self.trained.update(hashes.tolist())
        self.new = len(self.trained) - before if self.pending else self.new
        self.pending.clear()
        self.over = self.over or len(self.trained) > MOST

    def end(self, problem: BaseException | None) -> None:
        """Judge the last evaluation."""
        self._judge()

    def _judge(self) -> None:
        """Look for batches of an evaluation that hold rows of the training and others."""
        evaluations, self.evaluations = self.evaluations, {}
        if self.new or self.over:
            return
        for line, batches in evaluations.items():
            whole = np.unique(np.concatenate(batches))
            known = np.array([row in self.trained for row in whole.tolist()])
            if len(self.trained) - known.sum() < max(LEAST, SHARE * len(self.trained)):
                continue  # it goes over all rows
            found = self._mixed_batch(batches)
            if found is None:
                continue
            key = line, int(whole.sum(dtype=np.uint64)), len(whole)
            self.mixed[key] = self.mixed.get(key, 0) + 1
            if self.mixed[key] == 2:
                self.over = True
                self._report(line, *found)
                return

    def _mixed_batch(self, batches: list[np.ndarray]) -> tuple[int, int] | None:
        for batch in batches:
            rows = np.unique(batch).tolist()
            known = sum(row in self.trained for row in rows)
            if known >= LEAST and SHARE * len(rows) <= min(known, len(rows) - known):
                return known, len(rows)
        return None

    def _report(self, line: Instruction, known: int, rows: int) -> None:
        self.report(
            "test-rows-trained-on",
            place_of(line),
            f"Of {rows} rows that {brief_at(line)} gets without gradients, {known} are, number by number, rows that "
            f"the training goes over, and {rows - known} are not.",
            f"The training goes over {len(self.trained)} rows, and the last step brought no new ones.",
        )
