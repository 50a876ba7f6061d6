"""Pooling: the largest element, the mean or a norm of each window.

NOTE [Pooling over one dim]
As in PyTorch, one dim is pooled as a plane of height 1, by the op for two dims.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.nn import pooling
from backlight.ops.nn.pooling_sizes import Windows, check_dims, checked_places, numbers_of, windows_of
from backlight.ops.number_operands import no_kernel, require_floats
from backlight.sizes import Shape

__all__ = ["avg_pool1d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool3d"]


LARGEST = {
    "outputs": 2,
    "differentiable": (0,),
    "residuals": ("places",),
    "zero_derivative": ("input",),
}  # options of the ops
LAYOUT_OF_DIMS = {2: "suggested", 3: "rows"}  # of all but max_pool3d


def stacked(array: Array, dims: int):
    """Return an array with exactly two dims before those pooled over."""
    return array if array.ndim == dims + 2 else array.reshape((1, *array.shape))


def largest_as(found: Sequence[Array], input: Array, dims: int):
    """Return the largest elements, their indices and their flat places, with the input's dims and dtype."""
    values, indices, places = found
    if input.ndim != dims + 2:
        values, indices, places = values[0], indices[0], places[0]
    return (rounded(values, input.dtype), indices), places


@op(node="MaxPool2DWithIndicesBackwardBackward0", tangent="linear", layout="suggested")
def add_at_places(xp, input: Array, places: Array, sizes: tuple, overlap: bool):
    """Zeros with elements added at flat places; without `overlap` no place is named twice."""
    if overlap or input.dtype.kind == "f":
        return pooling.added_at(input, places, sizes)
    out = xp.zeros(sizes, input.dtype)
    out.reshape(-1)[places] = input
    return out


add_at_places.derivative("input", formula="grad at the places")(
    lambda grad, places, ops: ops.taken_at_places(grad, places)
)


@op(node="GatherBackward0", tangent="linear")
def taken_at_places(xp, input: Array, places: Array):
    """The elements at flat places."""
    return xp.take(input, places)


taken_at_places.derivative("input", formula="grad added at the places")(
    lambda grad, places, input_shape, ops: ops.add_at_places(grad, places, input_shape, True)
)


def _declare_max(dims: int):
    """Declare the op for planes or volumes; they differ by their names only."""

    @op(name=f"max_pool{dims}d_with_indices", node=f"MaxPool{dims}DWithIndicesBackward0", **LARGEST, layout="suggested")
    def max_pool(xp, input: Array, windows: Windows):
        """Return the largest element of each window, and where in its plane it lies."""
        stack = stacked(input, dims)
        found = pooling.largest_in_windows(widened(stack), windows, windows.places(stack.shape[2:]))
        return largest_as(found, input, dims)

    @max_pool.derivative("input", formula="grad at the largest elements, 0 elsewhere")
    def max_pool_input(grad: Array, places: Array, input_shape: Shape, windows: Windows, ops):
        return ops.add_at_places(grad, places, input_shape, windows.overlap)

    return max_pool


_MAX = {2: _declare_max(2), 3: _declare_max(3)}


def _largest(dims: int, input, kernel_size, stride, padding, dilation, ceil_mode, *, with_places: bool = True):
    """Return the largest elements of windows and where they are."""
    name = f"max_pool{dims}d"
    shape, kind = input._data.shape, input._data.dtype
    if kind.kind == "b":
        raise no_kernel(f"max_pool{max(dims, 2)}d", kind, "convert the input with .float()")
    windows = windows_of(name, dims, kernel_size, stride, padding, dilation, ceil_mode, with_places=with_places)
    check_dims(name, shape, dims)
    checked_places(name, windows, shape)
    if dims > 1:
        return _MAX[dims](input, windows)
    values, indices = _MAX[2](input.unsqueeze(-2), as_plane(windows))
    return values.squeeze(-2), indices.squeeze(-2)


def as_plane(windows: Windows) -> Windows:
    """Return windows over one dim as windows over planes of height 1."""
    kernel, stride, padding, dilation = windows.kernel, windows.stride, windows.padding, windows.dilation
    return Windows((1, *kernel), (1, *stride), (0, *padding), (1, *dilation), windows.ceil_mode)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Return the largest element of each window over the last dim.

    Shapes: input (batch, channels, length) or without batch -> (batch, channels, windows)

    Args:
        stride: from window to window, `kernel_size` by default.
        padding: how far windows may reach over both ends.
        ceil_mode: let a last window reach over the end.
        return_indices: return (values, places) with where along the input each value lies.

    Raises:
        RuntimeError: sizes or options do not fit.
    """
    if not return_indices and input._edge is None:
        require_floats("max_pool1d_impl", input)
    both = _largest(1, input, kernel_size, stride, padding, dilation, ceil_mode, with_places=return_indices)
    return both if return_indices else both[0]


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Return the largest element of each window over the last two dims; see `max_pool1d`."""
    both = _largest(2, input, kernel_size, stride, padding, dilation, ceil_mode)
    return both if return_indices else both[0]


