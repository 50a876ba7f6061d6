"""Recorded counterparts of NumPy's functions: `sum` computes what `np.sum` does, has its parameters, and calls ops.

Options that cannot be recorded raise PyTorch's error: NOTE [NumPy's functions on tensors] in numpy_ufuncs.py.
"""

from collections.abc import Callable, Sequence

import numpy as np

from backlight import linalg
from backlight.engine.tensor_state import TensorState
from backlight.errors import ValueProblem
from backlight.ops.dims import normalise_dim, one_or_several
from backlight.ops.elementwise import rounding, transcendental, where_clamp
from backlight.ops.indexing import gather_scatter, index_selection, slicing
from backlight.ops.linalg import contractions, matrix_products
from backlight.ops.linalg.einsum import einsum as einstein_sum
from backlight.ops.reduction import scans, statistics
from backlight.ops.reduction.sorting import sort as sorted_with_places
from backlight.ops.shape import expanding, flipping, joining, padding, reshaping, splitting, transposing, triangular
from backlight.tensor.interop.numpy_ufuncs import alike, as_tensor, axes_of, call_ufunc, no_counterpart


def _cast(a: TensorState, dtype: np.dtype | None):
    return as_tensor(a, None if dtype is None else np.dtype(dtype))


# --- reductions -------------------------------------------------------------------------------------------------------


def _reduction(ufunc: np.ufunc):
    def reduce(a, axis=None, dtype=None, *, keepdims: bool = False, initial: float | None = None):
        return call_ufunc(ufunc, "reduce", (a, axis, dtype), {"keepdims": keepdims, "initial": initial})

    return reduce


sum = _reduction(np.add)
prod = _reduction(np.multiply)
max = amax = _reduction(np.maximum)
min = amin = _reduction(np.minimum)


def mean(a, axis=None, dtype=None, *, keepdims: bool = False):
    a = _cast(a, dtype)
    dims = axes_of(axis, a.ndim)
    return a.mean(dims, keepdims) if dims else a


def std(a, axis=None, dtype=None, *, ddof: int = 0, keepdims: bool = False, correction=None, mean=None):
    return _spread(statistics.std, np.std, a, axis, dtype, ddof, keepdims, correction, mean)


def var(a, axis=None, dtype=None, *, ddof: int = 0, keepdims: bool = False, correction=None, mean=None):
    return _spread(statistics.var, np.var, a, axis, dtype, ddof, keepdims, correction, mean)


def _spread(op, function, a, axis, dtype, ddof, keepdims, correction, mean: TensorState | None):
    if mean is not None:
        raise no_counterpart(function, "mean= is not taken: leave it out")
    a = _cast(a, dtype)
    return op(a, axes_of(axis, a.ndim), correction=ddof if correction is None else correction, keepdim=keepdims)


def average(a, axis=None, weights: TensorState | None = None, returned: bool = False, *, keepdims: bool = False):
    if returned:
        raise no_counterpart(np.average, "returned=True is not taken: np.sum(weights) is what it returns")
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    a, weights = alike(a, weights)
    if weights.shape != a.shape:
        weights = weights.reshape([size if dim == axis % a.ndim else 1 for dim, size in enumerate(a.shape)]).expand_as(
            a
        )
    dims = axes_of(axis, a.ndim)
    return (a * weights).sum(dims, keepdims) / weights.sum(dims, keepdims)


def nansum(a, axis=None, dtype=None, *, keepdims: bool = False):
    a = _cast(a, dtype)
    return a.nansum(axes_of(axis, a.ndim), keepdims)


def nanmean(a, axis=None, dtype=None, *, keepdims: bool = False):
    a = _cast(a, dtype)
    return a.nanmean(axes_of(axis, a.ndim), keepdims)


def median(a, axis=None, *, keepdims: bool = False, overwrite_input: bool = False):
    return quantile(a, 0.5, axis, keepdims=keepdims)


