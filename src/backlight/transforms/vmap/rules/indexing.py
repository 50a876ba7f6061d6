"""Batching rules of indexing by tensors: the batch is one more dim, indexed by a range where indices are batched."""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.errors import GraphError
from backlight.ops.indexing.index_writes import index_at, put_at
from backlight.tensor.ranges import arange
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.loop_fallback import loop_over_op
from backlight.transforms.vmap.op_call import BatchedCall, rule_for
from backlight.transforms.vmap.rules.dims import shift_dims

MASKED_SELECT = (
    "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each "
    "batch this would return a differently shaped Tensor. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues if you need this feature. Use torch.where with a value for what the "
    "mask leaves out"
)
DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{}. Please "
    "file an issue at https://github.com/pytorch/pytorch/issues if you need this feature. Call it outside of vmap, or "
    "write what you need with torch.where"
)


def _adjacent(places: Sequence[int]) -> bool:
    return list(places) == list(range(places[0], places[0] + len(places)))


class _Placed:
    """An index with the batch as one more dim: its index tensors, their positions, and its dims in the result."""

    def __init__(self, call: BatchedCall, indices: Sequence[Tensor], places: Sequence[int]):
        self.rank = max(index._data.ndim for index in indices)
        numbers = arange(call.size).reshape((call.size, *(1,) * self.rank))
        self.indices = [numbers, *[call.front_padded(index, self.rank) for index in indices]]
        self.places = (0, *[place + 1 for place in places])
        self.before = places[0] if _adjacent(places) and not _adjacent(self.places) else 0

    def result(self, out: Tensor):
        """Move the dims of the index to their place in the physical result."""
        if not self.before:
            return out
        count, ndim = 1 + self.rank, out._data.ndim  # the index's dims come first, the batch among them
        order = [0, *range(count, count + self.before), *range(1, count), *range(count + self.before, ndim)]
        return out.permute(order)

    def values(self, call: BatchedCall, values: Tensor, shape: Sequence[int]):
        """Return values, which broadcast to the indexed shape, in the layout of the physical result."""
        if not self.before:
            return call.front_padded(values, len(shape))
        front = call.front_padded(values, len(shape)).expand((call.size, *shape))
        count, ndim = 1 + self.rank, 1 + len(shape)
        index = range(1 + self.before, 1 + self.before + self.rank)
        return front.permute([0, *index, *range(1, 1 + self.before), *range(count + self.before, ndim)])


@rule_for("index")
def index(call: BatchedCall):
    """Read: where only the input is batched, with shifted positions."""
    indices, places = call["indices"], tuple(call["places"])
    if not any(map(call.is_batched, indices)):
        out = call.run_below(places=tuple(place + 1 for place in places))
        if not _adjacent(places):  # the index's dims come first, and the batch after them
            rank = max(one._data.ndim for one in indices)
            out = out.movedim(rank, 0)
        return call.wrapped(out)
    placed = _Placed(call, indices, places)
    out = call.run_below(input=call.front(call["input"]), indices=placed.indices, places=placed.places)
    return call.wrapped(placed.result(out))


@rule_for("index_backward")
def index_backward(call: BatchedCall):
    """Add gradients at the indices that were read."""
    placed, shape = _Placed(call, call["indices"], tuple(call["places"])), tuple(call["shape"])
    grad = placed.values(call, call["grad_output"], call["grad_output"]._data.shape)
    return call.run(grad_output=grad, indices=placed.indices, places=placed.places, shape=(call.size, *shape))


@rule_for("index_put")
def index_put(call: BatchedCall):
    """Write values at the indices."""
    input, indices, places = call["input"], call["indices"], tuple(call["places"])
    placed = _Placed(call, indices, places)
    shape = _indexed_shape(input._data.shape, indices, places)
    values = placed.values(call, call["values"], shape)
    return call.run(input=call.front(input), values=values, indices=placed.indices, places=placed.places)


