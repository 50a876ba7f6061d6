"""NumPy's functions on tensors that reshape, join, select and multiply (see numpy_functions.py)."""

import numpy as np

from backlight import linalg
from backlight.engine.tensor_state import TensorState
from backlight.errors import ValueProblem
from backlight.ops.dims import normalise_dim, one_or_several
from backlight.ops.elementwise import rounding, transcendental, where_clamp
from backlight.ops.indexing import gather_scatter, index_selection, slicing
from backlight.ops.linalg import contractions, matrix_products
from backlight.ops.linalg.einsum import einsum as einstein_sum
from backlight.ops.reduction import scans
from backlight.ops.reduction.sorting import sort as sorted_with_places
from backlight.ops.shape import expanding, flipping, joining, padding, reshaping, splitting, transposing, triangular
from backlight.tensor.interop.numpy_functions import FUNCTIONS, alike, call_function, counterpart  # noqa: F401
from backlight.tensor.interop.numpy_ufuncs import as_tensor, axes_of, no_counterpart

# --- shapes -----------------------------------------------------------------------------------------------------------


@counterpart(np.reshape)
def reshape(a, /, shape, order: str = "C", *, copy: bool | None = None):
    """Return the elements in another shape."""
    if order != "C":
        raise no_counterpart(np.reshape, f"order={order!r} is not taken: transpose before and after")
    return a.reshape(shape)


@counterpart(np.ravel)
def ravel(a, order: str = "C"):
    """Return the elements in one dim."""
    return reshape(a, (-1,), order)


@counterpart(np.transpose, np.permute_dims)
def transpose(a, axes=None):
    """Return the dims in another order; reversed by default."""
    return transposing.permute(a, tuple(reversed(range(a.ndim))) if axes is None else tuple(axes))


@counterpart(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x):
    """Swap the last two dims."""
    return x.mT


@counterpart(np.moveaxis)
def moveaxis(a, source, destination):
    """Move some dims to other places."""
    return transposing.movedim(a, source, destination)


@counterpart(np.expand_dims)
def expand_dims(a, axis):
    """Insert dims of size 1, numbered as in the result."""
    axes = one_or_several(axis)
    for dim in sorted(axes_of(axes, a.ndim + len(axes))):
        a = a.unsqueeze(dim)
    return a


@counterpart(np.squeeze)
def squeeze(a, axis=None):
    """Remove dims of size 1."""
    return reshaping.squeeze(a) if axis is None else reshaping.squeeze(a, axes_of(axis, a.ndim))


@counterpart(np.broadcast_to)
def broadcast_to(array, shape, subok: bool = False):
    """Repeat without copying."""
    return expanding.broadcast_to(array, (shape,) if isinstance(shape, int) else tuple(shape))


@counterpart(np.broadcast_arrays)
def broadcast_arrays(*args, subok: bool = False):
    """Broadcast against each other."""
    return tuple(expanding.broadcast_tensors(*[as_tensor(each) for each in args]))


def _at_least(op):
    def widened(*arys):
        found = [op(as_tensor(each)) for each in arys]
        return found[0] if len(found) == 1 else tuple(found)

    return widened


@counterpart(np.flip)
def flip(m, axis=None):
    """Reverse the order along some axes."""
    return flipping.flip(m, axes_of(axis, m.ndim))


@counterpart(np.roll)
def roll(a, shift, axis=None):
    """Shift cyclically along some axes."""
    return flipping.roll(a, shift) if axis is None else flipping.roll(a, shift, axis)


@counterpart(np.rot90)
def rot90(m, k: int = 1, axes=(0, 1)):
    """Rotate by right angles."""
    return flipping.rot90(m, k, axes)


@counterpart(np.tile)
def tile(A, reps):  # noqa: N803 - NumPy's name
    """Repeat the full array."""
    return expanding.tile(A, (reps,) if isinstance(reps, int) else tuple(reps))


@counterpart(np.repeat)
def repeat(a, repeats, axis=None):
    """Repeat each element or slice."""
    counts = repeats if isinstance(repeats, int) else as_tensor(repeats)
    return expanding.repeat_interleave(a, counts, axis)


@counterpart(np.pad)
def pad(array, pad_width, mode: str = "constant", *, constant_values=0):
    """Pad each axis with a constant."""
    if mode != "constant" or np.ndim(constant_values):
        raise no_counterpart(np.pad, "mode='constant' with one value is taken: see nn.functional.pad for others")
    widths = np.broadcast_to(pad_width, (array.ndim, 2))
    return padding.constant_pad_nd(array, tuple(int(width) for pair in widths[::-1] for width in pair), constant_values)


