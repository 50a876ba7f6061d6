"""Choosing between values: where, clamp, the larger and the smaller of two."""

import warnings

import numpy as np

from backlight.codegen.declaration import Array, Mask, op
from backlight.codegen.runtime_support import is_number
from backlight.dispatch.arguments.parsing import wrong_kinds
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, ShapeError
from backlight.kernels.elementwise import masked_choice, unary
from backlight.ops.indexing.masking import nonzero
from backlight.ops.number_operands import like, no_bools, no_kernel, promoted_with
from backlight.ops.scalars import element
from backlight.ops.type_promotion import common_dtype

__all__ = ["clamp", "clamp_max", "clamp_min", "clip", "fmax", "fmin", "maximum", "minimum", "where"]


@op(name="where", promote="same", tangent="symmetric", complex="linear")
def chosen(xp, condition: Mask, input: Array, other: Array):
    """`input` where the condition holds, `other` elsewhere; all three broadcast."""
    return masked_choice.chosen(condition, input, other)


chosen.derivative("input", formula="grad where the condition holds, else 0")(
    lambda grad, condition, ops: ops.kept(grad, condition)
)
chosen.derivative("other", formula="grad where the condition does not hold, else 0")(
    lambda grad, condition, ops: ops.kept(grad, ~condition)
)


@op(node="WhereBackward0", tangent="symmetric", complex="linear")
def kept(xp, input: Array, mask: Array):
    """The input where the mask is true, 0 elsewhere; the mask is no larger than the input. For derivatives."""
    return masked_choice.kept(input, mask)


kept.derivative("input", formula="grad where the mask is true, else 0")(lambda grad, mask, ops: ops.kept(grad, mask))


def where(condition: TensorState, input: TensorState | float | None = None, other: TensorState | float | None = None):
    """Return `input` where the condition holds and `other` elsewhere; with the condition alone, where it holds.

    Shapes: condition, input and other broadcast. With the condition alone: one int64 vector of places a dim.

    Raises:
        RuntimeError: the condition is not a tensor of bools.
    """
    if not isinstance(condition, TensorState):
        raise ArgumentError(
            f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}"
        )
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where() missing 1 required positional argument")  # one of two
    if condition._data.dtype.kind != "b":
        condition = _as_mask(condition)
    if input.__class__ is not other.__class__:
        input, other = _as_branch(input, other), _as_branch(other, input)
    return chosen(condition, input, other)


def _as_branch(value: TensorState | float, other: TensorState | float):
    """Return a number as a 0-d tensor of the dtype that it has as an operand of `other`, if that can hold it."""
    if isinstance(value, TensorState) or not isinstance(other, TensorState) or not is_number(value):
        return value
    kind = common_dtype([other._data], [value.item() if isinstance(value, np.generic) else value])
    return wrap(np.asarray(element(value, kind, checks_halves=False)))


def _as_mask(condition: TensorState):
    kind = from_numpy_dtype(condition._data.dtype)
    if kind.old_name != "Byte":
        raise ShapeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {kind.old_name}; "
            "write a comparison, such as x > 0"
        )
    warnings.warn(
        "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version "
        "of PyTorch. Use a boolean condition instead.",
        UserWarning,
        stacklevel=3,
    )
    return wrap(condition._data != 0)


@op(node="WhereBackward0", tangent="symmetric")
def larger_share(xp, input: Array, larger: Array, smaller: Array):
    """The input where `larger` is the larger (or one is NaN), half of it where both are equal, else 0.

    For derivatives: the shapes of `larger` and `smaller` broadcast to that of the input.
    """
    out = masked_choice.kept(input, ~(larger < smaller))
    tied = larger == smaller
    return out * xp.where(tied, like(out, 0.5), like(out, 1)) if tied.any() else out


larger_share.derivative("input", formula="grad where larger > smaller, ½ · grad where equal, else 0")(
    lambda grad, larger, smaller, ops: ops.larger_share(grad, larger, smaller)
)


@op(promote="same", tangent="symmetric")
def maximum(xp, input: Array, other: Array):
    """The larger of two values; NaN if one is NaN."""
    return xp.maximum(input, other)


