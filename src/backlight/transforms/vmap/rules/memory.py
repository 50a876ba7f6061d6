"""Batching rules of functions that read a tensor's memory or write to it: the memory is that of the full batch."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from backlight.dispatch.interpreters import Interpreter
from backlight.engine.mutation_checks import refuse_captured
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ShapeError
from backlight.ops.elementwise.copying import broadcast_into, copy_into
from backlight.ops.elementwise.filling import fill_into, zero_into
from backlight.ops.indexing.getitem import set_where
from backlight.ops.indexing.index_writes import put_at, put_into
from backlight.ops.inplace import check_fits
from backlight.ops.shape import striding
from backlight.ops.shape.resizing import resize_
from backlight.ops.shape.striding import fill_diagonal_
from backlight.sizes import size_from
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.batched_tensor import BatchedTensor, StandIn, batched
from backlight.transforms.vmap.function_rules import function_rule, in_place_rule
from backlight.transforms.vmap.loop_fallback import loop_over_batch, warn_of_loop


@function_rule(striding.as_strided)
def as_strided(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Return a strided view of all elements: the requested view of the first, repeated at the batch's stride."""
    input, size, stride, offset = _given(*args, **kwargs)
    physical = input.physical
    _check_reach(physical, size, stride, physical.storage_offset() if offset is None else offset)
    steps = (physical.stride(0), *stride)
    return batched(physical.as_strided((level.size, *size), steps, offset), level)


