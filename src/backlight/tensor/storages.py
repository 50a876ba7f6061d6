"""PyTorch's storages: the memory that tensors share, as an object; and `Tensor.set_`."""

import operator
import os
from collections.abc import Sequence

import numpy as np

from backlight import dtypes
from backlight.devices import device, require_cpu
from backlight.dispatch.arguments.kinds import is_int
from backlight.dispatch.arguments.parsing import kind_of
from backlight.dtypes import dtype, from_numpy_dtype, get_default_dtype, to_numpy_dtype
from backlight.engine.tensor_state import TensorState, memory_of
from backlight.errors import ArgumentError, DimError, GraphError, ShapeError
from backlight.sizes import unwritten
from backlight.system.user_warnings import warn_once
from backlight.tensor.mapped_files import mapped_file
from backlight.types import Device

__all__ = [
    *(f"{kind.old_name}Storage" for kind in dtypes.OLD),
    "Storage",
    "TypedStorage",
    "UntypedStorage",
]

DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
    "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)


class _Storage:
    """A block of memory, counted in elements of a type: equal to another over the same memory."""

    _flat: np.ndarray
    _resizable = False  # whether no tensor counts on the memory

    @classmethod
    def _over(cls, memory: np.ndarray, unit: np.dtype):
        """Return the storage over an array's memory."""
        flat = memory.ravel(order="K")
        if memory.size and not np.shares_memory(flat, memory):
            raise ShapeError("a storage needs elements that lie without gaps in memory; call .contiguous() first")
        made = object.__new__(cls)
        made._flat = flat.view(unit)
        return made

    @classmethod
    def _own(cls, given: tuple, unit: np.dtype):
        """Return a storage with memory of its own: of a size, uninitialised, or of the elements of a sequence."""
        (source,) = given or (0,)
        if isinstance(source, Sequence):
            memory = np.array(source, dtype=unit)
        else:
            memory = unwritten((operator.index(source),), unit)
        made = cls._over(memory, unit)
        made._resizable = True
        return made

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
        """Whether the memory can grow: if no tensor uses it. `Tensor.resize_` takes new memory."""
        return self._resizable

    def resize_(self, size: int):
        """Change the number of elements, and return the storage.

        Raises:
            RuntimeError: a tensor uses the memory.
        """
        if not self._resizable:
            raise GraphError(
                "Trying to resize storage that is not resizable: a tensor uses it; call resize_() of the tensor"
            )
        grown = np.empty(size, self._flat.dtype)
        kept = min(size, self._flat.size)
        grown[:kept] = self._flat[:kept]
        self._flat = grown
        return self

    def fill_(self, value: float):
        """Set all elements, and return the storage."""
        self._flat[...] = value
        return self

    def copy_(self, source: "_Storage", non_blocking: bool = False):
        """Take the elements of another storage of as many elements, and return the storage.

        Raises:
            RuntimeError: it has more or fewer.
        """
        if len(source) != len(self):
            raise GraphError(f"size does not match, self was {len(self)} bytes but src was {len(source)} bytes")
        self._flat[...] = source._flat
        return self

    def clone(self):
        """Return a copy."""
        return type(self)._over(self._flat.copy(), self._flat.dtype)

    def cpu(self):
        """Return the storage itself: it is on the CPU."""
        return self

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on an NVIDIA GPU: no."""
        return False

    @property
    def is_sparse(self) -> bool:
        """Whether it is of a sparse tensor: no."""
        return False

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    @property
    def device(self):
        """The device: the CPU."""
        return device("cpu")

    def __len__(self) -> int:
        return self._flat.size

    def __getitem__(self, index: int | slice):
        if isinstance(index, slice):
            return self._over(self._flat[index], self._flat.dtype)
        return self._flat[self._place(index)].item()

    def __setitem__(self, index: int | slice, value: float) -> None:
        self._flat[index if isinstance(index, slice) else self._place(index)] = value

    def _place(self, index: int) -> int:
        if not is_int(index):
            raise GraphError(f"can't index a <class 'torch.storage.{type(self).__name__}'> with {type(index)}")
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
        return " " + "\n ".join(map(str, self._flat.tolist())) + f"\n[{self._description()} of size {len(self)}]"


class UntypedStorage(_Storage):
    """A block of memory as bytes: `UntypedStorage(size)`, `UntypedStorage(numbers)`."""

    def __new__(cls, *given, device: Device = None):
        """Make a storage with memory of its own."""
        require_cpu(device)
        odd = [one for one in given[:1] if not is_int(one) and not isinstance(one, Sequence)]
        if len(given) > 1 or odd:
            raise ArgumentError(
                "torch.UntypedStorage() received an invalid combination of arguments - got "
                f"({', '.join(map(kind_of, given))}), but expected one of:\n * (*, torch.device device)\n"
                " * (int size, *, torch.device device)\n * (object data, *, torch.device device)"
            )
        for one in given[0] if given and isinstance(given[0], Sequence) else ():
            if not is_int(one):
                raise GraphError(
                    f"torch.UntypedStorage(): tried to construct a storage from a sequence ({kind_of(given[0])}), but "
                    f"one of the items was of type {kind_of(one)} instead of int"
                )
        if given and is_int(given[0]) and given[0] < 0:
            raise _negative(given[0])
        return cls._own(given, np.dtype(np.uint8))

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, nbytes: int = 0):
        """Return the first bytes of a file, mapped into memory; see `backlight.from_file`."""
        return cls._over(mapped_file(filename, shared, nbytes), np.dtype(np.uint8))

    @property
    def filename(self) -> str | None:
        """The file that the memory is mapped from and writes go to, else None."""
        base = self._flat
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        return None if base is None or base.mode != "r+" else os.fspath(base.filename)

    def __reduce__(self):
        return _restored, (type(self), self._flat, None)

    def _description(self) -> str:
        return "torch.storage.UntypedStorage(device=cpu)"


class TypedStorage(_Storage):
    """A block of memory as numbers of one dtype; deprecated in PyTorch in favour of UntypedStorage.

    Args:
        given: a size or a sequence of numbers.
        wrap_storage: the memory to show, an UntypedStorage.
        dtype: by default the default dtype.
    """

    def __new__(
        cls, *given, wrap_storage: UntypedStorage | None = None, dtype: dtype | None = None, device: Device = None
    ):
        """Make a storage with memory of its own, or over that of an untyped one."""
        warn_once(DEPRECATED, stacklevel=3)
        if wrap_storage is not None:
            _check_wrapping(TYPED_FORMS, given, wrap_storage, dtype)
            if device is not None:
                raise GraphError(
                    f"{TYPED_FORMS}\nArgument 'device' should not be specified when 'wrap_storage' is given"
                )
            return cls._over(wrap_storage._flat, to_numpy_dtype(dtype))
        require_cpu(device)
        _check_source(TYPED_FORMS, given)
        return cls._own(given, to_numpy_dtype(dtype) or get_default_dtype().numpy)

    @property
    def dtype(self):
        """The dtype of the elements."""
        return from_numpy_dtype(self._flat.dtype)

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes."""
        return UntypedStorage._over(self._flat, np.dtype(np.uint8))

    _untyped_storage = property(untyped)

    def is_pinned(self, device: Device = "cuda") -> bool:
        """Whether the memory is pinned for an accelerator: no."""
        return False

    def pickle_storage_type(self) -> str:
        """Return the name of the class of storages of this dtype: FloatStorage …."""
        return f"{self.dtype.old_name}Storage"

    def type(self, dtype: str | type | None = None):
        """Return the name of the class of storages of this dtype, or a copy of another dtype."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        name = dtype if isinstance(dtype, str) else f"torch.{dtype.__name__}"
        return self._converted(next(kind for kind in dtypes.OLD if name == f"torch.{kind.old_name}Storage"))

    def resize_(self, size: int) -> None:
        """Change the number of elements.

        Raises:
            RuntimeError: a tensor uses the memory.
        """
        super().resize_(size)

    def _converted(self, kind: dtype):
        return type(self)._over(self._flat.astype(kind.numpy), kind.numpy)

    def __getitem__(self, index: int):
        if isinstance(index, slice):
            raise GraphError("slices are only supported in UntypedStorage.__getitem__")
        return super().__getitem__(index)

    def __reduce__(self):
        return _restored, (type(self), self._flat, self._flat.dtype)

    def _description(self) -> str:
        return f"torch.storage.TypedStorage(dtype={self.dtype}, device=cpu)"


TYPED_FORMS = """TypedStorage.__init__ received an invalid combination of arguments. Expected one of:
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)"""


def _check_source(forms: str, given: tuple) -> None:
    """Raise PyTorch's error unless a storage is made of nothing, a size or a sequence."""
    if len(given) > 1:
        raise GraphError(f"{forms}\nToo many positional arguments")
    if given and not is_int(given[0]) and not isinstance(given[0], Sequence):
        raise ArgumentError(f"{forms}\nArgument type not recognized: {type(given[0])}")
    if given and isinstance(given[0], str):
        raise ArgumentError("new(): invalid data type 'str'")
    if given and is_int(given[0]) and given[0] < 0:
        raise _negative(given[0])


