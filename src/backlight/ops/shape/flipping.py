"""Other orders of the slices: flip, roll, rot90. All copy."""

from collections.abc import Sequence

from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, ShapeError
from backlight.kernels.memory_order import LAYOUTS, model_of
from backlight.kernels.reduction.slices import slices_turned
from backlight.ops.dims import normalise_dim, normalise_dims, one_or_several
from backlight.sizes import sizes_given, spread_sizes

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]


@op(name="flip", tangent="linear", complex="linear", layout="preserved")
def flipped(xp, input: Array, dims: tuple):
    """The slices along some dims in reverse order."""
    wanted = normalise_dims(dims, input.ndim)
    if not input.ndim:
        return xp.array(input)
    if len(wanted) == 1:
        return slices_turned(input, wanted[0])
    return xp.array(input[tuple(slice(None, None, -1 if dim in wanted else 1) for dim in range(input.ndim))], order="C")


flipped.derivative("input", formula="grad, flipped back")(lambda grad, dims, ops: ops.flip(grad, dims))


def flip(input: TensorState, *order, dims: Sequence | None = None):
    """Reverse the order of the slices along each of some dims."""
    return flipped(input, sizes_given(order) if order else one_or_several(spread_sizes((), dims, "flip", "dims")))


def fliplr(input: TensorState):
    """Reverse the order of the columns.

    Raises:
        RuntimeError: there are fewer than two dims.
    """
    if input._data.ndim < 2:
        raise ShapeError(f"Input must be >= 2-d.; this tensor has {input._data.ndim} dims")
    return flipped(input, (1,))


def flipud(input: TensorState):
    """Reverse the order of the rows.

    Raises:
        RuntimeError: there are no dims.
    """
    if input._data.ndim < 1:
        raise ShapeError("Input must be >= 1-d.; this tensor has no dims")
    return flipped(input, (0,))


@op(name="roll", tangent="linear", complex="linear")
def rolled(xp, input: Array, shifts: tuple, dims: tuple):
    """The slices along some dims, or without dims all elements, moved on, those at the end to the start."""
    if not dims:
        return xp.roll(input, shifts[0])
    for shift, dim in zip(shifts, dims):
        input = _rolled_along(xp, input, shift, dim)
    return input


def _rolled_along(xp, input: Array, shift: int, dim: int) -> Array:
    """Roll along one dim; the result lies in memory as PyTorch's, which joins the two parts."""
    if not input.size:
        return model_of(input)
    start = -shift % input.shape[dim]
    before = (slice(None),) * dim
    parts = input[(*before, slice(start, None))], input[(*before, slice(start))]
    return LAYOUTS["joined"](xp.roll(input, shift, dim), *parts)


rolled.derivative("input", formula="grad, rolled back")(
    lambda grad, shifts, dims, ops: ops.roll(grad, tuple(-shift for shift in shifts), dims)
)


def roll(input: TensorState, shifts: int | Sequence[int], dims: int | Sequence[int] = ()):
    """Move the slices along some dims on by some places, those that fall off the end to the start.

    Without dims the elements are rolled row by row.

    Raises:
        RuntimeError: there are not as many shifts as dims.
    """
    shifts, dims = one_or_several(shifts), one_or_several(dims)
    if not shifts:
        raise ShapeError("`shifts` required: by how many places to roll")
    if len(shifts) != len(dims) and (dims or len(shifts) != 1):
        raise ShapeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if dims and not input._data.ndim:
        raise DimError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return rolled(input, shifts, tuple(normalise_dim(dim, input._data.ndim) for dim in dims))


@op(name="rot90", tangent="linear", complex="linear")
def turned(xp, input: Array, k: int, dims: tuple):
    """The plane of two dims turned by k quarters, from the first towards the second."""
    if k % 4 == 0:
        return xp.array(input, order="C")
    out = model_of(input)  # the flipped slices, transposed for an odd number of quarters
    out = out.swapaxes(*dims) if k % 2 else out
    out[...] = xp.rot90(input, k, dims)
    return out


turned.derivative("input", formula="grad, turned back")(lambda grad, k, dims, ops: ops.rot90(grad, -k, dims))


def rot90(input: TensorState, k: int = 1, dims: Sequence[int] = (0, 1)):
    """Turn the plane of two dims by k quarters, from the first towards the second.

    Raises:
        RuntimeError: there are not two different dims.
    """
    ndim = input._data.ndim
    if len(dims) != 2:
        raise ShapeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise ShapeError(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = (normalise_dim(dim, ndim) for dim in dims)
    if first == second:
        raise ShapeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return turned(input, k, (first, second))
