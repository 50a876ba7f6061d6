"""Tensor's methods that work element by element, a line each."""

from backlight.ops import arithmetic, pointwise
from backlight.ops.declare import operator_of
from backlight.ops.inplace import inplace


class PointwiseMethods:
    """The part of Tensor that works element by element."""

    __slots__ = ()

    __array_priority__ = 1000

    add = arithmetic.add
    sub = arithmetic.sub
    mul = arithmetic.mul
    neg = arithmetic.neg
    tanh = pointwise.tanh
    exp = pointwise.exp

    add_ = inplace(arithmetic.add)
    mul_ = inplace(arithmetic.mul)

    __add__ = operator_of(arithmetic.add)
    __radd__ = operator_of(arithmetic.add)
    __sub__ = operator_of(arithmetic.sub)
    __mul__ = operator_of(arithmetic.mul)
    __rmul__ = operator_of(arithmetic.mul)
    __truediv__ = operator_of(arithmetic.true_divide)
    __neg__ = arithmetic.neg
    __iadd__ = add_
    __imul__ = mul_
