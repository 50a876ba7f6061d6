"""Sparse tensors printed, cast, copied, pickled and read; what needs memory that they lack is refused."""

import numpy as np

from backlight.dispatch.interpreters import UNHANDLED
from backlight.dtypes import dtype, to_numpy_dtype
from backlight.engine.tensor_state import LEAF, TensorState, storage_of, wrap
from backlight.errors import ArgumentError, GraphError, UnsupportedError
from backlight.kernels.sparse_array import SparseArray, is_sparse
from backlight.layouts import layout, strided
from backlight.ops.elementwise.copying import as_type, type_name
from backlight.ops.sparse import coo
from backlight.ops.type_promotion import has_gradient
from backlight.tensor.creation import made
from backlight.tensor.pickling import deepcopy_attributes, own_attributes
from backlight.tensor.printing import sparse_string
from backlight.torch_api.legacy_constructors import recast


def representation(input: TensorState) -> str:
    return sparse_string(input, input._data.indices, input._data.values)


def detach(input: TensorState) -> TensorState:
    return wrap(input._data, None, storage_of(input))


def data_of(input: TensorState, *value: TensorState) -> TensorState | None:
    if not value:
        return wrap(input._data)
    if not is_sparse(input) or not is_sparse(value[0]):
        raise GraphError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type; "
            "both must be sparse, or both dense"
        )
    input._data = value[0]._data
    return None


def alias(input: TensorState) -> TensorState:
    return input


def clone(input: TensorState, *, memory_format: object = None) -> TensorState:
    return coo.sparse_clone(input)


def contiguous(input: TensorState, memory_format: object = None) -> TensorState:
    raise GraphError("unsupported memory format option Contiguous; a sparse tensor has no memory order")


def cast(input: TensorState, kind: np.dtype) -> TensorState:
    return input if input._data.dtype == kind else to_copy(input, kind)


def to_copy(input: TensorState, kind: np.dtype) -> TensorState:
    return coo.sparse_cast(input if has_gradient(kind) else input.detach(), kind)


def type_of(input: TensorState, dtype: dtype | str | None = None, non_blocking: bool = False):
    if dtype is None:
        return type_name(input._data.dtype).replace("torch.", "torch.sparse.")
    if isinstance(dtype, str) and dtype.startswith("torch.sparse."):
        return as_type(input, dtype.replace(".sparse", ""))
    return UNHANDLED


def is_contiguous(input: TensorState, memory_format: object = None) -> bool:
    return False


def only_value(input: TensorState):
    if input._data.size != 1:
        return UNHANDLED  # which raises
    return coo.sparse_to_dense(input.detach()).item()


def truth(input: TensorState) -> bool:
    return bool(only_value(input)) if input._data.size == 1 else UNHANDLED


def set_item(input: TensorState, index: object, value: object):
    raise ArgumentError("Cannot assign to a sparse tensor; make another one with torch.sparse_coo_tensor")


def numpy_of(input: TensorState, *, force: bool = False) -> np.ndarray:
    raise ArgumentError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")


def without_memory(input: TensorState, *given: object):
    raise UnsupportedError(
        "Cannot access storage of SparseTensorImpl; a sparse tensor has `_indices()` and `_values()`"
    )


def without_pointer(input: TensorState):
    raise GraphError("Cannot access data pointer of Tensor that doesn't have storage; see `_indices()` and `_values()`")


def reduce_ex(input: TensorState, protocol: int) -> tuple:
    data = input._data
    arguments = (type(input), data.indices, data.values, data.shape, data.coalesced, input.requires_grad)
    return rebuilt, (*arguments, own_attributes(input))


def rebuilt(cls: type, indices: np.ndarray, values: np.ndarray, shape: tuple, coalesced: bool, grad: bool, own: dict):
    """Return a sparse leaf from the parts of its pickle."""
    made = wrap(SparseArray(indices, values, shape, coalesced), LEAF if grad else None)
    made = made if cls is type(made) else recast(made, cls)
    made.__dict__.update(own)
    return made


def deepcopied(input: TensorState, memo: dict) -> TensorState:
    if not input.is_leaf:
        return UNHANDLED
    function, arguments = reduce_ex(input, 4)
    copied = memo[id(input)] = function(*arguments[:-1], {})
    copied._data = copied._data.copy()
    deepcopy_attributes(input, copied, memo)
    return copied


def zeros_like(input: TensorState, *, dtype: dtype | None = None, layout: layout | None = None, **options):
    kind = input._data.dtype if dtype is None else to_numpy_dtype(dtype)
    if layout is strided:
        return made(np.zeros(input._data.shape, kind), options.get("requires_grad", False), options.get("device"))
    data = input._data
    nothing = SparseArray(data.indices[:, :0], data.values[:0].astype(kind), data.shape)
    return wrap(nothing, LEAF if options.get("requires_grad") else None)
