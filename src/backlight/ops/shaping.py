"""Views and copies that change a shape."""

from backlight.ops.declare import op

__all__ = []


@op(view=True)
def alias(xp, input):
    """The same tensor again, as a view."""
    return input[...]


@alias.derivative("input", formula="grad")
def alias_input(grad):
    return grad


@op(view=True)
def expand(xp, input, size: tuple):
    """Repeat sizes of 1 without copying."""
    return xp.broadcast_to(input, size)


@expand.derivative("input", formula="grad, summed over the repeated dims")
def expand_input(grad, input_shape, ops):
    return ops.sum_to_size(grad, input_shape)
