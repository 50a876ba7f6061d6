"""Batching rules of ops that reshape or move elements; most are views, and views of batches stay views."""

from math import prod

from backlight.engine.tensor_state import TensorState
from backlight.ops.dims import normalise_dim
from backlight.ops.shape.reshaping import check_size
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.op_call import BatchedCall, rule_for
from backlight.transforms.vmap.rules.dims import shift_dims, shifted_dims


@rule_for("reshape_alias", "unsafe_view", "view", "view_of_rows")
def view(call: BatchedCall):
    """Put the batch in front of the sizes."""
    input = call["input"]
    size = check_size(input._data, call["size"], "view")
    return call.run(size=(call.size, *size))


@rule_for("expand")
def expand(call: BatchedCall):
    """Insert dims of size 1 after the batch for the added dims, and expand those."""
    size = tuple(call["size"])
    return call.run(input=call.padded(call["input"], len(size)), size=(call.size, *size))


@rule_for("sum_to_size")
def sum_to_size(call: BatchedCall):
    """Sum with the batch in front, then remove the dims of size 1."""
    size, ndim = tuple(call["size"]), call["input"]._data.ndim
    full = (call.size, *(1,) * (ndim - len(size)), *size)
    return call.wrapped(call.run_below(size=full).reshape((call.size, *size)))


@rule_for("repeat")
def repeat(call: BatchedCall):
    """Repeat all but the batch."""
    repeats = tuple(call["repeats"])
    return call.run(input=call.padded(call["input"], len(repeats)), repeats=(1, *repeats))


@rule_for(
    """
    diagonal diagonal_copy select slice slice_copy split split_with_sizes squeeze squeeze_dims transpose unbind
    unfold unfold_copy unsafe_split
    """
)
def dims_moved_up(call: BatchedCall):
    """Shift the dims."""
    input = call["input"]
    ndim = input._data.ndim
    if not ndim:
        if call.op.name in ("unfold", "unfold_copy"):
            return call.wrapped(call.run_below(input=input.physical.unsqueeze(1), dimension=1).squeeze(1))
        return call.wrapped(input.physical)  # squeeze, transpose: nothing to do
    return call.run(**shifted_dims(call, ndim))


@rule_for("permute")
def permute(call: BatchedCall):
    """Keep the batch dim in place."""
    return call.run(dims=(0, *shift_dims(tuple(call["dims"]), call["input"]._data.ndim)))


@rule_for("unsqueeze")
def unsqueeze(call: BatchedCall):
    """Normalise the new dim, then shift it."""
    return call.run(dim=shift_dims(call["dim"], call["input"]._data.ndim + 1))


@rule_for("diag_embed")
def diag_embed(call: BatchedCall):
    """Normalise the dims of the result, then shift them."""
    return call.run(**shifted_dims(call, call["input"]._data.ndim + 1))


@rule_for("squeeze_all")
def squeeze_all(call: BatchedCall):
    """Squeeze the dims of size 1, but not the batch."""
    shape = call["input"]._data.shape
    return call.wrapped(call["input"].physical.squeeze([dim for dim, size in enumerate(shape, 1) if size == 1]))


@rule_for("t")
def transposed(call: BatchedCall):
    """Exchange the last two dims, if there are two."""
    physical = call["input"].physical
    return call.wrapped(physical.transpose(1, 2) if physical._data.ndim == 3 else physical)


@rule_for("constant_pad_nd", "pixel_shuffle", "pixel_unshuffle", "tril", "triu")
def unchanged(call: BatchedCall):
    """Run unchanged: the op counts dims from the last."""
    return call.run()


@rule_for("trace")
def trace(call: BatchedCall):
    """Sum the diagonal."""
    return call.wrapped(call["input"].physical.diagonal(0, 1, 2).sum(1))


@rule_for("roll")
def roll(call: BatchedCall):
    """Roll the shifted dims; where none is named, all elements, flattened."""
    input, dims = call["input"], call["dims"]
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        flat = call.run_below(input=input.physical.reshape((call.size, -1)), dims=(1,))
        return call.wrapped(flat.reshape((call.size, *input._data.shape)))
    return call.run(dims=shift_dims(dims, input._data.ndim))


@rule_for("rot90")
def rot90(call: BatchedCall):
    """Rotate in the plane of the shifted dims."""
    return call.run(dims=shift_dims(tuple(call["dims"]), call["input"]._data.ndim))


@rule_for("new_zeros")
def new_zeros(call: BatchedCall):
    """Allocate zeros for each element of the batch, since they may be written to."""
    return call.run(size=(call.size, *call["size"]))


@rule_for("diagonal_backward", "select_backward", "slice_backward")
def placed_in_zeros(call: BatchedCall):
    """Shift the dims of the larger shape."""
    sizes = tuple(call["input_sizes"])
    return call.run(input_sizes=(call.size, *sizes), **shifted_dims(call, len(sizes)))


@rule_for("unfold_backward")
def unfold_backward(call: BatchedCall):
    """Shift the dim of the larger shape."""
    sizes = tuple(call["input_sizes"])
    if not sizes:
        return call.run(grad_in=call.front(call["grad_in"]), input_sizes=(call.size, 1), dim=1)
    return call.run(input_sizes=(call.size, *sizes), dim=shift_dims(call["dim"], len(sizes)))


@rule_for("diagonal_scatter", "select_scatter", "slice_scatter")
def scattered(call: BatchedCall):
    """Shift the dims; both tensors have the batch in front."""
    given = {name: call.front(call[name]) for name in ("input", "src")}
    return call.run(**given, **shifted_dims(call, call["input"]._data.ndim))


@rule_for("cat")
def cat(call: BatchedCall):
    """Concatenate along the shifted dim; every tensor has the batch in front."""
    tensors = [one for one in call["tensors"] if one._data.shape != (0,)]  # PyTorch skips these, of any rank
    if len(tensors) < len(call["tensors"]) and all(one._data.ndim == 1 for one in tensors):
        tensors = call["tensors"]
    ndim = tensors[0]._data.ndim if tensors else 1
    return call.run(tensors=[call.front(one) for one in tensors or call["tensors"]], dim=shift_dims(call["dim"], ndim))


@rule_for("stack")
def stack(call: BatchedCall):
    """Stack along the shifted dim."""
    tensors = call["tensors"]
    dim = normalise_dim(call["dim"], tensors[0]._data.ndim + 1) + 1
    return call.run(tensors=[call.front(one) for one in tensors], dim=dim)


def folded(call: BatchedCall, *names: str, **changed):
    """Merge the batch into the first dim of the named tensors, run, and split the results again."""
    first = {}
    for name in names:
        value = call[name]
        if isinstance(value, TensorState):
            front = call.front(value)
            first[name] = front.reshape((prod(front._data.shape[:2]), *front._data.shape[2:]))
    result = call.run_below(**first, **changed)
    return call.wrapped(unfolded(call, result))


def unfolded(call: BatchedCall, result: Tensor | tuple):
    """Split the batch off the first dim."""
    if isinstance(result, tuple):
        parts = [unfolded(call, one) for one in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    shape = result._data.shape
    return result.reshape((call.size, shape[0] // call.size if call.size else 0, *shape[1:]))
