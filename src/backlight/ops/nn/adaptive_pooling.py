"""Pooling to a given size, and the way back from the largest elements.

NOTE [Adaptive windows]
Window i of n over a dim of size s runs from ⌊i · s / n⌋ to ⌈(i + 1) · s / n⌉. A mean over a box is a mean over each dim
in turn, so adaptive means are one small matrix product a dim.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError, ValueProblem
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.memory_order import CHANNELS_LAST, format_strides, suggested_format
from backlight.kernels.nn import pooling
from backlight.ops.nn.pooling import LARGEST, LAYOUT_OF_DIMS, largest_as, stacked
from backlight.ops.nn.pooling_sizes import check_dims, check_unpooled, numbers_of
from backlight.ops.number_operands import no_kernel, require_floats
from backlight.sizes import Shape, check_storage

__all__ = ["adaptive_avg_pool1d", "adaptive_max_pool1d"]


def _wanted_sizes(
    name: str, output_size: int | Sequence[int | None], shape: Sequence[int], dims: int
) -> tuple[int, ...]:
    """Return the size of each dim pooled over; None keeps a size."""
    if output_size is None:
        return tuple(shape[-dims:])
    if isinstance(output_size, (tuple, list)) and dims > 1:
        sizes = shape[max(len(shape) - len(output_size), 0) :]
        output_size = [size if wanted is None else wanted for wanted, size in zip(output_size, sizes)]
    found = numbers_of(name, "output_size", output_size, dims)
    if min(found) < 0:
        if "max" in name:
            made = [*shape[:-dims], *[1] * (dims == 1), *found]
            raise ShapeError(f"Trying to create tensor with negative dimension {min(found)}: {made}")
        if dims == 1:  # PyTorch makes planes of it first
            name, found = "adaptive_avg_pool2d", (1, *found)
        wrong = ",".join(map(str, found)) if dims == 3 else ", ".join(map(str, found))
        wrong = wrong.replace(",", ", ", 1) if dims == 3 else wrong  # PyTorch writes {2, 2,-1}
        raise ShapeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {{{wrong}}}")
    return found


def _declare_mean(dims: int):
    """Declare the op for planes or volumes, and its derivative."""

    @op(
        name=f"adaptive_avg_pool{dims}d",
        node=f"AdaptiveAvgPool{dims}DBackward0",
        tangent="linear",
        zero_derivative=("input",),
        layout=LAYOUT_OF_DIMS[dims],
    )
    def adaptive_avg_pool(xp, input: Array, output_size: tuple):
        """Return the mean of each adaptive window."""
        out = pooling.means_in_bins(widened(stacked(input, dims)), output_size)
        return rounded(out.reshape(input.shape[: input.ndim - dims] + output_size), input.dtype)

    @adaptive_avg_pool.derivative("input", formula="each window's grad / its size, added to all its elements")
    def adaptive_avg_pool_input(grad: Array, input_shape: Shape, output_size: tuple, ops):
        return getattr(ops, f"adaptive_avg_pool{dims}d_backward")(grad, input_shape, output_size)

    @op(
        name=f"adaptive_avg_pool{dims}d_backward",
        node=f"AdaptiveAvgPool{dims}DBackwardBackward0",
        tangent="linear",
        layout=LAYOUT_OF_DIMS[dims],
    )
    def adaptive_avg_pool_backward(xp, grad_output: Array, input_sizes: tuple, output_size: tuple):
        """Each window's gradient divided by its size and added to all its elements."""
        stack, sizes = widened(stacked(grad_output, dims)), input_sizes[len(input_sizes) - dims :]
        return rounded(pooling.shared_in_bins(stack, sizes).reshape(input_sizes), grad_output.dtype)

    @adaptive_avg_pool_backward.derivative("grad_output", formula="the mean of grad over each window")
    def adaptive_avg_pool_backward_grad_output(grad: Array, output_size: tuple, ops):
        return getattr(ops, f"adaptive_avg_pool{dims}d")(grad, output_size)

    return adaptive_avg_pool


_MEAN = {2: _declare_mean(2), 3: _declare_mean(3)}


