"""Overlaps of raw scores: a Dice or IoU loss that gets what no sigmoid has made probabilities.

NOTE [An overlap]
Scores of a layer, times a target of zeros and ones, summed, are divided by the sum of the same scores and more. Of
probabilities that is an overlap. Of raw scores, some below 0 and some above 1, it has no bound: the sum below may come
to 0 or be negative.
"""

from dataclasses import dataclass

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

LAYERS = {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose2d"}
KEEPS = {"view", "reshape", "flatten", "squeeze", "contiguous", "float", "getitem", "__getitem__", "select"}
RATIOS = {"div", "true_divide"}
CALLS, SIGNIFICANT = 3, 0.05


@dataclass(eq=False, slots=True)
class Scores:
    """What a layer returned: the line, its least and largest value."""

    line: Instruction
    least: float
    most: float


class Overlaps(Detector):
    """Finds them (see NOTE [An overlap])."""

    calls = frozenset({*LAYERS, *KEEPS, *RATIOS, "mul", "sum", "add", "sub"})

    def __init__(self, watch):
        super().__init__(watch)
        self.scores: WeakIdDict[Scores] = WeakIdDict()
        self.products: WeakIdDict[Scores] = WeakIdDict()  # with a target, and sums of these
        self.sums: WeakIdDict[Scores] = WeakIdDict()  # of the scores themselves
        self.layers: WeakIdDict[Instruction] = WeakIdDict()
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow scores to a ratio."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out) or not is_computed(out):
            return
        if name in LAYERS:
            self.layers[out] = Instruction(call.code, call.lasti)
        elif name in KEEPS:
            for table in (self.layers, self.products):
                if inputs[0] in table:
                    table[out] = table.get(inputs[0])
        elif name == "mul":
            self._multiplied(inputs, out)
        elif name == "sum":
            if inputs[0] in self.products:
                self.products[out] = self.products.get(inputs[0])
            elif inputs[0] in self.scores:
                self.sums[out] = self.scores.get(inputs[0])
        elif name in RATIOS:
            if len(inputs) == 2 and inputs[0] in self.products and inputs[1] in self.sums:
                self._found(call, self.products.get(inputs[0]), self.sums.get(inputs[1]))
        else:
            for table in (self.sums, self.products):
                known = next((table.get(one) for one in inputs if one in table), None)
                if known is not None:
                    table[out] = known

    def _multiplied(self, inputs: list, out: Tensor) -> None:
        if len(inputs) == 1:
            if inputs[0] in self.products:
                self.products[out] = self.products.get(inputs[0])
            return
        scores = next((one for one in inputs if one in self.layers), None)
        target = next((one for one in inputs if not one.requires_grad), None)
        if scores is None or target is None or scores.shape != target.shape:
            return
        values, wanted = self.values(scores), self.values(target)
        if values is None or wanted is None or not values.size or not np.isin(wanted, (0, 1)).all():
            return
        outside = np.mean((values < 0) | (values > 1))
        if outside > SIGNIFICANT and values.min() < 0 and 0 < wanted.mean() < 1:
            known = Scores(self.layers.get(scores), float(values.min()), float(values.max()))
            self.scores[scores] = self.products[out] = known

    def _found(self, call: Call, product: Scores, total: Scores) -> None:
        if product is not total:
            return
        line = Instruction(call.code, call.lasti)
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] == CALLS:
            self.report(
                "overlap-of-scores",
                place_of(line),
                f"{brief_at(line)} divides the sum of scores times a target by the sum of the scores, as Dice and IoU "
                f"do; the scores come from {brief_at(product.line)}, from {short(product.least)} to "
                f"{short(product.most)}.",
            )
