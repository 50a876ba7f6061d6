"""Arithmetic with broadcasting, numbers on either side, powers."""

from case import Case, away_from, given, integers, normal, uniform

TWO = [normal(3, 4), normal(3, 4)]
POSITIVE = uniform(3, 4, low=0.3, high=2)
HALF = {"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1)}

CASES = [
    Case("add", lambda t, x, y: x + y, TWO, integer=True),
    Case("add/alpha", lambda t, x, y: t.add(x, y, alpha=2), TWO, tolerance=HALF),
    Case("add/number", lambda t, x: 1.5 + x + 2, [normal(3, 4)], integer=True),
    Case("add/broadcast", lambda t, x, y, z: x + y + z, [normal(3, 1, 4), normal(2, 1), normal()], tolerance=HALF),
    Case("sub", lambda t, x, y: x - y, TWO),
    Case("sub/alpha", lambda t, x, y: t.sub(x, y, alpha=2), [normal(3, 4), normal(4)], tolerance=HALF),
    Case("rsub", lambda t, x: 2 - x, [normal(3, 4)]),
    Case("rsub/alpha", lambda t, x, y: t.rsub(x, y, alpha=2), TWO, tolerance=HALF),
    Case("mul", lambda t, x, y: x * y, TWO, integer=True),
    Case("mul/broadcast", lambda t, x, y: x * y, [normal(3, 1), normal(2, 1, 4)]),
    Case("mul/number", lambda t, x: 3 * x * 0.5, [normal(3, 4)], integer=True),
    Case("mul/itself", lambda t, x: x * x * x, [normal(3, 4)], tolerance=HALF),
    Case("true_divide", lambda t, x, y: x / y, [normal(3, 4), away_from(3, 4, distance=0.4)]),
    Case("true_divide/broadcast", lambda t, x, y: t.div(x, y), [normal(4), away_from(3, 1, distance=0.4)]),
    Case("true_divide/number", lambda t, x: x / 3, [normal(3, 4)], integer=True),
    Case("reciprocal/of a number", lambda t, x: 3 / x, [away_from(3, 4, distance=0.4)], tolerance=HALF),
    Case(
        "div_floor",
        lambda t, x, y: t.div(x, y, rounding_mode="floor"),
        [away_from(3, 4, distance=0.3), given([[1.3, 0.7, -1.1, 2.3]] * 3, differentiable=True)],
        dtypes=("float64", "float32"),
    ),
    Case(
        "div_trunc",
        lambda t, x, y: t.div(x, y, rounding_mode="trunc"),
        [away_from(3, 4, distance=0.3), given([[1.3, 0.7, -1.1, 2.3]] * 3, differentiable=True)],
        dtypes=("float64", "float32"),
    ),
    Case(
        "div_trunc/integers",
        lambda t, x, y: t.div(x, y, rounding_mode="trunc"),
        [integers(3, 4, low=-9, high=9), integers(3, 4, low=1, high=4)],
        differentiable=False,
    ),
    Case(
        "floor_divide",
        lambda t, x: x // 0.7,
        [normal(3, 4)],
        dtypes=("float64", "float32"),
        differentiable=False,
    ),
    Case("floor_divide/integers", lambda t, x: x // 2, [integers(3, 4, low=-9, high=9)], differentiable=False),
    Case(
        "remainder",
        lambda t, x, y: x % y,
        [given([[1.0, -2.3, 0.4]], True), given([[0.7], [-0.9]], True)],
        dtypes=("float64", "float32"),
    ),
    Case(
        "fmod",
        lambda t, x, y: t.fmod(x, y),
        [given([[1.0, -2.3, 0.4]], True), given([[0.7], [-0.9]], True)],
        dtypes=("float64", "float32"),
    ),
    Case(
        "addcmul",
        lambda t, x, y, z: t.addcmul(x, y, z, value=0.5),
        [normal(3, 4), normal(4), normal(3, 1)],
        tolerance=HALF,
    ),
    Case(
        "addcdiv",
        lambda t, x, y, z: t.addcdiv(x, y, z, value=0.5),
        [normal(3, 4), normal(4), away_from(3, 1, distance=0.4)],
        tolerance=HALF,
    ),
    Case("lerp", lambda t, x, y, w: t.lerp(x, y, w), [normal(3, 4), normal(3, 4), normal(3, 4)], tolerance=HALF),
    Case("lerp/number", lambda t, x, y: t.lerp(x, y, 0.3), TWO, tolerance=HALF),
    Case("hypot", lambda t, x, y: t.hypot(x, y), TWO),
    Case("atan2", lambda t, x, y: t.atan2(x, y), TWO),
    Case("logaddexp", lambda t, x, y: t.logaddexp(x, y), TWO),
    Case("logaddexp2", lambda t, x, y: t.logaddexp2(x, y), TWO, dtypes=("float64", "float32")),
    Case("copysign", lambda t, x, y: t.copysign(x, y), [away_from(3, 4), away_from(3, 4)]),
    Case("xlogy", lambda t, x, y: t.xlogy(x, y), [normal(3, 4), POSITIVE]),
    Case("special_xlog1py", lambda t, x, y: t.special.xlog1py(x, y), [normal(3, 4), POSITIVE], dtypes=("float64",)),
    Case("heaviside", lambda t, x, y: t.heaviside(x, y), TWO, differentiable=False),
    Case("pow_number", lambda t, x: x**2, [normal(3, 4)], integer=True),
    Case("pow_number/3", lambda t, x: x**3, [normal(3, 4)], tolerance=HALF),
    Case("pow_number/0", lambda t, x: x**0, [normal(3, 4)]),
    Case("pow_number/1", lambda t, x: x**1, [normal(3, 4)]),
    Case("pow_number/fraction", lambda t, x: x**1.7, [POSITIVE], tolerance=HALF),
    Case("pow_number/root", lambda t, x: x**0.5, [POSITIVE]),
    Case("pow_number/negative", lambda t, x: x**-2, [POSITIVE], tolerance=HALF),
    Case("pow_tensor", lambda t, x, y: x**y, [POSITIVE, normal(3, 4)], tolerance=HALF),
    Case(
        "pow_tensor/broadcast", lambda t, x, y: t.pow(x, y), [uniform(3, 1, low=0.3, high=2), normal(4)], tolerance=HALF
    ),
    Case("pow_tensor/base a number", lambda t, x: 2.5**x, [normal(3, 4)], tolerance=HALF),
    Case("pow_tensor/in float64", lambda t, x: t.float_power(x, 2.5), [POSITIVE], dtypes=("float64", "float32")),
]
