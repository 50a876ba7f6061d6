"""Optimizers that do not do their work: made anew in the loop, or of a class whose step changes nothing.

NOTE [When a new optimizer is a mistake]
The same line makes one optimizer after another for the same parameters, with the same settings, each of which keeps a
state between steps (momentum, Adam's averages), and none of the parameters were loaded between.

NOTE [When a step changes nothing]
An optimizer of the program's own class stepped several times, with gradients that are not 0 and a learning rate above
0, and no parameter that it holds has changed.
"""

import ast
import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType

from backlight.lens.doctor.corrections.lines import as_in_place, rebinds
from backlight.lens.doctor.detector import Detector, any_nonzero, checksum_of
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.detectors.training.states import States
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Optimizer, Tensor
from backlight.lens.doctor.places import Instruction, brief, place_of
from backlight.lens.doctor.source import Spot, parsed, span
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

ENOUGH = 4


@dataclass(slots=True)
class Made:
    """The optimizers that a line made of some parameters: how many, steps of the last, settings."""

    kind: str
    params: tuple[int, ...]
    settings: tuple
    optimizers: int = 1
    steps: int = 1
    loads: int = 0


class RemadeOptimizers(Detector):
    """Follows the making of optimizers (see NOTE [When a new optimizer is a mistake])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.lines: dict[Instruction, Made] = {}
        self.seen: WeakIdDict[None] = WeakIdDict()
        self.done: set[Instruction] = set()

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note an optimizer that steps for the first time."""
        known = self.watch.detectors[Constructions].optimizers.get(optimizer)
        line = None if known is None else known[1]
        if line is None:
            return
        before = self.lines.get(line)
        if optimizer in self.seen:
            if before is not None:
                before.steps += 1
            return
        self.seen[optimizer] = None
        group = optimizer.param_groups[0] if optimizer.param_groups else {}
        settings = tuple(
            (name, repr(value)) for name, value in sorted(group.items()) if name not in ("params", "initial_lr")
        )
        made = Made(type(optimizer).__name__, tuple(map(id, params)), settings)
        made.loads = len(self.watch.detectors[States].loaded)
        if not ("betas" in group or group.get("momentum") or "alpha" in group or "rho" in group):
            return
        if before is not None and (before.params, before.settings, before.loads) == (
            made.params,
            made.settings,
            made.loads,
        ):
            before.optimizers += 1
            before.steps += 1
            if before.optimizers == ENOUGH and line not in self.done:
                self.done.add(line)
                self._report(line, before, place)
        else:
            self.lines[line] = made

    def _report(self, line: Instruction, made: Made, place: Place | None) -> None:
        where = place_of(line)
        self.report(
            "optimizer-made-anew",
            where,
            f"{brief(where)} created {made.optimizers} {made.kind}s for the same "
            f"{counted(len(made.params), 'parameter')} with "
            f"the same settings; together they took {counted(made.steps, 'step')} at {brief(place)}.",
            "Each started without the state of the previous one.",
        )


class OwnOptimizers(Detector):
    """Looks whether optimizers of own classes change anything (see NOTE [When a step changes nothing])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.before: dict[int, list[int]] = {}  # optimizers that step -> checksums of what they hold
        self.in_vain: WeakIdDict[int] = WeakIdDict()

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Take checksums."""
        kind = type(optimizer)
        own = kind.__module__.partition(".")[0] not in ("torch", "backlight") and self.in_vain.get(optimizer, 0) >= 0
        if not own:
            return
        moving = [param for param, grad in zip(params, grads) if grad is not None and self._is_nonzero(grad)]
        if moving and any(float(group.get("lr", 1.0)) > 0 for group in optimizer.param_groups):
            self.before[id(optimizer)] = [self._checksum(param) for param in moving]

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Compare them."""
        before = self.before.pop(id(optimizer), None)
        if before is None:
            return
        moving = [param for param, grad in zip(params, grads) if grad is not None and self._is_nonzero(grad)]
        if [self._checksum(param) for param in moving] != before:
            self.in_vain[optimizer] = -1  # it works
            return
        times = self.in_vain.get(optimizer, 0) + 1
        self.in_vain[optimizer] = -1 if times == ENOUGH else times
        if times == ENOUGH:
            self._report(type(optimizer), len(moving), place)

    def _is_nonzero(self, grad: Tensor) -> bool:
        values = self.values(grad)
        return values is not None and any_nonzero(values)

    def _checksum(self, param: Tensor) -> int:
        values = self.values(param)
        return 0 if values is None else checksum_of(values)

    def _report(self, kind: type, count: int, place: Place | None) -> None:
        line = _rebinding_in(getattr(kind, "step", None))
        where, cause = place, "step() computes new values and does not write them to the parameters"
        corrected = None
        if line is not None:
            where, name, written = line
            cause = f"{name} = ... assigns the loop variable a new tensor and does not change the parameter"
            corrected = written
        self.report(
            "step-changes-nothing",
            where,
            f"{kind.__name__}.step() at {brief(place)} ran {ENOUGH} times with gradients that are not 0; none of the "
            f"{counted(count, 'parameter')} has changed.",
            title=f"{kind.__name__}.step() changes no parameter",
            cause=cause,
            corrected=corrected,
        )


def _rebinding_in(step: Callable | None) -> tuple[Place, str, str | None] | None:
    """Return the line `p = p - ...` of a step, for the variable of a loop: the line, the name, the line in place."""
    code = getattr(inspect.unwrap(step), "__code__", None) if step is not None else None
    tree = None if code is None else parsed(tuple(linecache.getlines(code.co_filename)))
    for loop in ast.walk(tree or ast.Module(body=[])):
        if not isinstance(loop, ast.For) or not code.co_firstlineno <= loop.lineno <= _last_line(code):
            continue
        names = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
        for node in ast.walk(loop):
            spot = Spot(code.co_filename, code.co_name, span(node)) if isinstance(node, ast.Assign) else None
            if spot is not None and rebinds(node) and getattr(node.targets[0], "id", "") in names:
                return spot.place, node.targets[0].id, as_in_place(spot)
    return None


def _last_line(code: CodeType) -> int:
    return max((line for *_, line in code.co_lines() if line is not None), default=code.co_firstlineno)
