"""Tensor's methods that work element by element, a line each."""

import functools

import numpy as np

from backlight.codegen.declaration import operator_of
from backlight.codegen.runtime_support import is_operand
from backlight.ops.elementwise import (
    activations,
    arithmetic,
    comparisons,
    complex_numbers,
    division,
    powers,
    rounding,
    transcendental,
    where_clamp,
)
from backlight.ops.inplace import inplace
from backlight.ops.special import rare_functions, special_functions


def operator(function):
    """Return a binary function as a Python operator: returns NotImplemented for foreign operands."""

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


_polygamma_ = inplace(lambda input, n: special_functions.polygamma(n, input), "polygamma_")


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
    """Unary functions, some with a parameter."""

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
    exp = transcendental.exp
    exp2 = transcendental.exp2
    expm1 = transcendental.expm1
    log = transcendental.log
    log2 = transcendental.log2
    log10 = transcendental.log10
    log1p = transcendental.log1p
    sin = transcendental.sin
    cos = transcendental.cos
    tan = transcendental.tan
    asin = arcsin = transcendental.asin
    acos = arccos = transcendental.acos
    atan = arctan = transcendental.atan
    atan2 = arctan2 = transcendental.atan2
    sinh = transcendental.sinh
    cosh = transcendental.cosh
    tanh = transcendental.tanh
    asinh = arcsinh = transcendental.asinh
    acosh = arccosh = transcendental.acosh
    atanh = arctanh = transcendental.atanh
    sinc = transcendental.sinc
    deg2rad = transcendental.deg2rad
    rad2deg = transcendental.rad2deg
    erf = special_functions.erf
    erfc = special_functions.erfc
    erfinv = special_functions.erfinv
    lgamma = special_functions.lgamma
    digamma = special_functions.digamma
    mvlgamma = special_functions.mvlgamma
    i0 = special_functions.i0
    logit = special_functions.logit
    xlogy = special_functions.xlogy
    relu = activations.relu
    sigmoid = activations.sigmoid
    prelu = activations.prelu
    hardshrink = activations.hardshrink

    def polygamma(self, n: int):
        """Return the n-th derivative of digamma."""
        return special_functions.polygamma(n, self)

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
    exp_ = inplace(transcendental.exp)
    exp2_ = inplace(transcendental.exp2)
    expm1_ = inplace(transcendental.expm1)
    log_ = inplace(transcendental.log)
    log2_ = inplace(transcendental.log2)
    log10_ = inplace(transcendental.log10)
    log1p_ = inplace(transcendental.log1p)
    sin_ = inplace(transcendental.sin)
    cos_ = inplace(transcendental.cos)
    tan_ = inplace(transcendental.tan)
    asin_ = arcsin_ = inplace(transcendental.asin)
    acos_ = arccos_ = inplace(transcendental.acos)
    atan_ = arctan_ = inplace(transcendental.atan)
    atan2_ = arctan2_ = inplace(transcendental.atan2)
    sinh_ = inplace(transcendental.sinh)
    cosh_ = inplace(transcendental.cosh)
    tanh_ = inplace(transcendental.tanh)
    asinh_ = arcsinh_ = inplace(transcendental.asinh)
    acosh_ = arccosh_ = inplace(transcendental.acosh)
    atanh_ = arctanh_ = inplace(transcendental.atanh)
    sinc_ = inplace(transcendental.sinc)
    deg2rad_ = inplace(transcendental.deg2rad)
    rad2deg_ = inplace(transcendental.rad2deg)
    erf_ = inplace(special_functions.erf)
    erfc_ = inplace(special_functions.erfc)
    erfinv_ = inplace(special_functions.erfinv)
    lgamma_ = inplace(special_functions.lgamma)
    digamma_ = inplace(special_functions.digamma)
    mvlgamma_ = inplace(special_functions.mvlgamma)
    i0_ = inplace(special_functions.i0)
    logit_ = inplace(special_functions.logit)
    xlogy_ = inplace(special_functions.xlogy)
    igamma = rare_functions.igamma
    igammac = rare_functions.igammac
    igamma_ = inplace(rare_functions.igamma)
    igammac_ = inplace(rare_functions.igammac)
    relu_ = inplace(activations.relu)
    sigmoid_ = inplace(activations.sigmoid)


class ChoiceMethods:
    """Comparisons, logical and bitwise functions, and selection."""

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
    clamp = clip = where_clamp.clamp
    clamp_min = where_clamp.clamp_min
    clamp_max = where_clamp.clamp_max
    maximum = where_clamp.maximum
    minimum = where_clamp.minimum
    fmax = where_clamp.fmax
    fmin = where_clamp.fmin

    def where(self, condition, other):
        """Return this tensor where the condition holds, `other` elsewhere."""
        return where_clamp.where(condition, self, other)

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
    clamp_ = clip_ = inplace(where_clamp.clamp)
    clamp_min_ = inplace(where_clamp.clamp_min)
    clamp_max_ = inplace(where_clamp.clamp_max)

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
    """Tensor's elementwise methods."""

    __slots__ = ()

    __hash__ = object.__hash__