def quantile(a, q, axis=None, *, method: str = "linear", keepdims: bool = False, overwrite_input: bool = False):
    """Return quantiles over one axis, or over all."""
    if isinstance(axis, tuple):
        raise no_counterpart(np.quantile, "one axis or None is taken")
    fraction = as_tensor(q, a._data.dtype) if np.ndim(q) else float(q)
    return a.quantile(fraction, axis, keepdims, interpolation=method)


def percentile(a: TensorState, q: float | TensorState, axis: int | tuple[int, ...] | None = None, **options):
    return quantile(a, np.true_divide(q, 100), axis, **options)


def ptp(a: TensorState, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False):
    dims = axes_of(axis, a.ndim)
    return a.amax(dims, keepdims) - a.amin(dims, keepdims)


def norm(x: TensorState, ord=None, axis: int | tuple[int, ...] | None = None, keepdims: bool = False):
    return linalg.norm(x, ord, axis, keepdims)


def _scan(op: Callable):
    def scan(a: TensorState, axis: int | tuple[int, ...] | None = None, dtype: np.dtype | None = None):
        a = _cast(a, dtype)
        return op(a.ravel(), 0) if axis is None else op(a, axis)

    return scan


cumsum = _scan(scans.cumsum)
cumprod = _scan(scans.cumprod)


# --- shapes -----------------------------------------------------------------------------------------------------------


def reshape(a: TensorState, /, shape: int | Sequence[int], order: str = "C", *, copy: bool | None = None):
    if order != "C":
        raise no_counterpart(np.reshape, f"order={order!r} is not taken: transpose before and after")
    return a.reshape(shape)


def ravel(a: TensorState, order: str = "C"):
    return reshape(a, (-1,), order)


def transpose(a: TensorState, axes: Sequence[int] | None = None):
    return transposing.permute(a, tuple(reversed(range(a.ndim))) if axes is None else tuple(axes))


def matrix_transpose(x: TensorState):
    return x.mT


def moveaxis(a: TensorState, source: int | Sequence[int], destination: int | Sequence[int]):
    return transposing.movedim(a, source, destination)


def expand_dims(a: TensorState, axis: int | tuple[int, ...] | None):
    """Insert dims of size 1, numbered as in the result."""
    axes = one_or_several(axis)
    for dim in sorted(axes_of(axes, a.ndim + len(axes))):
        a = a.unsqueeze(dim)
    return a


def squeeze(a: TensorState, axis: int | tuple[int, ...] | None = None):
    return reshaping.squeeze(a) if axis is None else reshaping.squeeze(a, axes_of(axis, a.ndim))


def broadcast_to(array: TensorState, shape: int | Sequence[int], subok: bool = False):
    return expanding.broadcast_to(array, (shape,) if isinstance(shape, int) else tuple(shape))


def broadcast_arrays(*args, subok: bool = False):
    return tuple(expanding.broadcast_tensors(*[as_tensor(each) for each in args]))


def _at_least(op: Callable):
    def widened(*arys):
        found = [op(as_tensor(each)) for each in arys]
        return found[0] if len(found) == 1 else tuple(found)

    return widened


def flip(m: TensorState, axis: int | tuple[int, ...] | None = None):
    return flipping.flip(m, axes_of(axis, m.ndim))


def roll(a: TensorState, shift: int | Sequence[int], axis: int | tuple[int, ...] | None = None):
    return flipping.roll(a, shift) if axis is None else flipping.roll(a, shift, axis)


def rot90(m: TensorState, k: int = 1, axes: Sequence[int] = (0, 1)):
    return flipping.rot90(m, k, axes)


def tile(A: TensorState, reps: int | Sequence[int]):  # noqa: N803 - NumPy's name
    return expanding.tile(A, (reps,) if isinstance(reps, int) else tuple(reps))


def repeat(a: TensorState, repeats: int | Sequence[int], axis: int | None = None):
    counts = repeats if isinstance(repeats, int) else as_tensor(repeats)
    return expanding.repeat_interleave(a, counts, axis)


