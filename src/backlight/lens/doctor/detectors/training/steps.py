"""Optimizers that never step, and those that step twice with one gradient."""

import weakref
from dataclasses import dataclass

from backlight.dispatch.observers import Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Optimizer, Tensor
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import OUTLIVED, WeakIdDict
from backlight.lens.records.record import Place

MANY, THRICE = 12, 3


@dataclass(slots=True)
class Idle:
    """An optimizer that has not stepped yet: its class and line, how many backwards gave it gradients."""

    kind: str
    line: Instruction | None
    backwards: int = 0
    steps_of_others: int = 0
    stepped: bool = False


class Steps(Detector):
    """Compares the steps of optimizers with the gradients that come to them.

    An optimizer is reported if gradients came to what it holds in many backwards, others made many steps, it never made
    one, no other optimizer holds the same, and the program did not read these gradients itself.
    """

    def __init__(self, watch):
        super().__init__(watch)
        self.idle: WeakIdDict[Idle] = WeakIdDict(outlived=OUTLIVED)
        self.of_param: WeakIdDict[weakref.ref] = WeakIdDict()  # parameters -> an optimizer that has not stepped
        self.came: set[int] = set()  # ids of such optimizers that got gradients in the backward that runs
        self.used: WeakIdDict[tuple[weakref.ref, int]] = WeakIdDict()  # parameters -> the gradient that a step used
        self.twice: dict[tuple, int] = {}  # (line, line before) -> times
        self.last: WeakIdDict[Place | None] = WeakIdDict()
        self.known = 0

    def _learn(self) -> None:
        """Note optimizers that were made since."""
        constructions = self.watch.detectors[Constructions]
        if constructions.made == self.known:
            return
        self.known = constructions.made
        for optimizer, (_, line) in constructions.optimizers.items():
            if optimizer not in self.idle:
                self.idle[optimizer] = Idle(type(optimizer).__name__, line)
                for group in optimizer.param_groups:
                    for param in group["params"]:
                        self.of_param[param] = weakref.ref(optimizer)

    def started(self, run: Run) -> None:
        """Learn of new optimizers."""
        self._learn()
        self.came.clear()

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Note who gets gradients."""
        self.used.pop(tensor)
        reference = self.of_param.get(tensor)
        owner = None if reference is None else reference()
        if owner is not None and id(owner) not in self.came:
            self.came.add(id(owner))
            known = self.idle.get(owner)
            if known is not None:
                known.backwards += 1

    def read_grad(self, tensor: Tensor, grad: Tensor | None, frame: object) -> None:
        """Excuse an optimizer whose gradients the program uses itself."""
        if grad is not None:
            self.of_param.pop(tensor)

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Count a step; look whether it used the same gradients as the one before it."""
        self._learn()
        for other, known in self.idle.items():
            if other is optimizer:
                known.stepped = True
            elif not known.stepped:
                known.steps_of_others += 1
        pairs = [(param, grad) for param, grad in zip(params, grads) if grad is not None]
        again = bool(pairs) and all(self._was_used(param, grad) for param, grad in pairs)
        before = self.last.get(optimizer)
        for param, grad in pairs:
            self.of_param.pop(param)
            self.used[param] = weakref.ref(grad), self.engine.version_of(grad)
        self.last[optimizer] = place
        if again and place is not None and before is not None and place != before:
            key = place.file, place.line, before.line
            self.twice[key] = self.twice.get(key, 0) + 1
            if self.twice[key] == THRICE:
                self._report_twice(place, before, len(pairs))

    def _was_used(self, param: Tensor, grad: Tensor) -> bool:
        reference, version = self.used.get(param, (None, 0))
        return reference is not None and reference() is grad and self.engine.version_of(grad) == version

    def _report_twice(self, place: Place, before: Place, count: int) -> None:
        self.report(
            "stepped-twice",
            place,
            f"The optimizer stepped at {brief(before)} and again at {brief(place)} with the same gradients of "
            f"{counted(count, 'parameter')}, {THRICE} times; no backward() ran in between.",
        )

    def end(self, problem: BaseException | None) -> None:
        """Report optimizers that never stepped."""
        for _, one in self.idle.histories():
            if one.stepped or one.backwards < MANY or one.steps_of_others < MANY or one.line is None:
                continue
            self.report(
                "optimizer-never-steps",
                place_of(one.line),
                f"The {one.kind} made at {brief_at(one.line)} never stepped; its parameters got gradients in "
                f"{one.backwards} backwards, while other optimizers made {one.steps_of_others} steps.",
            )
