"""Arithmetic with broadcasting, and numbers on either side."""

from case import Case, away_from, given, integers, normal

TWO = [normal(3, 4), normal(3, 4)]
DIVISOR = away_from(3, 4, distance=0.4)
QUOTIENT = [given([[1.0, -2.3, 0.4]], True), given([[0.7], [-0.9]], True)]
WHOLE = [integers(3, 4, low=-9, high=9), given([[1, -2, 3, -4]] * 3)]
HALF = {"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1)}
SINGLE = ("float64", "float32")


def plain(name, call, inputs):
    """A case on integers."""
    return Case(name, call, inputs, dtypes=("float64",), differentiable=False)


CASES = [
    Case("add", lambda t, x, y: x + y, TWO, integer=True),
    Case("add/alpha", lambda t, x, y: t.add(x, y, alpha=2), TWO, tolerance=HALF, integer=True),
    Case("add/number", lambda t, x: 1.5 + x + 2, [normal(3, 4)], integer=True),
    Case("add/number to 0-d", lambda t, x: 1.5 + x + 2, [normal()], integer=True),
    Case("add/broadcast", lambda t, x, y, z: x + y + z, [normal(3, 1, 4), normal(2, 1), normal()], tolerance=HALF),
    Case("add/nothing", lambda t, x, y: x + y, [normal(0, 4), normal(4)]),
    Case("sub", lambda t, x, y: x - y, TWO),
    Case("sub/alpha", lambda t, x, y: t.sub(x, y, alpha=2), [normal(3, 4), normal(4)], tolerance=HALF),
    Case("rsub", lambda t, x, y: t.rsub(x, y, alpha=2), TWO, tolerance=HALF),
    Case("rsub_number", lambda t, x: 2 - x, [normal(3, 4)]),
    Case("rsub_number/alpha", lambda t, x: t.rsub(x, 2.5, alpha=0.5), [normal(3, 4)], tolerance=HALF),
    Case("mul", lambda t, x, y: x * y, TWO, integer=True),
    Case("mul/broadcast", lambda t, x, y: x * y, [normal(3, 1), normal(2, 1, 4)]),
    Case("mul/number", lambda t, x: 3 * x * 0.5, [normal(3, 4)], integer=True),
    Case("mul/itself", lambda t, x: x * x * x, [normal(3, 4)], tolerance=HALF),
    Case("scale", lambda t, x, y: (x - y * 1).add(y, alpha=0.3).sub(x, alpha=-0.7), TWO, tolerance=HALF),
    Case("true_divide", lambda t, x, y: x / y, [normal(3, 4), DIVISOR]),
    Case("true_divide/broadcast", lambda t, x, y: t.div(x, y), [normal(4), away_from(3, 1, distance=0.4)]),
    Case("true_divide/number", lambda t, x: x / 3, [normal(3, 4)], integer=True),
    Case("div_rounded/floor", lambda t, x, y: t.div(x, y, rounding_mode="floor"), QUOTIENT, dtypes=SINGLE),
    Case("div_rounded/trunc", lambda t, x, y: t.div(x, y, rounding_mode="trunc"), QUOTIENT, dtypes=SINGLE),
    plain("div_rounded/integers down", lambda t, x, y: t.div(x, y, rounding_mode="floor"), WHOLE),
    plain("div_rounded/integers towards 0", lambda t, x, y: t.div(x, y, rounding_mode="trunc"), WHOLE),
    Case("floor_divide", lambda t, x: x // 0.7, [normal(3, 4)], dtypes=SINGLE, differentiable=False),
    plain("floor_divide/integers", lambda t, x, y: (x // y, x // 2, 7 // y), WHOLE),
    Case("remainder", lambda t, x, y: x % y, QUOTIENT, dtypes=SINGLE),
    Case("remainder_number", lambda t, x: x % 0.7, [QUOTIENT[0]], dtypes=SINGLE),
    plain("remainder_number/integers", lambda t, x, y: (x % 3, x % -3, x % 2.5, 7 % y), WHOLE),
    plain("gcd", lambda t, x, y: t.gcd(x, y), WHOLE),
    plain("lcm", lambda t, x, y: t.lcm(x, y), WHOLE),
    Case("fmod", lambda t, x, y: t.fmod(x, y), QUOTIENT, dtypes=SINGLE),
    Case("fmod_number", lambda t, x: t.fmod(x, 0.7), [QUOTIENT[0]], dtypes=SINGLE),
    plain("fmod_number/integers", lambda t, x, y: (t.fmod(x, 3), t.fmod(x, y)), WHOLE),
    Case(
        "addcmul",
        lambda t, x, y, z: t.addcmul(x, y, z, value=0.5),
        [normal(3, 4), normal(4), normal(3, 1)],
        tolerance=HALF,
    ),
    Case("addcmul/plain", lambda t, x, y: x.addcmul(y, y), TWO, tolerance=HALF),
    Case(
        "addcdiv",
        lambda t, x, y, z: t.addcdiv(x, y, z, value=0.5),
        [normal(3, 4), normal(4), away_from(3, 1, distance=0.4)],
        tolerance=HALF,
    ),
    Case("lerp", lambda t, x, y, w: t.lerp(x, y, w), [normal(3, 4), normal(3, 4), normal(3, 4)], tolerance=HALF),
    Case("lerp_number", lambda t, x, y: t.lerp(x, y, 0.3), TWO, tolerance=HALF),
    Case("lerp_number/past the middle", lambda t, x, y: t.lerp(x, y, 0.7), TWO, tolerance=HALF),
]
