"""Signs, sizes, and numbers made whole."""

from case import Case, away_from, given, normal

SINGLE = ("float64", "float32")
BETWEEN = away_from(3, 4, points=(-3, -2, -1, 0, 1, 2, 3), distance=0.05)
INFINITE = [given([1.0, float("nan"), float("inf"), float("-inf")])]


def unary(name, draw=None, **options):
    return Case(name, lambda t, x: getattr(t, name.split("/")[0])(x), [draw or normal(3, 4)], **options)


CASES = [
    unary("neg"),
    unary("abs", away_from(3, 4)),
    unary("abs/at 0", given([0.0, -1.0, float("nan")], True), second=False, differentiable=False),
    unary("sign", away_from(3, 4), integer=True),
    unary("sgn", away_from(3, 4), integer=True, grad_parity=False),
    unary("sgn/NaN", INFINITE[0], differentiable=False),
    unary("angle", away_from(3, 4)),
    unary("floor", BETWEEN),
    unary("ceil", BETWEEN),
    unary("trunc", BETWEEN),
    unary("frac", BETWEEN),
    unary("round", away_from(3, 4, points=(-1.5, -0.5, 0.5, 1.5))),
    unary("round/half", given([0.5, 1.5, -2.5]), differentiable=False),
    Case("round_decimals", lambda t, x: t.round(x, decimals=1), [normal(3, 4)], dtypes=SINGLE),
    Case("round_decimals/tens", lambda t, x: t.round(x, decimals=-1), [normal(3, 4, scale=50)], dtypes=SINGLE),
    Case("copysign", lambda t, x, y: t.copysign(x, y), [away_from(3, 4), away_from(4)]),
    Case("copysign_number", lambda t, x: t.copysign(x, -2.0), [away_from(3, 4)]),
    Case("heaviside", lambda t, x, y: t.heaviside(x, y), [normal(3, 4), normal(4)], differentiable=False),
    Case("heaviside/at 0", lambda t, x, y: t.heaviside(x, y), [given([0.0]), normal(4)], differentiable=False),
    Case("nextafter", lambda t, x, y: t.nextafter(x, y), [normal(3, 4), normal(4)], dtypes=SINGLE, second=False),
    Case("nan_to_num", lambda t, x: t.nan_to_num(x), [normal(3, 4)], integer=True),
    Case("nan_to_num/infinite", lambda t, x: t.nan_to_num(x), INFINITE, differentiable=False),
    Case("nan_to_num/given", lambda t, x: t.nan_to_num(x, 1.0, 2.0, -2.0), INFINITE, differentiable=False),
    Case("frexp", lambda t, x: t.frexp(x), [away_from(3, 4)], dtypes=("float64", "float32", "float16")),
]
