"""Moving averages of weights whose two factors are swapped: the average follows each step, and averages nothing.

NOTE [Swapped factors]
`average = decay * average + (1 - decay) * weights` has a decay near 1. It is swapped if what is added of a parameter
that an optimizer holds has a weight of 0.9 or more, the same in three steps in a row: a decay that is warmed up
changes from step to step.
"""

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Optimizer, Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

MOST, STEPS = 0.9, 3
OFF = 1e-6


class Averages(Detector):
    """Finds them (see NOTE [Swapped factors])."""

    calls = frozenset({"lerp", "mul", "add", "copy", "data="})

    def __init__(self, watch):
        super().__init__(watch)
        self.scaled: WeakIdDict[tuple[int, float]] = WeakIdDict()  # -> address of the source, factor
        self.sums: WeakIdDict[tuple[Instruction, float, int]] = WeakIdDict()  # -> line, new part, address of the old
        self.step = 0
        self.lines: dict[Instruction, tuple[float, int, int]] = {}  # -> part, steps in a row, last step
        self.done: set[Instruction] = set()

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Count a step."""
        self.step += 1

    def called(self, call: Call) -> None:
        """Follow a weight into an average."""
        if not self.step or (self.engine.module.is_grad_enabled() and call.out is not None and _records(call.out)):
            return
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(inputs[0]):
            return
        line = Instruction(call.code, call.lasti)
        if name == "mul":
            number = next((one for one in call.args if isinstance(one, float)), None)
            if number is not None and 0 <= number <= 1 and self.engine.is_tensor(out):
                self.scaled[out] = _address(inputs[0]), number
        elif name == "lerp" and len(inputs) >= 2 and isinstance(call.args[-1], float):
            self._averages(line, inputs[0], inputs[1], call.args[-1])
        elif name == "add" and len(inputs) == 2:
            self._added(call, line, *inputs)
        elif name in ("copy", "data=") and len(inputs) == 2 and inputs[1] in self.sums:
            made, part, old = self.sums.get(inputs[1])
            if old == _address(inputs[0]):
                self._count(made, part)

    def _added(self, call: Call, line: Instruction, left: Tensor, right: Tensor) -> None:
        one, other = self.scaled.get(left), self.scaled.get(right)
        alpha = call.kwargs.get("alpha")
        if one is not None and isinstance(alpha, float) and abs(one[1] + alpha - 1) < OFF:
            if call.out is left:
                self._averages(line, left, right, alpha)
            return
        if one is None or other is None or abs(one[1] + other[1] - 1) > OFF or one[0] == other[0]:
            return
        new, old = (one, other) if one[1] > other[1] else (other, one)
        if new[1] < MOST:
            return
        held = {_address(param) for param in self.watch.optimised().values()}
        if new[0] in held and old[0] not in held:
            if call.out is left or call.out is right:
                self._count(line, new[1])
            else:
                self.sums[call.out] = line, new[1], old[0]

    def _averages(self, line: Instruction, old: Tensor, new: Tensor, part: float) -> None:
        if part < MOST or part == 1 or line in self.done:
            return
        held = {_address(param) for param in self.watch.optimised().values()}
        if _address(new) in held and _address(old) not in held:
            self._count(line, part)

    def _count(self, line: Instruction, part: float) -> None:
        before, times, last = self.lines.get(line, (part, 0, 0))
        if last == self.step and times:
            return
        times = times + 1 if before == part else 1
        self.lines[line] = part, times, self.step
        if times == STEPS and line not in self.done:
            self.done.add(line)
            self.report(
                "average-factors-swapped",
                place_of(line),
                f"{brief_at(line)} keeps {short(1 - part)} of the average and takes {short(part)} of the weights that "
                f"the optimizer steps, in {STEPS} steps in a row.",
            )


def _address(tensor: Tensor) -> int:
    return tensor.data_ptr()


def _records(out) -> bool:
    return getattr(out, "requires_grad", False)
