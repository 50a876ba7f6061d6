"""NumPy's other functions on tensors: `np.sum(x, axis=1)`, `np.concatenate([x, y])`, `np.where(mask, x, 0.0)`.

See NOTE [NumPy's functions on tensors] in numpy_ufuncs.py. A counterpart has NumPy's parameters and calls ops.
"""

import numpy as np

from backlight import linalg
from backlight.engine.tensor_state import TensorState
from backlight.ops.reduction import scans, statistics
from backlight.tensor.interop.numpy_ufuncs import (
    as_tensor,
    axes_of,
    call_ufunc,
    detached_array,
    no_counterpart,
    tensor_from,
)

FUNCTIONS: dict = {}
# PyTorch's tensors have methods of these names that do not take NumPy's arguments, and raise TypeError.
REFUSED_BY_PYTORCH = frozenset(
    {
        *(
            np.sum,
            np.mean,
            np.std,
            np.var,
            np.prod,
            np.max,
            np.min,
            np.amax,
            np.amin,
            np.all,
            np.any,
            np.flip,
            np.moveaxis,
        )
    }
)
# Indices and bools: they have no gradient.
WITHOUT_GRADIENT = frozenset(
    {
        *(
            np.argmax,
            np.argmin,
            np.argsort,
            np.argwhere,
            np.flatnonzero,
            np.count_nonzero,
            np.searchsorted,
            np.digitize,
        ),
        *(np.all, np.any, np.isclose, np.allclose, np.isin, np.histogram, np.bincount, np.lexsort, np.array_equiv),
        *(np.ones_like, np.zeros_like, np.full_like, np.empty_like, np.iscomplexobj, np.isrealobj),
    }
)


def call_function(function, args: tuple, kwargs: dict):
    """Run `function(*args, **kwargs)`, where at least one argument holds a tensor."""
    recorded = any(value.requires_grad for value in _tensors_in((args, kwargs)))
    if recorded and function in FUNCTIONS:
        return _recorded(function, args, dict(kwargs))
    if function in REFUSED_BY_PYTORCH:
        return tensor_from(
            np.ascontiguousarray(function(*_each(args, detached_array), **_each(kwargs, detached_array)))
        )
    if recorded and function in WITHOUT_GRADIENT:
        args, kwargs = _each(args, _detached), _each(kwargs, _detached)
    return np.ndarray.__array_function__(np.empty(0), function, (), args, kwargs)


def _detached(value):
    return value.detach() if isinstance(value, TensorState) else value


def _tensors_in(value):
    """Return the tensors in nested lists, tuples and dicts."""
    if isinstance(value, TensorState):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for each in inner for tensor in _tensors_in(each)]


def _each(value, change):
    """Apply a function to each value in nested lists, tuples and dicts."""
    if isinstance(value, dict):
        return {name: _each(each, change) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_each(each, change) for each in value)
    return change(value)


def _recorded(function, args: tuple, kwargs: dict):
    if kwargs.pop("out", None) is not None:
        raise no_counterpart(function, "an array given as out= cannot remember how it was computed")
    where = kwargs.pop("where", True)
    if where is not True and where is not np._NoValue:
        raise no_counterpart(function, "where= is not taken: choose with np.where(condition, x, other) first")
    kwargs = {name: value for name, value in kwargs.items() if value is not np._NoValue}
    return FUNCTIONS[function](*args, **kwargs)


def counterpart(*functions):
    """Declare the decorated function as the recorded counterpart of some of NumPy's."""

    def declare(made):
        FUNCTIONS.update(dict.fromkeys(functions, made))
        return made

    return declare


def alike(*values) -> list:
    """Return operands as tensors of the dtype that NumPy promotes them to."""
    kind = np.result_type(*[value if type(value) in (int, float) else _array_kind(value) for value in values])
    return [as_tensor(value, kind) for value in values]


def _array_kind(value) -> np.dtype:
    return value._data.dtype if isinstance(value, TensorState) else np.asarray(value).dtype


def _cast(a, dtype):
    return as_tensor(a, None if dtype is None else np.dtype(dtype))


# --- reductions -------------------------------------------------------------------------------------------------------


