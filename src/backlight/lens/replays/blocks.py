"""Numbers and matrices written as blocks of text that stand side by side.

NOTE [Shortened numbers]
A number is written with up to four significant digits. One that has more is shortened, and shows all four, the zeros at
its end too, and a point: `288.0` stands for 287.963, where `288` is 288 itself. In an equation `=` stands only before
numbers that are not shortened, `≈` before all others.
"""

import math
from dataclasses import dataclass

import numpy as np

MINUS = "\N{MINUS SIGN}"
EXACT = (
    1e-6  # how far what is written may be from a number that is not shortened, in relation to it: the last of float32
)
LONGEST = 8  # numbers that a vector, and a row of a matrix, may have to be written out
MOST_ROWS = 8


@dataclass(frozen=True)
class Block:
    """Lines of one width."""

    lines: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many characters wide."""
        return len(self.lines[0])

    def __add__(self, other: "Block | str") -> "Block":
        """Put a block to the right, both centred."""
        other = other if isinstance(other, Block) else Block((other,))
        height = max(len(self.lines), len(other.lines))
        return Block(tuple(map("".join, zip(self._as_high_as(height), other._as_high_as(height)))))

    def __radd__(self, other: str) -> "Block":
        return Block((other,)) + self

    def _as_high_as(self, height: int) -> list[str]:
        blank = " " * self.width
        above = (height - len(self.lines)) // 2
        return [blank] * above + [*self.lines] + [blank] * (height - len(self.lines) - above)

    def __str__(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines)


def number_text(value: float, digits: int = 4) -> str:
    """Write a number with so many significant digits and a real minus sign (see NOTE [Shortened numbers]).

    >>> number_text(4.0), number_text(-0.25), number_text(2 / 3), number_text(1e-7), number_text(float("nan"))
    ('4', '−0.25', '0.6667', '1e−07', 'nan')
    >>> number_text(287.9634), number_text(0.30003), number_text(1234.56)
    ('288.0', '0.3000', '1234.6')
    """
    if math.isfinite(value) and value == int(value) and abs(value) < 10**7:
        written = str(int(value))
    else:
        written = f"{value:.{digits}g}"
        if not _is_as_written(value, written):
            written = f"{value:#.{digits}g}"
            if written.endswith("."):
                written = f"{value:.1f}"
    return written.replace("-", MINUS)


def number_read(text: str) -> float:
    """Return what `number_text` wrote.

    >>> number_read("−0.25")
    -0.25
    """
    return float(text.replace(MINUS, "-"))


def is_shortened(value: float, digits: int = 4) -> bool:
    """Return whether a number has more digits than are written.

    >>> is_shortened(287.9634), is_shortened(0.25), is_shortened(float("inf"))
    (True, False, False)
    """
    return not _is_as_written(value, number_text(value, digits).replace(MINUS, "-"))


def _is_as_written(value: float, written: str) -> bool:
    return not math.isfinite(value) or abs(float(written) - value) <= EXACT * abs(value)


def any_shortened(array: np.ndarray, digits: int = 4) -> bool:
    """Return whether an array has a number that is written shortened."""
    return any(is_shortened(one, digits) for one in np.ravel(np.asarray(array, float)).tolist())


def shape_text(shape: tuple[int, ...]) -> str:
    """Write a shape.

    >>> shape_text((2, 3)), shape_text((4,)), shape_text(())
    ('(2×3)', '(4)', '()')
    """
    return f"({'×'.join(map(str, shape))})"


def can_be_drawn(array: np.ndarray) -> bool:
    """Return whether an array is small enough to be written out."""
    if np.ndim(array) > 2 or not np.size(array):
        return False
    rows = np.shape(array)[0] if np.ndim(array) == 2 else 1
    return rows <= MOST_ROWS and np.size(array) // rows <= LONGEST


def array_block(array: np.ndarray, digits: int = 4) -> Block:
    """Write out an array of at most two dims: a number, `[1, 2]`, or rows above each other."""
    if np.ndim(array) == 0:
        return Block((number_text(float(array), digits),))
    if np.ndim(array) == 1:
        return Block((f"[{', '.join(number_text(float(one), digits) for one in array.tolist())}]",))
    rows = [[number_text(one, digits) for one in row] for row in np.asarray(array, float).tolist()]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return Block(tuple(f"[ {'  '.join(text.rjust(width) for text, width in zip(row, widths))} ]" for row in rows))


def bracketed(block: Block) -> Block:
    """Put a block in brackets."""
    return "(" + block + ")"


def block_of(text: str) -> Block:
    """Return lines of text as a block."""
    lines = text.splitlines()
    width = max(map(len, lines))
    return Block(tuple(line.ljust(width) for line in lines))
