"""Layers that normalize each example."""

import numbers
from collections.abc import Sequence

import numpy as np

from backlight.autograd.function import Function
from backlight.engine.tensor_state import wrap
from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn import init
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.tensor.factories import empty
from backlight.tensor.tensor import Tensor

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LayerNorm(Module):
    """Bring the last dims to mean 0 and variance 1, then scale and shift them by trained values.

        y = (x − mean) / √(variance + eps) · weight + bias

    Args:
        normalized_shape: the sizes of the dims over which mean and variance are taken.
        elementwise_affine: whether there are weight and bias.
        bias: whether there is a bias as well as the weight.

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


class RMSNorm(Module):
    """Divide the last dims by their root mean square, then scale them by trained values.

        y = x / √(mean(x²) + eps) · weight

    Args:
        normalized_shape: the sizes of the dims over which the mean is taken.
        eps: the smallest step of the dtype by default.
        elementwise_affine: whether there is a weight.

    Source: Biao Zhang, Rico Sennrich: Root Mean Square Layer Normalization, 2019, arXiv:1910.07467
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        single = isinstance(normalized_shape, numbers.Integral)
        self.normalized_shape = (normalized_shape,) if single else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        values = empty(self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return the input normalised."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Bring each group of channels of each example to mean 0 and variance 1, then scale and shift each channel.

    Shapes: input (batch, num_channels, …) -> as input

    Raises:
        ValueError: the channels do not fall into equal groups.

    Source: Yuxin Wu, Kaiming He: Group Normalization, 2018, arXiv:1803.08494
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_channels % num_groups:
            raise ValueProblem(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, present in (("weight", affine), ("bias", affine and bias)):
            values = Parameter(empty(num_channels, device=device, dtype=dtype)) if present else None
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
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        sizes = f"{self.num_groups}, {self.num_channels}"
        return f"{sizes}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class LocalResponseNorm(Module):
    """Divide each channel by a power of what its neighbours hold: x / (k + alpha · mean(x²))^beta.

    Args:
        size: how many neighbouring channels the mean is taken over.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Return the input normalised."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _CrossMapNorm(Function):
    """x / (k + alpha / size · Σ x²)^beta; which channels the sum takes is PyTorch's, forward and backward."""

    @staticmethod
    def forward(ctx, input, size, alpha, beta, k):
        """Return the input normalised."""
        if input.ndim != 4:
            raise ValueProblem(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        data = input._data
        channels, ahead = data.shape[1], int((size - 1) / 2 + 1)
        squares, sums = data * data, np.empty_like(data)
        sums[:, 0] = squares[:, : min(ahead, channels)].sum(1)
        for channel in range(1, channels):
            sums[:, channel] = sums[:, channel - 1]
            if channel < channels - ahead + 1:
                sums[:, channel] += squares[:, channel + ahead - 1]
            if channel > ahead:
                sums[:, channel] -= squares[:, channel - ahead]
        ctx.scale, ctx.options = sums * data.dtype.type(alpha / size) + data.dtype.type(k), (size, alpha, beta)
        output = wrap(ctx.scale ** data.dtype.type(-beta) * data)
        ctx.save_for_backward(input, output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        """Return the gradient of the input."""
        input, output = (one._data for one in ctx.saved_tensors)
        grad, (size, alpha, beta) = grad_output._data, ctx.options
        channels, before = input.shape[1], int(size - (size - 1) / 2)
        ratios = np.zeros((input.shape[0], channels + size - 1, *input.shape[2:]), input.dtype)
        ratios[:, before : before + channels] = grad * output / ctx.scale
        found = ctx.scale ** input.dtype.type(-beta) * grad
        for channel in range(channels):
            near = ratios[:, channel : channel + size].sum(1)
            found[:, channel] -= input.dtype.type(2 * alpha * beta / size) * input[:, channel] * near
        return wrap(found), None, None, None, None


class CrossMapLRN2d(Module):
    """Divide each channel by a power of what its neighbours hold; `LocalResponseNorm` is the newer one.

    Args:
        size: how many neighbouring channels the sum is taken over.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """Return the input normalised."""
        return _CrossMapNorm.apply(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