def pad(array: TensorState, pad_width: int | Sequence, mode: str = "constant", *, constant_values: float = 0):
    if mode != "constant" or np.ndim(constant_values):
        raise no_counterpart(np.pad, "mode='constant' with one value is taken: see nn.functional.pad for others")
    widths = np.broadcast_to(pad_width, (array.ndim, 2))
    return padding.constant_pad_nd(array, tuple(int(width) for pair in widths[::-1] for width in pair), constant_values)


# --- joining, splitting -----------------------------------------------------------------------------------------------


def _joined(op: Callable):
    def join(arrays: Sequence, axis: int = 0, dtype: np.dtype | None = None, casting: str = "same_kind"):
        return op([as_tensor(each, dtype and np.dtype(dtype)) for each in alike(*arrays)], axis)

    return join


def _side_by_side(op: Callable):
    return lambda tup, *, dtype=None, casting="same_kind": op(alike(*tup))


def concatenate(arrays: Sequence, axis: int | None = 0, dtype: np.dtype | None = None, casting: str = "same_kind"):
    """Join along an axis; axis=None flattens first."""
    if axis is None:
        arrays, axis = [as_tensor(each).ravel() for each in arrays], 0
    return _joined(joining.cat)(arrays, axis, dtype)


def append(arr: TensorState, values: TensorState, axis: int | None = None):
    return concatenate([arr, values], axis)


def split(ary: TensorState, indices_or_sections: int | Sequence[int], axis: int = 0):
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueProblem("array split does not result in an equal division; np.array_split takes any number")
    return array_split(ary, indices_or_sections, axis)


def array_split(ary: TensorState, indices_or_sections: int | Sequence[int], axis: int = 0):
    places = indices_or_sections if isinstance(indices_or_sections, int) else [int(x) for x in indices_or_sections]
    return list(splitting.tensor_split(ary, places, axis))


def meshgrid(*xi, copy: bool = True, sparse: bool = False, indexing: str = "xy"):
    if sparse:
        raise no_counterpart(np.meshgrid, "sparse=True is not taken: reshape the vectors")
    return joining.meshgrid(*[as_tensor(each) for each in xi], indexing=indexing)


# --- choosing ---------------------------------------------------------------------------------------------------------


def where(condition: TensorState, *choices):
    if not choices:
        return condition.nonzero(as_tuple=True)
    condition = as_tensor(condition)
    return where_clamp.where(condition if condition._data.dtype == bool else condition != 0, *alike(*choices))


def clip(a: TensorState, a_min=None, a_max=None, *, min=None, max=None):
    limits = (a_min if min is None else min, a_max if max is None else max)
    given = iter(alike(a, *[limit for limit in limits if limit is not None]))
    return where_clamp.clamp(next(given), *[None if limit is None else next(given) for limit in limits])


def sort(a: TensorState, axis: int | None = -1, kind=None, order=None, *, stable: bool | None = None):
    return sorted_with_places(a.ravel() if axis is None else a, -1 if axis is None else axis).values


def take(a: TensorState, indices: TensorState, axis: int | None = None, *, mode: str = "raise"):
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


def take_along_axis(arr: TensorState, indices: TensorState, axis: int | None = -1):
    return gather_scatter.take_along_dim(as_tensor(arr), as_tensor(indices), axis)


def nan_to_num(x: TensorState, copy: bool = True, nan: float = 0.0, posinf=None, neginf=None):
    return rounding.nan_to_num(x, nan, posinf, neginf)


def round(a: TensorState, decimals: int = 0):
    return rounding.round(a, decimals=decimals)


def copy(a: TensorState, order: str = "K", subok: bool = False):
    return a.clone()


# --- products ---------------------------------------------------------------------------------------------------------


def dot(a: TensorState, b: TensorState):
    a, b = alike(a, b)
    if not a.ndim or not b.ndim:
        return a * b
    if b.ndim <= 2:
        return matrix_products.matmul(a, b)
    return contractions.tensordot(a, b, ([a.ndim - 1], [b.ndim - 2]))


