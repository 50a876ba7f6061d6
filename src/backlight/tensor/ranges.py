"""Tensors of evenly spaced numbers, and the identity matrix."""

import math
import operator
import warnings

import numpy as np

from backlight import dtypes
from backlight.codegen.runtime_support import is_number
from backlight.dtypes import complex_dtype, dtype, from_numpy_dtype, to_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError, UnsupportedError, ValueProblem
from backlight.kernels.fused_multiply_add import multiply_add
from backlight.layouts import layout
from backlight.ops.number_operands import no_kernel, require_kernel
from backlight.ops.scalars import element
from backlight.ops.type_promotion import INT64, category, check_scalar
from backlight.sizes import require_memory, storage_errors
from backlight.tensor.creation import converted, made
from backlight.tensor.factories import float_dtype
from backlight.types import Device

__all__ = ["arange", "eye", "linspace", "logspace", "range"]


def arange(
    start: float | TensorState | None = None,
    end: float | TensorState | None = None,
    step: float | TensorState = 1,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """Make the numbers start, start + step, … that come before `end`: `arange(end)` or `arange(start, end, step)`.

    Ints give int64, and a float among them the default dtype.

    Raises:
        RuntimeError: `step` is 0, or leads away from `end`.
    """
    if start is not None and end is None:
        start, end = 0, start
    elif start is None:
        start = 0
    if end is None:
        raise ArgumentError("arange() missing 1 required positional arguments: 'end'; call arange(end)")
    start, end, step = (_number("arange", *given) for given in (("start", start), ("end", end), ("step", step)))
    kind = to_numpy_dtype(dtype) or _range_kind(start, end, step)
    require_kernel("arange_cpu", kind)
    if kind.kind in "bc":
        raise no_kernel("arange_cpu", kind, "make it with dtype=torch.int64, and compare or convert it")
    if kind == INT64:
        given = step
        start, end, step = map(_truncated, (start, end, step))
        if given and not step:
            raise ValueProblem("step must be nonzero; dtype=torch.int64 truncates it to 0")
    if not (-(2**63) <= start < 2**63 and -(2**63) <= end < 2**63 and -(2**63) <= step < 2**63):
        for limit in (start, end, step):
            if isinstance(limit, int):
                element(limit, INT64 if kind.kind in "iu" else kind)  # raises where it is too large
    count = math.ceil(_steps(start, end, step))
    return made(_spaced(start, step, count, kind), requires_grad, device, layout, pin_memory)


def range(start=0, end=None, step=1, *, dtype=None, layout=None, device=None, requires_grad=False):
    """Make the numbers start, start + step, … up to `end` itself. Deprecated: use `arange`."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        raise ArgumentError("range() missing 1 required positional arguments: 'end'")
    start, end, step = (_number("range", *given) for given in (("start", start), ("end", end), ("step", step)))
    kind = float_dtype(dtype)
    require_kernel("range_cpu", kind)
    if kind.kind in "bc":
        raise no_kernel("range_cpu", kind, "make it with dtype=torch.int64, and compare or convert it")
    if kind.kind in "iu":
        start, end, step = [element(limit, INT64).item() for limit in (start, end, step)]
    count = math.floor(_steps(start, end, step)) + 1
    return made(_spaced(start, step, count, kind), requires_grad, device, layout)


def _number(function: str, name: str, value):
    """Return a Python number, from a number or a tensor of one element."""
    if isinstance(value, TensorState) and value._data.size == 1:
        return value.item()
    if isinstance(value, np.generic):
        return value.item()
    if not is_number(value):
        raise ArgumentError(f"{function}(): argument '{name}' must be Number, not {type(value).__name__}")
    return value


def _range_kind(*limits) -> np.dtype:
    if any(isinstance(limit, float) for limit in limits):
        return dtypes.get_default_dtype().numpy
    return dtypes.int64.numpy


def _truncated(limit: float) -> float:
    """Truncate a limit of a range of ints to an integer."""
    return int(limit) if math.isfinite(limit) else limit


def _steps(start: float, end: float, step: float) -> float:
    """Return how many steps lead from `start` to `end`."""
    if not (step > 0 or step < 0):
        raise ShapeError("step must be nonzero")
    if not 0 <= (end - start) * step < math.inf:
        if not (math.isfinite(start) and math.isfinite(end)):
            raise ShapeError(f"unsupported range: {start} -> {end}")
        if (end - start) * step < 0:
            raise ShapeError(
                f"upper bound and lower bound inconsistent with step sign: {start} to {end} in steps of {step}"
            )
    steps = (end - start) / step
    if steps >= 2**63:
        raise ShapeError(f"invalid size, possible overflow? There are {steps:g} steps of {step} from {start} to {end}")
    return steps


@storage_errors
def _spaced(start: float, step: float, count: int, kind: np.dtype) -> np.ndarray:
    """Return start + i · step for i < count."""
    require_memory((count,), kind)
    if category(kind) == 1:
        return (_truncated(start) + _truncated(step) * np.arange(count)).astype(kind)
    return (start + step * np.arange(count, dtype=np.float64)).astype(kind)


def linspace(
    start: float | TensorState,
    end: float | TensorState,
    steps: int,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """Make `steps` evenly spaced numbers, from `start` up to `end` itself.

    Raises:
        RuntimeError: `steps` is negative.
    """
    kind = _spaced_kind("linspace", start, end, dtype)
    limits, count = _limits("linspace", start, end, kind), _count(steps)
    array = _between(*limits, count, kind).astype(kind, copy=False)
    return made(array, requires_grad, device, layout, pin_memory)


def logspace(
    start: float | TensorState,
    end: float | TensorState,
    steps: int,
    base: float = 10.0,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """Make `steps` powers of `base` with evenly spaced exponents, from `start` up to `end` itself."""
    kind = _spaced_kind("logspace", start, end, dtype)
    limits, count = _limits("logspace", start, end, kind), _count(steps)
    exponents = _between(*limits, count, kind).astype(np.complex128 if kind.kind in "cW" else np.float64)
    return made(converted(np.power(base, exponents), kind), requires_grad, device, layout, pin_memory)


def _spaced_kind(function: str, start, end, dtype: dtype | None) -> np.dtype:
    """Return the dtype of evenly spaced numbers: complex if an end is."""
    if not any(_is_complex(limit) for limit in (start, end)):
        return float_dtype(dtype)
    kind = complex_dtype(dtypes.get_default_dtype().numpy)
    if dtype is None:
        return kind
    if to_numpy_dtype(dtype).kind not in "cW":
        raise ShapeError(
            f"torch.{function}(): inferred dtype {from_numpy_dtype(kind).c_name} can't be safely cast to passed dtype "
            f"{from_numpy_dtype(to_numpy_dtype(dtype)).old_name}"
        )
    return to_numpy_dtype(dtype)


def _is_complex(limit) -> bool:
    return limit._data.dtype.kind in "cW" if isinstance(limit, TensorState) else isinstance(limit, complex)


def _limits(function: str, start: float | TensorState, end: float | TensorState, kind: np.dtype) -> tuple:
    """Return both ends as elements of a dtype, which must hold them."""
    require_kernel(f"{function}_cpu", kind)
    counts = [limit._data.ndim if isinstance(limit, TensorState) else 0 for limit in (start, end)]
    if any(counts):
        raise ShapeError(
            f"{function} only supports 0-dimensional start and end tensors, but got start with {counts[0]} "
            f"dimension(s) and end with {counts[1]} dimension(s)."
        )
    limits = _number(function, "start", start), _number(function, "end", end)
    if kind.kind == "b":
        for limit in limits:
            check_scalar(limit)
        raise UnsupportedError(f"\"{function}_cpu\" not implemented for 'Bool'; make it with dtype=torch.int64")
    return element(limits[0], kind), element(limits[1], kind)


def _count(steps: int) -> int:
    count = operator.index(steps)
    if count < 0:
        raise ShapeError(f"number of steps must be non-negative, got {count}")
    return count


@storage_errors
def _between(start: float, end: float, steps: int, kind: np.dtype) -> np.ndarray:
    """Return evenly spaced numbers, counted from the nearer end and rounded as PyTorch rounds them."""
    require_memory((steps,), kind)
    if category(kind) == 1:
        start, end, kind = int(start), int(end), np.dtype(np.float64)
    start, end = kind.type(start), kind.type(end)
    if steps <= 1:
        return np.full(steps, start)
    step = (end - start) / kind.type(steps - 1)
    numbers = np.arange(steps)
    if kind.kind in "cW":
        return np.where(numbers < steps // 2, start + step * numbers, end - step * numbers[::-1]).astype(kind)
    from_start = multiply_add(np.full(1, step), numbers.astype(kind), start)
    from_end = multiply_add(np.full(1, -step), numbers[::-1].astype(kind), end)
    return np.where(numbers < steps // 2, from_start, from_end)


@storage_errors
def eye(n: int, m: int | None = None, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Make a matrix of `n` rows and `m` columns (by default `n`) with 1 on the diagonal and 0 elsewhere."""
    rows = _side("n", n)
    columns, kind = rows if m is None else _side("m", m), float_dtype(dtype)
    require_kernel("eye", kind)
    array = np.eye(rows, columns, dtype=kind)
    return made(array, requires_grad, device, layout, pin_memory)


def _side(name: str, value: int) -> int:
    side = operator.index(value)
    if side < 0:
        raise ShapeError(f"{name} must be greater or equal to 0, got {side}")
    return side
