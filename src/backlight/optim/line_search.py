"""The line search of L-BFGS: a step length that satisfies the strong Wolfe conditions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Point", "strong_wolfe"]

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9


@dataclass(frozen=True, eq=False)
class Point:
    """What is known at one step length: loss, gradient, and the slope along the direction."""

    length: float
    loss: float
    gradient: np.ndarray
    slope: float


def strong_wolfe(
    look: Callable[[float], Point], start: Point, length: float, direction: np.ndarray, tolerance: float, limit: int
) -> tuple[Point, int]:
    """Find a step length along a direction by cubic interpolation.

        f(t) ≤ f(0) + 1e-4 · t · f'(0)          |f'(t)| ≤ 0.9 · |f'(0)|

    Args:
        look: computes the point at a step length.
        start: the point at length 0.
        length: the first length to try.
        tolerance: the search ends when the bracket moves no element of the parameters by more than this.
        limit: how many more lengths may be tried after the first.

    Returns:
        The point, and how often `look` was called.

    Source: Jorge Nocedal, Stephen J. Wright: Numerical Optimization, 2006, algorithms 3.5 and 3.6
    """
    bracket, tried = _bracketed(look, start, length, limit)
    if len(bracket) == 1:
        return bracket[0], tried + 1
    return _zoomed(look, start, bracket, float(np.abs(direction).max()), tolerance, tried, limit)


def _too_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + SUFFICIENT_DECREASE * point.length * start.slope


def _flat_enough(point: Point, start: Point) -> bool:
    return abs(point.slope) <= -CURVATURE * start.slope


def _bracketed(look, start: Point, length: float, limit: int) -> tuple[list[Point], int]:
    """Return one point that will do, or two with such a point between them; and how many followed the first."""
    before, point, tried = start, look(length), 0
    while tried < limit:
        if _too_high(point, start) or (tried > 1 and point.loss >= before.loss):
            return [before, point], tried
        if _flat_enough(point, start):
            return [point], tried
        if point.slope >= 0:
            return [before, point], tried
        nearest = point.length + 0.01 * (point.length - before.length)
        length = _cubic_minimum(before, point, nearest, point.length * 10)
        before, point, tried = point, look(length), tried + 1
    return [start, point], tried


def _zoomed(look, start: Point, bracket: list[Point], size: float, tolerance: float, tried: int, limit: int):
    """Narrow a bracket down to a point that will do; return its lower end if tries or room run out."""
    low = _lower(bracket)
    stuck = False
    while tried < limit and not abs(bracket[1].length - bracket[0].length) * size < tolerance:
        length, stuck = _length_inside(*bracket, stuck)
        point, tried = look(length), tried + 1
        if _too_high(point, start) or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            low = _lower(bracket)
            continue
        if _flat_enough(point, start):
            return point, tried + 1
        if point.slope * (bracket[1 - low].length - bracket[low].length) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
    return bracket[low], tried + 1


def _lower(bracket: list[Point]) -> int:
    """Return which end of a bracket has the lower loss."""
    return 0 if bracket[0].loss <= bracket[1].loss else 1


def _length_inside(first: Point, second: Point, stuck: bool) -> tuple[float, bool]:
    """Return the next length to try, kept off the ends of the bracket, and whether it lies close to one."""
    least, most = sorted((first.length, second.length))
    length = _cubic_minimum(first, second, least, most)
    margin = 0.1 * (most - least)
    if not min(most - length, length - least) < margin:
        return length, False
    if not (stuck or length >= most or length <= least):
        return length, True
    return (most - margin if abs(length - most) < abs(length - least) else least + margin), False


def _cubic_minimum(one: Point, other: Point, least: float, most: float) -> float:
    """Return where the cubic through two points, with their slopes, is lowest between two lengths."""
    left, right = (one, other) if one.length <= other.length else (other, one)
    mixed = one.slope + other.slope - 3 * (one.loss - other.loss) / (one.length - other.length)
    inside = mixed**2 - one.slope * other.slope
    if not inside >= 0:
        return (least + most) / 2.0
    root = np.sqrt(inside)
    share = (right.slope + root - mixed) / (right.slope - left.slope + 2 * root)
    return min(max(right.length - (right.length - left.length) * share, least), most)
