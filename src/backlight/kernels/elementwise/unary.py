"""Functions of one number, and their gradients: exponentials, logarithms, tanh, sigmoid, kinked lines.

A gradient is the incoming one times the derivative; the derivative is taken at the function's result where that is
simplest (tanh, sigmoid, relu), else at its argument. Half precision is computed in float32 and rounded once.
"""

import numpy as np

from backlight.kernels.elementwise.masked_choice import chosen, kept
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.native import native


@native
def exp(x: np.ndarray):
    """Return eˣ."""
    return np.exp(x)


@native
def expm1(x: np.ndarray):
    """Return eˣ − 1, exact near 0."""
    return np.expm1(x)


@native
def log(x: np.ndarray):
    """Return the natural logarithm."""
    return np.log(x)


@native
def log1p(x: np.ndarray):
    """Return log(1 + x), exact near 0."""
    return np.log1p(x)


@native
def tanh(x: np.ndarray):
    """Return the hyperbolic tangent."""
    return np.tanh(x)


@native
def tanh_gradient(grad: np.ndarray, out: np.ndarray):
    """Return grad · (1 − out²)."""
    return rounded(widened(grad) - widened(grad) * (widened(out) * out), grad.dtype)


@native
def sigmoid(x: np.ndarray):
    """Return 1 / (1 + e⁻ˣ)."""
    return rounded(1 / (1 + np.exp(-widened(x))), x.dtype)


@native
def sigmoid_gradient(grad: np.ndarray, out: np.ndarray):
    """Return grad · out · (1 − out)."""
    return rounded(grad * ((1 - widened(out)) * out), grad.dtype)


@native
def logsigmoid(x: np.ndarray):
    """Return log(sigmoid(x)), without overflow."""
    wide = widened(x)
    return rounded(np.minimum(wide, 0) - np.log1p(np.exp(-np.absolute(wide))), x.dtype)


@native
def logsigmoid_gradient(grad: np.ndarray, x: np.ndarray):
    """Return grad · sigmoid(−x)."""
    return rounded(grad * sigmoid(-widened(x)), grad.dtype)


@native
def softplus(x: np.ndarray, beta: float, threshold: float):
    """Return log(1 + exp(beta · x)) / beta; x itself where beta · x > threshold."""
    wide = widened(x)
    scaled = wide * beta
    bent = np.log1p(np.exp(np.minimum(scaled, threshold))) / beta
    return rounded(chosen(scaled > threshold, wide, bent), x.dtype)


@native
def softplus_gradient(grad: np.ndarray, x: np.ndarray, beta: float, threshold: float):
    """Return grad · sigmoid(beta · x); grad where beta · x > threshold."""
    scaled, wide = widened(x) * beta, widened(grad)
    return rounded(chosen(scaled > threshold, wide, wide * sigmoid(scaled)), grad.dtype)


@native
def relu(x: np.ndarray):
    """Return x where it is positive, else 0."""
    return np.maximum(x, x.dtype.type(0))


@native
def relu_gradient(grad: np.ndarray, out: np.ndarray):
    """Return grad where out > 0, else 0; grad too where out is NaN."""
    return kept(grad, ~(out <= 0))


@native
def leaky_relu(x: np.ndarray, negative_slope: float):
    """Return x where it is positive, else negative_slope · x."""
    return chosen(x > 0, x, rounded(widened(x) * negative_slope, x.dtype))


@native
def leaky_relu_gradient(grad: np.ndarray, x: np.ndarray, negative_slope: float):
    """Return grad where x > 0, else negative_slope · grad."""
    return chosen(x > 0, grad, rounded(widened(grad) * negative_slope, grad.dtype))


@native
def hardtanh(x: np.ndarray, least: float, most: float):
    """Return x brought between two numbers."""
    return np.minimum(np.maximum(x, x.dtype.type(least)), x.dtype.type(most))


@native
def hardtanh_gradient(grad: np.ndarray, x: np.ndarray, least: float, most: float):
    """Return grad where least < x < most or x is NaN, else 0."""
    return kept(grad, ~((x <= least) | (x >= most)))


@native
def hardsigmoid(x: np.ndarray):
    """Return x / 6 + ½, brought between 0 and 1."""
    return rounded(np.minimum(np.maximum(widened(x) + 3, 0), 6) / 6, x.dtype)


@native
def hardsigmoid_gradient(grad: np.ndarray, x: np.ndarray):
    """Return grad / 6 where −3 < x < 3, else 0."""
    return kept(rounded(widened(grad) / 6, grad.dtype), (x > -3) & (x < 3))


@native
def hardswish(x: np.ndarray):
    """Return x · hardsigmoid(x)."""
    wide = widened(x)
    return rounded(wide * np.minimum(np.maximum(wide + 3, 0), 6) / 6, x.dtype)


@native
def hardswish_gradient(grad: np.ndarray, x: np.ndarray):
    """Return grad · (x / 3 + ½) where −3 < x < 3, grad above and 0 below."""
    wide, arrived = widened(x), widened(grad)
    return rounded(kept(chosen(wide < 3, arrived * (wide / 3 + 0.5), arrived), ~(wide <= -3)), grad.dtype)


@native
def softshrink(x: np.ndarray, width: float):
    """Return x moved towards 0 by a width, 0 within that of it."""
    return x - np.minimum(np.maximum(x, x.dtype.type(-float(width))), x.dtype.type(width))


@native
def hardshrink(x: np.ndarray, width: float):
    """Return x, and 0 where it lies within a width of 0."""
    return kept(x, ~((x >= -float(width)) & (x <= width)))


@native
def shrink_gradient(grad: np.ndarray, x: np.ndarray, width: float):
    """Return grad, and 0 where x lies within a width of 0."""
    return kept(grad, ~((x >= -float(width)) & (x <= width)))


@native
def elu(x: np.ndarray, alpha: float, scale: float, input_scale: float):
    """Return scale · x where it is positive, else scale · alpha · (exp(input_scale · x) − 1)."""
    wide = widened(x)
    below = np.expm1(np.minimum(wide, 0) * input_scale) * (alpha * scale)
    return rounded(np.maximum(wide, 0) * scale + below, x.dtype)


@native
def elu_gradient(grad: np.ndarray, x: np.ndarray, alpha: float, scale: float, input_scale: float):
    """Return scale · grad where x > 0, else grad · alpha · scale · input_scale · exp(input_scale · x)."""
    wide, arrived = widened(x), widened(grad)
    bent = arrived * (np.exp(np.minimum(wide, 0) * input_scale) * (alpha * scale * input_scale))
    return rounded(chosen(wide <= 0, bent, arrived * scale), grad.dtype)
