"""Functions of one array, element by element."""

from case import Case, away_from, given, normal, uniform

SERIES = {"float64": (1e-7, 1e-8)}  # PyTorch sums fewer terms
OUTSIDE_HALF = {"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1)}


def unary(name, draw=None, **options):
    return Case(name, lambda t, x: getattr(t, name.split("/")[0])(x), [draw or normal(3, 4)], **options)


CASES = [
    unary("neg"),
    unary("abs", away_from(3, 4)),
    unary("sign", away_from(3, 4)),
    unary("sgn", away_from(3, 4)),
    unary("reciprocal", away_from(3, 4, distance=0.4)),
    unary("square"),
    unary("sqrt", uniform(3, 4, low=0.2, high=3), integer=True),
    unary("rsqrt", uniform(3, 4, low=0.2, high=3), tolerance={"bfloat16": (4e-2, 4e-2)}),
    unary("exp", integer=True),
    unary("exp2"),
    unary("expm1"),
    unary("log", uniform(3, 4, low=0.2, high=3)),
    unary("log2", uniform(3, 4, low=0.2, high=3)),
    unary("log10", uniform(3, 4, low=0.2, high=3)),
    unary("log1p", uniform(3, 4, low=-0.7, high=3)),
    unary("sin", integer=True),
    unary("cos", integer=True),
    unary("tan", uniform(3, 4, low=-1.2, high=1.2)),
    unary("asin", uniform(3, 4, low=-0.9, high=0.9)),
    unary("acos", uniform(3, 4, low=-0.9, high=0.9)),
    unary("atan"),
    unary("sinh"),
    unary("cosh"),
    unary("tanh", integer=True),
    unary("tanh/0-d", normal()),
    unary("asinh"),
    unary("acosh", uniform(3, 4, low=1.2, high=3)),
    unary("atanh", uniform(3, 4, low=-0.8, high=0.8)),
    unary("floor", integer=False),
    unary("ceil"),
    unary("trunc"),
    unary("frac", away_from(3, 4, points=(-3, -2, -1, 0, 1, 2, 3), distance=0.05)),
    unary("round"),
    Case("round/decimals", lambda t, x: t.round(x, decimals=1), [normal(3, 4)], dtypes=("float64", "float32")),
    Case("round/tens", lambda t, x: t.round(x, decimals=-1), [normal(3, 4, scale=50)], dtypes=("float64", "float32")),
    unary("deg2rad"),
    unary("rad2deg"),
    unary("sinc", away_from(3, 4), tolerance=OUTSIDE_HALF),
    unary("sinc/at 0", given([0.0, 1.5], differentiable=True), tolerance=OUTSIDE_HALF),
    unary("erf"),
    unary("erfc"),
    unary("erfinv", uniform(3, 4, low=-0.8, high=0.8)),
    unary("lgamma", uniform(3, 4, low=0.2, high=5)),
    unary("digamma", uniform(3, 4, low=0.5, high=5)),
    Case(
        "polygamma_of",
        lambda t, x: t.polygamma(1, x),
        [uniform(3, 4, low=0.5, high=5)],
        dtypes=("float64",),
        tolerance=SERIES,
    ),
    Case(
        "polygamma_of/2",
        lambda t, x: t.polygamma(2, x),
        [uniform(3, 4, low=0.5, high=5)],
        dtypes=("float64",),
        tolerance=SERIES,
    ),
    Case("lgamma/multivariate", lambda t, x: t.mvlgamma(x, 3), [uniform(3, 4, low=2, high=5)], dtypes=("float64",)),
    Case("logit_of", lambda t, x: t.logit(x), [uniform(3, 4, low=0.1, high=0.9)]),
    Case("logit_of/eps", lambda t, x: t.logit(x, eps=0.2), [uniform(3, 4, low=0.01, high=0.99)]),
    Case("special_erfcx", lambda t, x: t.special.erfcx(x), [normal(3, 4)], dtypes=("float64", "float32")),
    Case("special_ndtr", lambda t, x: t.special.ndtr(x), [normal(3, 4)], dtypes=("float64", "float32")),
    Case("nan_to_num", lambda t, x: t.nan_to_num(x), [normal(3, 4)]),
    Case(
        "nan_to_num/given",
        lambda t, x: t.nan_to_num(x, 1.0, 2.0, -2.0),
        [given([1.0, float("nan"), float("inf"), float("-inf")])],
        differentiable=False,
    ),
    Case(
        "shares",
        lambda t, x, y: t.maximum(x, y).sum() + t.minimum(x, y).square().sum(),
        [normal(3, 4), normal(3, 4)],
        tolerance={"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1)},
    ),
]
