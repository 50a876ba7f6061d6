"""Sampling at the places of a grid, and grids of affine maps (see NOTE [Samples])."""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ShapeError, UnsupportedError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.nn import grid_samples
from backlight.kernels.nn.grid_samples import Sampling

__all__ = ["affine_grid_generator", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"]


def _planes(array: Array) -> np.ndarray:
    """Return an array (batch, channels, *sizes) as (batch, channels, positions)."""
    return np.ascontiguousarray(array).reshape((*array.shape[:2], prod(array.shape[2:])))


def _declare(dims: int):
    """Declare the op for pictures or volumes; they differ by their names only."""

    @op(name=f"grid_sampler_{dims}d", node=f"GridSampler{dims}DBackward0", zero_derivative=("input", "grid"))
    def grid_sample(xp, input: Array, grid: Array, how: Sampling):
        """Return the input's values at the places of the grid."""
        wide, points = widened(input), widened(grid).reshape((len(grid), prod(grid.shape[1:-1]), dims))
        taps = grid_samples.taps_of(points, input.shape[2:], how)
        out = grid_samples.sampled(_planes(wide), taps, input.shape[2:])
        return rounded(out.reshape((*input.shape[:2], *grid.shape[1:-1])), input.dtype)

    @grid_sample.derivative(
        "input", "grid", formula="grad · each element's weight; Σ grad · input · the weights' slopes"
    )
    def grid_sample_both(grad: Array, input: Array, grid: Array, how: Sampling, needs: tuple[bool, ...], xp):
        wide, points = widened(input), widened(grid).reshape((len(grid), prod(grid.shape[1:-1]), dims))
        taps = grid_samples.taps_of(points, input.shape[2:], how)
        for_planes, for_grid = grid_samples.gradients(
            _planes(widened(grad)), _planes(wide), taps, input.shape[2:], needs
        )
        return (
            rounded(for_planes.reshape(input.shape), input.dtype) if needs[0] else None,
            rounded(for_grid.reshape(grid.shape), grid.dtype) if needs[1] else None,
        )

    @grid_sample.decomposition
    def grid_sample_decomposition(input: TensorState, grid: TensorState, how: Sampling):
        sizes, shape = input.shape[2:], grid.shape
        points = grid.reshape((shape[0], prod(shape[1:-1]), dims))
        change = points - points.detach()  # zeros that carry the gradient
        taps = grid_samples.taps_of(points._data, sizes, how)
        weights = [
            [wrap(inside) * weight for inside, weight in zip(one.inside, grid_samples.weights_of(how.mode, fraction))]
            for one, fraction in zip(taps, _fractions(taps, change, dims))
        ]
        values = input.reshape((*input.shape[:2], prod(sizes)))
        total = 0
        for numbers, place in grid_samples.corners(taps, sizes):
            weight = grid_samples.product_of([one[number] for one, number in zip(weights, numbers)])
            index = wrap(np.repeat(np.maximum(place, 0)[:, None], input.shape[1], 1))
            elements = values.gather(2, index).masked_fill(wrap(place[:, None] < 0), 0)
            total = total + elements * weight.unsqueeze(1)
        return total.reshape((*input.shape[:2], *shape[1:-1]))

    return grid_sample


def _fractions(taps: Sequence, change: TensorState, dims: int) -> list:
    """Return the fraction along each dim as a tensor that depends on the grid."""
    return [wrap(one.fraction) + wrap(one.derivative) * change[:, :, dims - 1 - dim] for dim, one in enumerate(taps)]


_OPS = {2: _declare(2), 3: _declare(3)}


@public_function
def grid_sampler(
    input: TensorState, grid: TensorState, interpolation_mode: int, padding_mode: int, align_corners: bool
):
    """Return the input's values at the places of a grid.

    Shapes: input (batch, channels, *sizes), grid (batch, *new sizes, dims) -> (batch, channels, *new sizes)

    Args:
        interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic.
        padding_mode: 0 zeros, 1 border, 2 reflection.
        align_corners: whether −1 and 1 are the centres of the outer elements, not their edges.

    Raises:
        RuntimeError: the shapes or dtypes do not fit.
    """
    _check(input._data, grid._data, interpolation_mode)
    _check_mode("interpolation_mode", interpolation_mode, "0 (bilinear), 1 (nearest) or 2 (bicubic)")
    _check_mode("padding_mode", padding_mode, "0 (zeros), 1 (border) or 2 (reflection)")
    how = Sampling(int(interpolation_mode), int(padding_mode), bool(align_corners))
    return _OPS[input._data.ndim - 2](input, grid, how)


@public_function
def grid_sampler_2d(
    input: TensorState, grid: TensorState, interpolation_mode: int, padding_mode: int, align_corners: bool
):
    """Return the values of pictures at the places of a grid; see `grid_sampler`."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@public_function
def grid_sampler_3d(
    input: TensorState, grid: TensorState, interpolation_mode: int, padding_mode: int, align_corners: bool
):
    """Return the values of volumes at the places of a grid; see `grid_sampler`."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def _check_mode(name: str, value: float, known: str) -> None:
    """Refuse a number that stands for no mode: PyTorch does not look at it, and returns what the memory held."""
    if value not in (0, 1, 2):
        raise ShapeError(f"grid_sampler(): {name} must be {known}, got {value}")


def _check(input: Array, grid: Array, mode: int) -> None:
    shapes = f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.shape[:1] != grid.shape[:1]:
        raise ShapeError(f"grid_sampler(): expected grid and input to have same batch size, but got {shapes}")
    if grid.shape[-1] != input.ndim - 2:
        raise ShapeError(
            f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if input.ndim not in (4, 5) or grid.ndim != input.ndim:
        raise ShapeError(
            f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got {shapes}"
        )
    for dim in range(2, input.ndim):
        if input.shape[dim] == 0:
            raise ShapeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {dim} being empty"
            )
    if input.ndim == 5 and mode == grid_samples.BICUBIC:
        raise ShapeError("grid_sampler(): bicubic interpolation only supports 4D input")
    names = [from_numpy_dtype(array.dtype).old_name for array in (input, grid)]
    if input.dtype.kind in "biu":
        kernel = f"grid_sampler_{input.ndim - 2}d_cpu_kernel_impl"
        raise UnsupportedError(f"\"{kernel}\" not implemented for '{names[0]}'; convert the input with .float()")
    if names[0] != names[1]:
        raise ShapeError(
            f"expected scalar type {names[0]} but found {names[1]}; convert the grid with .to(input.dtype)"
        )


def _base(size: Sequence[int], align_corners: bool, kind: np.dtype) -> np.ndarray:
    """Return the coordinates of each element, the last dim's first, and a 1: (elements, dims + 1)."""
    axes = []
    for count in size[2:]:
        axis = np.linspace(-1, 1, count) if count > 1 else np.zeros(1)
        axes.append(axis if align_corners else axis * (count - 1) / count)
    meshes = np.meshgrid(*axes, indexing="ij")[::-1]
    return np.stack([*(mesh.reshape(-1) for mesh in meshes), np.ones(prod(size[2:]))], 1).astype(kind)


@op(tangent="linear")
def affine_grid_generator(xp, theta: Array, size: tuple, align_corners: bool):
    """The places to which affine maps take the elements of a picture or a volume of `size`.

    Shapes: theta (batch, dims, dims + 1) -> (batch, *size[2:], dims)
    """
    wide = widened(theta)
    if theta.shape[0] != size[0]:
        raise ShapeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {[size[0], len(size) - 1]} but got: "
            f"{[theta.shape[0], theta.shape[2]]}."
        )
    places = _base(size, align_corners, wide.dtype) @ wide.swapaxes(1, 2)
    return rounded(places.reshape((size[0], *size[2:], len(size) - 2)), theta.dtype)


affine_grid_generator.derivative("theta", formula="Σ over elements of grad · (coordinates, 1)")(
    lambda grad, size, align_corners, ops: ops.affine_grid_generator_backward(grad, size, align_corners)
)


@op(tangent="linear")
def affine_grid_generator_backward(xp, grad_output: Array, size: tuple, align_corners: bool):
    """Σ over elements of grad_output · (coordinates, 1)."""
    wide = widened(grad_output).reshape((size[0], prod(size[2:]), len(size) - 2))
    return rounded(wide.swapaxes(1, 2) @ _base(size, align_corners, wide.dtype), grad_output.dtype)


affine_grid_generator_backward.derivative("grad_output", formula="the grid of grad")(
    lambda grad, size, align_corners, ops: ops.affine_grid_generator(grad, size, align_corners)
)
