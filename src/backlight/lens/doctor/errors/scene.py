"""An exception as the doctor looks at it: the user's line, the engine's frames below it, what was watched before."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from backlight.lens.doctor.history import Failure, History
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.source import Spot
from backlight.lens.records.record import Place

LONGEST = 300  # characters of a message that are shown


@dataclass(frozen=True)
class Scene:
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
    def said(self) -> str:
        """The exception's kind and the first sentence of its text."""
        return f"{type(self.problem).__name__}: {first_sentence(str(self.problem))}"

    def frames(self) -> Iterator[FrameType]:
        """Give the frames that the exception passed, the innermost first."""
        trace, frames = self.problem.__traceback__, []
        while trace is not None:
            frames.append(trace.tb_frame)
            trace = trace.tb_next
        return reversed(frames)

    def local(self, *names: str):
        """Return what a variable of the engine's own frames held, the innermost first; None if there is none."""
        for frame in self.frames():
            if self.spot is not None and frame is self.spot.frame:
                return None
            for name in names:
                if frame.f_locals.get(name) is not None:
                    return frame.f_locals[name]
        return None

    def histories(self) -> list[History]:
        """Return what was watched, of each engine."""
        return [one for one in self.session.detectors if isinstance(one, History)]

    def failure(self) -> tuple[History, Failure] | None:
        """Return the backward that failed, with the history of its engine."""
        for history in self.histories():
            failure = history.failed_with(self.problem)
            if failure is not None:
                return history, failure
        return None


def first_sentence(text: str) -> str:
    """Return the first sentence of a message."""
    line = " ".join(text.strip().split("\n")[0].split())
    end = line.find(". ")
    short = line if end < 0 else line[: end + 1]
    return short if len(short) <= LONGEST else short[: LONGEST - 1] + "…"


def shown(place: Place | None) -> str:
    """Return a line as evidence names it: `line 3, h = a * 1`."""
    if place is None:
        return "an unknown line"
    return f"line {place.line}" + (f": {place.text}" if place.text else "")
