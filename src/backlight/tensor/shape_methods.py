"""Tensor's methods that change a shape, a line each."""

from backlight.ops import shaping
from backlight.sizes import Size


class ShapeMethods:
    """The part of Tensor that knows and changes shapes."""

    __slots__ = ()

    @property
    def shape(self) -> Size:
        """The size of each dim."""
        return Size(self._data.shape)

    @property
    def ndim(self) -> int:
        """How many dims there are."""
        return self._data.ndim

    expand = shaping.expand
