"""NumPy's ufuncs on tensors: `np.exp(x)`, `np.add.reduce(x)`, `array * x`, with a gradient where one is required.

NOTE [NumPy's functions on tensors]
* If no tensor in the call requires grad, NumPy computes, and the result is of PyTorch's type: a tensor, or an array
  where PyTorch gives one.
* If one does, PyTorch raises. Here the op that computes the same is recorded, in the dtype that NumPy would choose.
* Functions without such an op, and options that cannot be recorded (`out=`, `where=`), raise PyTorch's error and why.
* A NumPy number is treated like Python's, as in PyTorch: `np.float64(2) * x` keeps the dtype of x.
"""

from collections.abc import Callable
from types import ModuleType

import numpy as np

from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, GraphError
from backlight.linalg import vecdot
from backlight.ops.elementwise import (
    arithmetic,
    complex_numbers,
    copying,
    division,
    powers,
    rounding,
    transcendental,
    where_clamp,
)
from backlight.ops.linalg import matrix_products
from backlight.ops.reduction import extremes, reductions, scans
from backlight.tensor.creation import from_numpy

NO_NUMPY = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."


def _divmod(x: TensorState, y: TensorState):
    return division.floor_divide(x, y), division.remainder(x, y)


def _modf(x: TensorState):
    return x - rounding.trunc(x), rounding.trunc(x)


def _named(*families: tuple[ModuleType, str]) -> dict[str, Callable]:
    return {name: getattr(module, name) for module, names in families for name in names.split()}


# Ops under the names that NumPy's ufuncs share with the array API standard.
STANDARD = _named(
    (arithmetic, "add multiply subtract"),
    (complex_numbers, "conj"),
    (division, "floor_divide remainder"),
    (powers, "hypot logaddexp pow reciprocal sqrt square"),
    (rounding, "abs ceil copysign floor negative positive sign trunc"),
    (transcendental, "acos acosh asin asinh atan atan2 atanh cos cosh exp expm1 log log1p log2 log10"),
    (transcendental, "sin sinh tan tanh"),
    (where_clamp, "maximum minimum"),
) | {"divide": division.true_divide}
ONLY_NUMPY = _named(
    (division, "fmod"),
    (matrix_products, "matmul"),
    (powers, "ldexp logaddexp2"),
    (transcendental, "deg2rad exp2 rad2deg"),
    (where_clamp, "fmax fmin"),
) | {
    "degrees": transcendental.rad2deg,
    "divmod": _divmod,
    "fabs": rounding.abs,
    "float_power": powers.pow,
    "modf": _modf,
    "radians": transcendental.deg2rad,
    "rint": rounding.round,
    "vecdot": vecdot,
}
COUNTERPARTS = {getattr(np, name): op for name, op in (STANDARD | ONLY_NUMPY).items()}
# Called by Python's operators, where a number may be NumPy's.
OPERATORS = {np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.power, np.matmul, np.divmod}
# These return bools, not uint8: Python's operators call them.
COMPARISONS = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
BITS = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert}
# Their results never have a gradient.
TESTS = {np.isfinite, np.isinf, np.isnan, np.signbit, np.logical_and, np.logical_not, np.logical_or, np.logical_xor}
TESTS |= COMPARISONS
REDUCTIONS = {
    np.add: reductions.sum,
    np.multiply: reductions.prod,
    np.maximum: extremes.amax,
    np.minimum: extremes.amin,
    np.logaddexp: reductions.logsumexp,
}
SCANS = {
    np.add: scans.cumsum,
    np.multiply: scans.cumprod,
    np.maximum: lambda x, dim: scans.cummax(x, dim).values,
    np.minimum: lambda x, dim: scans.cummin(x, dim).values,
    np.logaddexp: scans.logcumsumexp,
}


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, options: dict):
    """Run `getattr(ufunc, method)(*inputs, **options)`, where at least one input is a tensor."""
    if any(_is_foreign(value) for value in (*inputs, *options.get("out", ()))):
        return NotImplemented
    if any(isinstance(value, TensorState) for value in options.get("out", ())):
        raise ArgumentError(
            f"return arrays must be of ArrayType; out= of np.{ufunc.__name__} cannot be a tensor: use the result, or "
            "backlight's function of this name, which has an out="
        )
    if method == "at" and isinstance(inputs[0], TensorState):
        raise ArgumentError(f"first operand must be array; a tensor has index_add_() for np.{ufunc.__name__}.at")
    if method == "__call__" and ufunc in OPERATORS and not options and any(isinstance(x, np.generic) for x in inputs):
        return COUNTERPARTS[ufunc](*inputs)
    recorded = any(isinstance(value, TensorState) and value.requires_grad for value in inputs)
    if recorded and ufunc not in TESTS:
        return _recorded(ufunc, method, inputs, options)
    results = getattr(ufunc, method)(*[detached_array(value) for value in inputs], **options)
    return results if method in ("outer", "at") or options.get("out") else _as_tensors(ufunc, results)