def _negative(size: int) -> GraphError:
    return GraphError(
        "[enforce fail at alloc_cpu.cpp:98] ((ptrdiff_t)nbytes) >= 0. alloc_cpu() seems to have been called with "
        f"negative number: {size % 2**64}"
    )


def _check_wrapping(forms: str, given: tuple, wrapped: object, kind: object) -> None:
    """Raise PyTorch's error unless a storage is to show the memory of an untyped one as a dtype."""
    if given:
        raise GraphError(f"{forms}\nNo positional arguments should be given when using 'wrap_storage'")
    if kind is None:
        raise GraphError(f"{forms}\nArgument 'dtype' must be specified")
    if not isinstance(kind, dtypes.dtype):
        raise ArgumentError(f"{forms}\nArgument 'dtype' must be torch.dtype, not {type(kind)}")
    if not isinstance(wrapped, UntypedStorage):
        raise ArgumentError(f"{forms}\nArgument 'wrap_storage' must be UntypedStorage, but got {type(wrapped)}")


def _restored(cls: type, flat: np.ndarray, unit: np.dtype | None):
    """Rebuild a storage from a pickle."""
    return cls._over(flat, unit or np.dtype(np.uint8))


def _conversion(kind: dtype):
    def converted(self):
        return self._converted(kind)

    converted.__doc__ = f"Return a copy as {kind.name}."
    return converted


