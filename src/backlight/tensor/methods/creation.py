"""Tensor's methods that create tensors of its dtype."""

import warnings

import numpy as np

from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import from_numpy_dtype, to_numpy_dtype
from backlight.engine.tensor_state import TensorState, the_tensor_class
from backlight.sizes import allocated, size_from, unwritten
from backlight.tensor.creation import copied, made
from backlight.tensor.factories import empty_strided, full
from backlight.torch_api.legacy_constructors import old_style
from backlight.types import Device


class CreationMethods:
    """Tensor's methods that create new tensors, by default of its dtype."""

    __slots__ = ()

    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
        """Return a tensor that holds a copy of `data`."""
        kind = to_numpy_dtype(dtype) or self._data.dtype
        if isinstance(data, TensorState):
            warnings.warn(
                "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor).",
                UserWarning,
                stacklevel=3,
            )
        return made(copied(data, kind), requires_grad, device, None, pin_memory)

    @composite_function
    def new_zeros(self, *sizes, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        """Return a tensor filled with 0."""
        shape = size_from("new_zeros", sizes if size is None else (size,))
        array = allocated(np.zeros, shape, to_numpy_dtype(dtype) or self._data.dtype)
        return made(array, requires_grad, device, layout, pin_memory)

    @composite_function
    def new_ones(self, *sizes, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        """Return a tensor filled with 1."""
        shape = size_from("new_ones", sizes if size is None else (size,))
        array = allocated(np.ones, shape, to_numpy_dtype(dtype) or self._data.dtype)
        return made(array, requires_grad, device, layout, pin_memory)

    @composite_function
    def new_full(
        self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False
    ):
        """Return a tensor filled with `fill_value`."""
        kind = from_numpy_dtype(self._data.dtype) if dtype is None else dtype
        return full(
            size,
            fill_value,
            dtype=kind,
            layout=layout,
            device=device,
            requires_grad=requires_grad,
            pin_memory=pin_memory,
        )

    @composite_function
    def new_empty(self, *sizes, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        """Return an uninitialised tensor."""
        shape = size_from("new_empty", sizes if size is None else (size,))
        array = unwritten(shape, to_numpy_dtype(dtype) or self._data.dtype)
        return made(array, requires_grad, device, layout, pin_memory)

    def new_empty_strided(self, size, stride, *, dtype=None, device=None, requires_grad=False):
        """Return an uninitialised tensor with these strides (see `empty_strided`)."""
        kind = from_numpy_dtype(self._data.dtype) if dtype is None else dtype
        return empty_strided(size, stride, dtype=kind, device=device, requires_grad=requires_grad)

    def new(self, *data, device: Device = None):
        """Return a tensor from sizes or from a sequence, as the old constructors do."""
        return old_style(the_tensor_class(), data, device, self._data.dtype)
