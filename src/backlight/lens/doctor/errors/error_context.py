"""An exception as the doctor looks at it: the user's line, the engine's frames below it, what was watched before."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import Any, Unpack

from backlight.lens.doctor.history import Failure, History
from backlight.lens.doctor.places import Instruction, is_users
from backlight.lens.doctor.rule_index import Words, rule
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.source import Spot, spot_of
from backlight.lens.finding import Finding
from backlight.lens.records.record import Place

LONGEST = 300  # characters of a message that are shown


@dataclass(frozen=True)
class ErrorContext:
    """Where and how an exception was raised.

    Args:
        problem: the exception.
        spot: the user's innermost instruction that it passed.
        session: the doctor's.
    """

    problem: BaseException
    spot: Spot | None
    session: Session

    @property
    def place(self) -> Place | None:
        """The user's line."""
        return None if self.spot is None else self.spot.place

    @property
    def place_of_backward(self) -> Place | None:
        """Where the user called the backward that failed; the user's line if a library called it, or none failed."""
        if self.failure is None:
            return self.place
        run = self.failure[1].run
        called = spot_of(run)
        return called.place if is_users(called.file) or self.spot is None else self.place

    @property
    def message(self) -> str:
        """The exception's kind and the first sentence of its text."""
        return f"{type(self.problem).__name__}: {first_sentence(str(self.problem))}"

    def found(self, name: str, *evidence: str, **words: Unpack[Words]) -> Finding:
        """Return the finding of a rule, at the user's line; its first evidence is the exception's message."""
        return rule(name).found(self.place, self.message, *evidence, **words)

    def frames(self) -> Iterator[FrameType]:
        """Give the frames that the exception passed, the innermost first."""
        trace, frames = self.problem.__traceback__, []
        while trace is not None:
            frames.append(trace.tb_frame)
            trace = trace.tb_next
        return reversed(frames)

    def spots(self) -> Iterator[Spot]:
        """Give the user's instructions that the exception passed, the innermost first."""
        trace, found = self.problem.__traceback__, []
        while trace is not None:
            if is_users(trace.tb_frame.f_code.co_filename):
                found.append(spot_of(Instruction(trace.tb_frame.f_code, trace.tb_lasti), trace.tb_frame))
            trace = trace.tb_next
        return reversed(found)

    def local(self, *names: str) -> Any:
        """Return what a variable of the engine's own frames held, the innermost first; None if there is none.

        Of a list or tuple it is the first element.
        """
        for frame in self.frames():
            if self.spot is not None and frame is self.spot.frame:
                return None
            for name in names:
                found = frame.f_locals.get(name)
                if found is not None:
                    return found[0] if isinstance(found, (tuple, list)) and found else found
        return None

    @cached_property
    def failure(self) -> tuple[History, Failure] | None:
        """The backward that failed, with the history of its engine."""
        failed = [(one, one.failed_with(self.problem)) for one in self.session.each(History)]
        return next((pair for pair in failed if pair[1] is not None), None)


def first_sentence(text: str) -> str:
    """Return the first sentence of a message."""
    line = " ".join(text.strip().split("\n")[0].split())
    end = line.find(". ")
    short = line if end < 0 else line[: end + 1]
    return short if len(short) <= LONGEST else short[: LONGEST - 1] + "…"
