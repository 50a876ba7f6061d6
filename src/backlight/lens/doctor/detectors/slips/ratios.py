"""A ratio of probabilities that is always 1: exp(new - old), where both are the same function of the same parameters.

NOTE [A ratio of one]
In the first update after a rollout the ratio of a policy with itself is 1, and has a gradient, if `old` was detached or
computed by another model. It has none if both sides carry a graph that ends in the same parameters and hold the same
numbers bit for bit in all calls, while the parameters change.
"""

from dataclasses import dataclass

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

CALLS = 4
SUMS = {"sum", "mean"}


@dataclass(slots=True)
class Difference:
    """A line that subtracts: where both sides were made, how often they were equal and went into exp."""

    sides: tuple[str, ...] = ()
    differs: bool = False
    raised: int = 0


class Ratios(Detector):
    """Finds them (see NOTE [A ratio of one])."""

    calls = frozenset({"sub", "exp", *SUMS})

    def __init__(self, watch):
        super().__init__(watch)
        self.lines: dict[Instruction, Difference] = {}
        self.zeros: WeakIdDict[Instruction] = WeakIdDict()  # differences that are 0 -> their line

    def called(self, call: Call) -> None:
        """Look at a difference, or at what becomes of one."""
        inputs, outs, name = self.watch.inputs, self.watch.outs, self.watch.name
        if len(outs) != 1 or not is_computed(outs[0]):
            return
        if name == "sub":
            if len(inputs) == 2 and call.name in ("sub", "__sub__", "subtract"):
                self._subtracted(Instruction(call.code, call.lasti), *inputs, outs[0])
            return
        line = self.zeros.get(inputs[0]) if inputs else None
        if line is None:
            return
        if name == "exp":
            self.lines[line].raised += 1
        else:
            self.zeros[outs[0]] = line

    def _subtracted(self, line: Instruction, left: Tensor, right: Tensor, out: Tensor) -> None:
        known = self.lines.setdefault(line, Difference())
        if known.differs:
            return
        values = self._shared_values(left, right)
        if values is None:
            known.differs = True
            return
        if not np.any(values != values.flat[0]):  # all alike: zeros, or one number
            return
        self.zeros[out] = line
        if not known.sides:
            lines = [self.engine.line_of(one.grad_fn) for one in (left, right)]
            known.sides = tuple(f"line {one.line}" for one in lines if one is not None)

    def _shared_values(self, left: Tensor, right: Tensor) -> np.ndarray | None:
        """Return the values of two tensors, if they are the same and come from the same parameters."""
        flow = self.watch.flow
        if left is right or left.shape != right.shape or not (is_computed(left) and is_computed(right)):
            return None
        if flow.of(left).leaves != flow.of(right).leaves or not flow.of(left).leaves:
            return None
        values, others = self.values(left), self.values(right)
        same = values is not None and others is not None and values.size > 1 and np.array_equal(values, others)
        return values if same else None

    def end(self, problem: BaseException | None) -> None:
        """Report the lines at which both sides were always the same."""
        for line, known in self.lines.items():
            if known.differs or known.raised < CALLS:
                continue
            sides = f", made at {' and '.join(known.sides)}," if len(known.sides) == 2 else ""
            self.report(
                "ratio-of-one",
                place_of(line),
                f"Both sides of the difference at {brief_at(line)}{sides} were the same, bit for bit, in each of "
                f"{known.raised} calls, and have graphs that lead to the same parameters.",
                "exp() of it is 1 everywhere, and its two gradients cancel.",
            )