# --- joining, splitting -----------------------------------------------------------------------------------------------


def _joined(op):
    def join(arrays, axis: int = 0, dtype=None, casting: str = "same_kind"):
        return op([as_tensor(each, dtype and np.dtype(dtype)) for each in alike(*arrays)], axis)

    return join


def _side_by_side(op):
    return lambda tup, *, dtype=None, casting="same_kind": op(alike(*tup))


@counterpart(np.concatenate)
def concatenate(arrays, axis: int | None = 0, dtype=None, casting: str = "same_kind"):
    """Join along an axis; axis=None flattens first."""
    if axis is None:
        arrays, axis = [as_tensor(each).ravel() for each in arrays], 0
    return _joined(joining.cat)(arrays, axis, dtype)


@counterpart(np.append)
def append(arr, values, axis: int | None = None):
    """Join two arrays."""
    return concatenate([arr, values], axis)


@counterpart(np.split)
def split(ary, indices_or_sections, axis: int = 0):
    """Split into equal parts, or at indices."""
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueProblem("array split does not result in an equal division; np.array_split takes any number")
    return array_split(ary, indices_or_sections, axis)


@counterpart(np.array_split)
def array_split(ary, indices_or_sections, axis: int = 0):
    """Split into nearly equal parts, or at indices."""
    places = indices_or_sections if isinstance(indices_or_sections, int) else [int(x) for x in indices_or_sections]
    return list(splitting.tensor_split(ary, places, axis))


@counterpart(np.meshgrid)
def meshgrid(*xi, copy: bool = True, sparse: bool = False, indexing: str = "xy"):
    """Return coordinate grids from vectors of coordinates."""
    if sparse:
        raise no_counterpart(np.meshgrid, "sparse=True is not taken: reshape the vectors")
    return joining.meshgrid(*[as_tensor(each) for each in xi], indexing=indexing)


# --- choosing ---------------------------------------------------------------------------------------------------------


@counterpart(np.where)
def where(condition, *choices):
    """Select elements of one or the other by a condition."""
    if not choices:
        return condition.nonzero(as_tuple=True)
    condition = as_tensor(condition)
    return where_clamp.where(condition if condition._data.dtype == bool else condition != 0, *alike(*choices))


@counterpart(np.clip)
def clip(a, a_min=None, a_max=None, *, min=None, max=None):
    """Clamp the elements."""
    limits = (a_min if min is None else min, a_max if max is None else max)
    given = iter(alike(a, *[limit for limit in limits if limit is not None]))
    return where_clamp.clamp(next(given), *[None if limit is None else next(given) for limit in limits])


@counterpart(np.sort)
def sort(a, axis: int | None = -1, kind=None, order=None, *, stable: bool | None = None):
    """Sort the elements."""
    return sorted_with_places(a.ravel() if axis is None else a, -1 if axis is None else axis).values


@counterpart(np.take)
def take(a, indices, axis: int | None = None, *, mode: str = "raise"):
    """Return the elements or slices at indices."""
    places = as_tensor(indices).long()
    if mode != "raise":
        raise no_counterpart(np.take, "mode='raise' is taken: bring the indices into range first")
    if axis is None:
        return index_selection.take(a, places)
    axis = normalise_dim(axis, a.ndim)
    places = where_clamp.where(places < 0, places + (a.shape or (1,))[axis], places)
    found = index_selection.index_select(a, axis, places.ravel())
    return found.reshape((*a.shape[:axis], *places.shape, *a.shape[axis + 1 :]))


@counterpart(np.take_along_axis)
def take_along_axis(arr, indices, axis: int | None = -1):
    """Return the elements at indices along an axis."""
    return gather_scatter.take_along_dim(as_tensor(arr), as_tensor(indices), axis)


@counterpart(np.nan_to_num)
def nan_to_num(x, copy: bool = True, nan: float = 0.0, posinf=None, neginf=None):
    """Replace NaN and the infinities."""
    return rounding.nan_to_num(x, nan, posinf, neginf)


@counterpart(np.round, np.around)
def round(a, decimals: int = 0):
    """Round to a number of decimals."""
    return rounding.round(a, decimals=decimals)


@counterpart(np.copy)
def copy(a, order: str = "K", subok: bool = False):
    """Return a copy that stays in the graph."""
    return a.clone()


# --- products ---------------------------------------------------------------------------------------------------------


