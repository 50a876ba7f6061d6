"""Numbers, matrices, values and nodes in words: what the replay writes of a record.

NOTE [Shortened numbers]
A number is written with up to four significant digits. One that has more is shortened, and shows all four, the zeros at
its end too, and a point: `288.0` stands for 287.963, where `288` is 288 itself. In an equation `=` stands only before
numbers that are not shortened, `≈` before all others.
"""

import math
from dataclasses import dataclass

import numpy as np

from backlight.lens.records.nodes import LEAF, Node, Summary

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


@dataclass(frozen=True)
class Given:
    """What a name in a formula stands for: an array, or only its shape where the values were not recorded."""

    shape: tuple[int, ...]
    array: np.ndarray | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is a single number that is known."""
        return self.array is not None and not self.shape


def rounded(array: np.ndarray, digits: int) -> np.ndarray:
    """Round to what is written with so many digits."""
    array = np.asarray(array, float)
    written = [number_read(number_text(one, digits)) for one in array.ravel().tolist()]
    return np.array(written).reshape(array.shape)


def same(left: np.ndarray, right: np.ndarray, close: float) -> bool:
    """Return whether two arrays are the same, in relation to their largest finite element."""
    if np.shape(left) != np.shape(right):
        return False
    finite = np.abs(right)[np.isfinite(right)]
    return bool(np.allclose(left, right, rtol=0.0, atol=close * finite.max(initial=0.0) + 1e-30, equal_nan=True))


INLINE = 9  # elements that a matrix may have to be written in one line


def given_of(summary: Summary) -> Given:
    """Return a summary as what a name in a formula stands for."""
    shape = tuple(summary.shape)
    if summary.values is None or summary.dtype.startswith("complex"):
        return Given(shape)
    return Given(shape, np.asarray(summary.values, dtype=float).reshape(shape))  # "nan" and "inf" become numbers


def brief(summary: Summary | None) -> str:
    """Write a tensor in a few words: a number, `[1, 2]`, or shape and norm.

    >>> brief(Summary((), "float32", values=4.0)), brief(Summary((2, 2), "float32", values=[[1.0, 2.0], [3.0, -4.0]]))
    ('4', '[[1, 2], [3, −4]]')
    >>> brief(Summary((32, 10), "float32", norm=2.5)), brief(None)
    ('(32×10) of norm 2.5', 'none')
    """
    if summary is None:
        return "none"
    if is_written_out(summary):
        return brief_array(given_of(summary).array)
    if not summary.shape:
        return (
            "a number" if summary.norm is None else number_text(summary.norm if summary.mean is None else summary.mean)
        )
    parts = [f"{shape_text(tuple(summary.shape))}"]
    if summary.norm is not None:
        parts.append(f"of norm {number_text(summary.norm)}")
    return " ".join([*parts, *(f"with {one}" for one in summary.nonfinite())])


def brief_array(array: np.ndarray) -> str:
    """Write a small array in one line."""
    if array.ndim < 2:
        return str(array_block(array))
    return f"[{', '.join(brief_array(row) for row in array)}]"


def drawn(summary: Summary | None) -> list[str]:
    """Write a tensor in one line, or a small matrix in rows."""
    array = None if summary is None else given_of(summary).array
    if array is not None and array.ndim == 2 and can_be_drawn(array):
        return str(array_block(array)).splitlines()
    return [brief(summary)]


def word_of(node: Node) -> str:
    """Return what a node's result is called: by the user's name, or by its number in the record."""
    return node.name or f"#{node.id}"


def function_of(node: Node) -> str:
    """Return what a node is called in the backward: `MulBackward0 of e`, `the leaf a`."""
    if node.kind == LEAF:
        return f"the leaf {word_of(node)}"
    return f"{node.type} of {node.name}" if node.name else f"{node.type} #{node.id}"


def listed(words: list[str]) -> str:
    """Join words as a sentence does.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def is_written_out(summary: Summary) -> bool:
    """Return whether `brief` writes all numbers of a tensor."""
    array = given_of(summary).array
    return array is not None and can_be_drawn(array) and (array.ndim < 2 or array.size <= INLINE)


def equals(summary: Summary | None) -> str:
    """Return what stands between a name and a tensor as `brief` writes it: "≈" before a number that is shortened.

    >>> equals(Summary((), "float32", values=0.25)), equals(Summary((), "float32", values=1 / 3))
    ('=', '≈')
    """
    if summary is None:
        return "="
    if is_written_out(summary):
        return "≈" if any_shortened(given_of(summary).array) else "="
    number = summary.norm if summary.shape or summary.mean is None else summary.mean
    return "≈" if number is not None and is_shortened(float(number)) else "="


def sum_sign(terms: list[Summary], total: Summary) -> str:
    """Return "=" if the terms and the total are written exactly, and so add up, else "≈".

    >>> third = Summary((), "float32", values=1 / 3)
    >>> sum_sign([third, third], Summary((), "float32", values=2 / 3))
    '≈'
    """
    written = [rounded(given_of(term).array, 4) for term in (*terms, total)]
    exact = same(np.asarray(sum(written[:-1])), written[-1], 1e-9)
    return "=" if exact and not any(equals(one) == "≈" for one in (*terms, total)) else "≈"


def sum_text(terms: list[Summary | None]) -> str:
    """Write a sum, with negative terms in their place: `6 + 10`, `6 − 2`."""
    written = [brief(term) for term in terms]
    return written[0] + "".join(
        f" {MINUS} {one[1:]}" if one.startswith(MINUS) and one[1:2].isdigit() else f" + {one}" for one in written[1:]
    )