def _mean(dims: int, input: TensorState, output_size: int | Sequence[int | None]):
    name = f"adaptive_avg_pool{dims}d"
    shape, kind = input._data.shape, input._data.dtype
    if kind.kind in "iub":
        raise no_kernel(f"adaptive_avg_pool{max(dims, 2)}d", kind, "convert the input with .float()")
    check_dims(name, shape, dims, output_size)
    wanted = _wanted_sizes(name, output_size, shape, dims)
    if dims == 1:
        return _mean(2, input.unsqueeze(-2), (1, *wanted)).squeeze(-2)
    check_storage((*shape[:-dims], *wanted), kind.itemsize)
    if set(wanted) == {1}:
        return in_format_of(input, input.mean(tuple(range(-dims, 0)), keepdim=True))
    return _MEAN[dims](input, wanted)


def in_format_of(input: TensorState, made: TensorState) -> TensorState:
    """Return a new tensor of size 1 in space, restrided where the input's strides suggest channels last."""
    wanted, shape = suggested_format(input._data), made._data.shape
    return made.as_strided_(shape, format_strides(shape, wanted)) if wanted in CHANNELS_LAST else made


def adaptive_avg_pool1d(input: TensorState, output_size: int | Sequence[int]):
    """Return the means of `output_size` windows over the last dim.

    Shapes: input (batch, channels, length) or without batch -> (batch, channels, output_size)

    Raises:
        RuntimeError: the input has another number of dims, or is empty.
    """
    return _mean(1, input, output_size)


def adaptive_avg_pool2d(input: TensorState, output_size: int | Sequence[int | None]):
    """Return the means of windows over the last two dims, as many as `output_size` says; None keeps a size."""
    return _mean(2, input, output_size)


@public_function
def adaptive_avg_pool3d(input: TensorState, output_size: int | Sequence[int | None]):
    """Return the means of windows over the last three dims, as many as `output_size` says; None keeps a size."""
    return _mean(3, input, output_size)


def _declare_max(dims: int):
    """Declare the op for planes or volumes; they differ by their names only."""

    @op(
        name=f"adaptive_max_pool{dims}d",
        node=f"AdaptiveMaxPool{dims}DBackward0",
        **LARGEST,
        layout=LAYOUT_OF_DIMS[dims],
    )
    def adaptive_max_pool(xp, input: Array, output_size: tuple):
        """Return the largest element of each adaptive window, and where in its plane it lies."""
        return largest_as(pooling.largest_in_bins(widened(stacked(input, dims)), output_size), input, dims)

    @adaptive_max_pool.derivative("input", formula="grad at the largest elements, 0 elsewhere")
    def adaptive_max_pool_input(grad: Array, places: Array, input_shape: Shape, output_size: tuple, ops):
        return ops.add_at_places(grad, places, input_shape, True)

    return adaptive_max_pool


_MAX = {2: _declare_max(2), 3: _declare_max(3)}


def _largest(dims: int, input: TensorState, output_size: int | Sequence[int]):
    """Return the largest elements of adaptive windows and where they are."""
    name = f"adaptive_max_pool{dims}d"
    shape, kind = input._data.shape, input._data.dtype
    if kind.kind in "iub":
        raise no_kernel(f"adaptive_max_pool{max(dims, 2)}d", kind, "convert the input with .float()")
    check_dims(name, shape, dims, output_size)
    wanted = _wanted_sizes(name, output_size, shape, dims)
    check_storage((*shape[:-dims], *wanted), kind.itemsize)
    if dims > 1:
        return _MAX[dims](input, wanted)
    values, indices = _MAX[2](input.unsqueeze(-2), (1, *wanted))
    return values.squeeze(-2), indices.squeeze(-2)


def adaptive_max_pool1d(input: TensorState, output_size: int | Sequence[int]):
    """Return the largest elements of `output_size` windows over the last dim, and where along it they lie.

    Shapes: input (batch, channels, length) or without batch -> (batch, channels, output_size), twice

    Raises:
        RuntimeError: the input has another number of dims, or is empty.
    """
    return _largest(1, input, output_size)


def adaptive_max_pool2d(input: TensorState, output_size: int | Sequence[int | None], return_indices: bool = False):
    """Return the largest elements of windows over the last two dims, as many as `output_size` says."""
    both = _largest(2, input, output_size)
    return both if return_indices else both[0]


@public_function
def adaptive_max_pool3d(input: TensorState, output_size: int | Sequence[int | None], return_indices: bool = False):
    """Return the largest elements of windows over the last three dims, as many as `output_size` says."""
    both = _largest(3, input, output_size)
    return both if return_indices else both[0]


