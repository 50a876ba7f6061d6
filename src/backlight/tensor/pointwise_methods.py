"""Tensor's methods that work element by element, a line each."""

import functools

import numpy as np

from backlight.ops import (
    activations,
    arithmetic,
    comparisons,
    complex_numbers,
    division,
    pointwise,
    powers,
    rare_functions,
    rounding,
    selection,
    special,
)
from backlight.ops.declare import operator_of
from backlight.ops.inplace import inplace
from backlight.ops.operands import is_operand


def operator(function):
    """Return a function of two operands as a Python operator: a foreign operand gives NotImplemented."""

    @functools.wraps(function)
    def apply(self, other):
        return function(self, other) if is_operand(other) else NotImplemented

    return apply


def reflected(function):
    """The same as `operator`, for the operand on the right."""

    @functools.wraps(function)
    def apply(self, other):
        return function(other, self) if is_operand(other) else NotImplemented

    return apply


def _reciprocal_times(self, other):
    return powers.reciprocal(self) * other


_polygamma_ = inplace(lambda input, n: special.polygamma(n, input), "polygamma_")


class ArithmeticMethods:
    """Arithmetic, and Python's operators."""

    __slots__ = ()

    __array_priority__ = 1000

    add = arithmetic.add
    sub = subtract = arithmetic.sub
    mul = multiply = arithmetic.mul
    div = divide = division.div
    true_divide = division.true_divide
    floor_divide = division.floor_divide
    remainder = division.remainder
    fmod = division.fmod
    gcd = division.gcd
    lcm = division.lcm
    addcmul = arithmetic.addcmul
    addcdiv = arithmetic.addcdiv
    lerp = arithmetic.lerp
    pow = powers.pow
    float_power = powers.float_power
    square = powers.square
    reciprocal = powers.reciprocal
    sqrt = powers.sqrt
    rsqrt = powers.rsqrt
    hypot = powers.hypot
    ldexp = powers.ldexp
    logaddexp = powers.logaddexp
    logaddexp2 = powers.logaddexp2
    neg = negative = rounding.neg
    positive = rounding.positive

    add_ = inplace(arithmetic.add, ufunc=np.add)
    sub_ = subtract_ = inplace(arithmetic.sub, ufunc=np.subtract)
    mul_ = multiply_ = inplace(arithmetic.mul, ufunc=np.multiply)
    div_ = divide_ = inplace(division.div, ufunc=np.divide)
    true_divide_ = inplace(division.true_divide, ufunc=np.divide)
    floor_divide_ = inplace(division.floor_divide)
    remainder_ = inplace(division.remainder)
    fmod_ = inplace(division.fmod)
    gcd_ = inplace(division.gcd)
    lcm_ = inplace(division.lcm)
    addcmul_ = inplace(arithmetic.addcmul)
    addcdiv_ = inplace(arithmetic.addcdiv)
    lerp_ = inplace(arithmetic.lerp)
    pow_ = inplace(powers.pow)
    float_power_ = inplace(powers.float_power)
    square_ = inplace(powers.square)
    reciprocal_ = inplace(powers.reciprocal)
    sqrt_ = inplace(powers.sqrt)
    rsqrt_ = inplace(powers.rsqrt)
    hypot_ = inplace(powers.hypot)
    ldexp_ = inplace(powers.ldexp)
    neg_ = negative_ = inplace(rounding.neg)

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
    __neg__ = rounding.neg
    __pos__ = rounding.positive
    __abs__ = rounding.abs

    __iadd__ = add_
    __isub__ = sub_
    __imul__ = mul_
    __itruediv__ = true_divide_
    __ifloordiv__ = floor_divide_
    __imod__ = remainder_
    __ipow__ = pow_


