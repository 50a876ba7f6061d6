"""Layers that normalise."""

import numbers
from collections.abc import Sequence

from backlight.nn import functional as F
from backlight.nn import init
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.tensor.filled import empty
from backlight.tensor.tensor import Tensor

__all__ = ["LayerNorm"]


class LayerNorm(Module):
    """Bring the last dims to mean 0 and variance 1, then scale and shift them by trained values.

        y = (x − mean) / √(variance + eps) · weight + bias

    Args:
        normalized_shape: the sizes of the dims over which mean and variance are taken.
        elementwise_affine: whether there are weight and bias.
        bias: whether there is a bias beside the weight.

    Source: Jimmy Lei Ba, Jamie Ryan Kiros, Geoffrey E. Hinton: Layer Normalization, 2016, arXiv:1607.06450
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        single = isinstance(normalized_shape, numbers.Integral)
        self.normalized_shape = (normalized_shape,) if single else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, present in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            values = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if present else None
            self.register_parameter(name, values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the input normalised."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        parts = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{parts}, bias={self.bias is not None}"
