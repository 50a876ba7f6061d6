"""Padding layers: `nn.functional.pad` with its mode and its counts kept."""

from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.conv import Sizes, for_each_dim
from backlight.nn.modules.module import Module
from backlight.tensor.tensor import Tensor

__all__ = [
    f"{kind}Pad{dims}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero") for dims in (1, 2, 3)
]


class _Padding(Module):
    """What all paddings share: how many slices are added before and behind the last dim, then the last but one, …"""

    dims: int
    mode: str

    def __init__(self, padding: Sizes):
        super().__init__()
        self.padding = for_each_dim(padding, 2 * self.dims)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _Constant(_Padding):
    mode = "constant"

    def __init__(self, padding: Sizes, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_Constant):
    """Add slices of one value at both ends of the last dim.

    Args:
        padding: the number at each end, or (before, after); negative numbers remove slices.
    """

    dims = 1


class ConstantPad2d(_Constant):
    """Add slices of one value around the last two dims.

    Args:
        padding: the number on each side, or (left, right, top, bottom); negative numbers remove slices.
    """

    dims = 2


class ConstantPad3d(_Constant):
    """Add slices of one value around the last three dims.

    Args:
        padding: the number on each side, or (left, right, top, bottom, front, back); negative numbers remove slices.
    """

    dims = 3


class _Zeros(_Constant):
    def __init__(self, padding: Sizes):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _Reflection(_Padding):
    mode = "reflect"


class _Replication(_Padding):
    mode = "replicate"


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


def _layers(name: str, parent: type, *what: str) -> list[type]:
    """Return the layers for one to three dims."""
    made = []
    for dims, sentence, constant in zip((1, 2, 3), what, (ConstantPad1d, ConstantPad2d, ConstantPad3d)):
        document = f"{sentence}; counts as for `{constant.__name__}`."
        bases = (parent, constant) if issubclass(parent, _Constant) else (parent,)
        made.append(type(f"{name}{dims}d", bases, {"dims": dims, "__doc__": document, "__module__": __name__}))
    return made


ZeroPad1d, ZeroPad2d, ZeroPad3d = _layers(
    "ZeroPad",
    _Zeros,
    "Add zeros at both ends of the last dim",
    "Add zeros around the last two dims",
    "Add zeros around the last three dims",
)
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _layers(
    "ReflectionPad",
    _Reflection,
    "Add the slices next to both ends of the last dim in reverse order",
    "Add the slices next to the edges of the last two dims in reverse order",
    "Add the slices next to the faces of the last three dims in reverse order",
)
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _layers(
    "ReplicationPad",
    _Replication,
    "Repeat the first and the last slice of the last dim",
    "Repeat the slices at the edges of the last two dims",
    "Repeat the slices at the faces of the last three dims",
)
CircularPad1d, CircularPad2d, CircularPad3d = _layers(
    "CircularPad",
    _Circular,
    "Add at each end of the last dim the slices of its other end",
    "Add at each edge of the last two dims the slices of the other one",
    "Add at each face of the last three dims the slices of the other one",
)
