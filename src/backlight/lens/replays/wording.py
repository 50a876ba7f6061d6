"""Values, nodes and sizes in words: what the replay writes of a record."""

import numpy as np

from backlight.lens.records.nodes import LEAF, Node, Summary
from backlight.lens.replays.blocks import (
    MINUS,
    any_shortened,
    array_block,
    can_be_drawn,
    is_shortened,
    number_text,
    shape_text,
)
from backlight.lens.replays.filled import Given, rounded, same

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
    for count, name in ((summary.nans, "NaN"), (summary.infs, "inf")):
        if count:
            parts.append(f"with {count} {name}")
    return " ".join(parts)


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
