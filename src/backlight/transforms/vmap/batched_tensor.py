"""Batched tensors: the arguments of a function inside `vmap`, each in place of one element of the batch.

NOTE [Batched tensors]
A batched tensor has the shape and the dtype of one element; `physical` holds all elements, with the batch as the first
dim, and `level` is the vmap that it belongs to. Under two vmaps the physical tensor is itself batched, so the
outermost batch is the first dim of the innermost physical tensor. History and tangents are those of the physical
tensor. Its `_data` is a StandIn, which has a shape and a dtype and no values: reading values raises PyTorch's error
instead of giving wrong numbers.
"""

import textwrap

import numpy as np

from backlight.dispatch.interpreters import Interpreter
from backlight.engine.mutation_checks import BACKWARD_INSIDE
from backlight.engine.tensor_state import TensorState, new, storage_of
from backlight.errors import GraphError
from backlight.ops.dims import normalise_dim
from backlight.tensor.tensor import Tensor

DATA_DEPENDENT = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet, please file an issue at https://github.com/pytorch/pytorch/issues . The values differ from one element of "
    "the batch to the next: write the choice with torch.where, or loop over the batch"
)
ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
    "internals, please file a bug report. The tensor has another value for each element of the batch: keep it a tensor"
)
NO_STORAGE = (
    "Cannot access data pointer of Tensor that doesn't have storage: it has another value for each element of vmap's "
    "batch; read values outside of vmap"
)

BY_MASK = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with "
    "a boolean mask. Each element of the batch would give another number of values: use torch.where"
)


class StandIn:
    """A placeholder for an array that has only a shape and a dtype (see NOTE [Batched tensors])."""

    __slots__ = ("dtype", "ndim", "physical", "shape")

    of_a_batch = True

    def __init__(self, physical: Tensor):
        data = physical._data
        self.physical = physical
        self.shape = data.shape[1:]
        self.ndim = len(self.shape)
        self.dtype = data.dtype

    @property
    def size(self) -> int:
        """How many elements there are."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def itemsize(self) -> int:
        """How many bytes an element has."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """How many bytes the elements have together."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple:
        """The strides of a contiguous array of this shape."""
        strides, step = [], self.dtype.itemsize
        for length in reversed(self.shape):
            strides.append(step)
            step *= max(length, 1)
        return tuple(reversed(strides))

    @property
    def flags(self):
        """The flags of a contiguous array."""
        return np.empty(0).flags

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *args, **kwargs):
        raise GraphError(DATA_DEPENDENT)

    def __array_ufunc__(self, *args, **kwargs):
        raise GraphError(DATA_DEPENDENT)

    def __array_function__(self, *args, **kwargs):
        raise GraphError(DATA_DEPENDENT)

    def __bool__(self):
        raise GraphError(DATA_DEPENDENT)

    def item(self):
        """Raise: there is no single value."""
        raise GraphError(ITEM)

    __int__ = __float__ = __index__ = item

    def astype(self, kind: object):
        """Raise: the elements picked by a mask would differ in number."""
        raise GraphError(BY_MASK if self.dtype.kind == "b" else DATA_DEPENDENT)

    def tolist(self):
        """Raise: there are no values."""
        raise GraphError(NO_STORAGE)

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        raise GraphError(DATA_DEPENDENT)

    def _refuse(self, *others):
        raise GraphError(DATA_DEPENDENT)

    __getitem__ = __setitem__ = __iter__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _refuse
    __neg__ = __abs__ = __invert__ = __and__ = __or__ = __matmul__ = _refuse
    __hash__ = None


_raw_edge, _raw_storage = TensorState._edge, TensorState._storage


class BatchedTensor(Tensor):
    """Any one element of a batch (see NOTE [Batched tensors])."""

    __module__ = "backlight"
    __slots__ = ("level",)

    @property
    def physical(self):
        """All elements, with the batch as the first dim."""
        return self._data.physical

    @property
    def _edge(self):
        return self.physical._edge

    @_edge.setter
    def _edge(self, edge: object) -> None:
        self.physical._edge = edge

    @property
    def _storage(self):
        return storage_of(self.physical)

    @_storage.setter
    def _storage(self, storage: object) -> None:
        self.physical._storage = storage

    def item(self):
        """Raise: each element of the batch has its own value."""
        raise GraphError(ITEM)

    __int__ = __float__ = __complex__ = __index__ = item

    def __bool__(self) -> bool:
        raise GraphError(DATA_DEPENDENT)

    def numpy(self, *, force: bool = False):
        """Raise: each element of the batch has its own value."""
        raise GraphError(NO_STORAGE)

    tolist = data_ptr = numpy

    def stride(self, dim: int | None = None):
        """Return the strides, or the stride of one dim, of one element of the batch."""
        strides = self.physical.stride()[1:]
        return strides if dim is None else strides[normalise_dim(dim, len(strides))]

    def storage_offset(self):
        """Return the storage offset of the first element of the batch."""
        return self.physical.storage_offset()

    def detach(self):
        """Return a tensor that shares this one's memory and has no history."""
        return batched(self.physical.detach(), self.level)

    @property
    def data(self):
        """The tensor's memory without its history."""
        return batched(self.physical.data, self.level)

    def backward(self, *args: object, **kwargs: object) -> None:
        """Raise: inside a transform there is no `.grad` to accumulate into."""
        raise GraphError(BACKWARD_INSIDE)

    def __repr__(self) -> str:
        value = textwrap.indent(repr(self.physical), "    ")
        return f"BatchedTensor(lvl={self.level.depth}, bdim=0, value=\n{value}\n)"

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)


def batched(physical: Tensor, level: Interpreter) -> BatchedTensor:
    """Return the batched tensor over a tensor whose first dim is the batch."""
    made = new(BatchedTensor)
    made._data = StandIn(physical)
    made._view = None
    made.level = level
    _raw_edge.__set__(made, None)  # compiled code reads the slots directly, and must find nothing to record
    _raw_storage.__set__(made, None)
    return made
