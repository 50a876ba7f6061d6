"""Powers and roots, sizes of pairs, sums of exponentials."""

from case import Case, away_from, given, integers, normal, uniform

TWO = [normal(3, 4), normal(3, 4)]
POSITIVE = uniform(3, 4, low=0.3, high=2)
HALF = {"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1)}
SINGLE = ("float64", "float32")

CASES = [
    Case("pow_number", lambda t, x: x**2, [normal(3, 4)], integer=True),
    Case("pow_number/0-d", lambda t, x: x**2 + x**3, [normal()], tolerance=HALF),
    Case("pow_number/3", lambda t, x: x**3, [normal(3, 4)], tolerance=HALF, integer=True),
    Case("pow_number/0", lambda t, x: x**0, [normal(3, 4)], integer=True),
    Case("pow_number/1", lambda t, x: x**1, [normal(3, 4)]),
    Case("pow_number/at 0", lambda t, x: (x**1, x**2, x**3), [given([0.0, 1.0], True)], tolerance=HALF),
    Case("pow_number/fraction", lambda t, x: x**1.7, [POSITIVE], tolerance=HALF),
    Case("pow_number/root", lambda t, x: x**0.5, [POSITIVE], integer=True),
    Case("pow_number/negative", lambda t, x: x**-2 + x**-1 + x**-0.5, [POSITIVE], tolerance=HALF),
    Case("pow_number/square", lambda t, x: (t.square(x), x.square()), [normal(3, 4)], integer=True),
    Case("pow_number/in float64", lambda t, x: t.float_power(x, 2.5), [POSITIVE], dtypes=SINGLE),
    Case("pow", lambda t, x, y: x**y, [POSITIVE, normal(3, 4)], tolerance=HALF),
    Case("pow/broadcast", lambda t, x, y: t.pow(x, y), [uniform(3, 1, low=0.3, high=2), normal(4)], tolerance=HALF),
    Case(
        "pow/integers",
        lambda t, x, y: (x**y, 2**y, x**3, True**y),
        [integers(3, 4, low=-3, high=4), integers(3, 4)],
        dtypes=("float64",),
        differentiable=False,
    ),
    Case("pow_of_number", lambda t, x: 2.5**x, [normal(3, 4)], tolerance=HALF),
    Case("pow_of_number/in float64", lambda t, x: t.float_power(2, x), [POSITIVE], dtypes=SINGLE),
    Case("reciprocal", lambda t, x: t.reciprocal(x), [away_from(3, 4, distance=0.4)]),
    Case("reciprocal/of a number", lambda t, x: 3 / x, [away_from(3, 4, distance=0.4)], tolerance=HALF, integer=True),
    Case("sqrt", lambda t, x: t.sqrt(x), [POSITIVE], integer=True),
    Case("rsqrt", lambda t, x: x.rsqrt(), [POSITIVE], tolerance=HALF),
    Case("hypot", lambda t, x, y: t.hypot(x, y), TWO),
    Case("ldexp", lambda t, x, y: t.ldexp(x, y), [normal(3, 4), normal(4)], tolerance=HALF),
    Case(
        "ldexp/whole",
        lambda t, x, y: t.ldexp(x, y),
        [normal(3, 4), integers(4, low=-3, high=4)],
        grad_parity=False,  # PyTorch takes 2^other among the integers here, which makes it 0
    ),
    Case("logaddexp", lambda t, x, y: t.logaddexp(x, y), TWO),
    Case("logaddexp2", lambda t, x, y: t.logaddexp2(x, y), TWO, dtypes=SINGLE),
]