class UnaryMethods:
    """Functions of the tensor alone, or of it and a parameter."""

    __slots__ = ()

    abs = absolute = rounding.abs
    sign = rounding.sign
    sgn = rounding.sgn
    angle = rounding.angle
    conj = rounding.conj
    conj_physical = rounding.conj
    resolve_conj = rounding.conj
    resolve_neg = rounding.conj
    real = property(rounding.conj)
    floor = rounding.floor
    ceil = rounding.ceil
    trunc = fix = rounding.trunc
    frac = rounding.frac
    round = rounding.round
    copysign = rounding.copysign
    frexp = rounding.frexp
    heaviside = rounding.heaviside
    nan_to_num = rounding.nan_to_num
    nextafter = rounding.nextafter
    exp = pointwise.exp
    exp2 = pointwise.exp2
    expm1 = pointwise.expm1
    log = pointwise.log
    log2 = pointwise.log2
    log10 = pointwise.log10
    log1p = pointwise.log1p
    sin = pointwise.sin
    cos = pointwise.cos
    tan = pointwise.tan
    asin = arcsin = pointwise.asin
    acos = arccos = pointwise.acos
    atan = arctan = pointwise.atan
    atan2 = arctan2 = pointwise.atan2
    sinh = pointwise.sinh
    cosh = pointwise.cosh
    tanh = pointwise.tanh
    asinh = arcsinh = pointwise.asinh
    acosh = arccosh = pointwise.acosh
    atanh = arctanh = pointwise.atanh
    sinc = pointwise.sinc
    deg2rad = pointwise.deg2rad
    rad2deg = pointwise.rad2deg
    erf = special.erf
    erfc = special.erfc
    erfinv = special.erfinv
    lgamma = special.lgamma
    digamma = special.digamma
    mvlgamma = special.mvlgamma
    i0 = special.i0
    logit = special.logit
    xlogy = special.xlogy
    relu = activations.relu
    sigmoid = activations.sigmoid
    prelu = activations.prelu
    hardshrink = activations.hardshrink

    def polygamma(self, n: int):
        """Return the n-th derivative of digamma."""
        return special.polygamma(n, self)

    def polygamma_(self, n: int):
        """Write the n-th derivative of digamma into the tensor."""
        return _polygamma_(self, n)

    abs_ = absolute_ = inplace(rounding.abs)
    conj_physical_ = complex_numbers.conj_physical_
    sign_ = inplace(rounding.sign)
    sgn_ = inplace(rounding.sgn)
    floor_ = inplace(rounding.floor)
    ceil_ = inplace(rounding.ceil)
    trunc_ = fix_ = inplace(rounding.trunc)
    frac_ = inplace(rounding.frac)
    round_ = inplace(rounding.round)
    copysign_ = inplace(rounding.copysign)
    heaviside_ = inplace(rounding.heaviside)
    nan_to_num_ = inplace(rounding.nan_to_num)
    nextafter_ = inplace(rounding.nextafter)
    exp_ = inplace(pointwise.exp)
    exp2_ = inplace(pointwise.exp2)
    expm1_ = inplace(pointwise.expm1)
    log_ = inplace(pointwise.log)
    log2_ = inplace(pointwise.log2)
    log10_ = inplace(pointwise.log10)
    log1p_ = inplace(pointwise.log1p)
    sin_ = inplace(pointwise.sin)
    cos_ = inplace(pointwise.cos)
    tan_ = inplace(pointwise.tan)
    asin_ = arcsin_ = inplace(pointwise.asin)
    acos_ = arccos_ = inplace(pointwise.acos)
    atan_ = arctan_ = inplace(pointwise.atan)
    atan2_ = arctan2_ = inplace(pointwise.atan2)
    sinh_ = inplace(pointwise.sinh)
    cosh_ = inplace(pointwise.cosh)
    tanh_ = inplace(pointwise.tanh)
    asinh_ = arcsinh_ = inplace(pointwise.asinh)
    acosh_ = arccosh_ = inplace(pointwise.acosh)
    atanh_ = arctanh_ = inplace(pointwise.atanh)
    sinc_ = inplace(pointwise.sinc)
    deg2rad_ = inplace(pointwise.deg2rad)
    rad2deg_ = inplace(pointwise.rad2deg)
    erf_ = inplace(special.erf)
    erfc_ = inplace(special.erfc)
    erfinv_ = inplace(special.erfinv)
    lgamma_ = inplace(special.lgamma)
    digamma_ = inplace(special.digamma)
    mvlgamma_ = inplace(special.mvlgamma)
    i0_ = inplace(special.i0)
    logit_ = inplace(special.logit)
    xlogy_ = inplace(special.xlogy)
    igamma = rare_functions.igamma
    igammac = rare_functions.igammac
    igamma_ = inplace(rare_functions.igamma)
    igammac_ = inplace(rare_functions.igammac)
    relu_ = inplace(activations.relu)
    sigmoid_ = inplace(activations.sigmoid)


