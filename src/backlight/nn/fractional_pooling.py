"""`fractional_max_pool2d` and `fractional_max_pool3d`: sizes, random samples, and PyTorch's checks."""

from numbers import Number

from backlight.dispatch.dispatcher import public_function
from backlight.errors import ArgumentError, DimError, ShapeError, ValueProblem
from backlight.ops.nn.fractional_pooling import pool_fractionally
from backlight.tensor.random_factories import rand

_INTS = {2: "a single Int or tuple of Ints", 3: "a single Int or tuple of three Ints"}


def _tuple_of(name: str, option: str, value, dims: int) -> tuple:
    if isinstance(value, Number):
        return (value,) * dims
    if not isinstance(value, (tuple, list)):
        raise ArgumentError(f"{name}(): argument '{option}' must be tuple of numbers, not {type(value).__name__}")
    if len(value) != dims and (len(value) != 1 or dims == 3):
        raise ShapeError(f"{name}: {option} must either be {_INTS[dims]}; got {tuple(value)}")
    return tuple(value) * (dims // len(value))


def _pooled(dims: int, input, kernel_size, output_size, output_ratio, samples):
    name = f"fractional_max_pool{dims}d"
    if output_size is None and output_ratio is None:
        raise ValueProblem(f"{name} requires specifying either an output_size or an output_ratio")
    if input.ndim not in (dims + 1, dims + 2):
        if input.ndim <= dims:
            raise DimError(
                f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got "
                f"{-dims - 1})"
            )
        raise ShapeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(input.shape)}")
    if output_size is None:
        ratios = _tuple_of(name, "output_ratio", output_ratio, dims)
        output_size = tuple(int(size * ratio) for size, ratio in zip(input.shape[-dims:], ratios))
    if samples is None:
        batch = 1 if input.ndim == dims + 1 else input.shape[0]
        samples = rand(batch, input.shape[-dims - 1], dims, dtype=input.dtype)
    kernel = _tuple_of(name, "kernel_size", kernel_size, dims)
    return pool_fractionally(input, samples, kernel, _tuple_of(name, "output_size", output_size, dims))


@public_function
def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Return the maxima of windows over the last two dims, with random window positions.

    Shapes: input (batch, channels, height, width) or without batch -> (batch, channels, *output_size)

    Args:
        output_size: the number of windows along each dim.
        output_ratio: the output size relative to the input size, between 0 and 1.
        return_indices: return (values, indices), with the index of each value in its plane.

    Raises:
        ValueError: neither a size nor a ratio is given.
        RuntimeError: the windows do not fit the input.
    """
    both = _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]


@public_function
def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Return the maxima of windows over the last three dims; see `fractional_max_pool2d`."""
    both = _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]


def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Return the result of `fractional_max_pool2d`, and the index of each value in its plane."""
    return _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Return the result of `fractional_max_pool3d`, and the index of each value in its volume."""
    return _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)
