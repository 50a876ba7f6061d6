"""From an exception to a finding: the rule that its message means, the user's line, what was seen."""

from backlight.lens.doctor.messages import rule_of_error
from backlight.lens.doctor.places import place_of_traceback
from backlight.lens.doctor.rules import RULES
from backlight.lens.doctor.session import Session
from backlight.lens.finding import Finding


def diagnose(problem: BaseException, session: Session) -> Finding | None:
    """Return what an exception is the sign of; None for one that the doctor does not know."""
    name = rule_of_error(str(problem))
    if name is None:
        return None
    return RULES[name].found(place=place_of_traceback(problem.__traceback__), evidence=(first_line(problem),))


def first_line(problem: BaseException) -> str:
    """Return an exception's kind and the first sentence of its text."""
    text = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {text}"
