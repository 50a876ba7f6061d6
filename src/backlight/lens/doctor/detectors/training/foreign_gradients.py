"""Gradients of one player's loss in the other player's step: a GAN whose fakes are not detached.

NOTE [When a foreign gradient is a mistake]
Several losses may add up in a parameter. It is a mistake if another optimizer has already stepped with the first of
them, the parameter's own optimizer uses the sum, and the two gradients point against each other, step after step: what
one player wants, the other does not.
"""

import sys
from dataclasses import dataclass, field

import numpy as np

from backlight.dispatch.observers import Run
from backlight.lens.doctor.corrections.scopes import reached_as
from backlight.lens.doctor.detector import Detector, any_nonzero
from backlight.lens.doctor.detectors.training.roots import Roots
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Optimizer, Tensor
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

STEPS, AGAINST = 5, -0.3


@dataclass(slots=True)
class First:
    """The gradient that a parameter holds: of which loss, whether another optimizer has stepped since."""

    root: Instruction
    backward: Instruction
    elsewhere: Place | None = None


@dataclass(slots=True)
class Sums:
    """Of one step: products of the foreign gradient with the one that came after it; and of the steps before."""

    dot: float = 0.0
    old: float = 0.0
    new: float = 0.0
    first: First | None = None
    second: Instruction | None = None
    cosines: list[float] = field(default_factory=list)


class ForeignGradients(Detector):
    """Finds them (see NOTE [When a foreign gradient is a mistake])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.first: WeakIdDict[First] = WeakIdDict()
        self.sums: WeakIdDict[Sums] = WeakIdDict()  # optimizers
        self.owners: WeakIdDict[Optimizer] = WeakIdDict()
        self.mixed: WeakIdDict[tuple] = WeakIdDict()  # parameters -> (dot, old, new, first, second)
        self.reported = False

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Note which loss a gradient is of, and compare it with a foreign one that it is added to."""
        if self.reported:
            return
        known = self.first.get(tensor)
        if before is None or known is None:
            backward = Instruction(run.code, run.lasti)
            self.first[tensor] = First(self.watch.detectors[Roots].current or backward, backward)
            self.mixed.pop(tensor)
            return
        if known.elsewhere is None or known.backward == Instruction(run.code, run.lasti):
            return
        old, new = self.values(before), self.values(arrived)
        if old is not None and new is not None and any_nonzero(old) and any_nonzero(new):
            one, two = old.ravel().astype(np.float64), new.ravel().astype(np.float64)
            products = float(one @ two), float(one @ one), float(two @ two)
            self.mixed[tensor] = *products, known, Instruction(run.code, run.lasti)

    def cleared(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Forget what was cleared."""
        for param in params:
            self.first.pop(param)
            self.mixed.pop(param)

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note a step with gradients of one loss; judge one with foreign gradients."""
        roots = {known.root for param in params if (known := self.first.get(param)) is not None}
        own = {id(param) for param in params}
        mixed = [one for param in params if (one := self.mixed.pop(param)) is not None]
        for param in params:
            self.first.pop(param)
        for tensor, known in self.first.items():
            if known.root in roots and id(tensor) not in own and known.elsewhere is None:
                known.elsewhere = place
        if not mixed:
            self.sums.pop(optimizer)
            return
        dot, old, new = (sum(one[number] for one in mixed) for number in range(3))
        sums = self.sums.get(optimizer) or Sums()
        sums.first, sums.second = mixed[0][3], mixed[0][4]
        sums.cosines.append(dot / (old * new) ** 0.5 if old * new > 0 else 0.0)
        self.sums[optimizer] = sums
        if len(sums.cosines) == STEPS and np.mean(sums.cosines) < AGAINST and not self.reported:
            self.reported = True
            self._report(optimizer, sums, place)

    def _report(self, optimizer: Optimizer, sums: Sums, place: Place | None) -> None:
        first = sums.first
        name = reached_as(sys._getframe(1), optimizer) or "the other optimizer"
        self.report(
            "gradient-of-another-loss",
            place_of(first.root),
            f"The loss made at {brief_at(first.root)} had its backward at {brief_at(first.backward)}, and another "
            f"optimizer used it at {brief(first.elsewhere)}; its gradient was also added to the parameters of {name}.",
            f"backward() at {brief_at(sums.second)} added to it, and {name}.step() at {brief(place)} used the sum, in "
            f"{STEPS} steps in a row.",
            f"The two gradients point in opposite directions: their cosine was {short(float(np.mean(sums.cosines)))} "
            f"on "
            "average.",
        )
