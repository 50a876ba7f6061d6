"""Rules of what is written in place: what a batched tensor takes in goes into the memory that holds the whole batch."""

from backlight.batching.batched import BatchedTensor
from backlight.batching.wholes import in_place_rule, whole_rule
from backlight.errors import GraphError
from backlight.ops.copying import broadcast_into, copy_into
from backlight.ops.filling import fill_into, zero_into
from backlight.ops.indexing import set_where
from backlight.ops.inplace import check_fits
from backlight.ops.placing import put_at, put_into
from backlight.ops.striding import fill_diagonal_


def refused(name: str) -> GraphError:
    """Return PyTorch's error for a tensor that is the same for the whole batch and is to take in what is not."""
    return GraphError(
        f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
        "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over "
        f"in a vmap. Please try to use out-of-place operators instead of {name}. If said operator is being called "
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
        raise refused("index_put_" if name == "index_put_" else "inplace arithmetic")
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
        raise refused("inplace arithmetic")
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
        raise refused("inplace arithmetic")
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
        raise refused("index_put_")
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