def _indexed_shape(shape: Sequence[int], indices: Sequence[Tensor], places: Sequence[int]) -> tuple:
    """Return the shape of the result of an index."""
    rank = max(one._data.ndim for one in indices)
    filled = [(*(1,) * (rank - one._data.ndim), *one._data.shape) for one in indices]
    index = [max(sizes) if 0 not in sizes else 0 for sizes in zip(*filled)]
    kept = [size for dim, size in enumerate(shape) if dim not in places]
    at = places[0] if _adjacent(places) else 0
    return (*kept[:at], *index, *kept[at:])


@rule_for("index_select")
def index_select(call: BatchedCall):
    """Read along the shifted dim; where indices are batched, with an index for each element."""
    input, index = call["input"], call["index"]
    if not call.is_batched(index):
        return call.run(dim=shift_dims(call["dim"], input._data.ndim)) if input._data.ndim else loop_over_op(call)
    with call.inside():
        ndim = input._data.ndim
        input, index = (input if ndim else input.reshape(1)), index.reshape(-1)
        out = index_at(input, [index], (shift_dims(call["dim"], ndim) - 1,))
        return out if ndim else out.reshape(())


@rule_for("index_add", "index_copy", "index_fill")
def along_same_index(call: BatchedCall):
    """Write along the shifted dim; where indices are batched, into each element's own rows."""
    input, index = call["input"], call["index"]
    if not input._data.ndim:
        return loop_over_op(call)
    if call.is_batched(index):
        return _along_own_index(call)
    given = {name: call.front(call[name]) for name in ("input", "source") if name in call.given}
    return call.run(**given, dim=shift_dims(call["dim"], input._data.ndim))


def _along_own_index(call: BatchedCall):
    dim = call["dim"]
    with call.inside():
        rows, index = call["input"].movedim(dim, 0), call["index"].reshape(-1)
        if call.op.name == "index_fill":
            out = put_at(rows, rows.new_full((), call["value"]), [index], (0,))
        else:
            source = call["source"]
            source = source.movedim(dim, 0) if source._data.ndim == rows._data.ndim > 1 else source.reshape(-1)
            adds, alpha = call.op.name == "index_add", call.given.get("alpha", 1)
            out = put_at(rows, source if alpha == 1 else source * alpha, [index], (0,), accumulate=adds)
        return out.movedim(0, dim)


@rule_for("index_fill_tensor")
def index_fill_tensor(call: BatchedCall):
    """The same, with a value that may differ."""
    input = call["input"]
    if call.is_batched(call["index"]) or call.is_batched(call["value"]) or not input._data.ndim:
        return loop_over_op(call)
    return call.run(dim=shift_dims(call["dim"], input._data.ndim))


@rule_for("take")
def take(call: BatchedCall):
    """Read from the flattened elements."""
    with call.inside():
        return index_at(call["input"].reshape(-1), [call["index"]], (0,))


@rule_for("masked_select")
def masked_select(call: BatchedCall):
    """Select the same positions of each element; batched masks would give results of different lengths."""
    if call.is_batched(call["mask"]):
        raise GraphError(MASKED_SELECT)
    return loop_over_op(call)


@rule_for("unique", "unique_dim", "unique_consecutive")
def unique(call: BatchedCall):
    """Raise: the results would differ in length."""
    raise GraphError(DYNAMIC.format({"unique": "_unique2"}.get(call.op.name, call.op.name)))


# --- flat positions: what derivatives of views and of writes to them are made of --------------------------------------


def _positions(call: BatchedCall, size: int):
    """Return the positions of all elements of the batch, one after the other."""
    positions = call["positions"]
    return np.arange(call.size).reshape((call.size, *(1,) * positions.ndim)) * size + positions


@rule_for("take_positions")
def take_positions(call: BatchedCall):
    """Take from each element's own part."""
    return call.run(positions=_positions(call, call["input"]._data.size))


@rule_for("add_positions")
def add_positions(call: BatchedCall):
    """Add to each element's own part."""
    shape = tuple(call["shape"])
    return call.run(shape=(call.size, *shape), positions=_positions(call, prod(shape)))


@rule_for("put_positions")
def put_positions(call: BatchedCall):
    """Replace in each element's own part."""
    given = {name: call.front(call[name]) for name in ("input", "values")}
    return call.run(**given, positions=_positions(call, call["input"]._data.size))
