"""Targets that the model is shown: a column of the inputs, the last value of a window, the tokens themselves.

NOTE [A target in the input]
A column of what the first layer gets is equal to the target in every row, in several steps, and the target takes
several values. Or the classes to predict are the tokens that were embedded, position by position: nothing was shifted
or masked. One column alone is an identity to be learned, and a sequence that goes through one vector an autoencoder.
Of several sequences that are embedded, the one that the last recurrent layer reads is a decoder's; it is not to be the
target, and none of the others is the target, or the target shifted by one. Rows that are all the same are no tokens.
Numbers that are drawn anew in each step are no data: a target that is a column of them is a task that was made up.
"""

from dataclasses import dataclass

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.slips.softmax_dims import LOSSES
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

FIRST = {"linear", "conv1d", "lstm", "gru", "rnn_tanh", "matmul"}
DRAWS = {"randn", "rand", "randint", "randn_like", "rand_like", "normal", "randperm"}
RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu"}
RECURRENT |= {"lstm_steps", "gru_steps", "rnn_steps"}  # backlight's
PASSES = {"dropout", "transpose", "permute", "mul", "add", "layer_norm", "view", "clone"}
PASSES |= {"linear", "stack"}  # what is embedded goes through
REPEATS = {"expand", "repeat", "repeat_interleave"}
STEPS, LOOKS, ROWS, VALUES, TOKENS = 3, 12, 32, 8, 4
MOSTLY = 0.5
MOST = 1_000_000  # numbers that are compared


@dataclass(slots=True)
class Shown:
    """The columns of an input that were equal to the target so far, in how many steps and rows, with which values."""

    columns: np.ndarray
    steps: int = 0
    rows: int = 0
    values: frozenset = frozenset()


