"""Nonlinear layers, each a function of `nn.functional` with its options kept."""

from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.tensor.factories import empty
from backlight.tensor.tensor import Tensor

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class Sigmoid(Module):
    """1 / (1 + exp(−x)), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the sigmoid."""
        return input.sigmoid()


class Tanh(Module):
    """The hyperbolic tangent, element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the hyperbolic tangent."""
        return input.tanh()


class LogSigmoid(Module):
    """log(1 / (1 + exp(−x))), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the logarithm of the sigmoid."""
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the softsign."""
        return F.softsign(input)


class Rectifier(Module):
    """What layers that may write into their input share: `inplace`, printed only where it is True."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def options(self) -> list[str]:
        """Return the printed form of the other options."""
        return []

    def extra_repr(self) -> str:
        """Return the options."""
        return ", ".join(self.options() + (["inplace=True"] if self.inplace else []))


class ReLU(Rectifier):
    """max(x, 0), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the positive part."""
        return F.relu(input, self.inplace)


class SELU(Rectifier):
    """An exponential linear unit scaled so that activations keep mean 0 and variance 1.

    Source: Günter Klambauer et al.: Self-Normalizing Neural Networks, 2017, arXiv:1706.02515
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the scaled exponential linear unit."""
        return F.selu(input, self.inplace)


class SiLU(Rectifier):
    """x · sigmoid(x), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """Return x · sigmoid(x)."""
        return F.silu(input, self.inplace)


class Mish(Rectifier):
    """x · tanh(softplus(x)), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        """Return x · tanh(softplus(x))."""
        return F.mish(input, self.inplace)


class LeakyReLU(Rectifier):
    """max(x, 0) + negative_slope · min(x, 0), element by element."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Return the positive part, and the negative part times the slope."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def options(self) -> list[str]:
        """Return the slope."""
        return [f"negative_slope={self.negative_slope}"]


class ELU(Rectifier):
    """x where positive, alpha · (exp(x) − 1) elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Return the exponential linear unit."""
        return F.elu(input, self.alpha, self.inplace)

    def options(self) -> list[str]:
        """Return alpha."""
        return [f"alpha={self.alpha}"]


class CELU(ELU):
    """max(x, 0) + min(0, alpha · (exp(x / alpha) − 1))."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the continuously differentiable exponential linear unit."""
        return F.celu(input, self.alpha, self.inplace)


class Hardtanh(Rectifier):
    """x cut off at two bounds."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        super().__init__(inplace)
        if max_val <= min_val:
            raise AssertionError(f"max_val must be larger than min_val, got {max_val} and {min_val}")
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        """Return the input cut off."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def options(self) -> list[str]:
        """Return the bounds."""
        return [f"min_val={self.min_val}", f"max_val={self.max_val}"]


class ReLU6(Hardtanh):
    """min(max(x, 0), 6), element by element."""

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def options(self) -> list[str]:
        """Return nothing: the bounds are in the name."""
        return []


class GELU(Module):
    """x · Φ(x), where Φ is the normal distribution's function; `approximate="tanh"` takes the faster formula.

    Source: Dan Hendrycks, Kevin Gimpel: Gaussian Error Linear Units, 2016, arXiv:1606.08415
    """

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Return x · Φ(x)."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Return the formula's name."""
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + exp(beta · x)) / beta, and x itself where beta · x is above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Return the softplus."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """exp(x) / Σ exp(x) along a dim."""

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the softmax."""
        return F.softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        """Return the dim."""
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of softmax along a dim."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the logarithm of softmax."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(Softmax):
    """Softmax of −x along a dim."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the softmin."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels at each place of (batch, channels, height, width), or of one example."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the softmax.

        Raises:
            ValueError: the input has not 3 or 4 dims.
        """
        if input.ndim not in (3, 4):
            raise ValueProblem(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class GLU(Module):
    """The first half of a dim times the sigmoid of the second.

    Source: Yann Dauphin et al.: Language Modeling with Gated Convolutional Networks, 2016, arXiv:1612.08083
    """

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the gated half."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """Return the dim."""
        return f"dim={self.dim}"


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
