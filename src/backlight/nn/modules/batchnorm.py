"""Layers that normalise each channel: over the batch, or within each example."""

import warnings

from backlight.dtypes import dtype, int64
from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.normalization import AffineNorm
from backlight.tensor.factories import ones, zeros
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class ChannelNorm(AffineNorm):
    """Base class of layers that normalise channels: weight, bias and running statistics.

    Args:
        num_features: the number of channels.
        momentum: the weight of the new value in a running statistic; None: the cumulative mean.
        affine: whether there are weight and bias.
        track_running_stats: whether running means and variances are kept for evaluation.
        bias: whether there is a bias as well as the weight.
    """

    _version = 2  # with num_batches_tracked

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make_affine(num_features, affine, bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", zeros((), dtype=int64, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set running means to 0, variances to 1, and the number of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set the weight to ones, the bias to zeros, and the running statistics to their initial values."""
        self.reset_running_stats()
        super().reset_parameters()

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load a state; one from before batches were counted (version 1) leaves the count as it is."""
        if self.track_running_stats and (local_metadata.get("version") or 0) < 2:
            state_dict.setdefault(f"{prefix}num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


# --- batches ----------------------------------------------------------------------------------------------------------


class BatchNorm(ChannelNorm):
    """Normalise each channel to mean 0 and variance 1 over the batch, then scale and shift it by trained values.

    In evaluation mode the running statistics are used instead of the batch's.

    Source: Sergey Ioffe, Christian Szegedy: Batch Normalization, 2015, arXiv:1502.03167
    """

    dims: tuple[int, ...]

    def forward(self, input: Tensor) -> Tensor:
        """Return the input normalised; in training, update the running statistics.

        Raises:
            ValueError: the input has another number of dims.
        """
        if input.ndim not in self.dims:
            wanted = " or ".join(f"{dims}D" for dims in self.dims)
            raise ValueProblem(f"expected {wanted} input (got {input.ndim}D input)")
        tracked = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            self._counted(),
            self.eps,
        )

    def _counted(self) -> float:
        """Count a training batch, and return how far the running statistics are to move."""
        if not (self.training and self.track_running_stats and self.num_batches_tracked is not None):
            return 0.0 if self.momentum is None else self.momentum
        self.num_batches_tracked.add_(1)
        return 1 / self.num_batches_tracked.item() if self.momentum is None else self.momentum


class BatchNorm1d(BatchNorm):
    """Batch norm of (batch, channels) or (batch, channels, length)."""

    dims = (2, 3)


class BatchNorm2d(BatchNorm):
    """Batch norm of (batch, channels, height, width)."""

    dims = (4,)


class BatchNorm3d(BatchNorm):
    """Batch norm of (batch, channels, depth, height, width)."""

    dims = (5,)


# --- instances --------------------------------------------------------------------------------------------------------


class InstanceNorm(ChannelNorm):
    """Normalise each channel of each example to mean 0 and variance 1 over space.

    Source: Dmitry Ulyanov, Andrea Vedaldi, Victor Lempitsky: Instance Normalization, 2016, arXiv:1607.08022
    """

    single: int  # the number of dims of one example

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the input normalised.

        Raises:
            ValueError: the input has another number of dims or of channels.
        """
        self._check(input)
        if input.ndim == self.single:
            return self._normalised(input.unsqueeze(0)).squeeze(0)
        return self._normalised(input)

    def _check(self, input: Tensor) -> None:
        if input.ndim not in (self.single, self.single + 1):
            raise ValueProblem(f"expected {self.single}D or {self.single + 1}D input (got {input.ndim}D input)")
        dim = input.ndim - self.single
        if input.shape[dim] == self.num_features:
            return
        if self.affine:
            raise ValueProblem(
                f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                f"{input.shape[dim]}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in "
            "num_features, which is not used because affine=False",
            stacklevel=4,
        )

    def _normalised(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


class InstanceNorm1d(InstanceNorm):
    """Instance norm of (channels, length) or (batch, channels, length)."""

    single = 2


class InstanceNorm2d(InstanceNorm):
    """Instance norm of (channels, height, width) or (batch, channels, height, width)."""

    single = 3


class InstanceNorm3d(InstanceNorm):
    """Instance norm of (channels, depth, height, width), or with a batch dim before."""

    single = 4
