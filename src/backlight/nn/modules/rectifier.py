"""Activations that cut, bend or shrink: thresholds, trained and random slopes, dead zones around 0."""

from backlight.nn import functional as F
from backlight.nn.modules.activation import Rectifier
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.tensor.factories import empty
from backlight.tensor.tensor import Tensor

__all__ = [
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "PReLU",
    "RReLU",
    "Softshrink",
    "Tanhshrink",
    "Threshold",
]


class Threshold(Rectifier):
    """x where it is above a threshold, and a value elsewhere."""

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Return the input above the threshold."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def options(self) -> list[str]:
        """Return threshold and value."""
        return [f"threshold={self.threshold}", f"value={self.value}"]


class Hardsigmoid(Rectifier):
    """(x + 3) / 6 cut off at 0 and 1."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the piecewise linear sigmoid."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        """Return nothing, as PyTorch does."""
        return ""


class Hardswish(Hardsigmoid):
    """x · hardsigmoid(x).

    Source: Andrew Howard et al.: Searching for MobileNetV3, 2019, arXiv:1905.02244
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return x times its piecewise linear sigmoid."""
        return F.hardswish(input, self.inplace)


class RReLU(Rectifier):
    """x above 0 and slope · x below, with a random slope for each element while training.

    Source: Bing Xu et al.: Empirical Evaluation of Rectified Activations, 2015, arXiv:1505.00853
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False):
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        """Return the positive part, and the negative part times the slopes."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def options(self) -> list[str]:
        """Return the bounds of the slopes."""
        return [f"lower={self.lower}", f"upper={self.upper}"]


class PReLU(Module):
    """x above 0 and weight · x below, with one trained weight for all channels or one for each.

    Shapes: input (batch, channels, …) -> as input

    Args:
        num_parameters: 1, or the number of channels.
        init: what the weights start as.

    Source: Kaiming He et al.: Delving Deep into Rectifiers, 2015, arXiv:1502.01852
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty((num_parameters,), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to what they started as."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Return the positive part, and the negative part times the weights."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return how many weights there are."""
        return f"num_parameters={self.num_parameters}"


class Hardshrink(Module):
    """x where |x| is above lambd, and 0 elsewhere."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Return the input outside the dead zone."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """Return the half-width of the dead zone."""
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """x moved towards 0 by lambd, and 0 where |x| is below lambd."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the input moved towards 0."""
        return F.softshrink(input, self.lambd)


class Tanhshrink(Module):
    """x − tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Return x − tanh(x)."""
        return F.tanhshrink(input)
