"""Tensor's shape, dtype and values: sizes, strides, Python numbers, printing."""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight import dtypes
from backlight.devices import CPU, device
from backlight.dispatch.dispatcher import dispatches_itself, dispatching, offer
from backlight.dispatch.interpreters import UNHANDLED
from backlight.dtypes import BY_NUMPY, dtype
from backlight.engine.tensor_state import TensorState, the_tensor_class
from backlight.errors import ArgumentError, DimError, GraphError, ShapeError, ValueProblem
from backlight.kernels.memory_order import CHANNELS_LAST, is_contiguous_in
from backlight.layouts import contiguous_format, memory_format
from backlight.ops.dims import normalise_dim
from backlight.ops.elementwise.complex_numbers import is_conj
from backlight.ops.shape import expanding, reshaping, striding
from backlight.ops.type_promotion import FLOAT32, category, is_float
from backlight.sizes import Size, size_of_ints, sizes_given, spread_sizes
from backlight.system.user_warnings import warn_once
from backlight.tensor.creation import TO_SCALAR
from backlight.tensor.printing import described, tensor_string


class ValueMethods:
    """Tensor's methods for its shape, dtype and values."""

    __slots__ = ()

    @property
    def dtype(self) -> dtype:
        """The type of the elements."""
        return BY_NUMPY[self._data.dtype]

    @property
    def device(self) -> device:
        """The device of the tensor: the CPU."""
        return CPU

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return tensor_string(self) if tensor_contents is None else described(self, tensor_contents)

    def __format__(self, spec: str) -> str:
        if self._data.ndim == 0 and type(self) is the_tensor_class():
            return format(self.item(), spec)
        return object.__format__(self, spec)

    @dispatches_itself
    def item(self):
        """Return the only element as a Python number.

        Raises:
            RuntimeError: there are several elements, or none.
        """
        if dispatching.active and (out := offer(ValueMethods.item, self)) is not UNHANDLED:
            return out
        data = self._data
        if data.size != 1:
            raise GraphError(
                f"a Tensor with {data.size} elements cannot be converted to Scalar; pick one element, or use tolist()"
            )
        return data.item() if data.dtype.kind != "V" else float(data.reshape(-1)[0])

    def tolist(self):
        """Return the elements as Python numbers in nested lists; of a 0-d tensor, the number."""
        data = self._data
        return (data if data.dtype.kind != "V" else data.astype(FLOAT32)).tolist()

    def __len__(self) -> int:
        if not self._data.ndim:
            raise ArgumentError("len() of a 0-d tensor")
        return self._data.shape[0]

    def __iter__(self):
        if not self._data.ndim:
            raise ArgumentError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self):
        return self.flip(0) if self._data.ndim else self

    def __delitem__(self, index: object) -> None:
        raise ArgumentError("Tensor does not support deleting items")

    def __contains__(self, element: object) -> bool:
        if isinstance(element, ValueMethods):
            element = element._data
        elif not isinstance(element, (bool, int, float, complex, np.generic)):
            raise GraphError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        return bool((self._data == element).any())

    def __bool__(self) -> bool:
        data = self._data
        if data.size != 1:
            amount = "no values" if data.size == 0 else "more than one value"
            raise GraphError(
                f"Boolean value of Tensor with {amount} is ambiguous; say what is meant with .any(), .all() or .item()"
            )
        return bool(data)

    def __float__(self) -> float:
        _warn_of_lost_history(self)
        return float(_real_value(self, "double"))

    def __int__(self) -> int:
        return int(_real_value(self, "int64_t"))

    def __complex__(self) -> complex:
        _warn_of_lost_history(self)
        return complex(_only_value(self))

    def __index__(self) -> int:
        data = self._data
        if data.size != 1 or category(data.dtype) >= 2:
            raise ArgumentError("only integer tensors of a single element can be converted to an index")
        return int(data.item())

    def is_floating_point(self) -> bool:
        """Tell whether the elements are floats."""
        return is_float(self._data.dtype)

    @property
    def shape(self) -> Size:
        """The size of each dim."""
        return size_of_ints(self._data.shape)

    def size(self, dim: int | None = None):
        """Return the size of each dim, or of one."""
        if (
            dispatching.active
            and (out := offer(ValueMethods.size, self, *(() if dim is None else (dim,)))) is not UNHANDLED
        ):
            return out
        try:
            shape = self._data.shape
        except AttributeError:
            if isinstance(self, TensorState):
                raise
            kind = type(self).__name__
            raise ArgumentError(
                f"descriptor 'size' for 'torch._C.TensorBase' objects doesn't apply to a '{kind}' object"
            ) from None
        if dim is None:
            return size_of_ints(shape)
        place = normalise_dim(dim, len(shape))
        if not shape:
            raise DimError(f"Dimension specified as {dim} but tensor has no dimensions; see numel()")
        return shape[place]

    @property
    def ndim(self):
        """How many dims there are."""
        return self._data.ndim

    @dispatches_itself
    def dim(self):
        """Return how many dims there are."""
        if dispatching.active and (out := offer(ValueMethods.dim, self)) is not UNHANDLED:
            return out
        return self._data.ndim

    ndimension = dim

    @dispatches_itself
    def numel(self):
        """Return how many elements there are."""
        if dispatching.active and (out := offer(ValueMethods.numel, self)) is not UNHANDLED:
            return out
        return self._data.size

    nelement = numel

    def dim_order(self, *, ambiguity_check: bool | Sequence = False) -> tuple[int, ...]:
        """Return the dims in the order in which they lie in memory, the outermost first.

        Args:
            ambiguity_check: True refuses a tensor with several orders; a list of memory formats, one that has neither
                exactly one order nor one of them.

        Raises:
            RuntimeError: the check fails.
            TypeError: `ambiguity_check` is something else.
        """
        if not isinstance(ambiguity_check, (bool, list)):
            raise ArgumentError("The ambiguity_check argument must be a bool or a list of memory formats.")
        steps, sizes = self.stride(), self._data.shape
        dims = range(len(steps))
        order = tuple(sorted(dims, key=lambda dim: (-steps[dim], -sizes[dim] if steps[dim] == 0 else 0)))
        unclear = len(set(steps)) < len(steps) or any(size == 1 for size in sizes)
        if ambiguity_check is False or not unclear:
            return order
        for wanted in () if ambiguity_check is True else ambiguity_check:
            if self.is_contiguous(memory_format=wanted):
                return tuple(dims) if wanted is contiguous_format else (0, *dims[2:], 1)
        raise GraphError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )

    def stride(self, dim: int | None = None):
        """Return the strides in elements, or the stride of one dim."""
        data = self._data
        if data.size:
            strides = tuple(stride // data.dtype.itemsize for stride in data.strides)
        else:
            strides = tuple(prod(max(size, 1) for size in data.shape[place + 1 :]) for place in range(data.ndim))
        return strides if dim is None else strides[normalise_dim(dim, self._data.ndim)]

    def storage_offset(self):
        """Return the index of the first element in the storage."""
        return striding.storage_offset_of(self)

    def element_size(self):
        """Return the bytes of one element."""
        return self._data.dtype.itemsize

    itemsize = property(element_size)

    @property
    def nbytes(self):
        """The bytes of all elements."""
        return self._data.nbytes

    def is_contiguous(self, *, memory_format: memory_format = contiguous_format):
        """Return whether the tensor is contiguous in memory: row by row, or in another format."""
        data = self._data
        if not isinstance(data, np.ndarray):
            return memory_format not in CHANNELS_LAST
        return data.flags.c_contiguous if memory_format is contiguous_format else is_contiguous_in(data, memory_format)

    def view(self, *sizes, size: Sequence[int] | None = None, dtype: dtypes.dtype | None = None):
        """Return the same memory in another shape, or with its bytes read as another dtype."""
        if dtype is None and sizes and isinstance(sizes[0], dtypes.dtype):
            dtype = sizes[0]
        if dtype is not None and is_conj(self) and dtype is not self.dtype:
            raise ShapeError(
                "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype.\n"
                "  Call resolve_conj() first"
            )
        if dtype is not None:
            return reshaping.view_bytes(self, dtypes.to_numpy_dtype(dtype))
        if not sizes and size is None:
            raise ArgumentError(
                "view() received an invalid combination of arguments - got (), but expected one of:\n"
                " * (torch.dtype dtype)\n * (tuple of ints size)"
            )
        return reshaping.view(self, sizes_given(sizes or (size,)))

    def expand(self, *sizes, size: Sequence[int] | None = None, implicit: bool = False):
        """Return a view in which dims of size 1 are repeated."""
        return expanding.expand(self, spread_sizes(sizes, size, "expand", "size"))

    def expand_as(self, other: TensorState):
        """Return `expand(other.size())`."""
        return expanding.expand(self, other._data.shape)

    def view_as(self, other: TensorState):
        """Return `view(other.size())`."""
        return reshaping.view(self, other._data.shape)

    def reshape_as(self, other: TensorState):
        """Return `reshape(other.size())`."""
        return reshaping.reshape(self, other._data.shape)


def _only_value(tensor: TensorState):
    """Return the only element as a Python number, for `float(tensor)` and the like."""
    if tensor._data.size != 1:
        raise ValueProblem(
            f"only one element tensors can be converted to Python scalars; it has {tensor._data.size}: use tolist()"
        )
    return tensor.item()


def _real_value(tensor: TensorState, name: str):
    """Return the only element as a real number, or raise PyTorch's error for one with an imaginary part."""
    value = _only_value(tensor)
    if not isinstance(value, complex):
        return value
    if value.imag != 0:
        raise GraphError(f"value cannot be converted to type {name} without overflow; take .real or .abs() of it")
    return value.real


def _warn_of_lost_history(tensor: TensorState) -> None:
    if tensor._edge is not None:
        warn_once(TO_SCALAR, stacklevel=4)
