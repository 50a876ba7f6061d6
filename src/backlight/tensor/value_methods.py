"""Tensor's values: dtype, Python numbers, printing."""

from backlight.devices import CPU, device
from backlight.dtypes import BY_NUMPY, dtype


class ValueMethods:
    """The part of Tensor that shows its values."""

    __slots__ = ()

    @property
    def dtype(self) -> dtype:
        """The type of the elements."""
        return BY_NUMPY[self._data.dtype]

    @property
    def device(self) -> device:
        """Where the elements are: the CPU."""
        return CPU