def _declare_unpool(dims: int):
    """Declare the op for planes or volumes; they differ by their names only."""

    @op(
        name=f"max_unpool{dims}d",
        node=f"MaxUnpool{dims}DBackward0",
        residuals=("places",),
        tangent="linear",
        layout=LAYOUT_OF_DIMS[dims],
    )
    def max_unpool(xp, input: Array, indices: Array, output_size: tuple):
        """Zeros with each element at the place in its plane that `indices` names."""
        plane = prod(output_size)
        check_storage((*input.shape[: input.ndim - dims], *output_size), input.itemsize)
        if indices.size and not 0 <= indices.min() <= indices.max() < plane:
            wrong = indices[(indices < 0) | (indices >= plane)][0]
            sizes = "x".join(map(str, output_size))
            raise ShapeError(f"Found an invalid max index: {wrong} (output volumes are of size {sizes})")
        places = pooling.flat_places(indices, dims, plane)
        out = xp.zeros(input.shape[: input.ndim - dims] + output_size, input.dtype)
        out.reshape(-1)[places] = input
        return out, places

    @max_unpool.derivative("input", formula="grad at the places")
    def max_unpool_input(grad: Array, places: Array, ops):
        return ops.taken_at_places(grad, places)

    return max_unpool


_UNPOOL = {2: _declare_unpool(2), 3: _declare_unpool(3)}


def _unpool(dims: int, input, indices, kernel_size, stride, padding, output_size):
    name = f"max_unpool{dims}d"
    shape = input._data.shape
    check_unpooled(shape, dims)
    if shape != indices._data.shape:
        added = [1] if dims == 1 else []  # PyTorch makes planes of it first
        raise ShapeError(
            f"Expected shape of indices to be same as that of the input tensor ({[*shape, *added]}) but got indices "
            f"tensor with shape: {[*indices._data.shape, *added]}"
        )
    if indices._data.dtype != np.int64:
        kind = from_numpy_dtype(indices._data.dtype).old_name
        raise ShapeError(f"elements in indices should be type int64 but got: {kind}")
    kernel = numbers_of(name, "kernel_size", kernel_size, dims)
    stride = kernel if stride is None else numbers_of(name, "stride", stride, dims)
    padding = numbers_of(name, "padding", padding, dims)
    plain = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(shape[-dims:], stride, kernel, padding))
    wanted = plain if output_size is None else _checked_output(output_size, plain, stride, dims)
    if dims > 1:
        return _UNPOOL[dims](input, indices, wanted)
    return _UNPOOL[2](input.unsqueeze(-1), indices.unsqueeze(-1), (*wanted, 1)).squeeze(-1)


def _checked_output(
    output_size: Sequence[int], plain: Sequence[int], stride: Sequence[int], dims: int
) -> tuple[int, ...]:
    found = tuple(output_size)
    found = found[2:] if len(found) == dims + 2 else found
    if len(found) != dims:
        raise ValueProblem(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(found)}'"
        )
    for dim, (one, size, step) in enumerate(zip(found, plain, stride)):
        if not size - step < one < size + step:
            raise ValueProblem(
                f'invalid output_size "{found}" (dim {dim} must be between {size - step} and {size + step})'
            )
    return found


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put the results of `max_pool1d` back where they came from, zeros elsewhere.

    Args:
        indices: what `max_pool1d` returned with `return_indices`.
        output_size: the size to give back, where the pooling leaves several possible.

    Raises:
        RuntimeError: `indices` has another shape than the input, or names a place that does not exist.
        ValueError: `output_size` could not have been pooled to this input.
    """
    require_floats("max_unpool2d", input)
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@public_function
def max_unpool2d(
    input: TensorState, indices: TensorState, kernel_size: int, stride=None, padding: int = 0, output_size=None
):
    """Put the results of `max_pool2d` back where they came from; see `max_unpool1d`."""
    require_floats("max_unpool2d", input)
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@public_function
def max_unpool3d(
    input: TensorState, indices: TensorState, kernel_size: int, stride=None, padding: int = 0, output_size=None
):
    """Put the results of `max_pool3d` back where they came from; see `max_unpool1d`."""
    require_floats("max_unpool3d", input)
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)
