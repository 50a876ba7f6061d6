"""Numbers and colours in text, for terminals, notebooks and pages alike."""

import os
from typing import TextIO

MINUS = "\N{MINUS SIGN}"


def number(value: float, spec: str = ".3f") -> str:
    """Return a number for the eye, with a real minus sign, after a format's rules.

    >>> number(-0.25), number(0.25, "+.1f")
    ('−0.250', '+0.2')
    """
    return f"{value:{spec}}".replace("-", MINUS)


def wants_colour(out: TextIO) -> bool:
    """Return whether a stream is a terminal, and NO_COLOR is not set or empty (https://no-color.org)."""
    return out.isatty() and not os.environ.get("NO_COLOR")


def coloured(text: str, code: str | None) -> str:
    """Return a text in a colour of the terminal: `1;31` is bold red, None leaves it as it is."""
    return f"\x1b[{code}m{text}\x1b[0m" if code else text