def _given(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> tuple:
    return input, tuple(size), tuple(stride), storage_offset


def _check_reach(physical: Tensor, size: tuple, stride: tuple, offset: int) -> None:
    """Raise if a view would reach beyond the first element's own memory."""
    start = physical.storage_offset()
    last, own = _end(size, stride, offset), _end(physical.shape[1:], physical.stride()[1:], start)
    if last is None or (own is not None and last <= own and start <= offset):
        return
    reach = (
        "`tensor` has no storage but the passed-in (size, stride, storage_offset) imply a result with some storage."
        if own is None
        else f"`result` can access some memory in range [{offset}, {last}], but `tensor` can only access some memory "
        f"in range [{start}, {own}]."
    )
    raise GraphError(
        f"result = tensor.as_strided({list(size)}, {list(stride)}, {offset}) can access memory outside of `tensor`. "
        f"{reach} This is not supported inside of vmap, please try to rewrite the `as_strided` call as a sequence of "
        "PyTorch view operations"
    )


def _end(size: Sequence[int], stride: Sequence[int], offset: int) -> int | None:
    """Return the offset after the last element of a view; None if it is empty."""
    if not math.prod(size):
        return None
    return offset + 1 + sum((length - 1) * step for length, step in zip(size, stride))


@function_rule(striding.as_strided_scatter)
def as_strided_scatter(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Run on each element by itself, with the offset relative to its own memory."""
    input, src, size, stride, offset = _scattered(*args, **kwargs)
    warn_of_loop(function.__name__)
    batches = input.__class__ is BatchedTensor and input.level is level
    if not batches or offset is None:
        return loop_over_batch(level, function, (input, src, size, stride, offset), {})
    further = offset - input.physical.storage_offset()

    def one(tensor: Tensor, part: Tensor):
        return function(tensor, part, size, stride, tensor.storage_offset() + further)

    return loop_over_batch(level, one, (input, src), {})


def _scattered(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> tuple:
    return input, src, tuple(size), tuple(stride), storage_offset


# How PyTorch's error names the op: by its name, by its family; all others by their name in aten.
_BY_NAME = {"fill_", "index_add_", "index_put_", "scatter_add_", "scatter_reduce_"}
_ARITHMETIC = {"clamp_max_", "clamp_min_", "copy_", "div_", "mul_", "sub_", "masked_fill_"}
_ARITHMETIC |= {"logical_and_", "logical_or_", "logical_xor_", "bitwise_and_", "bitwise_or_", "bitwise_xor_"}
_BY_SHAPE = {"add_", "arctan2_", "atan2_"}


def refused(level: Interpreter, name: str, target: Tensor, *others) -> Exception:
    """Return PyTorch's error for a batched value written to an unbatched tensor."""
    refuse_captured(target, name, others)
    if name in _BY_SHAPE:
        shapes = [one._data.shape for one in (target, *others) if isinstance(one, TensorState)]
        return ShapeError(
            f"output with shape {list(target._data.shape)} doesn't match the broadcast shape "
            f"{[level.size, *np.broadcast_shapes(*shapes)]}; the tensor has room for one element of vmap's batch "
            "only, and what is written differs from element to element: compute a new tensor instead"
        )
    where = "in a vmap"
    if name == "masked_fill_" and isinstance(others[-1], TensorState):
        name, where = "aten::masked_fill_", f"at level {level.depth}"
    elif name in _ARITHMETIC:
        name = "inplace arithmetic"
    elif name not in _BY_NAME:
        where = f"at level {level.depth}"
        name = f"aten::{name}"
    return GraphError(
        f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
        "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over "
        f"{where}. Please try to use out-of-place operators instead of {name}. If said operator is being called "
        "inside the PyTorch framework, please file a bug report instead. The tensor has room for one element of the "
        "batch only: make it of a batched one (x.new_zeros(…), torch.zeros_like(x)) or compute a new tensor"
    )


def is_batched_by(level: Interpreter, target: Tensor) -> bool:
    """Tell whether a tensor is batched by a vmap."""
    return target.__class__ is BatchedTensor and target.level is level


@in_place_rule("writes")
def written(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Compute out of place, from a copy of the target, and copy the result into the target's memory."""
    return _written(level, function.writes, function.writes_as, args, kwargs)


def _written(level: Interpreter, public: Callable, name: str, args: tuple, kwargs: dict):
    target = args[0]
    if not is_batched_by(level, target):
        raise refused(level, name, *args, *kwargs.values())
    with level.reenter():
        result = public(target.clone(), *args[1:], **kwargs)
        check_fits(target, result)
    copy_into(target.physical, result.physical if is_batched_by(level, result) else result)
    return target


@function_rule(put_into)
def put(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """The same as `written`."""
    return _written(level, put_at, "index_put_", args, kwargs)


@function_rule(copy_into)
def copied(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Copy into the memory of the full batch, with the batches aligned."""
    target, source = args[0], kwargs.get("src", args[1] if len(args) > 1 else None)
    if not is_batched_by(level, target):
        raise refused(level, "copy_", target, source)
    broadcast_into(source._data.shape, target._data.shape)
    if is_batched_by(level, source):
        missing, shape = target._data.ndim - source._data.ndim, source._data.shape
        source = source.physical
        if missing:
            source = source.reshape((level.size, *(1,) * missing, *shape))
    copy_into(target.physical, source)
    return target


@function_rule(fill_into)
def filled(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Fill the memory of the full batch; a batched value is copied into its element."""
    target, value = args
    if not is_batched_by(level, target):
        raise refused(level, "fill_", target, value)
    if is_batched_by(level, value):
        with level.reenter():
            copy_into(target, value)
    else:
        fill_into(target.physical, value)
    return target


@function_rule(zero_into)
def zeroed(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Write zeros to the memory of the full batch."""
    zero_into(args[0].physical)
    return args[0]


@function_rule(fill_diagonal_, set_where)
def one_by_one(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Write into the memory of each element of the batch by itself."""
    target = args[0]
    if not is_batched_by(level, target):
        raise refused(level, "index_put_" if function is set_where else "fill_diagonal_", *args)
    for number in range(level.size):
        own = [one.physical.select(0, number) if is_batched_by(level, one) else one for one in args]
        function(*own, **kwargs)
    return target


@in_place_rule("reshapes")
def reshaped(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Reshape the tensor in place: squeeze_, transpose_ and similar."""
    target = args[0]
    with level.reenter():
        out = function.reshapes(target, *args[1:], **kwargs)
    target._data = out._data
    return target


@function_rule(resize_)
def resized(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Resize the memory of the full batch, with the batch in front."""
    target, *sizes = args
    function(target.physical, (level.size, *size_from("resize_", sizes)))
    target._data = StandIn(target.physical)
    return target