def _is_foreign(value: object) -> bool:
    """Tell whether a value is of a class that overrides ufuncs itself."""
    return not isinstance(value, (TensorState, np.ndarray, np.generic)) and hasattr(value, "__array_ufunc__")


def detached_array(value: object):
    """Return a tensor's values as an array, anything else as it is."""
    return np.asarray(value.detach() if value.requires_grad else value) if isinstance(value, TensorState) else value


def _as_tensors(ufunc: np.ufunc, results: np.ndarray | tuple):
    """Wrap NumPy's results as PyTorch does: bools become uint8, except for operators."""
    if isinstance(results, tuple):
        return tuple(_as_tensors(ufunc, result) for result in results)
    keeps = ufunc in COMPARISONS or ufunc in BITS
    return tensor_from(results if keeps or results.dtype != bool else results.astype(np.uint8))


def tensor_from(result: np.ndarray | np.generic):
    """Return a result of NumPy as a tensor."""
    return from_numpy(np.asarray(result))


def _recorded(ufunc: np.ufunc, method: str, inputs: tuple, options: dict):
    """Record the op that computes the same."""
    if options.get("out") is not None:
        raise no_counterpart(ufunc, "an array given as out= cannot remember how it was computed")
    if options.get("where", True) is not True:
        raise no_counterpart(ufunc, "where= leaves elements undefined: choose with np.where(condition, result, other)")
    if method == "__call__":
        return _called(ufunc, inputs, **options)
    if method == "outer":
        first, second = (as_tensor(value) for value in inputs)
        return _called(ufunc, (first.reshape((*first.shape, *(1,) * second.ndim)), second), **options)
    if method == "reduce" and ufunc in REDUCTIONS:
        return _reduced(ufunc, *inputs, **options)
    if method == "accumulate" and ufunc in SCANS:
        return _accumulated(ufunc, *inputs, **options)
    raise no_counterpart(ufunc, f"its method {method} has no derivative here")


def no_counterpart(function: Callable, why: str) -> GraphError:
    """Return PyTorch's error for a NumPy function without a recorded counterpart."""
    return GraphError(f"{NO_NUMPY}\n  np.{function.__name__} cannot be recorded here: {why}")


def _called(ufunc, inputs: tuple, dtype=None, casting: str = "same_kind", order: str = "K", subok: bool = True):
    if ufunc not in COUNTERPARTS:
        raise no_counterpart(ufunc, "there is no op with a derivative that computes the same")
    given = tuple(_kind(value) for value in inputs)
    options = {} if dtype is None else {"signature": (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout}
    kinds = ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout), casting=casting, **options)
    return COUNTERPARTS[ufunc](*[as_tensor(value, kind) for value, kind in zip(inputs, kinds)])


def _kind(value: object):
    """Return the dtype of an operand, or Python's type of a number, which adapts to the others."""
    if type(value) in (int, float):
        return type(value)
    return value._data.dtype if isinstance(value, TensorState) else np.asarray(value).dtype


def as_tensor(value: object, kind: np.dtype | None = None):
    """Return an operand as a tensor, of a dtype."""
    if not isinstance(value, TensorState):
        array = np.array(value, kind)
        from_numpy_dtype(array.dtype)
        return wrap(array if array.ndim else array[()])
    return value if kind is None or value._data.dtype == kind else copying.cast(value, kind)


def _reduced(ufunc, array, axis=0, dtype=None, out=None, keepdims: bool = False, initial=None, where=True):
    result = as_tensor(array, None if dtype is None else np.dtype(dtype))
    dims = axes_of(axis, result.ndim)
    for dim in sorted(dims, reverse=True) if ufunc is np.multiply else [dims] * bool(dims):
        result = REDUCTIONS[ufunc](result, dim, keepdims)
    return result if initial is None else COUNTERPARTS[ufunc](result, initial)


def axes_of(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """Return NumPy's axis (None, a number, a tuple) as non-negative dims."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(np.lib.array_utils.normalize_axis_tuple(axis, ndim))


def _accumulated(ufunc, array, axis=0, dtype=None, out: object = None):
    return SCANS[ufunc](as_tensor(array, None if dtype is None else np.dtype(dtype)), axis)


def alike(*values) -> list[TensorState]:
    """Return operands as tensors of the dtype that NumPy promotes them to."""
    kind = np.result_type(*[value if type(value) in (int, float) else _kind(value) for value in values])
    return [as_tensor(value, kind) for value in values]
