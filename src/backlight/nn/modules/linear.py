"""Linear layers."""

import math

from backlight.dtypes import dtype
from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn import init
from backlight.nn.modules.module import Module
from backlight.nn.parameter import empty_parameter
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Return the input; any arguments are accepted and ignored, so that it can replace any layer."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """Multiply by a weight and add a bias: y = x · weightᵀ + bias.

    Shapes: input (…, in_features) -> (…, out_features)

    Both start uniform over ±1/√in_features.

    Args:
        bias: whether there is one.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Device = None, dtype: dtype | None = None
    ):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in_features), device, dtype)
        self.register_parameter("bias", empty_parameter(out_features, device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # the gain √(1/3) makes the bound 1/√in_features
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """Apply y = x1ᵀ · weight · x2 + bias, with one weight matrix for each output.

    Shapes: input1 (…, in1_features), input2 (…, in2_features) -> (…, out_features)

    Weights and bias start uniform over ±1/√in1_features.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__()
        if in1_features <= 0:
            raise ValueProblem(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in1_features, in2_features), device, dtype)
        self.register_parameter("bias", empty_parameter(out_features, device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
