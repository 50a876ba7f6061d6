"""Batching rules of elementwise ops: align the batches in front, and call the op once."""

import numpy as np

from backlight.codegen.runtime_support import is_number
from backlight.engine.tensor_state import TensorState
from backlight.ops.elementwise.copying import cast, to_copy
from backlight.ops.type_promotion import common_dtype
from backlight.transforms.vmap.op_call import BatchedCall, names_in, rule_for

# Elementwise ops that do not declare it, because they do no type promotion.
PLAIN = frozenset(
    names_in(
        """
        abs alias bitwise_not ceil clamp_max_number clamp_min_number clamp_to_numbers clone conj_physical
        copysign_number elu_backward erf_backward fill_number gelu_backward hardshrink_backward hardsigmoid_backward
        hardswish_backward hardtanh_backward silu_backward softshrink_backward filling_number filling_zeros floor
        fmod_number frexp hardtanh isfinite isinf isnan isneginf isposinf isreal kept larger_share
        leaky_relu_backward log_sigmoid_backward logical_not masked_fill nan_to_num native_dropout
        native_dropout_backward neg pow_number relu relu_backward remainder_number round rsub_number scale sgn
        sigmoid_backward sign signbit softplus_backward tanh_backward threshold to_copy to_discrete trunc
        view_as_dtype
        """
    )
)


def elementwise(call: BatchedCall):
    """Align the batches in front, insert dims of size 1 where another operand has more dims, and call once."""
    args, kwargs = call.args, call.kwargs
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, TensorState)]
    dims = max([tensor._data.ndim for tensor in tensors])
    if call.op.promote and len(tensors) > 1 and any(not tensor._data.ndim for tensor in tensors):
        args, kwargs = _with_small_cast(call)
    if call.op.promote or len(tensors) == 1:
        aligned = call.padded
    else:  # the op broadcasts, but its gradients do not shrink

        def aligned(value: object, dims: int):
            return call.front_padded(value, dims) if isinstance(value, TensorState) else value

    args = [aligned(value, dims) for value in args]
    kwargs = {name: aligned(value, dims) for name, value in kwargs.items()}
    result = call.function(*args, **kwargs)
    return result if result is NotImplemented else call.wrapped(result)


@rule_for("to_format")
def to_format(call: BatchedCall):
    """Copy in the order of the physical tensor: a memory format counts the dims without the batch."""
    with call.inside():
        return to_copy(call["input"], call["kind"])


def _with_small_cast(call: BatchedCall) -> tuple:
    """Return the arguments with 0-d operands cast to the result's dtype: below they have a dim and would promote."""
    promoted = {param.name for param in call.op.arrays if param.promoted}
    operands = [call.given[name] for name in promoted]
    tensors = [value._data for value in operands if isinstance(value, TensorState)]
    if all(data.dtype == tensors[0].dtype for data in tensors):
        return call.args, call.kwargs
    kind = common_dtype(tensors, [value for value in operands if is_number(value)])
    names = [param.name for param in call.op.params]
    with call.inside():
        args = [_as_kind(value, kind) if name in promoted else value for name, value in zip(names, call.args)]
        kwargs = {name: _as_kind(one, kind) if name in promoted else one for name, one in call.kwargs.items()}
    return args, kwargs


def _as_kind(value: object, kind: np.dtype):
    return cast(value, kind) if isinstance(value, TensorState) and not value._data.ndim else value


@rule_for("masked_fill_tensor")
def masked_fill_tensor(call: BatchedCall):
    """The value has no dims, but may differ from element to element: choose by the mask."""
    with call.inside():
        value = cast(call["value"], call["input"]._data.dtype)
        return value.where(call["mask"], call["input"])


@rule_for("fill_tensor", "filling_tensor")
def fill_tensor(call: BatchedCall):
    """Fill separate memory for each element of the batch."""
    with call.inside():
        value = cast(call["value"], call["input"]._data.dtype)
        return value.expand(call["input"]._data.shape).clone()


@rule_for("copy")
def copy(call: BatchedCall):
    """Expand the source, then cast it."""
    with call.inside():
        source = call["src"].expand(call["input"]._data.shape)
        return cast(source, call["input"]._data.dtype)
