"""CrossMapLRN2d: the oldest normalisation over neighbouring channels, step by step as PyTorch computes it."""

import numpy as np

from backlight.autograd.function import Function
from backlight.engine.tensor_state import wrap
from backlight.errors import ValueProblem
from backlight.nn.modules.module import Module
from backlight.tensor.tensor import Tensor

__all__ = ["CrossMapLRN2d"]


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
