"""Python's operators on tensors."""

import functools
from collections.abc import Callable

from backlight.codegen.declaration import operator_of
from backlight.codegen.runtime_support import is_operand
from backlight.engine.tensor_state import TensorState
from backlight.ops.elementwise import arithmetic, comparisons, division, powers, rounding
from backlight.ops.linalg import matrix_products
from backlight.tensor.methods.ops import OpMethods


def operator(function: Callable) -> Callable:
    """Return a binary function as a Python operator: returns NotImplemented for foreign operands."""

    @functools.wraps(function)
    def apply(self, other):
        return function(self, other) if is_operand(other) else NotImplemented

    return apply


def reflected(function: Callable) -> Callable:
    """The same as `operator`, for the operand on the right."""

    @functools.wraps(function)
    def apply(self, other):
        return function(other, self) if is_operand(other) else NotImplemented

    return apply


def _reciprocal_times(self, other):
    return powers.reciprocal(self) * other


class OperatorMethods:
    """Python's operators."""

    __slots__ = ()

    __array_priority__ = 1000
    __hash__ = object.__hash__

    __add__ = __radd__ = operator_of(arithmetic.add)
    __sub__ = operator_of(arithmetic.sub)
    __rsub__ = operator(arithmetic.rsub)
    __mul__ = __rmul__ = operator_of(arithmetic.mul)
    __truediv__ = operator_of(division.true_divide)
    __rtruediv__ = __rdiv__ = operator(_reciprocal_times)
    __floordiv__ = operator_of(division.floor_divide)
    __rfloordiv__ = reflected(division.floor_divide)
    __mod__ = operator(division.remainder)
    __rmod__ = reflected(division.remainder)
    __pow__ = operator(powers.pow)
    __rpow__ = reflected(powers.pow)
    __matmul__ = operator_of(matrix_products.matrix_product)
    __neg__ = rounding.neg
    __pos__ = rounding.positive
    __abs__ = rounding.abs

    __eq__ = operator_of(comparisons.eq)
    __ne__ = operator_of(comparisons.ne)
    __lt__ = operator_of(comparisons.lt)
    __le__ = operator_of(comparisons.le)
    __gt__ = operator_of(comparisons.gt)
    __ge__ = operator_of(comparisons.ge)
    __and__ = __rand__ = operator_of(comparisons.bitwise_and)
    __or__ = __ror__ = operator_of(comparisons.bitwise_or)
    __xor__ = __rxor__ = operator_of(comparisons.bitwise_xor)
    __lshift__ = operator_of(comparisons.bitwise_left_shift)
    __rlshift__ = reflected(comparisons.bitwise_left_shift)
    __rshift__ = operator_of(comparisons.bitwise_right_shift)
    __rrshift__ = reflected(comparisons.bitwise_right_shift)
    __invert__ = comparisons.invert

    __iadd__ = OpMethods.add_
    __isub__ = OpMethods.sub_
    __imul__ = OpMethods.mul_
    __itruediv__ = OpMethods.true_divide_
    __ifloordiv__ = OpMethods.floor_divide_
    __imod__ = OpMethods.remainder_
    __ipow__ = OpMethods.pow_
    __iand__ = OpMethods.bitwise_and_
    __ior__ = OpMethods.bitwise_or_
    __ixor__ = OpMethods.bitwise_xor_
    __ilshift__ = OpMethods.bitwise_left_shift_
    __irshift__ = OpMethods.bitwise_right_shift_

    def __rmatmul__(self, other):
        return matrix_products.matmul(other, self) if isinstance(other, TensorState) else NotImplemented
