"""Padding layers: `nn.functional.pad` with its mode and its counts kept."""

from collections.abc import Sequence

from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.conv import for_each_dim
from backlight.nn.modules.module import Module
from backlight.tensor.tensor import Tensor

__all__ = [
    f"{kind}Pad{dims}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero") for dims in (1, 2, 3)
]


class _Padding(Module):
    """What all paddings share: how many slices are added before and behind the last dim, then the last but one, …"""

    dims: int
    mode: str

    def __init__(self, padding: int | Sequence[int]):
        super().__init__()
        self.padding = for_each_dim(padding, 2 * self.dims)

    def forward(self, input: Tensor) -> Tensor:
        """Return the input padded."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """Return the counts."""
        return f"{self.padding}"


# --- one value --------------------------------------------------------------------------------------------------------


class _Constant(_Padding):
    mode = "constant"

    def __init__(self, padding: int | Sequence[int], value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Return the input padded."""
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """Return the counts and the value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_Constant):
    """Add slices of one value at both ends of the last dim.

    Args:
        padding: how many at each end, or (before, behind); negative counts take slices away.
    """

    dims = 1


class ConstantPad2d(_Constant):
    """Add slices of one value around the last two dims.

    Args:
        padding: how many on each side, or (left, right, top, bottom); negative counts take slices away.
    """

    dims = 2


class ConstantPad3d(_Constant):
    """Add slices of one value around the last three dims.

    Args:
        padding: how many on each side, or (left, right, top, bottom, front, back); negative counts take slices away.
    """

    dims = 3


class _Zeros(_Constant):
    def __init__(self, padding: int | Sequence[int]):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Return the counts."""
        return f"{self.padding}"


class ZeroPad1d(_Zeros, ConstantPad1d):
    """Add zeros at both ends of the last dim; counts as for `ConstantPad1d`."""


class ZeroPad2d(_Zeros, ConstantPad2d):
    """Add zeros around the last two dims; counts as for `ConstantPad2d`."""


class ZeroPad3d(_Zeros, ConstantPad3d):
    """Add zeros around the last three dims; counts as for `ConstantPad3d`."""


# --- what the input has -----------------------------------------------------------------------------------------------


class _Reflection(_Padding):
    mode = "reflect"


class ReflectionPad1d(_Reflection):
    """Add the slices next to both ends of the last dim in reverse order; counts as for `ConstantPad1d`."""

    dims = 1


class ReflectionPad2d(_Reflection):
    """Add the slices next to the edges of the last two dims in reverse order; counts as for `ConstantPad2d`."""

    dims = 2


class ReflectionPad3d(_Reflection):
    """Add the slices next to the faces of the last three dims in reverse order; counts as for `ConstantPad3d`."""

    dims = 3


class _Replication(_Padding):
    mode = "replicate"


class ReplicationPad1d(_Replication):
    """Repeat the first and the last slice of the last dim; counts as for `ConstantPad1d`."""

    dims = 1


class ReplicationPad2d(_Replication):
    """Repeat the slices at the edges of the last two dims; counts as for `ConstantPad2d`."""

    dims = 2


class ReplicationPad3d(_Replication):
    """Repeat the slices at the faces of the last three dims; counts as for `ConstantPad3d`."""

    dims = 3


class _Circular(_Padding):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Return the input padded.

        Raises:
            ValueError: the input has another number of dims.
        """
        fewest = self.dims + 1
        if input.ndim not in (fewest, fewest + 1):
            raise ValueProblem(f"expected {fewest}D or {fewest + 1}D input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_Circular):
    """Add at each end of the last dim the slices of its other end; counts as for `ConstantPad1d`."""

    dims = 1


class CircularPad2d(_Circular):
    """Add at each edge of the last two dims the slices of the other one; counts as for `ConstantPad2d`."""

    dims = 2


class CircularPad3d(_Circular):
    """Add at each face of the last three dims the slices of the other one; counts as for `ConstantPad3d`."""

    dims = 3