@counterpart(np.dot)
def dot(a, b):
    """Contract the last dim of a with the second to last of b."""
    a, b = alike(a, b)
    if not a.ndim or not b.ndim:
        return a * b
    if b.ndim <= 2:
        return matrix_products.matmul(a, b)
    return contractions.tensordot(a, b, ([a.ndim - 1], [b.ndim - 2]))


@counterpart(np.vdot)
def vdot(a, b, /):
    """Return the sum of all products of elements."""
    a, b = alike(a, b)
    return matrix_products.dot(a.ravel(), b.ravel())


@counterpart(np.outer, np.linalg.outer)
def outer(a, b):
    """Return the outer product."""
    a, b = alike(a, b)
    return contractions.outer(a.ravel(), b.ravel())


@counterpart(np.tensordot, np.linalg.tensordot)
def tensordot(a, b, axes=2):
    """Contract over some axes."""
    if not isinstance(axes, int):
        axes = tuple([each] if isinstance(each, int) else list(each) for each in axes)
    return contractions.tensordot(*alike(a, b), axes)


@counterpart(np.einsum)
def einsum(subscripts, *operands, optimize=False, dtype=None):
    """Contract as the subscripts say."""
    if not isinstance(subscripts, str):
        raise no_counterpart(np.einsum, "subscripts are taken as text")
    return einstein_sum(subscripts, *[as_tensor(each, dtype and np.dtype(dtype)) for each in alike(*operands)])


def _of_two(op):
    return lambda a, b: op(*alike(a, b))


@counterpart(np.cross)
def cross(a, b, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None):
    """Return the cross product of vectors of three elements."""
    if (axisa, axisb, axisc) != (-1, -1, -1):
        raise no_counterpart(np.cross, "one axis for both and the result is taken: axis=")
    return linalg.cross(*alike(a, b), dim=-1 if axis is None else axis)


@counterpart(np.diff)
def diff(a, n: int = 1, axis: int = -1, *, prepend=None, append=None):
    """Return the differences of adjacent elements."""
    ends = [None if each is None else as_tensor(each, a._data.dtype) for each in (prepend, append)]
    return scans.diff(a, n, axis, *ends)


@counterpart(np.trapezoid)
def trapezoid(y, x=None, dx: float = 1.0, axis: int = -1):
    """Integrate along an axis by the trapezoidal rule."""
    if x is None:
        return scans.trapezoid(as_tensor(y), dx=dx, dim=axis)
    return scans.trapezoid(*alike(y, x), dim=axis)


@counterpart(np.diagonal)
def diagonal(a, offset: int = 0, axis1: int = 0, axis2: int = 1):
    """Return a diagonal, a view."""
    return slicing.diagonal(a, offset, axis1, axis2)


@counterpart(np.trace)
def trace(a, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype=None):
    """Sum a diagonal."""
    return diagonal(as_tensor(a, dtype and np.dtype(dtype)), offset, axis1, axis2).sum(-1)


def _of_arrays(op):
    """Return a function that calls an op with the same parameters in both libraries."""

    def call(*args, **options):
        kinds = [value for value in args if isinstance(value, (TensorState, np.ndarray))]
        given = iter(alike(*kinds))
        return op(
            *[next(given) if isinstance(value, (TensorState, np.ndarray)) else value for value in args], **options
        )

    return call


def _of_matrix(op):
    return lambda m, k=0: op(m, k)


FUNCTIONS |= {
    np.atleast_1d: _at_least(reshaping.atleast_1d),
    np.atleast_2d: _at_least(reshaping.atleast_2d),
    np.fliplr: flipping.fliplr,
    np.flipud: flipping.flipud,
    np.stack: _joined(joining.stack),
    np.vstack: _side_by_side(joining.vstack),
    np.hstack: _side_by_side(joining.hstack),
    np.dstack: _side_by_side(joining.dstack),
    np.column_stack: lambda tup: joining.column_stack(alike(*tup)),
    np.inner: _of_two(contractions.inner),
    np.kron: _of_two(contractions.kron),
    np.diag: _of_matrix(triangular.diag),
    np.tril: _of_matrix(triangular.tril),
    np.triu: _of_matrix(triangular.triu),
    np.sinc: transcendental.sinc,
}
SAME_IN_BOTH = ("cholesky", "cond", "det", "eigh", "eigvalsh", "inv", "matrix_power", "multi_dot", "pinv", "qr")
SAME_IN_BOTH += ("slogdet", "solve", "tensorinv", "tensorsolve")
FUNCTIONS |= {getattr(np.linalg, name): _of_arrays(getattr(linalg, name)) for name in SAME_IN_BOTH}
