"""Pixels between 0 and 1 that are divided by 255 once more.

NOTE [Scaled twice]
A division by 255, or by 127.5, is meant for whole numbers up to 255. Numbers between 0 and 1, most of them no whole
ones, were divided before, as ToTensor() does; what is left of them is below 0.004. It is reported if a graph uses such
a result, three times.
"""

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

DIVISORS = (255.0, 127.5)
KEEPS = {"sub", "add", "view", "reshape", "flatten", "unsqueeze", "to", "float", "permute", "stack", "getitem"}
KEEPS |= {"select", "__getitem__", "transpose", "contiguous", "index", "index_select"}
THRICE, LEAST, CLOSE, WHOLE, LOOKS = 3, 64, 1e-6, 0.25, 400


class PixelScales(Detector):
    """Finds them (see NOTE [Scaled twice])."""

    calls = frozenset({"div", "true_divide", "divide", "mul", *KEEPS})

    def __init__(self, watch):
        super().__init__(watch)
        self.small: WeakIdDict[tuple[Instruction, float]] = WeakIdDict()  # -> line, greatest number before
        self.times: dict[Instruction, int] = {}
        self.looks = 0

    def called(self, call: Call) -> None:
        """Look at a division, and follow its result."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out):
            return
        if out.requires_grad:
            return
        if name in KEEPS or inputs[0] in self.small:
            known = self.small.get(inputs[0]) if len(self.small) else None
            if known is not None:
                self.small[out] = known
        elif _divisor(call, name) is not None and self.looks < LOOKS:
            self.looks += 1
            top = self._top(inputs[0])
            if top is not None:
                self.small[out] = Instruction(call.code, call.lasti), top

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Count what a graph uses."""
        found = {known for one, known in self.small.items() if one in self.watch.flow.constants}
        for known in found:
            self._count(*known)

    def _top(self, tensor: Tensor) -> float | None:
        """Return the greatest of numbers between 0 and 1; None of all others."""
        values = self.values(tensor) if tensor.dtype.is_floating_point and tensor.numel() >= LEAST else None
        if values is None or values.min() < 0 or not 0 < values.max() <= 1:
            return None
        return float(values.max()) if np.mean(values % 1 != 0) > WHOLE else None

    def _count(self, line: Instruction, top: float) -> None:
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] == THRICE:
            self.report(
                "pixels-scaled-twice",
                place_of(line),
                f"{brief_at(line)} divides numbers between 0 and {short(top)}, most of them no whole numbers; what the "
                f"model gets is at most {short(top / DIVISORS[0])}.",
            )


def _divisor(call: Call, name: str) -> float | None:
    number = next((one for one in call.args[1:] if isinstance(one, (int, float))), None)
    if number is None or not number:
        return None
    number = float(number) if name != "mul" else 1 / float(number)
    return next((one for one in DIVISORS if abs(number / one - 1) < CLOSE), None)
