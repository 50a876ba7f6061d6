"""Evaluations on rows that were trained on: a validation set that overlaps the training set.

NOTE [What a test set is]
Accuracy on training rows is computed rightly, too. Rows are those of a test if a line that leads to the evaluation,
or a loop around it, names what they come from so: `x_val`, `test_loader`. It is a mistake if a fifth of them or more
went into training steps before. Rows of few values, which are equal by chance, are left out.
"""

import ast
import re
import sys
from collections.abc import Iterator
from itertools import islice

import numpy as np

from backlight.dispatch.observers import Call
from backlight.engine.provenance import frame_of
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Optimizer
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, users_frames
from backlight.lens.doctor.source import spot_of
from backlight.lens.records.record import Place

FIRST = {"linear", "conv1d", "conv2d", "lstm", "gru", "matmul"}
TESTS = re.compile(r"(?:^|_)(?:val|valid|validation|test|eval|dev|holdout|heldout|held)(?:_|\d|$)", re.IGNORECASE)
ROWS, PART, KEPT, FRAMES, LOOKS = 8, 0.2, 20_000, 4, 40


class TrainedRows(Detector):
    """Finds them (see NOTE [What a test set is])."""

    calls = frozenset(FIRST)

    def __init__(self, watch):
        super().__init__(watch)
        self.trained: set[int] = set()
        self.looked: dict[tuple, int] = {}
        self.done: set = set()
        self.steps: set[tuple] = set()  # lines that step

    def called(self, call: Call) -> None:
        """Note rows that are trained on; look at those of an evaluation."""
        inputs, outs = self.watch.inputs, self.watch.outs
        if not inputs or not outs or inputs[0].requires_grad or inputs[0].dim() < 2:
            return
        tensor = inputs[0]
        if tensor.shape[0] < ROWS or not tensor.dtype.is_floating_point or self.watch.flow.of(tensor).leaves:
            return
        if outs[0].requires_grad:
            if len(self.trained) < KEPT:
                self.trained |= self._rows(tensor)
        elif self.trained and not self.engine.module.is_grad_enabled():
            self._look(call, tensor)

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Look at the loop in which a step is made."""
        if place is None or (place.file, place.line) in self.steps or len(self.steps) > LOOKS:
            return
        self.steps.add((place.file, place.line))
        user = next(users_frames(sys._getframe(1)), None)
        if user is None:
            return
        spot = spot_of(Instruction(user.f_code, user.f_lasti), user)
        for loop in spot.around(ast.For):
            name = next((one for one in _names(loop.iter) if TESTS.search(one) and "train" not in one), None)
            if name is not None and type(spot.value(loop.iter)).__name__ == "DataLoader":
                self.report(
                    "evaluated-on-trained-rows",
                    spot.at(loop.iter).place,
                    f"The loop over {name} makes the optimizer's step at {brief(place)}.",
                    title="a model is trained on the data of its test",
                    cause="The wrong loader is passed, or the step stands in the loop of the evaluation.",
                    cure="Train on the training data; leave backward() and step() out of the evaluation.",
                )

    def _rows(self, tensor) -> set[int]:
        values = self.values(tensor)
        if values is None:
            return set()
        values = np.ascontiguousarray(values.reshape(len(values), -1))
        if len(np.unique(values[: 2 * ROWS])) < 2 * ROWS:
            return set()
        return {hash(row.tobytes()) for row in islice(values, KEPT // 10)}

    def _look(self, call: Call, tensor) -> None:
        line = Instruction(call.code, call.lasti)
        if self.looked.get(line, 0) >= LOOKS:
            return
        self.looked[line] = self.looked.get(line, 0) + 1
        found = next(_tests(), None)
        if found is None or found[0] in self.done:
            return
        rows = self._rows(tensor)
        same = len(rows & self.trained)
        if len(rows) >= ROWS and same >= PART * len(rows):
            self.done.add(found[0])
            where, name = found
            self.report(
                "evaluated-on-trained-rows",
                place_of(where),
                f"{same} of {len(rows)} rows that {name} gives at {brief_at(where)} had been in training steps before.",
            )


def _tests() -> Iterator[tuple[Instruction, str]]:
    """Give the lines that lead here and name their rows as those of a test, and the name."""
    for user in islice(users_frames(sys._getframe(1)), FRAMES):
        line = Instruction(user.f_code, user.f_lasti)
        spot = spot_of(line, frame_of(user.f_code))
        statement = spot.statement
        if statement is None:
            continue
        calls = [node for node in (spot.expression,) if isinstance(node, ast.Call)]
        loops = list(spot.around(ast.For))
        for node in (*[one for call in calls for one in call.args], *[loop.iter for loop in loops]):
            name = next((one for one in _names(node) if TESTS.search(one)), None)
            if name is not None:
                yield line, name


def _names(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr
