"""PyTorch's storages: the memory that tensors share, as an object; and `Tensor.set_`."""

import warnings
from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.devices import device
from backlight.dispatch.observation import end_write
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import LEAF, TensorState, memory_of, replace_memory, wrap, writable
from backlight.errors import ArgumentError, DimError, GraphError, ShapeError
from backlight.ops.inplace import begin_write, refuse_writing
from backlight.ops.linalg.matrix_products import small_name
from backlight.ops.shape.striding import strided_memory

DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
    "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)


class _Storage:
    """A block of memory, counted in `_unit`: equal to another over the same memory."""

    def __init__(self, memory: np.ndarray, unit: np.dtype):
        flat = memory.ravel(order="K")
        if memory.size and not np.shares_memory(flat, memory):
            raise ShapeError("a storage needs elements that lie without gaps in memory; call .contiguous() first")
        self._flat = flat.view(unit)

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return self._flat.__array_interface__["data"][0] if self._flat.size else 0

    def nbytes(self) -> int:
        """Return how many bytes there are."""
        return self._flat.nbytes

    def size(self) -> int:
        """Return how many elements there are."""
        return self._flat.size

    def element_size(self) -> int:
        """Return how many bytes an element takes."""
        return self._flat.itemsize

    def tolist(self) -> list:
        """Return the elements as Python numbers."""
        return self._flat.tolist()

    def is_shared(self) -> bool:
        """Whether the memory is shared with other processes: no."""
        return False

    def resizable(self) -> bool:
        """Whether the memory can grow: `Tensor.resize_` takes new memory instead."""
        return False

    @property
    def device(self):
        """The device: the CPU."""
        return device("cpu")

    def __len__(self) -> int:
        return self._flat.size

    def __getitem__(self, index: int | slice):
        if isinstance(index, slice):
            return type(self)(self._flat[index], self._flat.dtype)
        return self._flat[self._place(index)].item()

    def __setitem__(self, index: int | slice, value: float) -> None:
        self._flat[index if isinstance(index, slice) else self._place(index)] = value

    def _place(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise DimError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __iter__(self):
        return iter(self._flat.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Storage):
            return NotImplemented
        return (self.data_ptr(), self.nbytes()) == (other.data_ptr(), other.nbytes())

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def __repr__(self) -> str:
        return "".join(f" {value}\n" for value in self._flat.tolist()) + f"[{self._description()} of size {len(self)}]"


class UntypedStorage(_Storage):
    """A block of memory as bytes."""

    def _description(self) -> str:
        return "torch.storage.UntypedStorage(device=cpu)"


class TypedStorage(_Storage):
    """A block of memory as numbers of one dtype; deprecated in PyTorch in favour of UntypedStorage."""

    @property
    def dtype(self):
        """The dtype of the elements."""
        return from_numpy_dtype(self._flat.dtype)

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes."""
        return UntypedStorage(self._flat, np.dtype(np.uint8))

    def _description(self) -> str:
        return f"torch.storage.TypedStorage(dtype={self.dtype}, device=cpu)"


def untyped_storage(tensor: TensorState) -> UntypedStorage:
    """Return the memory that a tensor shares with its views, as bytes."""
    return UntypedStorage(memory_of(tensor), np.dtype(np.uint8))


def typed_storage(tensor: TensorState) -> TypedStorage:
    """Return the memory that a tensor shares with its views, as numbers of its dtype, and warn as PyTorch does."""
    warnings.warn(DEPRECATED, UserWarning, stacklevel=4)
    return TypedStorage(memory_of(tensor), tensor._data.dtype)


def show_memory(tensor, source: object, storage_offset: int, size, stride):
    """Replace the memory of a tensor, for `Tensor.set_`."""
    refuse_writing(tensor, "set_")
    if tensor._edge is LEAF:
        raise GraphError(
            "a leaf Variable that requires grad is being used in an in-place operation.\n  set_() has no derivative: "
            "call it inside torch.no_grad() on tensor.detach()"
        )
    if tensor._edge is not None:
        raise GraphError("set_() has no derivative: call it on tensor.detach()")
    shown = _shown(tensor, source, storage_offset, size, stride)
    begin_write(tensor, "set_")
    replace_memory(tensor, *shown)
    end_write(tensor)
    return tensor


def _shown(tensor, source: object, offset: int, size, stride) -> tuple[np.ndarray, np.ndarray]:
    """Return a view of the source's memory, and the array that holds all of it."""
    kind = tensor._data.dtype
    if source is None:
        made = np.empty(0, kind)
        return made, made
    if isinstance(source, _Storage):
        flat = source._flat.view(np.uint8)
        flat = flat[: flat.size // kind.itemsize * kind.itemsize].view(kind)
        size = (flat.size - offset,) if size is None else tuple(size)
        return strided_memory(wrap(flat), size, _steps(size, stride), offset), flat
    if not isinstance(source, TensorState):
        raise ArgumentError(
            f"set_() received an invalid combination of arguments - got ({type(source).__name__}), but expected a "
            "tensor or a storage"
        )
    if source._data.dtype != kind:
        names = [small_name(array.dtype) for array in (source._data, tensor._data)]
        raise ShapeError(f"Could not set tensor of type {names[0]} to a tensor of type {names[1]}")
    if source._edge is not None:
        raise GraphError("set_() has no derivative: pass source.detach()")
    if size is None:
        return writable(source), memory_of(source)
    return strided_memory(source, tuple(size), _steps(size, stride), offset), memory_of(source)


def _steps(size: Sequence[int] | None, stride: Sequence[int] | None) -> tuple:
    """Return the given strides, else contiguous ones."""
    return tuple(prod(size[dim + 1 :]) for dim in range(len(size))) if stride is None else tuple(stride)