_CONVERSIONS = {
    **{kind.old_name.lower(): kind for kind in dtypes.OLD if not kind.is_complex},
    "complex_float": dtypes.complex64,
    "complex_double": dtypes.complex128,
}
for _name, _kind in _CONVERSIONS.items():
    setattr(TypedStorage, _name, _conversion(_kind))


class _StorageOfDtype(type):
    """The type of `FloatStorage` and similar: calling one makes a TypedStorage of its dtype."""

    dtype: dtype

    def __call__(
        cls,
        *given,
        wrap_storage: UntypedStorage | None = None,
        dtype: dtypes.dtype | None = None,
        device: Device = None,
    ):
        forms = (
            f"{cls!r}.__new__ received an invalid combination of arguments. Expected one of:\n * no arguments\n"
            " * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)"
        )
        for name, value in (("device", device), ("dtype", dtype)):
            if value is not None:
                raise GraphError(f"{forms}\nKeyword argument '{name}' cannot be specified")
        if wrap_storage is None:
            _check_source(forms, given)
            return TypedStorage(*given, dtype=cls.dtype)
        _check_wrapping(forms, given, wrap_storage, cls.dtype)
        return TypedStorage(wrap_storage=wrap_storage, dtype=cls.dtype)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, TypedStorage) and value.dtype is cls.dtype

    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return the first elements of a file, mapped into memory; see `backlight.from_file`."""
        kind = cls.dtype.numpy
        return TypedStorage._over(mapped_file(filename, shared, size * kind.itemsize), kind)

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _of_dtype(kind: dtype) -> _StorageOfDtype:
    doc = f"Make a storage of {kind.name} from a size or a sequence; deprecated in PyTorch."
    return _StorageOfDtype(f"{kind.old_name}Storage", (), {"dtype": kind, "__doc__": doc, "__module__": "torch"})


OF_DTYPES = {f"{kind.old_name}Storage": _of_dtype(kind) for kind in dtypes.OLD}
globals().update(OF_DTYPES)
Storage = OF_DTYPES["FloatStorage"]


def untyped_storage(tensor: TensorState) -> UntypedStorage:
    """Return the memory that a tensor shares with its views, as bytes."""
    return UntypedStorage._over(memory_of(tensor), np.dtype(np.uint8))


def typed_storage(tensor: TensorState) -> TypedStorage:
    """Return the memory that a tensor shares with its views, as numbers of its dtype; warn once, as PyTorch does."""
    warn_once(DEPRECATED, stacklevel=5)
    return TypedStorage._over(memory_of(tensor), tensor._data.dtype)
