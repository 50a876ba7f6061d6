"""PyTorch's named parametrizations: orthogonal, spectral_norm, weight_norm."""

from backlight.dispatch.arguments.checked import with_checks
from backlight.nn.modules.module import Module
from backlight.nn.utils.orthogonal import orthogonal
from backlight.nn.utils.parametrize import register_parametrization
from backlight.nn.utils.spectral import spectral_norm
from backlight.ops.reduction.norms import vector_norm
from backlight.tensor.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """A weight of length g along v: g · v / ‖v‖."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """Return the weight."""
        return weight_v * (weight_g / self._lengths(weight_v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return length and direction of a weight."""
        return self._lengths(weight), weight

    def _lengths(self, weight: Tensor) -> Tensor:
        if self.dim is None or self.dim == -1:
            return vector_norm(weight)
        return vector_norm(weight, 2, tuple(dim for dim in range(weight.ndim) if dim != self.dim), True)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train a weight's lengths along `dim` separately from its direction; `dim=None` is one length for all of it.

    Source: Tim Salimans, Diederik P. Kingma: Weight Normalization, 2016, arXiv:1602.07868
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


globals().update(with_checks(globals(), __all__, __name__))
