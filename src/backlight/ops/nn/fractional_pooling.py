"""Fractional max pooling: the largest element of windows whose distances are drawn.

Source: Benjamin Graham: Fractional Max-Pooling, 2014, arXiv:1412.6071
"""

from math import prod

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.nn.pooling import flat_places
from backlight.ops.nn.pooling import LARGEST
from backlight.sizes import Shape

_NAMES = {2: ("height", "width"), 3: ("time", "height", "width")}


def _starts(samples: Array, size: int, kernel: int, count: int) -> np.ndarray:
    """Return where the windows along one dim start: (batch, channels) -> (batch, channels, count)."""
    numbers = np.arange(count)
    step = samples.dtype.type(size - kernel) / samples.dtype.type(max(count - 1, 1))
    drawn = samples[..., None]
    found = ((numbers + drawn).astype(samples.dtype) * step).astype(np.int64) - (drawn * step).astype(np.int64)
    return np.where(numbers == count - 1, size - kernel, found)


def _declare(dims: int):
    """Declare the op for planes or volumes; they differ by their names only."""

    @op(name=f"fractional_max_pool{dims}d", node=f"FractionalMaxPool{dims}DBackward0", **LARGEST)
    def fractional_max_pool(xp, input: Array, random_samples: Array, kernel_size: tuple, output_size: tuple):
        """Return the largest element of each window, and where in its plane it lies."""
        sizes = input.shape[-dims:]
        planes = input if input.ndim == dims + 2 else input.reshape((1, *input.shape))
        samples = random_samples[: len(planes)]
        order = range(dims) if dims == 3 else (1, 0)  # in planes the first number drawn is for the width
        place = xp.zeros((*planes.shape[:2], *(1,) * (2 * dims)), xp.int64)
        for dim, (size, kernel, count, drawn) in enumerate(zip(sizes, kernel_size, output_size, order)):
            along = _starts(samples[..., drawn], size, kernel, count)[..., None] + xp.arange(kernel)
            shape = [1] * (2 * dims)
            shape[dim], shape[dims + dim] = count, kernel
            place = place * size + along.reshape((*planes.shape[:2], *shape))
        place = place.reshape((*planes.shape[:2], prod(output_size), prod(kernel_size)))
        seen = xp.take_along_axis(planes.reshape((*planes.shape[:2], 1, prod(sizes))), place, 3)
        best = seen.argmax(3)[..., None]
        shape = (*input.shape[:-dims], *output_size)
        indices = xp.take_along_axis(place, best, 3).reshape(shape)
        values = xp.take_along_axis(seen, best, 3).reshape(shape)
        return (values, indices), flat_places(indices, dims, prod(sizes))

    @fractional_max_pool.derivative("input", formula="grad at the largest elements, 0 elsewhere")
    def fractional_max_pool_input(grad: Array, places: Array, input_shape: Shape, ops):
        return ops.add_at_places(grad, places, input_shape, True)

    return fractional_max_pool


_OPS = {2: _declare(2), 3: _declare(3)}


def pool_fractionally(input: TensorState, random_samples: TensorState, kernel: tuple, output_size: tuple):
    """Return the largest elements of windows at drawn places, and where they lie.

    Shapes: input (batch, channels, *sizes) or without batch, random_samples (batch, channels, dims)

    Raises:
        RuntimeError: the windows do not fit the input.
    """
    dims = len(kernel)
    name, shape = f"fractional_max_pool{dims}d", input._data.shape
    _check_samples(input._data, random_samples._data, dims)
    for dim in range(len(shape) - dims - 1, len(shape)):
        if shape[dim] == 0:
            raise ShapeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got{list(shape)} with "
                f"dimension {dim} being empty."
            )
    place, spare = (name, 0) if dims == 2 else (f"{name}_out", 1)  # PyTorch requires one more of volumes
    for dim, size, window, count in zip(_NAMES[dims], shape[-dims:], kernel, output_size):
        if count + window - 1 > size - spare:
            raise ShapeError(f"{place}(): pool {dim} {window} too large relative to input {dim} {size}")
        if window < 1:
            raise ShapeError(f"kernel_size must be greater than 0, but got {list(kernel)} for {name}")
    if min(output_size) < 0:
        wanted = [*shape[:-dims], *output_size]
        raise ShapeError(f"Trying to create tensor with negative dimension {min(output_size)}: {wanted}")
    return _OPS[dims](input, random_samples, kernel, output_size)


def _check_samples(input: Array, samples: Array, dims: int) -> None:
    """Raise PyTorch's error unless there is a number for each channel and dim."""
    batch, channels = (1, *input.shape)[-dims - 2 : -dims] if input.ndim == dims + 1 else input.shape[:2]
    if input.dtype != samples.dtype:
        raise ShapeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise ShapeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.shape[0] < batch:
        raise ShapeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != channels:
        raise ShapeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != dims:
        raise ShapeError(f"Expect _random_samples.size(2) equals to {dims}; got {samples.shape[2]}.")
