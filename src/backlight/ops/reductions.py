"""Reductions: sums, means, extremes."""

from backlight.ops.declare import op

__all__ = []


@op(name="sum_all", node="SumBackward0")
def sum_all(xp, input):
    return input.sum()


@sum_all.derivative("input", formula="grad, repeated over the shape of input")
def sum_all_input(grad, input_shape, ops):
    return ops.expand(grad, input_shape)
