"""Lines of words in SVG that lie on grounds.

Each word carries its width, so that another font is fitted to it and no ground is too short.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backlight.report.text_width import width_of


@dataclass(frozen=True)
class Run:
    """A stretch of text that is not broken, with its share of the strongest word's importance; None: no word."""

    text: str
    share: float | None = None
    note: str = ""  # its tooltip


@dataclass(frozen=True)
class Placed:
    """A run, and where it begins."""

    run: Run
    x: float
    line: int
    width: float


def flow(runs: Iterable[Run], width: float, size: float) -> list[Placed]:
    """Lay runs into lines; spaces at the edge of a line take no room."""
    placed, x, line = [], 0.0, 0
    for run in runs:
        for part in _broken(run, width, size):
            wide = width_of(part.text, size)
            if part.text == "\n":
                x, line = 0.0, line + 1
            elif not part.text.strip():
                x += wide if x else 0.0
            else:
                if x and x + wide > width:
                    x, line = 0.0, line + 1
                placed.append(Placed(part, x, line, wide))
                x += wide
    return placed


def _broken(run: Run, width: float, size: float) -> Iterator[Run]:
    """Cut what stands between words at spaces, and words that are wider than a line anywhere."""
    if run.share is None:
        word = ""
        for character in run.text:
            if character.isspace():
                if word:
                    yield Run(word)
                yield Run("\n" if character == "\n" else " ")
                word = ""
            else:
                word += character
        if word:
            yield Run(word)
        return
    text = " ".join(run.text.split())
    while text:
        fitting = len(text)
        while fitting > 1 and width_of(text[:fitting], size) > width:
            fitting -= 1
        yield Run(text[:fitting], run.share, run.note)
        text = text[fitting:]
