"""Largest and smallest elements, medians, modes, quantiles."""

from case import Case, distinct, given, normal, uniform

TIES = given([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 0.0]], differentiable=True)
NANS = given([[1.0, float("nan"), 3.0], [float("nan"), 2.0, float("nan")]])
EXACT = ("float64", "float32")

CASES = [
    Case("max_all", lambda t, x: t.max(x), [distinct(3, 4)], integer=True),
    Case("max_all/ties", lambda t, x: x.max(), [TIES], differentiable=False),
    Case("max_all/nan", lambda t, x: x.max(), [NANS], differentiable=False),
    Case("max_dim", lambda t, x: t.max(x, 1), [distinct(3, 4)], integer=True),
    Case("max_dim/keepdim", lambda t, x: x.max(dim=0, keepdim=True), [distinct(3, 4, 2)], integer=True),
    Case("max_dim/0-d", lambda t, x: x.max(-1), [normal()]),
    Case("max_dim/ties", lambda t, x: x.max(1), [TIES], differentiable=False),
    Case("max_dim/nan", lambda t, x: x.max(1), [NANS], differentiable=False),
    Case("min_all", lambda t, x: x.min(), [distinct(3, 4)], integer=True),
    Case("min_dim", lambda t, x: t.min(x, -1), [distinct(3, 4)], integer=True),
    Case("min_dim/keepdim", lambda t, x: x.min(0, True), [distinct(3, 4)]),
    Case("maximum/max", lambda t, x, y: (t.max(x, y), x.max(other=y)), [distinct(3, 4), normal(4, scale=5.01)]),
    Case("minimum/min", lambda t, x, y: (t.min(x, y), x.min(y)), [distinct(3, 4), normal(4, scale=5.01)]),
    Case("amax", lambda t, x: (t.amax(x), x.amax(1), x.amax((0, 1), keepdim=True)), [distinct(3, 4)], integer=True),
    Case("amin", lambda t, x: (t.amin(x), x.amin(-1), x.amin((0, 1), keepdim=True)), [distinct(3, 4)], integer=True),
    Case("aminmax", lambda t, x: (t.aminmax(x), x.aminmax(dim=1, keepdim=True)), [distinct(3, 4)], integer=True),
    Case(
        "argmax",
        lambda t, x: (t.argmax(x), x.argmax(1), x.argmax(0, keepdim=True), x.argmax(keepdim=True)),
        [TIES],
        differentiable=False,
    ),
    Case(
        "argmin",
        lambda t, x: (t.argmin(x), x.argmin(-1), x.argmin(dim=1, keepdim=True)),
        [TIES],
        differentiable=False,
    ),
    Case("argmax/nan", lambda t, x: (x.argmax(), x.argmax(1), x.argmin(1)), [NANS], differentiable=False),
    Case("median_all", lambda t, x: t.median(x), [distinct(3, 4)]),
    Case("median_all/nan", lambda t, x: x.median(), [NANS], differentiable=False),
    Case("median_dim", lambda t, x: (t.median(x, 1), x.median(0, keepdim=True)), [distinct(3, 4)]),
    Case("median_dim/nan", lambda t, x: x.median(1), [NANS], differentiable=False),
    Case("median_dim/0-d", lambda t, x: x.median(0), [normal()]),
    Case("nanmedian_all", lambda t, x: t.nanmedian(x), [distinct(3, 4)]),
    Case("nanmedian_all/nan", lambda t, x: x.nanmedian(), [NANS], differentiable=False),
    Case("nanmedian_dim", lambda t, x: t.nanmedian(x, 1, True), [distinct(3, 4)]),
    Case("nanmedian_dim/nan", lambda t, x: x.nanmedian(1).values, [NANS], differentiable=False),
    Case("mode", lambda t, x: (t.mode(x), x.mode(0, keepdim=True)), [distinct(3, 4)]),
    Case("mode/ties", lambda t, x: x.mode(1), [TIES], differentiable=False),
    Case("quantile", lambda t, x: (t.quantile(x, 0.3), x.quantile(0.5, dim=1)), [distinct(3, 4)], dtypes=EXACT),
    Case(
        "quantile/several",
        lambda t, x, q: x.quantile(q, 1, True),
        [distinct(3, 4), uniform(2, low=0.4, high=0.6)],
        EXACT,
    ),
    Case("quantile/nearest", lambda t, x: x.quantile(0.3, 0, interpolation="nearest"), [distinct(3, 4)], EXACT),
    Case("quantile/midpoint", lambda t, x: x.quantile(0.3, 0, interpolation="midpoint"), [distinct(3, 4)], EXACT),
    Case("quantile/nan", lambda t, x: x.quantile(0.3, 1), [NANS], EXACT, differentiable=False),
    Case("nanquantile", lambda t, x: t.nanquantile(x, 0.3, 1), [distinct(3, 4)], dtypes=EXACT),
    Case(
        "nanquantile/nan", lambda t, x: (x.nanquantile(0.3, 1), x.nanquantile(0.7)), [NANS], EXACT, differentiable=False
    ),
]