class ChoiceMethods:
    """Comparisons, logic, bits, and choosing between values."""

    __slots__ = ()

    eq = comparisons.eq
    ne = not_equal = comparisons.ne
    lt = less = comparisons.lt
    le = less_equal = comparisons.le
    gt = greater = comparisons.gt
    ge = greater_equal = comparisons.ge
    logical_and = comparisons.logical_and
    logical_or = comparisons.logical_or
    logical_xor = comparisons.logical_xor
    logical_not = comparisons.logical_not
    bitwise_and = comparisons.bitwise_and
    bitwise_or = comparisons.bitwise_or
    bitwise_xor = comparisons.bitwise_xor
    bitwise_not = comparisons.bitwise_not
    bitwise_left_shift = comparisons.bitwise_left_shift
    bitwise_right_shift = comparisons.bitwise_right_shift
    isnan = comparisons.isnan
    isinf = comparisons.isinf
    isfinite = comparisons.isfinite
    isposinf = comparisons.isposinf
    isneginf = comparisons.isneginf
    isreal = comparisons.isreal
    signbit = comparisons.signbit
    isclose = comparisons.isclose
    allclose = comparisons.allclose
    equal = comparisons.equal
    clamp = clip = selection.clamp
    clamp_min = selection.clamp_min
    clamp_max = selection.clamp_max
    maximum = selection.maximum
    minimum = selection.minimum
    fmax = selection.fmax
    fmin = selection.fmin

    def where(self, condition, other):
        """Return this tensor where the condition holds, `other` elsewhere."""
        return selection.where(condition, self, other)

    eq_ = inplace(comparisons.eq)
    ne_ = not_equal_ = inplace(comparisons.ne)
    lt_ = less_ = inplace(comparisons.lt)
    le_ = less_equal_ = inplace(comparisons.le)
    gt_ = greater_ = inplace(comparisons.gt)
    ge_ = greater_equal_ = inplace(comparisons.ge)
    logical_and_ = inplace(comparisons.logical_and)
    logical_or_ = inplace(comparisons.logical_or)
    logical_xor_ = inplace(comparisons.logical_xor)
    logical_not_ = inplace(comparisons.logical_not)
    bitwise_and_ = inplace(comparisons.bitwise_and)
    bitwise_or_ = inplace(comparisons.bitwise_or)
    bitwise_xor_ = inplace(comparisons.bitwise_xor)
    bitwise_not_ = inplace(comparisons.bitwise_not)
    bitwise_left_shift_ = inplace(comparisons.bitwise_left_shift)
    bitwise_right_shift_ = inplace(comparisons.bitwise_right_shift)
    clamp_ = clip_ = inplace(selection.clamp)
    clamp_min_ = inplace(selection.clamp_min)
    clamp_max_ = inplace(selection.clamp_max)

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
    __iand__ = bitwise_and_
    __ior__ = bitwise_or_
    __ixor__ = bitwise_xor_
    __ilshift__ = bitwise_left_shift_
    __irshift__ = bitwise_right_shift_
    __hash__ = object.__hash__


class PointwiseMethods(ArithmeticMethods, UnaryMethods, ChoiceMethods):
    """The part of Tensor that works element by element."""

    __slots__ = ()

    __hash__ = object.__hash__
