"""Rules of what is written in place: what a batched tensor takes in goes into the memory that holds the whole batch."""

import numpy as np

from backlight.engine.mutation_checks import refuse_captured
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ShapeError
from backlight.ops.elementwise.copying import broadcast_into, copy_into
from backlight.ops.elementwise.filling import fill_into, zero_into
from backlight.ops.indexing.getitem import set_where
from backlight.ops.indexing.index_writes import put_at, put_into
from backlight.ops.inplace import check_fits
from backlight.ops.shape.resizing import resize_
from backlight.ops.shape.striding import fill_diagonal_
from backlight.sizes import size_from
from backlight.transforms.vmap.batched_tensor import BatchedTensor, StandIn
from backlight.transforms.vmap.function_rules import in_place_rule, whole_rule

# What PyTorch calls the op in its error: by its name, by a family's; all others by their name in aten.
_BY_NAME = {"fill_", "index_add_", "index_put_", "scatter_add_", "scatter_reduce_"}
_ARITHMETIC = {"clamp_max_", "clamp_min_", "copy_", "div_", "mul_", "sub_", "masked_fill_"}
_ARITHMETIC |= {"logical_and_", "logical_or_", "logical_xor_", "bitwise_and_", "bitwise_or_", "bitwise_xor_"}
_BY_SHAPE = {"add_", "arctan2_", "atan2_"}


def refused(batching, name: str, target, *others) -> Exception:
    """Return PyTorch's error for a tensor that is the same for the whole batch and is to take in what is not."""
    refuse_captured(target, name, others)
    if name in _BY_SHAPE:
        shapes = [one._data.shape for one in (target, *others) if isinstance(one, TensorState)]
        return ShapeError(
            f"output with shape {list(target._data.shape)} doesn't match the broadcast shape "
            f"{[batching.size, *np.broadcast_shapes(*shapes)]}; the tensor has room for one element of vmap's batch "
            "only, and what is written differs from element to element: compute a new tensor instead"
        )
    where = "in a vmap"
    if name == "masked_fill_" and isinstance(others[-1], TensorState):
        name, where = "aten::masked_fill_", f"at level {batching.depth}"
    elif name in _ARITHMETIC:
        name = "inplace arithmetic"
    elif name not in _BY_NAME:
        where = f"at level {batching.depth}"
        name = f"aten::{name}"
    return GraphError(
        f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
        "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over "
        f"{where}. Please try to use out-of-place operators instead of {name}. If said operator is being called "
        "inside the PyTorch framework, please file a bug report instead. The tensor has room for one element of the "
        "batch only: make it of a batched one (x.new_zeros(…), torch.zeros_like(x)) or compute a new tensor"
    )


def takes_in(batching, target) -> bool:
    """Tell whether a tensor is batched by a vmap."""
    return target.__class__ is BatchedTensor and target.batching is batching


@in_place_rule("writes")
def written(batching, function, args, kwargs):
    """Compute out of place, from a copy of the target, and copy the result into the target's memory."""
    return _written(batching, function.writes, function.__name__, args, kwargs)


def _written(batching, public, name: str, args, kwargs):
    target = args[0]
    if not takes_in(batching, target):
        raise refused(batching, name, *args, *kwargs.values())
    with batching.again():
        result = public(target.clone(), *args[1:], **kwargs)
        check_fits(target, result)
    copy_into(target.physical, result.physical if takes_in(batching, result) else result)
    return target


@whole_rule(put_into)
def put(batching, function, args, kwargs):
    """Do what `written` does."""
    return _written(batching, put_at, "index_put_", args, kwargs)


@whole_rule(copy_into)
def copied(batching, function, args, kwargs):
    """Copy into the memory of the whole batch, with the batches in line."""
    target, source = args[0], kwargs.get("src", args[1] if len(args) > 1 else None)
    if not takes_in(batching, target):
        raise refused(batching, "copy_", target, source)
    broadcast_into(source._data.shape, target._data.shape)
    if takes_in(batching, source):
        missing, shape = target._data.ndim - source._data.ndim, source._data.shape
        source = source.physical
        if missing:
            source = source.reshape((batching.size, *(1,) * missing, *shape))
    copy_into(target.physical, source)
    return target


@whole_rule(fill_into)
def filled(batching, function, args, kwargs):
    """Fill the memory of the whole batch; a value that is batched is copied into its own element."""
    target, value = args
    if not takes_in(batching, target):
        raise refused(batching, "fill_", target, value)
    if takes_in(batching, value):
        with batching.again():
            copy_into(target, value)
    else:
        fill_into(target.physical, value)
    return target


@whole_rule(zero_into)
def zeroed(batching, function, args, kwargs):
    """Write zeros to the memory of the whole batch."""
    zero_into(args[0].physical)
    return args[0]


@whole_rule(fill_diagonal_, set_where)
def one_by_one(batching, function, args, kwargs):
    """Write into the memory of each element of the batch by itself."""
    target = args[0]
    if not takes_in(batching, target):
        raise refused(batching, "index_put_" if function is set_where else "fill_diagonal_", *args)
    for number in range(batching.size):
        own = [one.physical.select(0, number) if takes_in(batching, one) else one for one in args]
        function(*own, **kwargs)
    return target


@in_place_rule("reshapes")
def reshaped(batching, function, args, kwargs):
    """Let the tensor itself take another shape: squeeze_, transpose_ and their like."""
    target = args[0]
    with batching.again():
        out = function.reshapes(target, *args[1:], **kwargs)
    target._data = out._data
    return target


@whole_rule(resize_)
def resized(batching, function, args, kwargs):
    """Let the memory of the whole batch take on another size, with the batch in front."""
    target, *sizes = args
    function(target.physical, (batching.size, *size_from("resize_", sizes)))
    target._data = StandIn(target.physical)
    return target
