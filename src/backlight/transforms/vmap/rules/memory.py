"""Batching rules of functions that read a tensor's memory: each element has its own storage offset."""

import math
from collections.abc import Callable, Sequence

from backlight.dispatch.interpreters import Interpreter
from backlight.errors import GraphError
from backlight.ops.shape import striding
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched
from backlight.transforms.vmap.function_rules import function_rule
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
