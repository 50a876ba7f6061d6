"""Values of two records side by side: whether they are the same but for rounding, and what they are in words."""

import math
from collections.abc import Iterator

from backlight.lens.records.nodes import Summary

FIGURES = ("norm", "least", "most", "mean")


def alike(one: Summary, other: Summary, tolerance: float, *, reshaped: bool = False) -> bool:
    """Return whether two tensors are the same but for rounding, as far as their summaries can tell.

    They are compared element by element where both are kept in full. What is known of only one is not compared.

    Args:
        tolerance: the share of the norm that each figure may differ by.
        reshaped: whether another shape of as many elements, in another order, may be the same.
    """
    formed = tuple(one.shape) == tuple(other.shape)
    if not formed and not (reshaped and math.prod(one.shape) == math.prod(other.shape)):
        return False
    if one.nans is None or other.nans is None:
        return True
    if (one.nans, one.infs or 0) != (other.nans, other.infs or 0):
        return False
    reach = max(one.norm or 0.0, other.norm or 0.0) * tolerance
    if formed and one.values is not None and other.values is not None:
        return all(_near(*pair, reach) for pair in zip(_numbers(one.values), _numbers(other.values)))
    return all(_near(getattr(one, name), getattr(other, name), reach) for name in FIGURES)


def same_gradient(one: Summary | None, other: Summary | None, tolerance: float, *, reshaped: bool = False) -> bool:
    """Return whether two gradients are the same but for rounding: one that is there is never as one that is not."""
    return one is other if one is None or other is None else alike(one, other, tolerance, reshaped=reshaped)


def _near(one, other, reach: float) -> bool:
    numbers = not any(isinstance(value, (str, type(None))) for value in (one, other))
    return one == other or (numbers and abs(one - other) <= reach)


def _numbers(values) -> Iterator:
    """Yield the elements of nested lists."""
    if not isinstance(values, list):
        yield values
        return
    for value in values:
        yield from _numbers(value)


def described(summary: Summary | None) -> str:
    """Return a tensor in a few words: its number if it has only one."""
    if summary is None:
        return "none"
    if summary.values is not None and not isinstance(summary.values, list):
        return single(summary)
    known = [(name, getattr(summary, name)) for name in ("norm", "mean")]
    parts = [f"{name} {value:.6g}" for name, value in known if value is not None]
    parts += [f"{count} {name}" for name, count in (("NaN", summary.nans), ("inf", summary.infs)) if count]
    return ", ".join(parts) or f"({', '.join(map(str, summary.shape))}) {summary.dtype}"


def single(summary: Summary) -> str:
    """Return all of a tensor if it is small, else what `described` says."""
    numbers = None if summary.values is None else list(_numbers(summary.values))
    if numbers is None or len(numbers) > 6:
        return (
            f"({described(summary) if isinstance(summary.values, list) or summary.values is None else summary.values})"
        )
    texts = [value if isinstance(value, str) else f"{value:.6g}" for value in numbers]
    return f"[{', '.join(texts)}]" if isinstance(summary.values, list) else texts[0]
