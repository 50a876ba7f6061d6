"""Rows that are mixed with others, and labels that are mixed by the other one's share.

NOTE [Whose share is which]
x = λ x + (1 - λ) x[order], and the loss is λ of the labels y and 1 - λ of y[order]. It is a mistake if the loss of y
gets the factor that the rows of `order` got: λ is another number in each step, so that the two factors tell, unless
they are nearly equal.
"""

from dataclasses import dataclass

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.slips.softmax_dims import LOSSES
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

CHOOSES = {"getitem", "__getitem__", "index_select", "index", "flip", "roll"}
THRICE, CLOSE, APART = 3, 1e-4, 0.05


@dataclass(frozen=True, slots=True)
class Mixed:
    """A mix of rows: its line, the factor of the rows as they are, and that of the others."""

    line: Instruction
    own: float
    other: float


class Mixups(Detector):
    """Finds them (see NOTE [Whose share is which])."""

    calls = frozenset({*CHOOSES, *LOSSES, "mul", "add", "lerp"})

    def __init__(self, watch):
        super().__init__(watch)
        self.moved: WeakIdDict[None] = WeakIdDict()  # rows in another order
        self.scaled: WeakIdDict[tuple[float, bool]] = WeakIdDict()  # -> factor, whether of moved rows
        self.losses: WeakIdDict[bool] = WeakIdDict()  # -> whether the target is of moved rows
        self.mixed: Mixed | None = None  # of this step
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow rows into a mix, and losses into theirs."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out):
            return
        if name in CHOOSES:
            if not inputs[0].requires_grad and out.shape == inputs[0].shape and out is not inputs[0]:
                self.moved[out] = None
        elif name in LOSSES:
            if len(inputs) > 1 and self.mixed is not None and inputs[0].requires_grad:
                self.losses[out] = inputs[1] in self.moved
        elif name == "mul":
            self._scale(call, inputs, out)
        elif name == "add" and len(inputs) == 2 and not out.requires_grad:
            one, other = self.scaled.get(inputs[0]), self.scaled.get(inputs[1])
            if one is not None and other is not None and one[1] != other[1] and abs(one[0] + other[0] - 1) < CLOSE:
                own, others = (other, one) if one[1] else (one, other)
                if abs(own[0] - others[0]) > APART:
                    self.mixed = Mixed(Instruction(call.code, call.lasti), own[0], others[0])

    def _scale(self, call: Call, inputs: list, out: Tensor) -> None:
        factor = next((one for one in call.args if isinstance(one, float)), None)
        tensor = inputs[0]
        if factor is None and len(inputs) == 2:
            number = next((one for one in inputs if not one.dim() and not one.requires_grad), None)
            factor = None if number is None else self.number(number)
            tensor = next((one for one in inputs if one is not number), tensor)
        if factor is None:
            return
        if not out.requires_grad:
            self.scaled[out] = factor, tensor in self.moved
        elif self.mixed is not None and tensor in self.losses:
            self._look(Instruction(call.code, call.lasti), factor, self.losses.get(tensor))

    def _look(self, line: Instruction, factor: float, of_moved: bool) -> None:
        mixed = self.mixed
        right, wrong = (mixed.other, mixed.own) if of_moved else (mixed.own, mixed.other)
        if abs(factor - right) < CLOSE:
            self.times[line] = -1
        elif abs(factor - wrong) < CLOSE and self.times.get(line, 0) >= 0:
            self.times[line] = self.times.get(line, 0) + 1
            if self.times[line] == THRICE:
                self._report(line, mixed, factor, of_moved)

    def _report(self, line: Instruction, mixed: Mixed, factor: float, of_moved: bool) -> None:
        rows = "the rows in the other order" if of_moved else "the rows as they are"
        self.report(
            "mixed-by-other-share",
            place_of(line),
            f"{brief_at(mixed.line)} mixed {short(mixed.own)} of the rows as they are with {short(mixed.other)} of "
            "them in another order.",
            f"{brief_at(line)} gives the loss of the labels of {rows} the factor {short(factor)}, in {THRICE} steps.",
        )

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """A step is over."""
        self.mixed = None
