"""Attention weights that are masked after the softmax: what is left of a row does not add up to 1.

NOTE [A mask after the softmax]
Many tensors of zeros and ones are multiplied by weights rightly: dropout, head masks, gates, experts that were chosen.
The mask of keys is known by its zeros: they begin or end each row in one direction, as of padding and of a future, at
least one row has both, and neither parameters nor chance made it. It is a mistake if the weights of masked keys were
above 0 and the rest is multiplied by values without being divided by its sum.
"""

from dataclasses import dataclass

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

FOLLOWED = {"unsqueeze", "squeeze", "transpose", "permute", "T", "view", "reshape", "getitem", "__getitem__", "index"}
FOLLOWED |= {"dropout", "contiguous", "to", "float", "clone", "expand", "select", "nan_to_num"}
PRODUCTS = {"matmul", "bmm", "mm", "baddbmm", "einsum"}
DIVIDES = {"div", "true_divide", "divide", "normalize"}
CHANCE = {"rand", "rand_like", "bernoulli", "uniform"}
COMPARES = {"gt", "ge", "lt", "le", "bool", "logical_not", "bitwise_not", "invert"}
LEAST = 0.01  # of a row's weight that masked keys must have held


@dataclass(slots=True)
class Masked:
    """A line that masks weights: the softmax's line, the greatest part of a row that was masked; what became of it."""

    softmax: Instruction
    part: float
    used: Instruction | None = None
    divided: bool = False


class LateMasks(Detector):
    """Finds them (see NOTE [A mask after the softmax])."""

    calls = frozenset(
        {"softmax", "mul", "masked_fill", "where", "sum", "norm", *FOLLOWED, *PRODUCTS, *DIVIDES, *CHANCE, *COMPARES}
    )

    def __init__(self, watch):
        super().__init__(watch)
        self.weights: WeakIdDict[tuple[Instruction, int]] = WeakIdDict()  # softmaxes -> line, dim
        self.drawn: WeakIdDict[None] = WeakIdDict()  # by chance
        self.masked: WeakIdDict[Instruction] = WeakIdDict()
        self.products: WeakIdDict[Instruction] = WeakIdDict()  # masked weights times values
        self.lines: dict[Instruction, Masked] = {}

    def called(self, call: Call) -> None:
        """Follow a softmax to a mask, and what is masked to a product or a division."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not self.engine.is_tensor(out):
            return
        line = Instruction(call.code, call.lasti)
        if name in CHANCE or (len(inputs) == 1 and inputs[0] in self.drawn):
            self.drawn[out] = None
        if not inputs:
            return
        if name == "softmax":
            dim = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
            if isinstance(dim, int) and out.requires_grad and out.dim() > 1:
                self.weights[out] = line, dim % out.dim()
        if name in ("mul", "masked_fill", "where"):
            self._look_at_mask(call, line, name, inputs, out)
        masks = {found for one in inputs if (found := self.masked.get(one)) is not None}
        for one in masks:
            self._read(one, line, name, inputs, out)
        if name == "sum" and inputs[0] in self.products and (len(call.args) > 1 or "dim" in call.kwargs):
            self.lines[self.products.get(inputs[0])].used = line

    def _read(self, masked: Instruction, line: Instruction, name: str, inputs: list, out: Tensor) -> None:
        """Look at what reads weights that a line masked."""
        known = self.lines[masked]
        if name in DIVIDES or name in ("sum", "norm"):
            known.divided = True
        elif name in PRODUCTS:
            known.used = line
        elif name in FOLLOWED or any(one in self.masked and one.shape == out.shape for one in inputs):
            self.masked[out] = masked  # dropout is a product on backlight
        elif name == "mul":
            self.products[out] = masked

    def _look_at_mask(self, call: Call, line: Instruction, name: str, inputs: list, out: Tensor) -> None:
        weights = next((one for one in inputs if one in self.weights), None)
        masks = [one for one in inputs if one is not weights]
        if weights is None or not masks or out.shape != weights.shape:
            return
        mask = masks[0]
        softmax, dim = self.weights.get(weights)
        back = dim - weights.dim()
        if mask.requires_grad or mask in self.drawn or mask.dim() < -back or self.watch.flow.of(mask).leaves:
            return
        if self.lines.get(line) is None or not self.lines[line].divided:
            part = self._masked_part(call, name, weights, mask, back)
            if part is not None:
                known = self.lines.setdefault(line, Masked(softmax, part))
                known.part = max(known.part, part)
                self.masked[out] = line

    def _masked_part(self, call: Call, name: str, weights: Tensor, mask: Tensor, dim: int) -> float | None:
        """Return the greatest part of a row's weight that a mask of keys took; None for another kind of mask."""
        kept, values = self.values(mask), self.values(weights)
        if kept is None or values is None or not np.all((kept == 0) | (kept == 1)):
            return None
        kept = kept != 0
        if name == "masked_fill":
            if call.args[2:3] != (0,) and call.kwargs.get("value") != 0:
                return None
            kept = ~kept
        elif name == "where" and (call.args[0] is not mask or not self._is_zero(call.args[2:3])):
            return None
        if not cuts_rows(np.moveaxis(kept, dim, -1)):
            return None
        some = kept.any(dim)  # where all keys are masked the softmax's weights mean nothing
        part = float(np.where(some, np.where(kept, 0, values).sum(dim), 0).max())
        return part if part > LEAST else None

    def _is_zero(self, others: tuple) -> bool:
        other = others[0] if others else None
        if self.engine.is_tensor(other):
            values = self.values(other)
            return values is not None and not values.any()
        return other == 0

    def end(self, problem: BaseException | None) -> None:
        """Report the masks whose rest was never divided by its sum."""
        for line, known in self.lines.items():
            if known.used is None or known.divided:
                continue
            self.report(
                "mask-after-softmax",
                place_of(line),
                f"The softmax at {brief_at(known.softmax)} gave up to {short(known.part)} of a row's weight to "
                f"elements that {brief_at(line)} sets to 0: the rest of that row sums to {short(1 - known.part)}.",
                f"The rest is multiplied by values at {brief_at(known.used)}, and is not divided by its sum.",
            )


def cuts_rows(kept: np.ndarray) -> bool:
    """Return whether a mask leaves the beginning of each row, or the end of each, and cuts one."""
    if kept.shape[-1] < 2 or not np.any(kept.any(-1) & ~kept.all(-1)):
        return False
    steps = np.diff(kept.astype(np.int8), axis=-1)
    return bool(np.all(steps <= 0) or np.all(steps >= 0))
