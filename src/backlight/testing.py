"""PyTorch's `torch.testing`: compare what a program gives with what it should give, and make tensors to try it on."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from backlight import dtypes
from backlight.dtypes import bool as bool_
from backlight.dtypes import complex128, dtype, finfo, float64, iinfo
from backlight.errors import ArgumentError, ValueProblem
from backlight.kernels.state_blocks import silent_floats
from backlight.layouts import memory_format
from backlight.ops.elementwise.complex_numbers import view_as_real
from backlight.ops.type_promotion import promote_types
from backlight.tensor.creation import from_numpy, tensor
from backlight.tensor.factories import empty
from backlight.tensor.random_factories import randint
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["assert_close", "make_tensor"]

_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
_TOLERANCES |= {"complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}


def assert_close(
    actual: object,
    expected: object,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable | None = None,
) -> None:
    """Raise unless |actual − expected| ≤ atol + rtol · |expected| everywhere.

    Args:
        actual: a tensor, an array, a number, None, or sequences and mappings of such.
        rtol: relative, with `atol`; the defaults depend on the dtypes, the larger of the two.
        equal_nan: whether NaN equals NaN.
        msg: said in place of the differences, or a function of what would be said.

    Raises:
        AssertionError: they differ, in values, dtype, shape or structure.
    """
    if (rtol is None) != (atol is None):
        absent = "rtol" if rtol is None else "atol"
        raise ValueProblem(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {absent}.")
    settings = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "dtype": check_dtype, "stride": check_stride}
    problem = _difference(actual, expected, settings, "", allow_subclasses)
    if problem is not None:
        raise AssertionError(problem if msg is None else msg(problem) if callable(msg) else msg)


def _difference(actual: object, expected: object, settings: dict, place: str, subclasses: bool) -> str | None:
    """Return what to say of the first difference, with its place in sequences and mappings; None where all is close."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if actual.keys() != expected.keys():
            missing, more = sorted(expected.keys() - actual.keys()), sorted(actual.keys() - expected.keys())
            return (
                f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {missing}\nAdditional "
                f"keys in the actual mapping: {more}"
            )
        return _first(((actual[key], expected[key], key) for key in expected), settings, place, subclasses)
    if _is_sequence(expected) and _is_sequence(actual):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
        parts = ((a, e, number) for number, (a, e) in enumerate(zip(actual, expected)))
        return _first(parts, settings, place, subclasses)
    if actual is None or expected is None:
        return None if actual is expected else f"None mismatch: {actual} is not {expected}"
    _check_kinds(actual, expected, subclasses)
    found = _of_tensors(actual, expected, settings)
    return found if found is None or not place else f"{found}\n\nThe failure occurred for item {place}"


def _first(parts: Iterable, settings: dict, place: str, subclasses: bool) -> str | None:
    found = (_difference(a, e, settings, f"{place}[{key!r}]", subclasses) for a, e, key in parts)
    return next((one for one in found if one is not None), None)


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _check_kinds(actual: object, expected: object, subclasses: bool) -> None:
    """Raise TypeError unless two values can be compared: both tensors or arrays, or both numbers."""
    kinds = (Tensor, np.ndarray)
    alike = isinstance(actual, kinds) == isinstance(expected, kinds)
    numbers = all(isinstance(one, (*kinds, int, float, complex, bool, np.generic)) for one in (actual, expected))
    same = type(actual) is type(expected) or subclasses
    if not (alike and numbers and same):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")


def _of_tensors(actual: object, expected: object, settings: dict) -> str | None:
    """Return what to say if two tensors, arrays or numbers differ."""
    if isinstance(expected, bool) and isinstance(actual, bool):
        return None if actual is expected else f"Booleans mismatch: {actual} is not {expected}"
    if settings["dtype"] and not isinstance(expected, Tensor) and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    a, e = (one if isinstance(one, Tensor) else _wide(one) for one in (actual, expected))
    if a.shape != e.shape:
        return f"The values for attribute 'shape' do not match: {a.shape} != {e.shape}."
    if settings["dtype"] and a.dtype != e.dtype:
        return f"The values for attribute 'dtype' do not match: {a.dtype} != {e.dtype}."
    if settings["stride"] and a.stride() != e.stride():
        return f"The values for attribute 'stride()' do not match: {a.stride()} != {e.stride()}."
    rtol, atol = _tolerances(a.dtype, e.dtype, settings)
    kind = promote_types(a._data.dtype, e._data.dtype)
    wide = kind if kind.kind in "fc" else np.dtype(np.float32 if kind.kind == "V" else np.int64)
    a, e = (np.asarray(one._data).astype(wide) for one in (a, e))
    close = np.isclose(a, e, rtol, atol, settings["equal_nan"])
    if close.all():
        return None
    with silent_floats():
        far = np.where(close, wide.type(0), abs(a - e))
        quotient = np.where(close, 0, far / abs(e))
    relative = quotient if wide.kind in "fc" else quotient.astype(np.float32)
    return _said("Tensor-likes" if a.ndim else "Scalars", (a, e), close, far, relative, rtol, atol)


