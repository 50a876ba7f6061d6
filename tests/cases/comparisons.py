"""Comparisons, logic and bits."""

from case import Case, booleans, given, integers, normal

PAIR = [given([[1.0, 2.0, 3.0]]), given([[1.0], [3.0]])]
INTEGERS = [integers(3, 4), integers(3, 4)]
SPECIALS = [given([1.0, float("nan"), float("inf"), float("-inf"), -0.0])]


def plain(name, call, inputs, **options):
    return Case(name, call, inputs, differentiable=False, **options)


CASES = [
    plain("eq", lambda t, x, y: x == y, PAIR, integer=True),
    plain("ne", lambda t, x, y: x != y, PAIR),
    plain("lt", lambda t, x, y: x < y, PAIR),
    plain("le", lambda t, x, y: x <= y, PAIR),
    plain("gt", lambda t, x, y: x > y, PAIR),
    plain("gt/number", lambda t, x: (x > 1.5) | (x < -1), [normal(3, 4)]),
    plain("ge", lambda t, x, y: x >= y, PAIR),
    plain("logical_and", lambda t, x, y: t.logical_and(x, y), INTEGERS),
    plain("logical_or", lambda t, x, y: t.logical_or(x, y), INTEGERS),
    plain("logical_xor", lambda t, x, y: t.logical_xor(x, y), INTEGERS),
    plain("logical_not", lambda t, x: t.logical_not(x), [integers(3, 4)]),
    plain("bitwise_and", lambda t, x, y: x & y, INTEGERS),
    plain("bitwise_or", lambda t, x, y: x | y, [booleans(3, 4), booleans(4)]),
    plain("bitwise_xor", lambda t, x, y: x ^ y, INTEGERS),
    plain("bitwise_not", lambda t, x, y: (~x, ~y), [integers(3, 4), booleans(3)]),
    plain("bitwise_left_shift", lambda t, x, y: x << y, INTEGERS),
    plain("bitwise_right_shift", lambda t, x, y: x >> y, INTEGERS),
    plain("isnan", lambda t, x: t.isnan(x), SPECIALS),
    plain("isinf", lambda t, x: t.isinf(x), SPECIALS),
    plain("isfinite", lambda t, x: t.isfinite(x), SPECIALS),
    plain("isposinf", lambda t, x: t.isposinf(x), SPECIALS),
    plain("isneginf", lambda t, x: t.isneginf(x), SPECIALS),
    plain("isreal", lambda t, x: t.isreal(x), SPECIALS),
    plain("signbit", lambda t, x: t.signbit(x), SPECIALS),
    plain("isclose", lambda t, x, y: t.isclose(x, y), [normal(3, 4), normal(3, 4)], dtypes=("float64", "float32")),
    plain("isclose/nan", lambda t, x: t.isclose(x, x, equal_nan=True), SPECIALS),
    plain("isclose/all", lambda t, x: (t.allclose(x, x + 1e-9), t.equal(x, x)), [normal(3, 4)], dtypes=("float64",)),
]
