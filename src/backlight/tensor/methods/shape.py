"""Tensor's methods that change a shape."""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight import dtypes
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, DimError
from backlight.layouts import contiguous_format, memory_format
from backlight.ops.dims import normalise_dim
from backlight.ops.shape import expanding, reshaping, striding
from backlight.sizes import Size, sizes_given


class ShapeMethods:
    """Tensor's methods for shapes."""

    __slots__ = ()

    @property
    def shape(self) -> Size:
        """The size of each dim."""
        return Size(self._data.shape)

    def size(self, dim: int | None = None):
        """Return the size of each dim, or of one."""
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
            return Size(shape)
        place = normalise_dim(dim, len(shape))
        if not shape:
            raise DimError(f"Dimension specified as {dim} but tensor has no dimensions; see numel()")
        return shape[place]

    @property
    def ndim(self):
        """How many dims there are."""
        return self._data.ndim

    def dim(self):
        """Return how many dims there are."""
        return self._data.ndim

    ndimension = dim

    def numel(self):
        """Return how many elements there are."""
        return self._data.size

    nelement = numel

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

    def is_contiguous(self, memory_format: memory_format = contiguous_format):
        """Return whether the tensor is contiguous in memory."""
        return not isinstance(self._data, np.ndarray) or self._data.flags.c_contiguous

    def view(self, *sizes, size: Sequence[int] = (), dtype: dtypes.dtype | None = None):
        """Return the same memory in another shape, or with its bytes read as another dtype."""
        if dtype is None and sizes and isinstance(sizes[0], dtypes.dtype):
            dtype = sizes[0]
        if dtype is not None:
            return reshaping.view_bytes(self, dtypes.to_numpy_dtype(dtype))
        return reshaping.view(self, sizes_given(sizes or (size,)))

    def expand(self, *sizes, size: Sequence[int] = (), implicit: bool = False):
        """Return a view in which dims of size 1 are repeated."""
        return expanding.expand(self, sizes_given(sizes or (size,)))

    def expand_as(self, other: TensorState):
        """Return `expand(other.size())`."""
        return expanding.expand(self, other._data.shape)

    def view_as(self, other: TensorState):
        """Return `view(other.size())`."""
        return reshaping.view(self, other._data.shape)

    def reshape_as(self, other: TensorState):
        """Return `reshape(other.size())`."""
        return reshaping.reshape(self, other._data.shape)