def _wide(value: object) -> Tensor:
    """Return an array as a tensor, a number in the widest dtype of its kind."""
    if isinstance(value, np.ndarray):
        return from_numpy(value)
    return tensor(
        value, dtype=complex128 if isinstance(value, complex) else float64 if isinstance(value, float) else None
    )


def _tolerances(one: dtype, other: dtype, settings: dict) -> tuple[float, float]:
    if settings["rtol"] is not None:
        return settings["rtol"], settings["atol"]
    found = [_TOLERANCES.get(str(kind).removeprefix("torch."), (0.0, 0.0)) for kind in (one, other)]
    return max(found[0][0], found[1][0]), max(found[0][1], found[1][1])


def _said(what: str, pair, close, far, relative, rtol: float, atol: float) -> str:
    """Return PyTorch's words for how far two arrays are apart."""
    exact = rtol == atol == 0
    lines = [f"{what} are not {'equal' if exact else 'close'}!\n"]
    if what == "Scalars":
        lines.append(f"Expected {pair[1].item()} but got {pair[0].item()}.")
    else:
        wrong = int((~close).sum())
        lines.append(f"Mismatched elements: {wrong} / {close.size} ({wrong / close.size:.1%})")
    for name, values, allowed in (("absolute", far, atol), ("relative", relative, rtol)):
        place = np.unravel_index(int(np.argmax(values)), close.shape)
        index = tuple(int(one) for one in place)
        head = f"{name.title()} difference" if what == "Scalars" else f"Greatest {name} difference"
        at = "" if what == "Scalars" else f" at index {index}"
        lines.append(f"{head}: {values[index].item()}{at}" + ("" if exact else f" (up to {allowed} allowed)"))
    return "\n".join(lines)


# --- tensors to try a program on --------------------------------------------------------------------------------------


def make_tensor(
    *shape,
    dtype: dtype,
    device: Device = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Make a tensor of numbers drawn uniformly from [low, high), by default from −9 to 9 (bools: both).

    Args:
        noncontiguous: every other element of a tensor twice as large.
        exclude_zero: put the dtype's smallest normal number (of integers: 1) where 0 was drawn.

    Raises:
        ValueError: the limits leave no number, or options contradict each other.
    """
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ValueProblem(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and "
            f"{memory_format=}"
        )
    if not isinstance(dtype, dtypes.dtype):
        raise ArgumentError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor()")
    integral = not (dtype.is_floating_point or dtype.is_complex)
    if requires_grad and integral:
        raise ValueProblem(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    noncontiguous = noncontiguous and functools.reduce(lambda x, y: x * y, size, 1) > 1
    size = (*size[:-1], 2 * size[-1]) if noncontiguous else size
    low, high = _limits(dtype, low, high)
    if integral:
        made = randint(math.ceil(low), math.ceil(high), size, device=device, dtype=dtype)
    else:
        made = _drawn(empty(size, device=device, dtype=dtype), low, high)
    if noncontiguous:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        least = 1 if integral else finfo(dtype).tiny
        made[made == 0] = complex(least, least) if dtype.is_complex else least
    return made.requires_grad_(requires_grad) if requires_grad else made


def _drawn(made: Tensor, low: float, high: float) -> Tensor:
    if made.is_complex():
        _drawn(view_as_real(made), low, high)
        return made
    if high - low >= finfo(made.dtype).max:  # more than uniform_ takes
        return made.uniform_(low / 2, high / 2).mul_(2)
    return made.uniform_(low, high)


def _limits(kind: dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the limits of what is drawn, within what a dtype holds."""
    if kind is bool_:
        least, most, usual = 0, 2, (0, 2)
    elif not (kind.is_floating_point or kind.is_complex):
        least, most, usual = iinfo(kind).min, iinfo(kind).max + (iinfo(kind).bits < 64), (-9, 10)
    else:
        least, most, usual = finfo(kind).min, finfo(kind).max, (-9, 9)
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if low != low or high != high:
        raise ValueProblem(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high or (low == high and kind.kind in ("integer", "bool")):
        raise ValueProblem(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= most:
        raise ValueProblem(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {kind} only supports "
            f"[{least}, {most})"
        )
    return min(max(low, least), most), min(max(high, least), most)