maximum.derivative("input", formula="grad where input > other, ½ · grad where equal, else 0")(
    lambda grad, input, other, ops: ops.larger_share(grad, input, other)
)
maximum.derivative("other", formula="grad where other > input, ½ · grad where equal, else 0")(
    lambda grad, input, other, ops: ops.larger_share(grad, other, input)
)


@op(promote="same", tangent="symmetric")
def minimum(xp, input: Array, other: Array):
    """The smaller of two values; NaN if one is NaN."""
    return xp.minimum(input, other)


minimum.derivative("input", formula="grad where input < other, ½ · grad where equal, else 0")(
    lambda grad, input, other, ops: ops.larger_share(grad, other, input)
)
minimum.derivative("other", formula="grad where other < input, ½ · grad where equal, else 0")(
    lambda grad, input, other, ops: ops.larger_share(grad, input, other)
)


@op(promote="same", tangent="symmetric")
def fmax(xp, input: Array, other: Array):
    """The larger of two values; the other one if one is NaN."""
    return xp.fmax(input, other)


fmax.derivative("input", formula="grad where input ≥ other or other is NaN, else 0")(
    lambda grad, input, other, ops: ops.kept(grad, (input >= other) | (other != other))
)
fmax.derivative("other", formula="grad where input does not get it")(
    lambda grad, input, other, ops: ops.kept(grad, ~((input >= other) | (other != other)))
)


@op(promote="same", tangent="symmetric")
def fmin(xp, input: Array, other: Array):
    """The smaller of two values; the other one if one is NaN."""
    return xp.fmin(input, other)


fmin.derivative("input", formula="grad where input ≤ other or other is NaN, else 0")(
    lambda grad, input, other, ops: ops.kept(grad, (input <= other) | (other != other))
)
fmin.derivative("other", formula="grad where input does not get it")(
    lambda grad, input, other, ops: ops.kept(grad, ~((input <= other) | (other != other)))
)


@op(node="ClampBackward1", tangent="symmetric")
def clamp_to_numbers(xp, input: Array, min: float | None, max: float | None):
    """The input brought between two numbers, each of which may be None."""
    if min is not None and max is not None and min == min and max == max and input.dtype.kind == "f":
        return unary.hardtanh(input, min, max)
    out = input if min is None else xp.maximum(input, like(input, min))
    return out if max is None else xp.minimum(out, like(input, max))


@clamp_to_numbers.derivative("input", formula="grad where min ≤ input ≤ max, else 0")
def clamp_to_numbers_input(grad: Array, input: Array, min: float | None, max: float | None, ops):
    inside = input >= (input if min is None else min)
    return ops.kept(grad, inside if max is None else inside & (input <= max))


@op(node="ClampMinBackward0", tangent="symmetric", dtype_error=no_bools("clamp_min_scalar_cpu"))
def clamp_min_number(xp, input: Array, min: float):
    """The input, raised to a number where it is below."""
    return xp.maximum(input, like(input, min))


clamp_min_number.derivative("input", formula="grad where input ≥ min, else 0")(
    lambda grad, input, min, ops: ops.kept(grad, input >= min)
)


@op(node="ClampMaxBackward0", tangent="symmetric", dtype_error=no_bools("clamp_max_scalar_cpu"))
def clamp_max_number(xp, input: Array, max: float):
    """The input, lowered to a number where it is above."""
    return xp.minimum(input, like(input, max))


clamp_max_number.derivative("input", formula="grad where input ≤ max, else 0")(
    lambda grad, input, max, ops: ops.kept(grad, input <= max)
)


@op(node="ClampMinBackward1", promote="same", tangent="symmetric")
def clamp_min_tensor(xp, input: Array, min: Array):
    """The input, raised to `min` where it is below."""
    return xp.maximum(input, min)


clamp_min_tensor.derivative("input", formula="grad where input ≥ min, else 0")(
    lambda grad, input, min, ops: ops.kept(grad, input >= min)
)
clamp_min_tensor.derivative("min", formula="grad where input < min, else 0")(
    lambda grad, input, min, ops: ops.kept(grad, input < min)
)


