"""Tensor's methods that work element by element, a line each."""

from backlight.ops import activations, arithmetic, comparisons, pointwise, powers, selection, special
from backlight.ops.declare import operator_of
from backlight.ops.inplace import inplace


class ArithmeticMethods:
    """Arithmetic, and Python's operators."""

    __slots__ = ()

    __array_priority__ = 1000

    add = arithmetic.add
    sub = subtract = arithmetic.sub
    mul = multiply = arithmetic.mul
    div = divide = arithmetic.div
    true_divide = arithmetic.true_divide
    floor_divide = arithmetic.floor_divide
    remainder = arithmetic.remainder
    fmod = arithmetic.fmod
    addcmul = arithmetic.addcmul
    addcdiv = arithmetic.addcdiv
    lerp = arithmetic.lerp
    hypot = arithmetic.hypot
    atan2 = arctan2 = arithmetic.atan2
    logaddexp = arithmetic.logaddexp
    logaddexp2 = arithmetic.logaddexp2
    copysign = arithmetic.copysign
    pow = powers.pow
    float_power = powers.float_power
    ldexp = powers.ldexp

    add_ = inplace(arithmetic.add)
    sub_ = subtract_ = inplace(arithmetic.sub)
    mul_ = multiply_ = inplace(arithmetic.mul)
    div_ = divide_ = inplace(arithmetic.div)
    true_divide_ = inplace(arithmetic.true_divide)
    floor_divide_ = inplace(arithmetic.floor_divide)
    remainder_ = inplace(arithmetic.remainder)
    fmod_ = inplace(arithmetic.fmod)
    addcmul_ = inplace(arithmetic.addcmul)
    addcdiv_ = inplace(arithmetic.addcdiv)
    lerp_ = inplace(arithmetic.lerp)
    hypot_ = inplace(arithmetic.hypot)
    atan2_ = arctan2_ = inplace(arithmetic.atan2)
    copysign_ = inplace(arithmetic.copysign)
    pow_ = inplace(powers.pow)
    float_power_ = inplace(powers.float_power)
    ldexp_ = inplace(powers.ldexp)

    __add__ = __radd__ = operator_of(arithmetic.add)
    __sub__ = operator_of(arithmetic.sub)
    __rsub__ = operator_of(arithmetic.rsub)
    __mul__ = __rmul__ = operator_of(arithmetic.mul)
    __truediv__ = operator_of(arithmetic.true_divide)
    __floordiv__ = operator_of(arithmetic.floor_divide)
    __mod__ = operator_of(arithmetic.remainder)
    __pow__ = powers.power_operator
    __neg__ = pointwise.neg
    __pos__ = pointwise.positive
    __abs__ = pointwise.abs

    __iadd__ = add_
    __isub__ = sub_
    __imul__ = mul_
    __itruediv__ = true_divide_
    __ifloordiv__ = floor_divide_
    __imod__ = remainder_
    __ipow__ = pow_

    def __rtruediv__(self, other):
        return pointwise.reciprocal(self) * other

    def __rfloordiv__(self, other):
        return arithmetic.floor_divide(other, self)

    def __rmod__(self, other):
        return arithmetic.remainder(other, self)

    def __rpow__(self, other):
        return powers.pow_tensor(other, self)


