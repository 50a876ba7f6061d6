"""Softmax and its relatives."""

import warnings

from backlight.codegen.declaration import Array, op
from backlight.dtypes import dtype, from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import UnsupportedError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.nn import softmax as softmax_kernels
from backlight.ops.dims import normalise_dim
from backlight.ops.number_operands import no_integers
from backlight.ops.type_promotion import is_float

__all__ = ["_log_softmax_backward_data", "_safe_softmax", "_softmax_backward_data", "log_softmax", "softmax"]


def softmax(input: TensorState, dim: int, dtype: dtype | None = None):
    """Return exp(x) / Σ exp(x) along `dim`: positive numbers that add up to 1.

    Args:
        dtype: convert to this dtype first.
    """
    return softmax_along(input if dtype is None else input.to(dtype), dim)


@op(name="softmax", tangent="symmetric", layout="rows")
def softmax_along(xp, input: Array, dim: int):
    """Exponentials divided by their sum along `dim`."""
    check_float(input, "softmax_lastdim_kernel_impl")
    return rounded(softmax_kernels.softmax(widened(input), normalise_dim(dim, input.ndim)), input.dtype)


softmax_along.derivative("input", formula="out · (grad − Σ grad · out)")(
    lambda grad, out, dim, ops: ops._softmax_backward_data(grad, out, dim)
)


@op(dtype_error=no_integers("softmax_backward_lastdim_kernel_impl"), layout="rows")
def _softmax_backward_data(xp, grad_output: Array, output: Array, dim: int, input_dtype: object = None):
    """Return softmax's gradient, `output` being its result."""
    wide = softmax_kernels.softmax_gradient(widened(grad_output), widened(output), normalise_dim(dim, output.ndim))
    return rounded(wide, output.dtype)


_softmax_backward_data.derivative("grad_output", formula="output · (grad − Σ grad · output)")(
    lambda grad, output, dim, ops: ops._softmax_backward_data(grad, output, dim)
)


@_softmax_backward_data.derivative(
    "output", formula="grad · (grad_output − Σ grad_output · output) − grad_output · Σ grad · output"
)
def _softmax_backward_data_output(grad: Array, grad_output: Array, output: Array, dim: int, ops):
    first = grad * (grad_output - (grad_output * output).sum(dim, keepdims=True))
    return first - grad_output * (grad * output).sum(dim, keepdims=True)


def _safe_softmax(input: TensorState, dim: int, dtype: dtype | None = None):
    """Return softmax along `dim`, with 0 instead of NaN where all of a row is −∞."""
    return safe_softmax_along(input if dtype is None else input.to(dtype), dim)


@op(name="_safe_softmax", layout="rows")
def safe_softmax_along(xp, input: Array, dim: int):
    """Exponentials divided by their sum along `dim`, 0 where all are −∞."""
    check_float(input, "softmax_lastdim_kernel_impl")
    dim = normalise_dim(dim, input.ndim)
    found = softmax_kernels.softmax(widened(input), dim)
    empty = xp.logical_and.reduce(input == -xp.inf, dim, keepdims=True) if input.ndim else input == -xp.inf
    return rounded(xp.where(empty, found.dtype.type(0), found), input.dtype)


safe_softmax_along.derivative("input", formula="out · (grad − Σ grad · out)")(
    lambda grad, out, dim, ops: ops._softmax_backward_data(grad, out, dim)
)


def log_softmax(input: TensorState, dim: int, dtype: dtype | None = None):
    """Return the logarithm of softmax along `dim`, computed without taking the logarithm of small numbers.

    Args:
        dtype: convert to this dtype first.
    """
    return log_softmax_along(input if dtype is None else input.to(dtype), dim)


@op(name="log_softmax", layout="rows")
def log_softmax_along(xp, input: Array, dim: int):
    """Numbers less the logarithm of the sum of their exponentials along `dim`."""
    check_float(input, "log_softmax_lastdim_kernel_impl")
    return rounded(softmax_kernels.log_softmax(widened(input), normalise_dim(dim, input.ndim)), input.dtype)


log_softmax_along.derivative("input", formula="grad − exp(out) · Σ grad")(
    lambda grad, out, dim, ops: ops._log_softmax_backward_data(grad, out, dim)
)
log_softmax_along.tangent("input")(
    lambda tangent, out, dim, ops: tangent - (ops.exp(out) * tangent).sum(dim, keepdim=True)
)


@op(layout="rows")
def _log_softmax_backward_data(xp, grad_output: Array, output: Array, dim: int, input_dtype: object = None):
    """Return log_softmax's gradient, `output` being its result."""
    wide = softmax_kernels.log_softmax_gradient(widened(grad_output), widened(output), normalise_dim(dim, output.ndim))
    return rounded(wide, output.dtype)


_log_softmax_backward_data.derivative("grad_output", formula="grad − Σ exp(output) · grad")(
    lambda grad, output, dim, ops: grad - (grad * ops.exp(output)).sum(dim, keepdims=True)
)
_log_softmax_backward_data.derivative("output", formula="−grad · exp(output) · Σ grad_output")(
    lambda grad, grad_output, output, dim, ops: -grad * ops.exp(output) * grad_output.sum(dim, keepdims=True)
)


def check_float(array: Array, kernel: str) -> None:
    """Raise PyTorch's error for an array that is not floating point."""
    if not is_float(array.dtype):
        raise UnsupportedError(
            f"\"{kernel}\" not implemented for '{from_numpy_dtype(array.dtype).old_name}'; convert the input with "
            ".float()"
        )


def implicit_dim(name: str, ndim: int) -> int:
    """Warn as PyTorch does that `dim` was left out, and return the one that is then taken."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1