@public_function
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Return the largest element of each window over the last three dims; see `max_pool1d`."""
    both = _largest(3, input, kernel_size, stride, padding, dilation, ceil_mode)
    return both if return_indices else both[0]


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Return the largest element of each window over the last dim, and where it lies."""
    return _largest(1, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True
):
    """Return the largest element of each window over the last two dims, and where in its plane it lies."""
    return _largest(2, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True
):
    """Return the largest element of each window over the last three dims, and where in its volume it lies."""
    return _largest(3, input, kernel_size, stride, padding, dilation, ceil_mode)


def _declare_mean(dims: int):
    """Declare the op for planes or volumes, and its derivative."""

    @op(
        name=f"avg_pool{dims}d",
        node=f"AvgPool{dims}DBackward0",
        tangent="linear",
        zero_derivative=("input",),
        layout=LAYOUT_OF_DIMS[dims],
    )
    def avg_pool(xp, input: Array, windows: Windows, count_include_pad: bool, divisor_override: int | None):
        """Return the mean of each window."""
        stack = widened(stacked(input, dims))
        places = windows.places(stack.shape[2:])
        out = pooling.means_in_windows(stack, windows, places, count_include_pad, divisor_override)
        return rounded(out if input.ndim == out.ndim else out[0], input.dtype)

    @avg_pool.derivative("input", formula="each window's grad / its size, added to all its elements")
    def avg_pool_input(
        grad: Array, input_shape: Shape, windows: Windows, count_include_pad: bool, divisor_override: int | None, ops
    ):
        back = getattr(ops, f"avg_pool{dims}d_backward")
        return back(grad, input_shape, windows, count_include_pad, divisor_override)

    @op(
        name=f"avg_pool{dims}d_backward",
        node=f"AvgPool{dims}DBackwardBackward0",
        tangent="linear",
        layout=LAYOUT_OF_DIMS[dims],
    )
    def avg_pool_backward(
        xp, grad_output, input_sizes: tuple, windows: Windows, count_include_pad: bool, divisor_override: int | None
    ):
        """Each window's gradient divided by its size and added to all its elements."""
        stack, sizes = widened(stacked(grad_output, dims)), input_sizes[len(input_sizes) - dims :]
        out = pooling.shared_in_windows(stack, windows, sizes, count_include_pad, divisor_override)
        return rounded(out.reshape(input_sizes), grad_output.dtype)

    @avg_pool_backward.derivative("grad_output", formula="the mean of grad over each window")
    def avg_pool_backward_grad_output(
        grad: Array, windows: Windows, count_include_pad: bool, divisor_override: int | None, ops
    ):
        return getattr(ops, f"avg_pool{dims}d")(grad, windows, count_include_pad, divisor_override)

    return avg_pool


_MEAN = {2: _declare_mean(2), 3: _declare_mean(3)}


def _mean(dims: int, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    name = f"avg_pool{dims}d"
    shape = input._data.shape
    windows = windows_of(name, dims, kernel_size, stride, padding, 1, ceil_mode)
    check_dims(name, shape, dims)
    if divisor_override == 0:
        raise ShapeError("divisor must be not zero; leave divisor_override out to divide by the windows' size")
    kind = input._data.dtype
    if kind.kind in "iub" and kind != np.int64:
        raise no_kernel(f"avg_pool{max(dims, 2)}d", kind, "convert the input with .float()")
    checked_places(name, windows, shape)
    options = (bool(count_include_pad), divisor_override)
    if dims > 1:
        return _MEAN[dims](input, windows, *options)
    return _MEAN[2](input.unsqueeze(-2), as_plane(windows), *options).squeeze(-2)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """Return the mean of each window over the last dim.

    Shapes: input (batch, channels, length) or without batch -> (batch, channels, windows)

    Args:
        count_include_pad: count the zeros of the padding as elements.

    Raises:
        RuntimeError: sizes or options do not fit.
    """
    return _mean(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Return the mean of each window over the last two dims; see `avg_pool1d`.

    Args:
        divisor_override: divide sums by this number instead of by the windows' size.
    """
    return _mean(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@public_function
def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Return the mean of each window over the last three dims; see `avg_pool2d`."""
    require_floats("avg_pool3d_out_frame", input, halves=False)
    return _mean(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _norm(dims: int, input: TensorState, norm_type: float, kernel_size: int, stride, ceil_mode: bool):
    kernel = numbers_of(f"lp_pool{dims}d", "kernel_size", kernel_size, dims)
    mean = _mean(dims, input.pow(norm_type), kernel, stride, 0, ceil_mode, True, None)
    return (mean.sign() * mean.abs().relu()).mul(prod(kernel)).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """Return (Σ x^p)^(1/p) of each window over the last dim, p = `norm_type`."""
    return _norm(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: TensorState, norm_type: float, kernel_size: int | Sequence[int], stride=None, ceil_mode: bool = False
):
    """Return (Σ x^p)^(1/p) of each window over the last two dims, p = `norm_type`."""
    return _norm(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """Return (Σ x^p)^(1/p) of each window over the last three dims, p = `norm_type`."""
    return _norm(3, input, norm_type, kernel_size, stride, ceil_mode)
