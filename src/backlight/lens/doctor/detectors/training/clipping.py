"""Clipping that does nothing: before backward(), after step(), of an iterator that is used up, of scaled gradients.

NOTE [When clipping is in vain]
All gradients were None at the clip, and the next step used some, twice in a row at the same line. Or all were what a
step had used already, unchanged, and they were cleared before another step, three times in a row. Or the clip was given
no parameters at all, after it had some at the same line. Or the loss was scaled by a GradScaler, and nothing unscaled
the gradients before the clip.
"""

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.scalers import Scalers
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Optimizer
from backlight.lens.doctor.places import brief, place_of_frame
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

TWICE, THRICE = 2, 3
CLIPS = ("clip_grad_norm_", "clip_grad_value_")


@dataclass(slots=True)
class ClipLine:
    """A line that clips: what it calls, its place, how often each kind of nothing happened there in a row."""

    name: str
    place: Place
    given: int = 0  # parameters of its first call
    early: int = 0
    late: int = 0
    empty: int = 0
    scaled: int = 0


class Clipping(Detector):
    """Looks at each clip (see NOTE [When clipping is in vain])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.lines: dict[tuple, ClipLine] = {}
        self.early: WeakIdDict[ClipLine] = WeakIdDict()  # parameters that had no gradient when they were clipped
        self.late: WeakIdDict[ClipLine] = WeakIdDict()  # parameters whose used gradient was clipped
        self.used: WeakIdDict[tuple[weakref.ref, int]] = WeakIdDict()  # parameters -> gradient that a step used

    def begin(self) -> None:
        """Stand in for what clips."""
        tools = self.engine.module.nn.utils
        for name in CLIPS:
            if hasattr(tools, name):
                self.session.patch(tools, name, self._clipping)

    def _clipping(self, original: Callable) -> Callable:
        @wraps(original)
        def clip(parameters, *args, **kwargs):
            given = [parameters] if self.engine.is_tensor(parameters) else list(parameters)
            if not self.watch.busy:
                self._note(original.__name__, given, place_of_frame(sys._getframe(1)))
            return original(given, *args, **kwargs)

        return clip

    def _note(self, name: str, params: list, place: Place | None) -> None:
        if place is None:
            return
        line = self.lines.setdefault((name, place.file, place.line), ClipLine(name, place, len(params)))
        if not params:
            line.empty += 1
            if line.empty == TWICE and line.given:
                self._report_empty(line)
            return
        patches = self.watch.patches
        with patches.unseen():
            grads = [patches.read(one) for one in params]
        if all(grad is None for grad in grads):
            for one in params:
                self.early[one] = line
            return
        line.early = 0
        for one in params:
            self.early.pop(one)
        if all(self._is_used(param, grad) for param, grad in zip(params, grads)):
            for param in params:
                self.late[param] = line
        else:
            line.late = 0
        if self.watch.detectors[Scalers].are_scaled(params):
            line.scaled += 1
            if line.scaled == TWICE:
                self._report_scaled(line)

    def _is_used(self, param, grad) -> bool:
        if grad is None:
            return True
        known, version = self.used.get(param, (None, 0))
        return known is not None and known() is grad and self.engine.version_of(grad) == version

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note what the step has used; count clips that came before their gradients."""
        lines = []
        for param, grad in zip(params, grads):
            if grad is None:
                continue
            self.used[param] = weakref.ref(grad), self.engine.version_of(grad)
            self.late.pop(param)
            line = self.early.pop(param)
            if line is not None and line not in lines:
                lines.append(line)
        for line in lines:
            line.early += 1
            if line.early == TWICE:
                self._report_early(line, place)

    def cleared(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Count clips whose result is cleared."""
        lines = []
        for param in params:
            line = self.late.pop(param)
            if line is not None and line not in lines:
                lines.append(line)
        for line in lines:
            line.late += 1
            if line.late == THRICE:
                self._report_late(line, place)

    def _report_early(self, line: ClipLine, place: Place | None) -> None:
        where = line.place
        self.report(
            "clip-before-backward",
            where,
            f"{line.name}() at {brief(where)} ran when .grad of {counted(line.given, 'parameter')} was None, for all "
            f"that it was given: it clipped nothing.",
            f"The gradients were computed after it, and the step at {brief(place)} used them unclipped, {TWICE} times.",
        )

    def _report_late(self, line: ClipLine, place: Place | None) -> None:
        self.report(
            "clip-after-step",
            line.place,
            f"{line.name}() at {brief(line.place)} clipped gradients after step() had used them; {brief(place)} "
            f"cleared them before the next step, {THRICE} times in a row.",
        )

    def _report_empty(self, line: ClipLine) -> None:
        self.report(
            "clip-of-nothing",
            line.place,
            f"{line.name}() at {brief(line.place)} was given {counted(line.given, 'parameter')} at its first call, and "
            f"none at the next {line.empty}.",
        )

    def _report_scaled(self, line: ClipLine) -> None:
        self.report(
            "clip-scaled-gradients",
            line.place,
            f"The loss was multiplied by a GradScaler, and no unscale_() had divided the gradients when {line.name}() "
            f"at {brief(line.place)} clipped them, {TWICE} times.",
        )