class UnaryMethods:
    """Functions of the tensor alone."""

    __slots__ = ()

    abs = absolute = pointwise.abs
    neg = negative = pointwise.neg
    positive = pointwise.positive
    sign = pointwise.sign
    sgn = pointwise.sgn
    reciprocal = pointwise.reciprocal
    square = pointwise.square
    sqrt = pointwise.sqrt
    rsqrt = pointwise.rsqrt
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
    sinh = pointwise.sinh
    cosh = pointwise.cosh
    tanh = pointwise.tanh
    asinh = arcsinh = pointwise.asinh
    acosh = arccosh = pointwise.acosh
    atanh = arctanh = pointwise.atanh
    sinc = pointwise.sinc
    floor = pointwise.floor
    ceil = pointwise.ceil
    trunc = fix = pointwise.trunc
    frac = pointwise.frac
    round = pointwise.round
    deg2rad = pointwise.deg2rad
    rad2deg = pointwise.rad2deg

    relu = activations.relu
    sigmoid = expit = activations.sigmoid
    prelu = activations.prelu
    erf = special.erf
    erfc = special.erfc
    erfinv = special.erfinv
    lgamma = special.lgamma
    digamma = special.digamma
    mvlgamma = special.mvlgamma
    logit = special.logit
    xlogy = special.xlogy
    heaviside = special.heaviside
    nan_to_num = special.nan_to_num

    def polygamma(self, n: int):
        """Return the n-th derivative of digamma."""
        return special.polygamma(n, self)

    relu_ = inplace(activations.relu)
    sigmoid_ = inplace(activations.sigmoid)
    erf_ = inplace(special.erf)
    erfc_ = inplace(special.erfc)
    erfinv_ = inplace(special.erfinv)
    lgamma_ = inplace(special.lgamma)
    digamma_ = inplace(special.digamma)
    logit_ = inplace(special.logit)
    xlogy_ = inplace(special.xlogy)
    nan_to_num_ = inplace(special.nan_to_num)
    abs_ = absolute_ = inplace(pointwise.abs)
    neg_ = negative_ = inplace(pointwise.neg)
    sign_ = inplace(pointwise.sign)
    sgn_ = inplace(pointwise.sgn)
    reciprocal_ = inplace(pointwise.reciprocal)
    square_ = inplace(pointwise.square)
    sqrt_ = inplace(pointwise.sqrt)
    rsqrt_ = inplace(pointwise.rsqrt)
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
    sinh_ = inplace(pointwise.sinh)
    cosh_ = inplace(pointwise.cosh)
    tanh_ = inplace(pointwise.tanh)
    asinh_ = arcsinh_ = inplace(pointwise.asinh)
    acosh_ = arccosh_ = inplace(pointwise.acosh)
    atanh_ = arctanh_ = inplace(pointwise.atanh)
    sinc_ = inplace(pointwise.sinc)
    floor_ = inplace(pointwise.floor)
    ceil_ = inplace(pointwise.ceil)
    trunc_ = fix_ = inplace(pointwise.trunc)
    frac_ = inplace(pointwise.frac)
    round_ = inplace(pointwise.round)
    deg2rad_ = inplace(pointwise.deg2rad)
    rad2deg_ = inplace(pointwise.rad2deg)


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

    clamp_ = clip_ = inplace(selection.clamp)
    clamp_min_ = inplace(selection.clamp_min)
    clamp_max_ = inplace(selection.clamp_max)
    logical_not_ = inplace(comparisons.logical_not)
    bitwise_not_ = inplace(comparisons.bitwise_not)
    bitwise_and_ = inplace(comparisons.bitwise_and)
    bitwise_or_ = inplace(comparisons.bitwise_or)
    bitwise_xor_ = inplace(comparisons.bitwise_xor)

    __eq__ = comparisons.equals
    __ne__ = comparisons.differs
    __lt__ = operator_of(comparisons.lt)
    __le__ = operator_of(comparisons.le)
    __gt__ = operator_of(comparisons.gt)
    __ge__ = operator_of(comparisons.ge)
    __and__ = __rand__ = operator_of(comparisons.bitwise_and)
    __or__ = __ror__ = operator_of(comparisons.bitwise_or)
    __xor__ = __rxor__ = operator_of(comparisons.bitwise_xor)
    __lshift__ = operator_of(comparisons.bitwise_left_shift)
    __rshift__ = operator_of(comparisons.bitwise_right_shift)
    __invert__ = comparisons.bitwise_not
    __iand__ = bitwise_and_
    __ior__ = bitwise_or_
    __ixor__ = bitwise_xor_
    __hash__ = object.__hash__


class PointwiseMethods(ArithmeticMethods, UnaryMethods, ChoiceMethods):
    """The part of Tensor that works element by element."""

    __slots__ = ()

    __hash__ = object.__hash__