def vdot(a: TensorState, b: TensorState, /):
    a, b = alike(a, b)
    return matrix_products.dot(a.ravel(), b.ravel())


def outer(a: TensorState, b: TensorState):
    a, b = alike(a, b)
    return contractions.outer(a.ravel(), b.ravel())


def tensordot(a: TensorState, b: TensorState, axes: int | Sequence = 2):
    if not isinstance(axes, int):
        axes = tuple([each] if isinstance(each, int) else list(each) for each in axes)
    return contractions.tensordot(*alike(a, b), axes)


def einsum(subscripts: str, *operands, optimize: bool = False, dtype: np.dtype | None = None):
    if not isinstance(subscripts, str):
        raise no_counterpart(np.einsum, "subscripts are taken as text")
    return einstein_sum(subscripts, *[as_tensor(each, dtype and np.dtype(dtype)) for each in alike(*operands)])


def _of_two(op: Callable):
    return lambda a, b: op(*alike(a, b))


def cross(a: TensorState, b: TensorState, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None):
    if (axisa, axisb, axisc) != (-1, -1, -1):
        raise no_counterpart(np.cross, "one axis for both and the result is taken: axis=")
    return linalg.cross(*alike(a, b), dim=-1 if axis is None else axis)


def diff(a: TensorState, n: int = 1, axis: int = -1, *, prepend=None, append=None):
    ends = [None if each is None else as_tensor(each, a._data.dtype) for each in (prepend, append)]
    return scans.diff(a, n, axis, *ends)


def trapezoid(y: TensorState, x: TensorState | None = None, dx: float = 1.0, axis: int = -1):
    if x is None:
        return scans.trapezoid(as_tensor(y), dx=dx, dim=axis)
    return scans.trapezoid(*alike(y, x), dim=axis)


def diagonal(a: TensorState, offset: int = 0, axis1: int = 0, axis2: int = 1):
    return slicing.diagonal(a, offset, axis1, axis2)


def trace(a: TensorState, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: np.dtype | None = None):
    return diagonal(as_tensor(a, dtype and np.dtype(dtype)), offset, axis1, axis2).sum(-1)


def _of_arrays(op: Callable):
    """Return a function that calls an op with the same parameters in both libraries."""

    def call(*args, **options):
        given = iter(alike(*[value for value in args if isinstance(value, (TensorState, np.ndarray))]))
        return op(
            *[next(given) if isinstance(value, (TensorState, np.ndarray)) else value for value in args], **options
        )

    return call


def _of_matrix(op: Callable):
    return lambda m, k=0: op(m, k)


atleast_1d = _at_least(reshaping.atleast_1d)
atleast_2d = _at_least(reshaping.atleast_2d)
stack = _joined(joining.stack)
vstack = _side_by_side(joining.vstack)
hstack = _side_by_side(joining.hstack)
dstack = _side_by_side(joining.dstack)
inner = _of_two(contractions.inner)
kron = _of_two(contractions.kron)
diag = _of_matrix(triangular.diag)
tril = _of_matrix(triangular.tril)
triu = _of_matrix(triangular.triu)
fliplr, flipud, sinc = flipping.fliplr, flipping.flipud, transcendental.sinc


def column_stack(tup: Sequence):
    return joining.column_stack(alike(*tup))


_SAME_IN_BOTH = """
cholesky cond det eigh eigvalsh inv matrix_power multi_dot pinv qr slogdet solve tensorinv tensorsolve
"""
FUNCTIONS: dict[Callable, Callable] = {
    np.around: round,
    np.linalg.matrix_transpose: matrix_transpose,
    np.linalg.norm: norm,
    np.linalg.outer: outer,
    np.linalg.tensordot: tensordot,
    **{getattr(np, name): made for name, made in [*globals().items()] if callable(made) and hasattr(np, name)},
    **{getattr(np.linalg, name): _of_arrays(getattr(linalg, name)) for name in _SAME_IN_BOTH.split()},
}
