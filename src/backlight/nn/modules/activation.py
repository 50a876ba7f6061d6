"""Activation layers: each is a function of `nn.functional` with stored options."""

import warnings

from backlight.dtypes import dtype
from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.module import Layer, Module
from backlight.nn.parameter import empty_parameter
from backlight.tensor.tensor import Tensor
from backlight.types import Device

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
        return input.sigmoid()


class Tanh(Module):
    """The hyperbolic tangent, element by element."""

    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class LogSigmoid(Module):
    """log(1 / (1 + exp(−x))), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x − tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


# --- with an option to write into the input ---------------------------------------------------------------------------


class Rectifier(Layer):
    """Base class of activations with the option `inplace`, which is printed only if True."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        options = super().extra_repr()
        return ", ".join([options] * bool(options) + ["inplace=True"] * bool(self.inplace))


class ReLU(Rectifier):
    """max(x, 0), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class SELU(Rectifier):
    """An exponential linear unit scaled so that activations keep mean 0 and variance 1.

    Source: Günter Klambauer et al.: Self-Normalizing Neural Networks, 2017, arXiv:1706.02515
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(Rectifier):
    """x · sigmoid(x), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(Rectifier):
    """x · tanh(softplus(x)), element by element."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardsigmoid(Rectifier):
    """(x + 3) / 6 clamped to [0, 1]."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""  # as PyTorch does


class Hardswish(Hardsigmoid):
    """x · hardsigmoid(x).

    Source: Andrew Howard et al.: Searching for MobileNetV3, 2019, arXiv:1905.02244
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class LeakyReLU(Rectifier):
    """max(x, 0) + negative_slope · min(x, 0), element by element."""

    _shown = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(Rectifier):
    """x where positive, alpha · (exp(x) − 1) elsewhere."""

    _shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(ELU):
    """max(x, 0) + min(0, alpha · (exp(x / alpha) − 1))."""

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


RENAMED = "keyword argument `{}` is deprecated and renamed to `{}`"


class Hardtanh(Rectifier):
    """x clamped to two bounds."""

    _shown: tuple[str, ...] = ("min_val", "max_val")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        super().__init__(inplace)
        if min_value is not None:
            warnings.warn(RENAMED.format("min_value", "min_val"), FutureWarning, stacklevel=2)
            min_val = min_value
        if max_value is not None:
            warnings.warn(RENAMED.format("max_value", "max_val"), FutureWarning, stacklevel=2)
            max_val = max_value
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6), element by element."""

    _shown = ()  # the bounds are in the name

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)


class Threshold(Rectifier):
    """x where it is above a threshold, and a value elsewhere."""

    _shown = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class RReLU(Rectifier):
    """x above 0 and slope · x below, with a random slope for each element while training.

    Source: Bing Xu et al.: Empirical Evaluation of Rectified Activations, 2015, arXiv:1505.00853
    """

    _shown = ("lower", "upper")

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False):
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


# --- with other options -----------------------------------------------------------------------------------------------


class PReLU(Layer):
    """x above 0 and weight · x below, with one trained weight for all channels or one for each.

    Shapes: input (batch, channels, …) -> as input

    Args:
        num_parameters: 1, or the number of channels.
        init: the initial value of the weights.

    Source: Kaiming He et al.: Delving Deep into Rectifiers, 2015, arXiv:1502.01852
    """

    _shown = ("num_parameters",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Device = None, dtype: dtype | None = None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter(num_parameters, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to their initial value."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class GELU(Module):
    """x · Φ(x), where Φ is the standard normal CDF; `approximate="tanh"` uses the tanh approximation.

    Source: Dan Hendrycks, Kevin Gimpel: Gaussian Error Linear Units, 2016, arXiv:1606.08415
    """

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Layer):
    """log(1 + exp(beta · x)) / beta, and x itself where beta · x is above the threshold."""

    _shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Hardshrink(Module):
    """x where |x| is above lambd, and 0 elsewhere."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """x moved towards 0 by lambd, and 0 where |x| is below lambd."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


# --- along a dim ------------------------------------------------------------------------------------------------------


class Softmax(Layer):
    """exp(x) / Σ exp(x) along a dim."""

    _shown = ("dim",)

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(Softmax):
    """The logarithm of softmax along a dim."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(Softmax):
    """Softmax of −x along a dim."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels at each position of (batch, channels, height, width), or of one example."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the softmax.

        Raises:
            ValueError: the input has not 3 or 4 dims.
        """
        if input.ndim not in (3, 4):
            raise ValueProblem(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class GLU(Layer):
    """The first half of a dim times the sigmoid of the second.

    Source: Yann Dauphin et al.: Language Modeling with Gated Convolutional Networks, 2016, arXiv:1612.08083
    """

    _shown = ("dim",)

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)
