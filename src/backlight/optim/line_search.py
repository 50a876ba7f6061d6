"""The line search of L-BFGS: a step length that satisfies the strong Wolfe conditions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Point", "strong_wolfe"]

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9


@dataclass(frozen=True, eq=False)
class Point:
    """The evaluation at one step length: loss, gradient, and directional derivative."""

    length: float
    loss: float
    gradient: np.ndarray
    derivative: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, length: float, direction: np.ndarray, tolerance: float, limit: int
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
        The point, and how often `evaluate` was called.

    Source: Jorge Nocedal, Stephen J. Wright: Numerical Optimization, 2006, algorithms 3.5 and 3.6
    """
    bracket, evaluations = _bracket(evaluate, start, length, limit)
    if len(bracket) == 1:
        return bracket[0], evaluations + 1
    return _zoom(evaluate, start, bracket, float(np.abs(direction).max()), tolerance, evaluations, limit)


def _insufficient_decrease(point: Point, start: Point) -> bool:
    return point.loss > start.loss + SUFFICIENT_DECREASE * point.length * start.derivative


def _small_derivative(point: Point, start: Point) -> bool:
    return abs(point.derivative) <= -CURVATURE * start.derivative


def _bracket(evaluate, start: Point, length: float, limit: int) -> tuple[list[Point], int]:
    """Return an acceptable point, or a bracket of two around one; and the evaluations after the first."""
    before, point, evaluations = start, evaluate(length), 0
    while evaluations < limit:
        if _insufficient_decrease(point, start) or (evaluations > 1 and point.loss >= before.loss):
            return [before, point], evaluations
        if _small_derivative(point, start):
            return [point], evaluations
        if point.derivative >= 0:
            return [before, point], evaluations
        nearest = point.length + 0.01 * (point.length - before.length)
        length = _cubic_minimum(before, point, nearest, point.length * 10)
        before, point, evaluations = point, evaluate(length), evaluations + 1
    return [start, point], evaluations


def _zoom(evaluate, start: Point, bracket: list[Point], size: float, tolerance: float, evaluations: int, limit: int):
    """Narrow a bracket down to an acceptable point; return its lower end at the limit of evaluations or length."""
    low = _lower_end(bracket)
    stuck = False
    while evaluations < limit and not abs(bracket[1].length - bracket[0].length) * size < tolerance:
        length, stuck = _trial_length(*bracket, stuck)
        point, evaluations = evaluate(length), evaluations + 1
        if _insufficient_decrease(point, start) or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            low = _lower_end(bracket)
            continue
        if _small_derivative(point, start):
            return point, evaluations + 1
        if point.derivative * (bracket[1 - low].length - bracket[low].length) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
    return bracket[low], evaluations + 1


def _lower_end(bracket: list[Point]) -> int:
    """Return the index of the end of a bracket with the lower loss."""
    return 0 if bracket[0].loss <= bracket[1].loss else 1


def _trial_length(first: Point, second: Point, stuck: bool) -> tuple[float, bool]:
    """Return the next length to try, away from the ends of the bracket, and whether it was close to one."""
    lowest, highest = sorted((first.length, second.length))
    length = _cubic_minimum(first, second, lowest, highest)
    margin = 0.1 * (highest - lowest)
    if not min(highest - length, length - lowest) < margin:
        return length, False
    if not (stuck or length >= highest or length <= lowest):
        return length, True
    return (highest - margin if abs(length - highest) < abs(length - lowest) else lowest + margin), False


def _cubic_minimum(one: Point, other: Point, lowest: float, highest: float) -> float:
    """Return the minimiser, between two lengths, of the cubic through two points and their derivatives."""
    left, right = (one, other) if one.length <= other.length else (other, one)
    mixed = one.derivative + other.derivative - 3 * (one.loss - other.loss) / (one.length - other.length)
    inside = mixed**2 - one.derivative * other.derivative
    if not inside >= 0:
        return (lowest + highest) / 2.0
    root = np.sqrt(inside)
    share = (right.derivative + root - mixed) / (right.derivative - left.derivative + 2 * root)
    return min(max(right.length - (right.length - left.length) * share, lowest), highest)
