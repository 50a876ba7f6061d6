"""Exponentials, logarithms, trigonometric and hyperbolic functions."""

from case import Case, away_from, given, normal, uniform

HALF = {"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1)}
POSITIVE = uniform(3, 4, low=0.2, high=3)


def unary(name, draw=None, **options):
    return Case(name, lambda t, x: getattr(t, name.split("/")[0])(x), [draw or normal(3, 4)], **options)


CASES = [
    unary("exp", integer=True),
    unary("exp/0-d", normal()),
    unary("exp2"),
    unary("expm1"),
    unary("log", POSITIVE),
    unary("log2", POSITIVE),
    unary("log10", POSITIVE),
    unary("log1p", uniform(3, 4, low=-0.7, high=3)),
    unary("sin", integer=True),
    unary("cos", integer=True),
    unary("tan", uniform(3, 4, low=-1.2, high=1.2)),
    unary("asin", uniform(3, 4, low=-0.9, high=0.9)),
    unary("acos", uniform(3, 4, low=-0.9, high=0.9)),
    unary("atan"),
    Case("atan2", lambda t, x, y: t.atan2(x, y), [normal(3, 4), normal(4)]),
    unary("sinh"),
    unary("cosh"),
    unary("tanh", integer=True),
    unary("tanh/0-d", normal()),
    unary("tanh/nothing", normal(0, 3)),
    unary("asinh"),
    unary("acosh", uniform(3, 4, low=1.2, high=3)),
    unary("atanh", uniform(3, 4, low=-0.8, high=0.8)),
    unary("deg2rad", integer=True),
    unary("rad2deg"),
    unary("sinc", away_from(3, 4), tolerance=HALF),
    unary("sinc/at 0", given([0.0, 1.5, -0.01], differentiable=True), tolerance=HALF, second=False),
    Case(
        "sinc_slope",
        lambda t, x: t.autograd.grad(t.sinc(x).sum(), x, create_graph=True)[0] if x.requires_grad else x,
        [given([0.4, 1.5, -2.2], differentiable=True)],
        tolerance=HALF,
    ),
]