class Leaks(Detector):
    """Finds them (see NOTE [A target in the input])."""

    calls = frozenset({*FIRST, *LOSSES, *REPEATS, *DRAWS, *RECURRENT, *PASSES, "embedding"})

    def __init__(self, watch):
        super().__init__(watch)
        self.inputs: dict[Instruction, np.ndarray] = {}  # first layers of this step -> rows
        self.drawn: WeakIdDict[None] = WeakIdDict()  # in this step
        self.tokens: list[tuple[Instruction, np.ndarray]] = []
        self.embedded: WeakIdDict[int] = WeakIdDict()  # -> which of the tokens
        self.read: int | None = None  # by the last recurrent layer
        self.repeats = False
        self.shown: dict[tuple, Shown] = {}
        self.copied: dict[Instruction, int] = {}
        self.done: set = set()
        self.steps = 0

    def called(self, call: Call) -> None:
        """Keep what the model gets, and compare it with the target."""
        if self.steps >= LOOKS:
            return
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        line = Instruction(call.code, call.lasti)
        if name in RECURRENT and inputs:
            self.read = self.embedded.get(inputs[0])
            if self.read is not None and self.watch.outs:
                self.embedded[self.watch.outs[0]] = self.read
        if name in PASSES and len(self.embedded):
            known = next((found for one in inputs if (found := self.embedded.get(one)) is not None), None)
            if known is not None and self.engine.is_tensor(out):
                self.embedded[out] = known
        if name in DRAWS:
            if self.engine.is_tensor(out):
                self.drawn[out] = None
        elif name in REPEATS:
            self.repeats = self.repeats or (self.engine.is_tensor(out) and is_computed(out))
        elif name == "embedding":
            ids = next((one for one in inputs if not one.requires_grad and one.dim() == 2), None)
            if ids is not None and ids.shape[1] >= TOKENS and (values := self.values(ids)) is not None:
                self.repeats = self.repeats or bool((values == values.flat[0]).all())  # a decoder without words
                if len(values) == 1 or not (values == values[:1]).all():
                    self.embedded[out] = len(self.tokens)
                    self.tokens.append((line, values.copy()))
        elif name in FIRST:
            known = inputs and not inputs[0].requires_grad and inputs[0] not in self.drawn
            if known and inputs[0].dim() in (2, 3) and self.watch.outs:
                first = inputs[0]
                values = self.values(first) if first.numel() <= MOST and self.watch.outs[0].requires_grad else None
                if values is not None and not self.watch.flow.of(first).leaves:
                    self.inputs[line] = values.reshape(len(values), -1).copy()
        elif len(inputs) > 1 and is_computed(inputs[0]) and not inputs[1].requires_grad:
            self._look(line, name, inputs[1])

    def _look(self, line: Instruction, loss: str, target: Tensor) -> None:
        values = self.values(target)
        if values is None or values.size < 2:
            return
        if loss in ("cross_entropy", "nll_loss") and values.dtype.kind == "i":
            self._look_at_tokens(line, loss, values)
        if values.size != len(values):
            return
        column = values.reshape(-1, 1)
        for first, rows in self.inputs.items():
            known = self.shown.get((line, first, rows.shape[1]))
            if known is not None and not known.columns.any():
                continue  # no column was equal each time
            if len(rows) == len(column) and rows.shape[1] > 1:
                self._compare(line, loss, first, rows == column, column)

    def _compare(self, line: Instruction, loss: str, first: Instruction, equal: np.ndarray, column: np.ndarray) -> None:
        key = line, first, equal.shape[1]
        same = equal.all(axis=0)
        known = self.shown.setdefault(key, Shown(same))
        known.columns = known.columns & same
        known.steps, known.rows = known.steps + 1, known.rows + len(column)
        if len(known.values) < VALUES:
            known.values |= frozenset(np.unique(column)[:VALUES].tolist())
        if not known.columns.any() or known.steps < STEPS or known.rows < ROWS or key in self.done:
            return
        few = len(known.values) < VALUES
        if len(known.values) < 2 or (few and known.rows < 4 * ROWS):
            return
        self.done.add(key)
        number = int(np.flatnonzero(known.columns)[0])
        last = " (the last)" if number == equal.shape[1] - 1 else ""
        self.report(
            "target-in-input",
            place_of(line),
            f"Column {number}{last} of the {equal.shape[1]} that the model gets at {brief_at(first)} is equal to the "
            f"target of {loss} at {brief_at(line)} in each of {known.rows} rows, in {known.steps} steps.",
        )

    def _look_at_tokens(self, line: Instruction, loss: str, values: np.ndarray) -> None:
        if not self.tokens or self.repeats or line in self.done:
            return
        if len(self.tokens) > 1 and self.read is None:
            return
        place, tokens = self.tokens[self.read or 0]
        flat = values.reshape(-1)
        if flat.size != tokens.size:
            return
        counted = flat >= 0
        if any(_may_be_taught(flat, other) for _, other in self.tokens if other is not tokens):
            return
        if not (flat == tokens.reshape(-1))[counted].all() or len(np.unique(flat[counted])) < TOKENS:
            self.copied[line] = 0
            return
        self.copied[line] = self.copied.get(line, 0) + 1
        if self.copied[line] == STEPS:
            self.done.add(line)
            self.report(
                "target-in-input",
                place_of(line),
                f"The classes that {loss} at {brief_at(line)} wants are the tokens that {brief_at(place)} embeds, at "
                f"the same positions, in {STEPS} steps: the model only has to copy its input.",
                title="a sequence model must predict the tokens in its input",
                cause="The targets were not shifted by one relative to the inputs, or nothing was masked.",
                cure="Predict the next token: logits[:, :-1] against tokens[:, 1:].",
            )

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """A step is over."""
        self.steps += 1
        self.inputs.clear()
        self.drawn.clear()
        self.tokens.clear()
        self.repeats, self.read = False, None


def _may_be_taught(target: np.ndarray, other: np.ndarray) -> bool:
    """Return whether another sequence is the target too, or most of it shifted by one, as a decoder is taught."""
    if other.size != target.size:
        return False
    if np.array_equal(other.reshape(-1), target):
        return True
    rows = target.reshape(other.shape)
    return bool(np.mean(rows[:, :-1] == other[:, 1:]) > MOSTLY)
