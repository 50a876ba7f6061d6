"""Activations that let an input through a gate: gelu, silu, mish, hardswish, glu."""

from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.elementwise import gated_activations, unary
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.memory_order import LAYOUTS, over_memory, row_major
from backlight.ops.dims import normalise_dim
from backlight.ops.number_operands import no_integers


@op(name="gelu", promote="float", dtype_error=no_integers("GeluKernelImpl"), tangent="symmetric")
def gelu_of(xp, input: Array, approximate: str):
    """input · Φ(input), or its approximation by tanh."""
    return gated_activations.gelu(input) if approximate == "none" else gated_activations.gelu_tanh(input)


gelu_of.derivative("input", formula="grad · (Φ(input) + input · φ(input)), or that of the approximation")(
    lambda grad, input, approximate, ops: ops.gelu_backward(grad, input, approximate)
)


@op(tangent="symmetric")
def gelu_backward(xp, arrived: Array, input: Array, approximate: str):
    """arrived · gelu′(input)."""
    return (
        gated_activations.gelu_gradient(arrived, input)
        if approximate == "none"
        else gated_activations.gelu_tanh_gradient(arrived, input)
    )


gelu_backward.derivative("arrived", formula="grad · gelu′(input)")(
    lambda grad, input, approximate, ops: ops.gelu_backward(grad, input, approximate)
)


@gelu_backward.derivative("input", formula="grad · arrived · gelu″(input); gelu″ is φ(input) · (2 − input²)")
def gelu_backward_input(grad: Array, arrived: Array, input: Array, approximate: str, ops):
    if approximate != "none":
        return grad * arrived * _tanh_form_bend(input, ops)
    return grad * arrived * (ops.exp(input * input * -0.5) * (2 - input * input) * gated_activations.DENSITY_AT_0)


def _tanh_form_bend(x: Array, ops):
    """The second derivative of x · s(b), s the sigmoid and b = √(8/π) · (x + 0.044715 x³)."""
    square = x * x
    opened = ops.sigmoid(x * (square * gated_activations.TANH_CUBE + 1) * (2 * gated_activations.TANH_SLOPE))
    slope = (square * (3 * gated_activations.TANH_CUBE) + 1) * (2 * gated_activations.TANH_SLOPE)
    bend = x * (12 * gated_activations.TANH_SLOPE * gated_activations.TANH_CUBE)
    return opened * (1 - opened) * (slope * 2 + x * bend + x * slope * slope * (1 - opened * 2))


def gelu(input: TensorState, approximate: str = "none"):
    """Return x · Φ(x), Φ the distribution function of the standard normal; "tanh" approximates it.

    Raises:
        RuntimeError: `approximate` is neither "none" nor "tanh".

    Source: D. Hendrycks and K. Gimpel, "Gaussian Error Linear Units", 2016, arXiv:1606.08415.
    """
    if approximate not in ("none", "tanh"):
        raise ShapeError("approximate argument must be either none or tanh.")
    return gelu_of(input, approximate)


@op(promote="float", dtype_error=no_integers("silu_cpu"), tangent="symmetric", complex="holomorphic")
def silu(xp, input: Array):
    """input · sigmoid(input)."""
    return gated_activations.silu(input) if input.flags.c_contiguous else over_memory(input, gated_activations.silu)


silu.derivative("input", formula="grad · s · (1 + input · (1 − s)), s = sigmoid(input)")(
    lambda grad, input, ops: ops.silu_backward(grad, input)
)


@op(node="MulBackward0", tangent="symmetric", complex="holomorphic")
def silu_backward(xp, arrived: Array, input: Array):
    """arrived · s · (1 + input · (1 − s)), s = sigmoid(input)."""
    return gated_activations.silu_gradient(arrived, input)


silu_backward.derivative("arrived", formula="grad · silu′(input)")(
    lambda grad, input, ops: ops.silu_backward(grad, input)
)


@silu_backward.derivative("input", formula="grad · arrived · s · (1 − s) · (2 + input · (1 − 2 s))")
def silu_backward_input(grad: Array, arrived: Array, input: Array, ops):
    opened = ops.sigmoid(input)
    return grad * arrived * (opened * (1 - opened) * (input * (1 - opened * 2) + 2))


@op(promote="float", dtype_error=no_integers("mish_cpu"), tangent="symmetric")
def mish(xp, input: Array):
    """input · tanh(softplus(input))."""
    x = widened(input)
    return rounded(x * xp.tanh(xp.log1p(xp.exp(x))), input.dtype)


@mish.derivative("input", formula="grad · (t + input · (1 − t²) · sigmoid(input)), t = tanh(softplus(input))")
def mish_input(grad: Array, input: Array, ops):
    t = ops.tanh(ops.log1p(ops.exp(input)))
    return grad * (t + input * ops.sigmoid(input) * (1 - t * t))


@op(promote="float", dtype_error=no_integers("hardswish_cpu"), tangent="symmetric")
def hardswish(xp, input: Array):
    """input · hardsigmoid(input)."""
    return unary.hardswish(input)


hardswish.derivative("input", formula="grad · (input / 3 + ½) within ±3, else grad above and 0 below")(
    lambda grad, input, ops: ops.hardswish_backward(grad, input)
)


@op(tangent="symmetric")
def hardswish_backward(xp, arrived: Array, input: Array):
    """arrived · (input / 3 + ½) within ±3, else what arrived above and 0 below."""
    return unary.hardswish_gradient(arrived, input)


hardswish_backward.derivative("arrived", formula="grad · (input / 3 + ½) within ±3, else grad above and 0 below")(
    lambda grad, input, ops: ops.hardswish_backward(grad, input)
)
hardswish_backward.derivative("input", formula="grad · arrived / 3 where −3 < input < 3, else 0")(
    lambda grad, arrived, input, ops: ops.kept(grad * arrived / 3, (input > -3) & (input < 3))
)


@op(name="glu", promote="float", dtype_error=no_integers("glu_cpu"), layout="own")
def gated(xp, input: Array, dim: int):
    """The first half of the input along `dim`, times the sigmoid of the second."""
    first, second = xp.split(widened(input), 2, dim)
    out = rounded(first / (1 + xp.exp(-second)), input.dtype)
    return out if row_major(out, input) else LAYOUTS["elementwise"](out, first, second)


@gated.derivative("input", formula="(grad · s, grad · first · s · (1 − s)), s = sigmoid(second)")
def gated_input(grad: Array, input: Array, dim: int, ops):
    size = input.shape[dim] // 2
    first, second = ops.slice(input, dim, 0, size), ops.slice(input, dim, size, 2 * size)
    opened = ops.sigmoid(second)
    return ops.cat((grad * opened, grad * first * (opened * (1 - opened))), dim)


def glu(input: TensorState, dim: int = -1):
    """Return the first half of the input along `dim`, times the sigmoid of the second.

    Raises:
        RuntimeError: the dim has an odd size, or the tensor has none.
    """
    if input.ndim == 0:
        raise ShapeError("glu does not support scalars because halving size must be even")
    dim = normalise_dim(dim, input.ndim)
    if input.shape[dim] % 2:
        raise ShapeError(
            f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}; cut it with narrow"
        )
    return gated(input, dim)
