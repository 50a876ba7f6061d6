"""Contrastive losses in which each row is most similar to itself: the diagonal of z @ z.T is not masked.

NOTE [A row and itself]
Scores of rows against the same rows, whose diagonal is the greatest of each row, go into a cross entropy that never
wants the diagonal: the best answer is excluded by the target and not by the scores.

Scores of rows against as many others have their pairs on the diagonal; one and the same class for all rows is no pair.
"""

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

TWICE, LEAST = 2, 4
SIMILAR, TURNS = {"matmul", "mm", "cosine_similarity", "einsum"}, {"t", "T", "transpose"}


class OwnSimilarity(Detector):
    """Finds them (see NOTE [A row and itself])."""

    calls = frozenset({"cross_entropy", *SIMILAR, *TURNS, "div", "mul", "true_divide"})

    def __init__(self, watch):
        super().__init__(watch)
        self.products: WeakIdDict[Instruction] = WeakIdDict()  # square products -> line
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow a square of similarities to its loss."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out):
            return
        line = Instruction(call.code, call.lasti)
        if name != "cross_entropy":
            if out.dim() == 2 and out.shape[0] == out.shape[1] >= LEAST and is_computed(out):
                made = self.products.get(inputs[0])
                if made is not None or (name in SIMILAR and all(is_computed(one) for one in inputs)):
                    self.products[out] = made or line
            return
        if len(inputs) < 2 or inputs[0] not in self.products or inputs[1].dim() != 1:
            return
        scores, target = self.values(inputs[0]), self.values(inputs[1])
        if scores is None or target is None or self.times.get(line, 0) >= TWICE:
            return
        if len(target) == len(scores) and (target == target[0]).all():
            self._count_same(line, self.products.get(inputs[0]), int(target[0]), len(target))
            return
        own = np.arange(len(scores))
        if not np.allclose(scores, scores.T, rtol=1e-4, atol=1e-5) or len(target) != len(own) or (target == own).any():
            return
        if np.all(scores[own, own] >= scores.max(axis=1) - 1e-6):
            self.times[line] = self.times.get(line, 0) + 1
            if self.times[line] == TWICE:
                made = self.products.get(inputs[0])
                self.report(
                    "similarity-with-itself",
                    place_of(made),
                    f"The scores made at {brief_at(made)} compare each of {len(own)} rows with all rows, including "
                    f"itself: the largest score of each row is on the diagonal.",
                    f"The targets at {brief_at(line)} are never the diagonal.",
                )

    def _count_same(self, line: Instruction, made: Instruction, target: int, rows: int) -> None:
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] == TWICE:
            self.report(
                "pairs-off-diagonal",
                place_of(line),
                f"The scores made at {brief_at(made)} compare {rows} rows with {rows} others; the target at "
                f"{brief_at(line)} is {target} for each of them.",
            )
