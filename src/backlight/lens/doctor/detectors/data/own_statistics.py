"""Test data that are normalised by their own mean and deviation, and not by those of the training data.

NOTE [Statistics of another set]
A data set less its mean over the rows, divided, is normalised by its own statistics. If two sets were, from different
lines, and the model that the first one trained is evaluated on the second, the two are not on one scale. Batches that
are normalised one by one give many such sets, and are left alone.
"""

import sys
from itertools import islice

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of, users_frames
from backlight.lens.doctor.weak_id_dict import WeakIdDict

FIRST = {"linear", "conv1d", "conv2d", "lstm", "gru", "matmul"}
KEEPS = {"getitem", "__getitem__", "slice", "index", "to", "float", "unsqueeze", "view", "reshape"}
ROWS, SETS, FRAMES = 16, 2, 4


class OwnStatistics(Detector):
    """Finds them (see NOTE [Statistics of another set])."""

    calls = frozenset({"mean", "sub", "div", "true_divide", *FIRST, *KEEPS})

    def __init__(self, watch):
        super().__init__(watch)
        self.means: WeakIdDict[int] = WeakIdDict()  # means over rows -> address of what they are of
        self.centred: WeakIdDict[None] = WeakIdDict()
        self.normalised: WeakIdDict[int] = WeakIdDict()  # -> number of the set
        self.sets: list[tuple[Instruction, ...]] = []  # the lines that lead to each, the innermost first
        self.trained = False
        self.in_training: set[int] = set()
        self.done = False

    def called(self, call: Call) -> None:
        """Follow a data set from its mean to the model."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if self.done or not inputs or not self.engine.is_tensor(out):
            return
        if name in FIRST:
            self._enters(call, inputs[0], out)
        elif out.requires_grad:
            return
        elif name == "mean":
            dim = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
            if dim in (0, (0,), [0]) and inputs[0].shape[0] >= ROWS:
                self.means[out] = inputs[0].data_ptr()
        elif name == "sub":
            if len(inputs) == 2 and self.means.get(inputs[1]) == inputs[0].data_ptr():
                self.centred[out] = None
        elif name in KEEPS:
            if inputs[0] in self.normalised:
                self.normalised[out] = self.normalised.get(inputs[0])
        elif inputs[0] in self.centred:
            frames = islice(users_frames(sys._getframe(1)), FRAMES)
            self.normalised[out] = len(self.sets)
            self.sets.append(tuple(Instruction(one.f_code, one.f_lasti) for one in frames))

    def _enters(self, call: Call, tensor: Tensor, out: Tensor) -> None:
        number = self.normalised.get(tensor)
        if out.requires_grad:
            self.trained = True
            if number is not None:
                self.in_training.add(number)
        elif number is not None and self.trained and number not in self.in_training and len(self.sets) == SETS:
            one, other = self.sets[1 - number], self.sets[number]
            where = next((here for here, there in zip(other, one) if here != there), None)
            if where is None:
                return
            first = next(there for here, there in zip(other, one) if here != there)
            self.done = True
            self.report(
                "normalised-by-own-statistics",
                place_of(where),
                f"The data set that {brief_at(where)} normalises is divided by its own mean and "
                "deviation, and the model "
                f"is evaluated on it at {brief_at(Instruction(call.code, call.lasti))}.",
                f"Another set was normalised by its own at {brief_at(first)}.",
            )