def _reduction(ufunc):
    def reduce(a, axis=None, dtype=None, *, keepdims: bool = False, initial=None):
        return call_ufunc(ufunc, "reduce", (a, axis, dtype), {"keepdims": keepdims, "initial": initial})

    return reduce


FUNCTIONS |= {
    np.sum: _reduction(np.add),
    np.prod: _reduction(np.multiply),
    np.max: _reduction(np.maximum),
    np.amax: _reduction(np.maximum),
    np.min: _reduction(np.minimum),
    np.amin: _reduction(np.minimum),
}


@counterpart(np.mean)
def mean(a, axis=None, dtype=None, *, keepdims: bool = False):
    """Average over some axes."""
    a = _cast(a, dtype)
    dims = axes_of(axis, a.ndim)
    return a.mean(dims, keepdims) if dims else a


@counterpart(np.std)
def std(a, axis=None, dtype=None, *, ddof: int = 0, keepdims: bool = False, correction=None, mean=None):
    """Return the population standard deviation over some axes; over all elements by default."""
    return _spread(statistics.std, np.std, a, axis, dtype, ddof, keepdims, correction, mean)


@counterpart(np.var)
def var(a, axis=None, dtype=None, *, ddof: int = 0, keepdims: bool = False, correction=None, mean=None):
    """Return the population variance over some axes; over all elements by default."""
    return _spread(statistics.var, np.var, a, axis, dtype, ddof, keepdims, correction, mean)


def _spread(op, function, a, axis, dtype, ddof, keepdims, correction, mean):
    if mean is not None:
        raise no_counterpart(function, "mean= is not taken: leave it out")
    a = _cast(a, dtype)
    return op(a, axes_of(axis, a.ndim), correction=ddof if correction is None else correction, keepdim=keepdims)


@counterpart(np.average)
def average(a, axis=None, weights=None, returned: bool = False, *, keepdims: bool = False):
    """Average with weights."""
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


@counterpart(np.nansum)
def nansum(a, axis=None, dtype=None, *, keepdims: bool = False):
    """Sum the elements that are not NaN."""
    a = _cast(a, dtype)
    return a.nansum(axes_of(axis, a.ndim), keepdims)


@counterpart(np.nanmean)
def nanmean(a, axis=None, dtype=None, *, keepdims: bool = False):
    """Average the elements that are not NaN."""
    a = _cast(a, dtype)
    return a.nanmean(axes_of(axis, a.ndim), keepdims)


@counterpart(np.median)
def median(a, axis=None, *, keepdims: bool = False, overwrite_input: bool = False):
    """Return the middle element, or the mean of both in the middle."""
    return quantile(a, 0.5, axis, keepdims=keepdims)


@counterpart(np.quantile)
def quantile(a, q, axis=None, *, method: str = "linear", keepdims: bool = False, overwrite_input: bool = False):
    """Return quantiles over one axis, or over all."""
    if isinstance(axis, tuple):
        raise no_counterpart(np.quantile, "one axis or None is taken")
    fraction = as_tensor(q, a._data.dtype) if np.ndim(q) else float(q)
    return a.quantile(fraction, axis, keepdims, interpolation=method)


@counterpart(np.percentile)
def percentile(a, q, axis=None, **options):
    """Return percentiles over one axis, or over all."""
    return quantile(a, np.true_divide(q, 100), axis, **options)


@counterpart(np.ptp)
def ptp(a, axis=None, *, keepdims: bool = False):
    """Return the maximum minus the minimum."""
    dims = axes_of(axis, a.ndim)
    return a.amax(dims, keepdims) - a.amin(dims, keepdims)


@counterpart(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims: bool = False):
    """Return the norm of a vector or a matrix; of all elements by default."""
    return linalg.norm(x, ord, axis, keepdims)


def _scan(op):
    def scan(a, axis=None, dtype=None):
        a = _cast(a, dtype)
        return op(a.ravel(), 0) if axis is None else op(a, axis)

    return scan


FUNCTIONS[np.cumsum] = _scan(scans.cumsum)
FUNCTIONS[np.cumprod] = _scan(scans.cumprod)
