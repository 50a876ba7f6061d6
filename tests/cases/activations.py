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
    Case("relu/0-d", lambda t, x: t.relu(x), [away_from()]),
    Case("sigmoid", lambda t, x: t.sigmoid(x), [normal(3, 4, scale=3)], integer=True, tolerance=HALF),
    functional("silu", "silu"),
    functional("silu/0-d", "silu", normal()),
    functional("gelu", "gelu"),
    functional("gelu/0-d", "gelu", normal()),
    functional("gelu/tanh", "gelu", arguments={"approximate": "tanh"}),
    functional("softplus", "softplus"),
    functional("softplus/steep", "softplus", normal(3, 4, scale=3), arguments={"beta": 2, "threshold": 3}),
    functional("leaky_relu", "leaky_relu"),
    functional("leaky_relu/steep", "leaky_relu", arguments={"negative_slope": -1.5}),
    functional("elu", "elu", arguments={"alpha": 1.5}),
    functional("elu/selu", "selu"),
    functional("celu", "celu", arguments={"alpha": 1.5}),
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
    functional("logsigmoid", "logsigmoid", normal(3, 4, scale=4)),
    functional("true_divide/softsign", "softsign"),
    functional("sub/tanhshrink", "tanhshrink"),
    functional("softshrink", "softshrink", away_from(3, 4, points=(-0.5, 0.5))),
    functional("hardshrink", "hardshrink", away_from(3, 4, points=(-0.5, 0.5))),
    functional("threshold", "threshold", away_from(3, 4, points=(0.2,)), arguments={"threshold": 0.2, "value": 3.0}),
    functional("glu", "glu", normal(3, 4)),
    functional("glu/dim", "glu", normal(2, 3, 4), arguments={"dim": 0}),
    Case("prelu", lambda t, x, w: t.nn.functional.prelu(x, w), [away_from(3, 4), normal(4)], tolerance=HALF),
    Case("prelu/one", lambda t, x, w: t.nn.functional.prelu(x, w), [away_from(3, 4), normal(1)], tolerance=HALF),
    Case("prelu/0-d", lambda t, x, w: t.prelu(x, w), [away_from(4), normal()], tolerance=HALF),
]
