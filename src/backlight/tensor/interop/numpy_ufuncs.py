"""NumPy's ufuncs on tensors: `np.exp(x)`, `np.add.reduce(x)`, `array * x`, with a gradient where one is required.

NOTE [NumPy's functions on tensors]
* If no tensor in the call requires grad, NumPy computes, and the result is of PyTorch's type: a tensor, or an array
  where PyTorch gives one.
* If one does, PyTorch raises. Here the op that computes the same is recorded, in the dtype that NumPy would choose.
* Functions without such an op, and options that cannot be recorded (`out=`, `where=`), raise PyTorch's error and why.
* A NumPy number is treated like Python's, as in PyTorch: `np.float64(2) * x` keeps the dtype of x.
"""

import numpy as np

from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, GraphError
from backlight.linalg import vecdot
from backlight.ops.elementwise import arithmetic, copying, division, powers, rounding, transcendental, where_clamp
from backlight.ops.linalg import matrix_products
from backlight.ops.reduction import extremes, reductions, scans
from backlight.tensor.creation import from_numpy

NO_NUMPY = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."


def _divmod(x, y):
    return division.floor_divide(x, y), division.remainder(x, y)


def _modf(x):
    return x - rounding.trunc(x), rounding.trunc(x)


OPERATORS = {
    np.add: arithmetic.add,
    np.subtract: arithmetic.sub,
    np.multiply: arithmetic.mul,
    np.divide: division.true_divide,
    np.floor_divide: division.floor_divide,
    np.remainder: division.remainder,
    np.power: powers.pow,
    np.matmul: matrix_products.matmul,
    np.divmod: _divmod,
}
COUNTERPARTS = {
    **OPERATORS,
    np.absolute: rounding.abs,
    np.arccos: transcendental.acos,
    np.arccosh: transcendental.acosh,
    np.arcsin: transcendental.asin,
    np.arcsinh: transcendental.asinh,
    np.arctan: transcendental.atan,
    np.arctan2: transcendental.atan2,
    np.arctanh: transcendental.atanh,
    np.ceil: rounding.ceil,
    np.conjugate: rounding.conj,
    np.copysign: rounding.copysign,
    np.cos: transcendental.cos,
    np.cosh: transcendental.cosh,
    np.deg2rad: transcendental.deg2rad,
    np.degrees: transcendental.rad2deg,
    np.exp: transcendental.exp,
    np.exp2: transcendental.exp2,
    np.expm1: transcendental.expm1,
    np.fabs: rounding.abs,
    np.float_power: powers.pow,
    np.floor: rounding.floor,
    np.fmax: where_clamp.fmax,
    np.fmin: where_clamp.fmin,
    np.fmod: division.fmod,
    np.hypot: powers.hypot,
    np.ldexp: powers.ldexp,
    np.log: transcendental.log,
    np.log10: transcendental.log10,
    np.log1p: transcendental.log1p,
    np.log2: transcendental.log2,
    np.logaddexp: powers.logaddexp,
    np.logaddexp2: powers.logaddexp2,
    np.maximum: where_clamp.maximum,
    np.minimum: where_clamp.minimum,
    np.modf: _modf,
    np.negative: rounding.neg,
    np.positive: rounding.positive,
    np.rad2deg: transcendental.rad2deg,
    np.radians: transcendental.deg2rad,
    np.reciprocal: powers.reciprocal,
    np.rint: rounding.round,
    np.sign: rounding.sign,
    np.sin: transcendental.sin,
    np.sinh: transcendental.sinh,
    np.sqrt: powers.sqrt,
    np.square: powers.square,
    np.tan: transcendental.tan,
    np.tanh: transcendental.tanh,
    np.trunc: rounding.trunc,
    np.vecdot: vecdot,
}
# These return bools, not uint8: Python's operators call them.
COMPARISONS = frozenset({np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal})
BITS = frozenset({np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert})
# Their results never have a gradient.
TESTS = COMPARISONS | {
    *(np.isfinite, np.isinf, np.isnan, np.signbit, np.logical_and, np.logical_not, np.logical_or, np.logical_xor),
}
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


def call_ufunc(ufunc, method: str, inputs: tuple, options: dict):
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
        return OPERATORS[ufunc](*inputs)
    recorded = any(isinstance(value, TensorState) and value.requires_grad for value in inputs)
    if recorded and ufunc not in TESTS:
        return _recorded(ufunc, method, inputs, options)
    results = getattr(ufunc, method)(*[detached_array(value) for value in inputs], **options)
    return results if method in ("outer", "at") or options.get("out") else _as_tensors(ufunc, results)


def _is_foreign(value) -> bool:
    """Tell whether a value is of a class that overrides ufuncs itself."""
    return not isinstance(value, (TensorState, np.ndarray, np.generic)) and hasattr(value, "__array_ufunc__")


def detached_array(value):
    """Return a tensor's values as an array, anything else as it is."""
    return np.asarray(value.detach() if value.requires_grad else value) if isinstance(value, TensorState) else value


def _as_tensors(ufunc, results):
    """Wrap NumPy's results as PyTorch does: bools become uint8, except for operators."""
    if isinstance(results, tuple):
        return tuple(_as_tensors(ufunc, result) for result in results)
    keeps = ufunc in COMPARISONS or ufunc in BITS
    return tensor_from(results if keeps or results.dtype != bool else results.astype(np.uint8))


def tensor_from(result):
    """Return a result of NumPy as a tensor."""
    return from_numpy(np.asarray(result))


def _recorded(ufunc, method: str, inputs: tuple, options: dict):
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


def no_counterpart(function, why: str) -> GraphError:
    """Return PyTorch's error for a NumPy function without a recorded counterpart."""
    return GraphError(f"{NO_NUMPY}\n  np.{function.__name__} cannot be recorded here: {why}")


def _called(ufunc, inputs: tuple, dtype=None, casting: str = "same_kind", order="K", subok: bool = True):
    if ufunc not in COUNTERPARTS:
        raise no_counterpart(ufunc, "there is no op with a derivative that computes the same")
    given = tuple(_kind(value) for value in inputs)
    options = {} if dtype is None else {"signature": (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout}
    kinds = ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout), casting=casting, **options)
    return COUNTERPARTS[ufunc](*[as_tensor(value, kind) for value, kind in zip(inputs, kinds)])


def _kind(value):
    """Return the dtype of an operand, or Python's type of a number, which adapts to the others."""
    if type(value) in (int, float):
        return type(value)
    return value._data.dtype if isinstance(value, TensorState) else np.asarray(value).dtype


def as_tensor(value, kind: np.dtype | None = None):
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


def axes_of(axis, ndim: int) -> tuple[int, ...]:
    """Return NumPy's axis (None, a number, a tuple) as non-negative dims."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(np.lib.array_utils.normalize_axis_tuple(axis, ndim))


def _accumulated(ufunc, array, axis=0, dtype=None, out=None):
    return SCANS[ufunc](as_tensor(array, None if dtype is None else np.dtype(dtype)), axis)
