"""The fallback for every op: compute each element of the batch by itself, and stack the results."""

import warnings
from collections import Counter
from collections.abc import Callable

from backlight.dispatch.interpreters import Interpreter
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError
from backlight.ops.shape.joining import stack
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched
from backlight.transforms.vmap.op_call import BatchedCall

# How often each op fell back to the loop: shows which rules are missing.
counts: Counter[str] = Counter()


def loop_over_op(call: BatchedCall):
    """Run an op on each element of the batch, with PyTorch's warning that this is slow."""
    warn_of_loop(call.op.name)
    return loop_over_batch(call.level, call.function, call.args, call.kwargs)


def warn_of_loop(name: str) -> None:
    """Give PyTorch's warning."""
    counts[name] += 1
    warnings.warn(
        f"There is a performance drop because we have not yet implemented the batching rule for aten::{name}. Please "
        "file us an issue on GitHub so that we can prioritize its implementation. The elements of the batch are "
        "computed one after another",
        UserWarning,
        stacklevel=2,
    )


def loop_over_batch(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Call a function on each element of the batch, and stack the results."""
    if level.size == 0:
        raise GraphError(
            f"The fallback path does not support vmap over dims of size 0; {function.__name__} has no batching rule"
        )
    results = [
        function(*_element(level, args, number), **_element(level, kwargs, number)) for number in range(level.size)
    ]
    return _stacked(level, results, function.__name__)


def _element(level: Interpreter, value: object, number: int):
    """Return arguments in which each batched tensor of this vmap is replaced by one element of its batch."""
    if value.__class__ is BatchedTensor:
        return value.physical.select(0, number) if value.level is level else value
    if value.__class__ is tuple or value.__class__ is list:
        return value.__class__([_element(level, one, number) for one in value])
    if value.__class__ is dict:
        return {name: _element(level, one, number) for name, one in value.items()}
    return value


def _stacked(level: Interpreter, results: list, name: str):
    """Stack the results of the elements into batched tensors."""
    first = results[0]
    if isinstance(first, TensorState):
        if len({one._data.shape for one in results}) > 1:
            raise GraphError(
                "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
                f"aten::{name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this "
                "feature. Call it outside of vmap, or write what you need with torch.where"
            )
        return batched(stack(results), level)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*[_stacked(level, list(parts), name) for parts in zip(*results)])
    if isinstance(first, (tuple, list)):
        return type(first)([_stacked(level, list(parts), name) for parts in zip(*results)])
    return first
