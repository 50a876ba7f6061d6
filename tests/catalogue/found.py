"""What the doctor finds in a case: each is run once for all tests."""

import functools
import warnings

from under_the_doctor import findings_of

from backlight.lens.finding import Finding
from catalogue.case import Case

# How many cases there are for each engine, how many end in their finding, and how many of these without --notes.
COUNTS = {"torch": (125, 125, 109), "backlight": (120, 120, 104)}


@functools.cache
def found_in(case: Case, engine: str) -> tuple[Finding, ...]:
    """Return all findings of a case on one engine, notes too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(findings_of(case.program, engine, strict=case.strict, notes=True))