@op(node="ClampMaxBackward1", promote="same", tangent="symmetric")
def clamp_max_tensor(xp, input: Array, max: Array):
    """The input, lowered to `max` where it is above."""
    return xp.minimum(input, max)


clamp_max_tensor.derivative("input", formula="grad where input ≤ max, else 0")(
    lambda grad, input, max, ops: ops.kept(grad, input <= max)
)
clamp_max_tensor.derivative("max", formula="grad where input > max, else 0")(
    lambda grad, input, max, ops: ops.kept(grad, input > max)
)


@op(node="ClampBackward0", promote="same", tangent="symmetric")
def clamp_to_tensors(xp, input: Array, min: Array | None = None, max: Array | None = None):
    """The input brought between two tensors, each of which may be None."""
    out = input if min is None else xp.maximum(input, min)
    return out if max is None else xp.minimum(out, max)


@clamp_to_tensors.derivative("input", "min", "max", formula="grad to whichever of input, min and max is the result")
def clamp_to_tensors_gradients(
    grad: Array, input: Array, min: Array | None, max: Array | None, ops, needs: tuple[bool, ...]
):
    inside = input >= (input if min is None else min)
    inside = inside if max is None else inside & (input <= max)
    below = None if min is None else input < min
    above = None if max is None else input > max
    if min is not None and max is not None:
        below, above = below & (min < max), above | (max < min)
    places = (inside, below, above)
    return tuple([ops.kept(grad, place) if needed else None for place, needed in zip(places, needs)])


def clamp(input: TensorState, min: TensorState | float | None = None, max: TensorState | float | None = None):
    """Bring each element between `min` and `max`, numbers or tensors; either may be None.

    Raises:
        RuntimeError: both bounds are None.
    """
    if min is None and max is None:
        raise ShapeError("torch.clamp: At least one of 'min' or 'max' must not be None; give one of the two")
    if isinstance(min, TensorState) or isinstance(max, TensorState):
        if is_number(min) != is_number(max) and None not in (min, max):
            problem = wrong_kinds("clamp", (input, min, max), {}, False)
            if problem is not None:
                raise problem
        return clamp_to_tensors(input, _as_bound(input, min), _as_bound(input, max))
    if input._data.dtype.kind != "f" or not (
        (min is None or -65504.0 <= min <= 65504.0) and (max is None or -65504.0 <= max <= 65504.0)
    ):
        input = _taken(input, min, max)
    return clamp_to_numbers(input, min, max)


def _taken(input: TensorState, min: float | None, max: float | None):
    """Return the input in the dtype that it takes on with its bounds, which that dtype must hold.

    Floats hold every number up to float16's end, 65504: callers check larger ones only.
    """
    found = promoted_with(input, min, max)
    for bound in (min, max):
        if bound is not None:
            element(bound, found._data.dtype)
    if found._data.dtype.kind == "b":
        end = "_min_scalar" if max is None else "_max_scalar" if min is None else "_scalar"
        raise no_kernel(f"clamp{end}_cpu", found._data.dtype, "use logical_and or logical_or")
    return found


def _as_bound(input: TensorState, bound: TensorState | None):
    if bound is None or isinstance(bound, TensorState):
        return bound
    return wrap(like(promoted_with(input, bound)._data, bound))


clip = clamp


def clamp_min(input: TensorState, min: TensorState | float):
    """Raise each element to at least `min`, a number or a tensor."""
    if isinstance(min, TensorState):
        return clamp_min_tensor(input, min)
    if input._data.dtype.kind != "f" or not -65504.0 <= min <= 65504.0:
        input = _taken(input, min, None)
    return clamp_min_number(input, min)


def clamp_max(input: TensorState, max: TensorState | float):
    """Lower each element to at most `max`, a number or a tensor."""
    if isinstance(max, TensorState):
        return clamp_max_tensor(input, max)
    if input._data.dtype.kind != "f" or not -65504.0 <= max <= 65504.0:
        input = _taken(input, None, max)
    return clamp_max_number(input, max)
