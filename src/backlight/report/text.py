"""Text: numbers and colours, for terminals, notebooks and pages alike; in SVG its width, and its element.

NOTE [Characters that command a terminal]
Control characters (C0, DEL, C1) move the cursor, change colours or clear the screen. Characters that direct
right-to-left text (Unicode Standard Annex 9: embeddings, overrides, isolates, marks) let a file name or a passage
rewrite the line around it, which a terminal, unlike a page, keeps in one paragraph. Where other people's text is
printed, each becomes U+FFFD; in JSON it is spelled as an escape, which is the same text to those who read it.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

MINUS = "\N{MINUS SIGN}"
BIDI = "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u206f"
COMMANDS = re.compile(f"[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f{BIDI}]")
UNESCAPED = re.compile(f"[\\x7f-\\x9f{BIDI}]")  # what JSON does not spell as an escape by itself


def harmless(text: str) -> str:
    """Return a text to print, without characters that command a terminal (see the NOTE above).

    >>> ascii(harmless("a\\x1b[2Jb\\u202ec"))
    "'a\\\\ufffd[2Jb\\\\ufffdc'"
    """
    return COMMANDS.sub("\N{REPLACEMENT CHARACTER}", text)


def harmless_json(text: str) -> str:
    """Return JSON that says the same, without characters that command a terminal."""
    return UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def number(value: float, spec: str = ".3f") -> str:
    """Return a number for the eye, with a real minus sign, after a format's rules.

    >>> number(-0.25), number(0.25, "+.1f")
    ('−0.250', '+0.2')
    """
    return f"{value:{spec}}".replace("-", MINUS)


def digits_for(values: Iterable[float]) -> int:
    """Return how many digits after the point show two figures of the largest of some values, two at least.

    >>> digits_for([0.5, -0.012]), digits_for([123.4]), digits_for([0.00031])
    (2, 2, 5)
    """
    most = max(map(abs, values), default=0.0)
    digits = 2
    while most and most * 10**digits < 9.5 and digits < 9:
        digits += 1
    return digits


def wants_colour(out: TextIO) -> bool:
    """Return whether a stream is a terminal, and NO_COLOR is not set or empty (https://no-color.org)."""
    return out.isatty() and not os.environ.get("NO_COLOR")


def coloured(text: str, code: str | None) -> str:
    """Return a text in a colour of the terminal: `1;31` is bold red, None leaves it as it is."""
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
WIDTHS = (  # of the characters from 32 to 126, in thousandths of the size
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 "
    "584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 "
    "667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 "
    "278 556 500 722 500 500 500 334 260 334 584"
)
BY_CHARACTER = {chr(32 + place): int(width) / 1000 for place, width in enumerate(WIDTHS.split())} | {
    "\N{LEFT DOUBLE QUOTATION MARK}": 0.333,
    "\N{RIGHT DOUBLE QUOTATION MARK}": 0.333,
    "\N{LEFT SINGLE QUOTATION MARK}": 0.222,
    "\N{RIGHT SINGLE QUOTATION MARK}": 0.222,
}


@lru_cache(maxsize=16_384)
def width_of(text: str, size: float) -> float:
    """Return how wide a text is, in the units of the size."""
    return size * sum(BY_CHARACTER.get(character) or _width_of_other(character) for character in text)


def _width_of_other(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    return 1.0 if unicodedata.east_asian_width(character) in "WF" else 0.584


def text_element(x: float, y: float, text: str, size: float, **attributes) -> str:
    """Return a text element; `attributes` may use `_` for `-`."""
    options = "".join(f" {name.replace('_', '-')}={quoteattr(str(value))}" for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}"{options}>{escape(printable(text))}</text>'


def printable(text: str) -> str:
    """Return a text with a mark in place of what cannot be shown, control characters above all.

    >>> printable("a\\x1b[31m")
    'a�[31m'
    """
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
