"""Scores of an attention that are masked or scaled the wrong way before their softmax.

NOTE [Scores before the softmax]
A softmax gives exp(0) = 1 to a score of 0: a mask that sets scores to 0, or to 1e-9, hides nothing. It is a mistake
where such scores go through a softmax over the masked dim into a product with values, and no score is far below 0. Of
masks that set scores to exactly 0, or multiply by 0, only those count that begin or end each row, as of padding and of
a future (slips/late_masks.py); sparse attention may mean anything else.

A product of vectors of d numbers is divided by the root of d. If it is multiplied by that very number, d ** 0.5 stands
where d ** -0.5 was meant. Of vectors of length 1, whose products are between -1 and 1, this may be the scale.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector, numbers_of
from backlight.lens.doctor.detectors.slips.late_masks import cuts_rows
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

PRODUCTS = {"matmul", "bmm", "mm", "einsum", "baddbmm"}
KEEPS = {"view", "reshape", "unsqueeze", "squeeze", "transpose", "permute", "contiguous", "float", "to", "dropout"}
KEEPS |= {"add", "getitem", "__getitem__", "flatten"}
CHANCE = {"rand", "rand_like", "bernoulli", "uniform", "dropout"}
SMALL, FAR, TIMES, CLOSE, LEAST_DIM = 1e-3, -100.0, 3, 1e-4, 4


@dataclass(frozen=True, slots=True)
class Scores:
    """Products of queries and keys.

    Args:
        dims: of how many numbers these vectors are.
        root: the line that multiplied by the root of `dims`.
        mask: the line that set masked scores to `value`.
    """

    dims: int
    root: Instruction | None = None
    mask: Instruction | None = None
    value: float = 0.0


class AttentionScores(Detector):
    """Finds them (see NOTE [Scores before the softmax])."""

    calls = frozenset({*PRODUCTS, *KEEPS, *CHANCE, "mul", "div", "true_divide", "masked_fill", "where", "softmax"})

    def __init__(self, watch):
        super().__init__(watch)
        self.scaled: WeakIdDict[tuple[Instruction, float]] = WeakIdDict()  # queries times a number
        self.scores: WeakIdDict[Scores] = WeakIdDict()
        self.weights: WeakIdDict[Scores] = WeakIdDict()  # their softmax
        self.drawn: WeakIdDict[None] = WeakIdDict()  # by chance
        self.times: dict[tuple, int] = {}

    def called(self, call: Call) -> None:
        """Follow scores from a product to a softmax, and its result into another product."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not self.engine.is_tensor(out):
            return
        if not out.requires_grad:
            if name in CHANCE or any(one in self.drawn for one in inputs):
                self.drawn[out] = None
            return
        if not inputs:
            return
        line = Instruction(call.code, call.lasti)
        if name in PRODUCTS:
            self._multiply(name, inputs, out)
            return
        known = next((found for one in inputs if (found := self.scores.get(one)) is not None), None)
        factor = _factor(call, name)
        if known is None:
            if factor is not None and abs(factor) > 1:
                self.scaled[out] = line, factor
            elif name in KEEPS and inputs[0] in self.scaled:
                self.scaled[out] = self.scaled.get(inputs[0])
        elif factor is not None:
            by_root = known.dims >= LEAST_DIM and abs(factor / math.sqrt(known.dims) - 1) < CLOSE
            self.scores[out] = replace(known, root=line) if by_root and self._is_wide(inputs[0]) else known
        elif name in ("mul", "masked_fill", "where"):
            self.scores[out] = self._masked(call, line, name, inputs, known)
        elif name == "softmax":
            self._soften(call, inputs[0], out, known)
        elif name in KEEPS:
            self.scores[out] = known

    def _multiply(self, name: str, inputs: list, out: Tensor) -> None:
        known = next((found for one in inputs if (found := self.weights.get(one)) is not None), None)
        if known is not None:
            self._uses(known)
        elif len(inputs) > 1 and out.dim() > 1 and inputs[0].dim() == inputs[1].dim():
            dims = inputs[0].shape[-1]
            scaled = self.scaled.get(inputs[0]) or self.scaled.get(inputs[1])
            by_root = scaled is not None and dims >= LEAST_DIM and abs(scaled[1] / math.sqrt(dims) - 1) < CLOSE
            self.scores[out] = Scores(dims, scaled[0] if by_root and self._is_wide(out, math.sqrt(dims)) else None)

    def _is_wide(self, scores: Tensor, factor: float = 1.0) -> bool:
        """Return whether scores are not those of vectors of length 1."""
        values = self.values(scores)
        return values is not None and bool(np.abs(values).max(initial=0) > factor * (1 + CLOSE))

    def _masked(self, call: Call, line: Instruction, name: str, inputs: list, known: Scores) -> Scores:
        """Return scores with the line that masked them, if it did so with a number that hides nothing."""
        if name == "mul":
            mask = next((one for one in inputs if one not in self.scores), None)
            hides = None if mask is None or mask.requires_grad else self._kept(mask, inputs)
            return known if hides is None or mask in self.drawn else replace(known, mask=line, value=0.0)
        mask = call.args[1] if name == "masked_fill" else call.args[0]
        value = call.kwargs.get("value", call.args[2] if len(call.args) > 2 else None)
        if name == "where" and self.engine.is_tensor(value) and value in self.scores:
            value = call.args[1]
        if self.engine.is_tensor(value):
            values = None if value.requires_grad else self.values(value)
            value = values.flat[0] if values is not None and values.size and (values == values.flat[0]).all() else None
        if not isinstance(value, (int, float, np.number)) or not self.engine.is_tensor(mask):
            return known
        if abs(value) > SMALL:
            return replace(known, mask=None)
        if value == 0 and self._kept(mask, inputs) is None:
            return known
        return replace(known, mask=line, value=float(value))

    def _kept(self, mask: Tensor, inputs: list) -> np.ndarray | None:
        """Return a mask's values, if it is one of keys: zeros and ones that begin or end each row."""
        if not mask.dim() or mask.shape[-1] < 2 or self.watch.flow.of(mask).leaves:
            return None
        values = self.values(mask)
        if values is None or not np.all((values == 0) | (values == 1)) or values.all() or not values.any():
            return None
        return values if cuts_rows(values != 0) else None

    def _soften(self, call: Call, scores: Tensor, out: Tensor, known: Scores) -> None:
        dim = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
        if dim not in (-1, scores.dim() - 1):
            return
        if known.mask is not None:
            values = self.values(scores)
            if values is None or values.min(initial=0) < FAR:
                known = replace(known, mask=None)
        self.weights[out] = known

    def _uses(self, known: Scores) -> None:
        """Count, once an attention is seen to be one."""
        for line, rule in ((known.mask, "mask-hides-nothing"), (known.root, "scores-multiplied-by-root")):
            if line is None:
                continue
            self.times[rule, line] = self.times.get((rule, line), 0) + 1
            if self.times[rule, line] != TIMES:
                continue
            if rule == "mask-hides-nothing":
                self.report(
                    rule,
                    place_of(line),
                    f"{brief_at(line)} sets masked scores to {short(known.value)}; a softmax takes them, and its "
                    "result is multiplied by values.",
                    f"exp({short(known.value)}) is {short(math.exp(known.value))}: what is masked gets a part of the "
                    "attention.",
                )
            else:
                self.report(
                    rule,
                    place_of(line),
                    f"{brief_at(line)} multiplies by {short(math.sqrt(known.dims))}, the root of the {known.dims} "
                    "numbers that each query and key has; a softmax takes the product.",
                )


def _factor(call: Call, name: str) -> float | None:
    """Return the number that a tensor is multiplied by."""
    if name not in ("mul", "div", "true_divide") or len(call.args) < 2:
        return None
    number = next(iter(numbers_of(call)), None)
    if number is None:
        other = next((one for one in call.args if not getattr(one, "requires_grad", True) and not one.dim()), None)
        number = None if other is None else float(other)
    if number is None or not number:
        return None
    return float(number) if name == "mul" else 1 / float(number)
