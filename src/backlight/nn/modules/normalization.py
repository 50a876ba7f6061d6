"""Layers that normalize each example."""

import numbers
from collections.abc import Sequence

import numpy as np

from backlight.autograd.function import Function, FunctionCtx
from backlight.dtypes import dtype
from backlight.engine.tensor_state import wrap
from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn import init
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter, empty_parameter
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class AffineNorm(Module):
    """Base class of norms: a weight initialised to ones and a bias initialised to zeros, or None."""

    weight: Parameter | None
    bias: Parameter | None

    def _make_affine(
        self, shape: int | tuple[int, ...], weight: bool, bias: bool, device: Device, dtype: dtype | None
    ) -> None:
        for name, present in (("weight", weight), ("bias", weight and bias)):
            self.register_parameter(name, empty_parameter(shape, device, dtype) if present else None)

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(AffineNorm):
    """Normalise the last dims to mean 0 and variance 1, then scale and shift them by trained values.

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
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_affine(self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        parts = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{parts}, bias={self.bias is not None}"


class RMSNorm(Module):
    """Divide the last dims by their root mean square, then scale them by trained values.

        y = x / √(mean(x²) + eps) · weight

    Args:
        normalized_shape: the sizes of the dims over which the mean is taken.
        eps: by default the machine epsilon of the dtype.
        elementwise_affine: whether there is a weight.

    Source: Biao Zhang, Rico Sennrich: Root Mean Square Layer Normalization, 2019, arXiv:1910.07467
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = empty_parameter(self.normalized_shape, device, dtype) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


def _as_shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)


class GroupNorm(AffineNorm):
    """Normalise each group of channels of each example to mean 0 and variance 1, then scale and shift each channel.

    Shapes: input (batch, num_channels, …) -> as input

    Raises:
        ValueError: num_channels is not divisible by num_groups.

    Source: Yuxin Wu, Kaiming He: Group Normalization, 2018, arXiv:1803.08494
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device = None,
        dtype: dtype | None = None,
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
        self._make_affine(num_channels, affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        sizes = f"{self.num_groups}, {self.num_channels}"
        return f"{sizes}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class _ResponseNorm(Module):
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ResponseNorm):
    """Normalise each channel by its neighbours: x / (k + alpha · mean(x²))^beta.

    Args:
        size: the number of neighbouring channels in the mean.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class _CrossMapNorm(Function):
    """x / (k + alpha / size · Σ x²)^beta; which channels the sum takes is PyTorch's, forward and backward."""

    @staticmethod
    def forward(ctx: FunctionCtx, input: Tensor, size: int, alpha: float, beta: float, k: float) -> Tensor:
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
    def backward(ctx: FunctionCtx, grad_output: Tensor) -> tuple:
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


class CrossMapLRN2d(_ResponseNorm):
    """Normalise each channel by its neighbours; `LocalResponseNorm` is the newer layer.

    Args:
        size: the number of neighbouring channels in the sum.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        return _CrossMapNorm.apply(input, self.size, self.alpha, self.beta, self.k)
