"""Tensor's reductions, a line each."""

from backlight.ops import reductions


class ReductionMethods:
    """The part of Tensor that reduces."""

    __slots__ = ()

    sum = reductions.sum_all
