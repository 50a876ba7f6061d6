"""Choosing between values: where, clamp, the larger and the smaller of two."""

from backlight.dtypes import from_numpy_dtype
from backlight.errors import GraphError
from backlight.graph.state import TensorState
from backlight.ops.declare import Array, Mask, op
from backlight.ops.masking import nonzero
from backlight.ops.promotion import common_dtype

__all__ = ["clamp", "clamp_max", "clamp_min", "clip", "fmax", "fmin", "maximum", "minimum", "where"]


@op(name="where", node="WhereBackward0", promote="same")
def chosen(xp, condition: Mask, input, other):
    """`input` where the condition holds, `other` elsewhere; all three broadcast."""
    return xp.where(condition, input, other)


@chosen.derivative("input", formula="grad where the condition holds, else 0")
def chosen_input(grad, condition, ops):
    return ops.where(condition, grad, ops.zeros_as(grad))


@chosen.derivative("other", formula="grad where the condition does not hold, else 0")
def chosen_other(grad, condition, ops):
    return ops.where(condition, ops.zeros_as(grad), grad)


@op
def zeros_as(xp, input):
    """A zero of the input's dtype, to be broadcast."""
    return input.dtype.type(0)


@op
def ones_as(xp, input):
    """A one of the input's dtype, to be broadcast."""
    return input.dtype.type(1)


def where(condition, input=None, other=None):
    """Return `input` where the condition holds and `other` elsewhere; with the condition alone, where it holds.

    Shapes: condition, input and other broadcast. With the condition alone: one int64 vector of places a dim.

    Raises:
        RuntimeError: the condition is not a tensor of bools.
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if isinstance(condition, TensorState) and condition._data.dtype.kind not in "bu":
        raise GraphError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{from_numpy_dtype(condition._data.dtype).old_name}; write a comparison, such as x > 0"
        )
    return chosen(condition, input, other)


@op(promote="same")
def maximum(xp, input, other):
    """The larger of two values; NaN if one is NaN."""
    return xp.maximum(input, other)


@maximum.derivative("input", formula="grad where input > other, half of it where equal")
def maximum_input(grad, input, other, ops):
    return grad * ops.shares(input, other, like=grad)


@maximum.derivative("other", formula="grad where other > input, half of it where equal")
def maximum_other(grad, input, other, ops):
    return grad * ops.shares(other, input, like=grad)


@op(promote="same")
def minimum(xp, input, other):
    """The smaller of two values; NaN if one is NaN."""
    return xp.minimum(input, other)


@minimum.derivative("input", formula="grad where input < other, half of it where equal")
def minimum_input(grad, input, other, ops):
    return grad * ops.shares(other, input, like=grad)


@minimum.derivative("other", formula="grad where other < input, half of it where equal")
def minimum_other(grad, input, other, ops):
    return grad * ops.shares(input, other, like=grad)


@op
def shares(xp, larger, smaller, *, like):
    """1 where `larger` is the larger (or `smaller` is NaN), ½ where both are equal, else 0; in the dtype of `like`."""
    return ((larger >= smaller).astype(like.dtype) + (larger > smaller).astype(like.dtype)) * like.dtype.type(0.5)


@op(promote="same")
def fmax(xp, input, other):
    """The larger of two values; the other one if one is NaN."""
    return xp.fmax(input, other)


@fmax.derivative("input", formula="grad where input ≥ other or other is NaN")
def fmax_input(grad, input, other, ops):
    return ops.where((input >= other) | ops.isnan(other), grad, ops.zeros_as(grad))


@fmax.derivative("other", formula="grad where input < other or input is NaN, and other is not NaN")
def fmax_other(grad, input, other, ops):
    return ops.where((input >= other) | ops.isnan(other), ops.zeros_as(grad), grad)


@op(promote="same")
def fmin(xp, input, other):
    """The smaller of two values; the other one if one is NaN."""
    return xp.fmin(input, other)


@fmin.derivative("input", formula="grad where input ≤ other or other is NaN")
def fmin_input(grad, input, other, ops):
    return ops.where((input <= other) | ops.isnan(other), grad, ops.zeros_as(grad))


@fmin.derivative("other", formula="grad where input > other or input is NaN, and other is not NaN")
def fmin_other(grad, input, other, ops):
    return ops.where((input <= other) | ops.isnan(other), ops.zeros_as(grad), grad)


@op(node="ClampBackward1")
def clamp_to_numbers(xp, input, min: float | None, max: float | None):
    """The input brought between two numbers, each of which may be None."""
    out = input if min is None else xp.maximum(input, input.dtype.type(min))
    return out if max is None else xp.minimum(out, input.dtype.type(max))


@clamp_to_numbers.derivative("input", formula="grad where min ≤ input ≤ max, else 0")
def clamp_to_numbers_input(grad, input, min, max, ops):
    inside = ops.isfinite(input) | ops.isinf(input)
    inside = inside if min is None else inside & (input >= min)
    inside = inside if max is None else inside & (input <= max)
    return ops.where(inside, grad, ops.zeros_as(grad))


@op(node="ClampBackward0", promote="same")
def clamp_to_tensors(xp, input, min: Array | None = None, max: Array | None = None):
    """The input brought between two tensors, each of which may be None."""
    out = input if min is None else xp.maximum(input, min)
    return out if max is None else xp.minimum(out, max)


@clamp_to_tensors.derivative("input", "min", "max", formula="grad to whichever of input, min and max is the result")
def clamp_to_tensors_gradients(grad, input, min, max, ops, needs):
    zero = ops.zeros_as(grad)
    below = None if min is None else input < min
    above = None if max is None else input > max
    if min is not None and max is not None:
        above = above | (max < min)
        below = below & (min < max)
        inside = (input >= min) & (input <= max)
    else:
        inside = (input >= min) if max is None else (input <= max)
    return (
        ops.where(inside, grad, zero) if needs[0] else None,
        ops.where(below, grad, zero) if needs[1] else None,
        ops.where(above, grad, zero) if needs[2] else None,
    )


def clamp(input, min=None, max=None):
    """Bring each element between `min` and `max`, numbers or tensors; either may be None.

    Raises:
        RuntimeError: both bounds are None.
    """
    if min is None and max is None:
        raise GraphError("torch.clamp: At least one of 'min' or 'max' must not be None; give one of the two")
    if isinstance(min, TensorState) or isinstance(max, TensorState):
        return clamp_to_tensors(input, *_as_tensors(input, min, max))
    if input._data.dtype.kind in "iub":
        kind = common_dtype([input._data], [bound for bound in (min, max) if bound is not None])
        input = input if kind == input._data.dtype else input.to(kind)
    return clamp_to_numbers(input, min, max)


def _as_tensors(input, *bounds):
    return [
        bound if bound is None or isinstance(bound, TensorState) else ones_as(input.detach()) * bound
        for bound in bounds
    ]


clip = clamp


def clamp_min(input, min):
    """Raise each element to at least `min`."""
    return clamp(input, min=min)


def clamp_max(input, max):
    """Lower each element to at most `max`."""
    return clamp(input, max=max)
