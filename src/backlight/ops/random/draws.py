"""Random numbers as part of a graph: samples are not differentiable in their parameters, whose gradients are 0."""

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.sizes import Shape


@op(node="BernoulliBackward0", tangent="symmetric", layout="rows")
def drawn_bernoulli(xp, input: Array, numbers: np.ndarray):
    """The numbers drawn, 1 with the probabilities in `input`."""
    return numbers


@op(node="PoissonBackward0", tangent="symmetric", layout="rows")
def drawn_poisson(xp, input: Array, numbers: np.ndarray):
    """The counts drawn, with the rates in `input`."""
    return numbers


@op(node="NormalBackward1", tangent="symmetric", complex="linear", layout="rows")
def drawn_normal_of_means(xp, input: Array, numbers: np.ndarray):
    """The numbers drawn, with the means in `input`."""
    return numbers


@op(node="NormalBackward2", tangent="symmetric", complex="linear", layout="rows")
def drawn_normal_of_stds(xp, input: Array, numbers: np.ndarray):
    """The numbers drawn, with the standard deviations in `input`."""
    return numbers


for _one in (drawn_bernoulli, drawn_poisson, drawn_normal_of_means, drawn_normal_of_stds):

    @_one.derivative("input", formula="0")
    def drawn_input(grad: Array, input_shape: Shape, ops):
        return ops.new_zeros(grad, input_shape)


@op(node="NormalBackward3", tangent="symmetric", complex="linear", layout="rows")
def drawn_normal(xp, input: Array, std: Array, numbers: np.ndarray):
    """The numbers drawn, with means and standard deviations."""
    return numbers


drawn_normal.derivative("input", formula="0")(lambda grad, input_shape, ops: ops.new_zeros(grad, input_shape))
drawn_normal.derivative("std", formula="0")(lambda grad, std_shape, ops: ops.new_zeros(grad, std_shape))
