"""where, clamp, the larger and the smaller of two."""

from case import Case, away_from, booleans, distinct, given, normal

BOUNDS = [given([[-0.73, -0.52, 0.11, -0.2]], True), given([[0.37, -0.12, -0.3, 0.02]], True)]
TIED = [given([[0.0, 1.0, 2.0, -1.0]] * 3, True), given([[0.0, -1.0, 2.5, -1.0]], True)]
HALF = {"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1)}
LARGE = (70, 80)  # enough elements for choosing by bits

CASES = [
    Case("where", lambda t, c, x, y: t.where(c, x, y), [booleans(3, 4), normal(3, 4), normal(4)]),
    Case("where/number", lambda t, c, x: t.where(c, x, 0.5), [booleans(3, 1), normal(3, 4)]),
    Case("where/number first", lambda t, c, x: x.where(c, 0) + t.where(c, 2, x), [booleans(3, 1), normal(3, 4)]),
    Case("where/both numbers", lambda t, c: t.where(c, 1.0, 2.0), [booleans(3, 4)], differentiable=False),
    Case("where/places", lambda t, c: t.where(c), [booleans(3, 4)], differentiable=False),
    Case(
        "where/large",
        lambda t, c, x, y: t.where(c, x, y),
        [booleans(*LARGE), given([[float("nan"), float("inf"), -0.0, 1.0] * 20]), normal(*LARGE)],
        differentiable=False,
    ),
    Case("kept", lambda t, c, x: t.where(c, x, 0).square(), [booleans(3, 4), normal(3, 4)]),
    Case("maximum", lambda t, x, y: t.maximum(x, y), [normal(3, 4), normal(4)], integer=True),
    Case("maximum/0-d", lambda t, x, y: t.maximum(x, y), [normal(3, 4), normal()]),
    Case("larger_share", lambda t, x, y: t.maximum(x, y) - 2 * t.minimum(x, y), TIED, tolerance=HALF, second=False),
    Case("minimum", lambda t, x, y: t.minimum(x, y), [normal(3, 4), normal(4)]),
    Case("fmax", lambda t, x, y: t.fmax(x, y), [normal(3, 4), normal(4)]),
    Case("fmin", lambda t, x, y: t.fmin(x, y), [normal(3, 4), normal(4)]),
    Case("clamp_to_numbers", lambda t, x: t.clamp(x, -0.5, 0.5), [away_from(3, 4, points=(-0.5, 0.5))]),
    Case("clamp_to_numbers/min", lambda t, x: x.clamp(min=0.2), [away_from(3, 4, points=(0.2,))], integer=True),
    Case("clamp_to_numbers/max", lambda t, x: t.clip(x, max=1), [away_from(3, 4, points=(1,))], integer=True),
    Case("clamp_to_tensors", lambda t, x, low, high: t.clamp(x, low, high), [distinct(3, 4), *BOUNDS]),
    Case("clamp_to_tensors/min", lambda t, x, low: t.clamp(x, min=low), [normal(3, 4), normal(4)]),
    Case("clamp_to_tensors/max", lambda t, x, high: t.clamp(x, max=high), [normal(3, 4), normal(3, 1)]),
    Case("clamp_min_number", lambda t, x: t.clamp_min(x, 0.2), [away_from(3, 4, points=(0.2,))], integer=True),
    Case("clamp_max_number", lambda t, x: t.clamp_max(x, 0.2), [away_from(3, 4, points=(0.2,))], integer=True),
    Case("clamp_min_tensor", lambda t, x, low: t.clamp_min(x, low), [normal(3, 4), normal(4)]),
    Case("clamp_max_tensor", lambda t, x, high: t.clamp_max(x, high), [normal(3, 4), normal(4)]),
]
