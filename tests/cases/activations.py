"""Activation functions."""

from case import Case, away_from, normal

HALF = {"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}


def functional(op, name, draw=None, **options):
    arguments = options.pop("arguments", {})
    return Case(
        op,
        lambda t, x: getattr(t.nn.functional, name)(x, **arguments),
        [draw or away_from(3, 4)],
        tolerance=options.pop("tolerance", HALF),
        **options,
    )


CASES = [
    Case("relu", lambda t, x: t.relu(x), [away_from(3, 4)]),
    Case("sigmoid", lambda t, x: t.sigmoid(x), [normal(3, 4)], integer=True, tolerance=HALF),
    functional("silu", "silu"),
    functional("gelu_exact", "gelu"),
    functional("gelu_by_tanh", "gelu", arguments={"approximate": "tanh"}),
    Case(
        "gelu_exact_slope",
        lambda t, x: t.autograd.grad(t.nn.functional.gelu(x).sum(), x, create_graph=True)[0] if x.requires_grad else x,
        [normal(3, 4)],
        tolerance=HALF,
    ),
    Case(
        "gelu_by_tanh_slope",
        lambda t, x: (
            t.autograd.grad(t.nn.functional.gelu(x, approximate="tanh").sum(), x, create_graph=True)[0]
            if x.requires_grad
            else x
        ),
        [normal(3, 4)],
        tolerance=HALF,
    ),
    functional("softplus", "softplus"),
    functional("softplus/steep", "softplus", normal(3, 4, scale=3), arguments={"beta": 2, "threshold": 3}),
    functional("leaky_relu", "leaky_relu"),
    functional("elu", "elu", arguments={"alpha": 1.5}),
    functional("elu/selu", "selu"),
    functional("celu_of", "celu", arguments={"alpha": 1.5}),
    functional("hardtanh", "hardtanh", away_from(3, 4, points=(-1, 1))),
    functional("hardtanh/relu6", "relu6", away_from(3, 4, points=(0, 6))),
    functional(
        "hardsigmoid",
        "hardsigmoid",
        away_from(3, 4, points=(-3, 3), scale=3),
        tolerance={**HALF, "float64": (1e-8, 1e-9)},  # PyTorch's constant 1/6 is a float32
    ),
    functional("hardswish", "hardswish", away_from(3, 4, points=(-3, 3), scale=3)),
    functional("mish", "mish"),
    functional("logsigmoid", "logsigmoid"),
    functional("true_divide/softsign", "softsign"),
    functional("sub/tanhshrink", "tanhshrink"),
    functional("softshrink", "softshrink", away_from(3, 4, points=(-0.5, 0.5))),
    functional("hardshrink", "hardshrink", away_from(3, 4, points=(-0.5, 0.5))),
    functional("threshold", "threshold", away_from(3, 4, points=(0.2,)), arguments={"threshold": 0.2, "value": 3.0}),
    functional("mul/glu", "glu", normal(3, 4)),
    Case("prelu_of", lambda t, x, w: t.nn.functional.prelu(x, w), [away_from(3, 4), normal(4)], tolerance=HALF),
    Case("prelu_of/one", lambda t, x, w: t.nn.functional.prelu(x, w), [away_from(3, 4), normal(1)], tolerance=HALF),
]
