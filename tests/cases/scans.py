"""Running sums, products and extremes; differences and areas."""

from case import Case, distinct, given, normal

ZEROS = given([[2.0, 0.0, 3.0, 0.5], [0.0, 4.0, 0.0, 5.0], [1.5, 2.5, -1.0, 3.0]], differentiable=True)
TIES = given([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, float("nan"), 0.0]])
LOOSE = {"float16": (1e-2, 1e-2), "bfloat16": (5e-2, 5e-2)}
WIDE = ("float64", "float32")

CASES = [
    Case("cumsum", lambda t, x: (t.cumsum(x, 1), x.cumsum(0)), [normal(3, 4)], integer=True, tolerance=LOOSE),
    Case("cumsum/dtype", lambda t, x: x.cumsum(-1, dtype=t.float64), [normal(3, 4)], integer=True),
    Case("cumsum/0-d", lambda t, x: x.cumsum(0), [normal()], integer=True),
    Case("cumprod", lambda t, x: (t.cumprod(x, 1), x.cumprod(0)), [normal(3, 4)], integer=True, tolerance=LOOSE),
    Case("cumprod/zeros", lambda t, x: x.cumprod(-1), [ZEROS], tolerance=LOOSE),
    Case("cumprod/0-d", lambda t, x: x.cumprod(0), [normal()]),
    Case("logcumsumexp", lambda t, x: (t.logcumsumexp(x, 1), x.logcumsumexp(0)), [normal(3, 4)], tolerance=LOOSE),
    Case("logcumsumexp/large values", lambda t, x: x.logcumsumexp(1), [normal(3, 4, scale=50)], dtypes=WIDE),
    Case("logcumsumexp/0-d", lambda t, x: x.logcumsumexp(0), [normal()]),
    Case("cummax", lambda t, x: (t.cummax(x, 1), x.cummax(0)), [distinct(3, 4)], integer=True),
    Case("cummax/ties", lambda t, x: x.cummax(-1), [TIES], differentiable=False),
    Case("cummax/0-d", lambda t, x: x.cummax(0), [normal()]),
    Case("cummin", lambda t, x: (t.cummin(x, 1), x.cummin(dim=0)), [distinct(3, 4)], integer=True),
    Case("cummin/ties", lambda t, x: x.cummin(-1), [TIES], differentiable=False),
    Case("diff", lambda t, x: (t.diff(x), x.diff(2, 0)), [normal(3, 4)], integer=True, tolerance=LOOSE),
    Case("diff/ends", lambda t, x, y: t.diff(x, prepend=y, append=y), [normal(3, 4), normal(3, 2)]),
    Case("trapezoid", lambda t, y: (t.trapezoid(y), t.trapz(y, dx=0.5, dim=0)), [normal(3, 4)], tolerance=LOOSE),
    Case("trapezoid/points", lambda t, y, x: t.trapezoid(y, x, dim=0), [normal(3, 4), normal(3)], dtypes=WIDE),
    Case("trapezoid/rows of points", lambda t, y, x: t.trapezoid(y, x), [normal(2, 3, 4), normal(3, 4)], dtypes=WIDE),
    Case("cumulative_trapezoid", lambda t, y, x: t.cumulative_trapezoid(y, x), [normal(3, 4), normal(4)], dtypes=WIDE),
]
