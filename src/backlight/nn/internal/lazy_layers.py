"""Layers that learn how many features or channels they have from their first input (see NOTE [Lazy modules])."""

from backlight.dtypes import dtype, int64
from backlight.engine.grad_mode import no_grad
from backlight.errors import ShapeError, ValueProblem
from backlight.nn.modules.batchnorm import (
    BatchNorm,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from backlight.nn.modules.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Sizes
from backlight.nn.modules.lazy import LazyModuleMixin
from backlight.nn.modules.linear import Linear
from backlight.nn.parameter import UninitializedBuffer, UninitializedParameter
from backlight.tensor.factories import zeros
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
]


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` whose `in_features` is the last size of its first input."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Device = None, dtype: dtype | None = None):
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new values if the shape is known."""
        if not self.has_uninitialized_params() and self.in_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take `in_features` from an input and draw the parameters; loaded parameters must match it."""
        features = input.shape[-1]
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = features
                self.weight.materialize((self.out_features, features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            if features != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {features} is not equal to in_features from self.weight: "
                    f"{self.weight.shape[-1]}"
                )
            self.in_features = features


def _lazy(mixin: type, base: type, layer: type) -> type:
    """Return the lazy form of a layer, which becomes the layer; PyTorch derives those of norms from their base."""
    article = "An" if layer.__name__.startswith("I") else "A"
    members = {
        "__doc__": f"{article} `{layer.__name__}` whose `{mixin.open_size}` comes from its first input.",
        "__module__": __name__,
        "cls_to_become": layer,
        **{name: getattr(layer, name) for name in ("dims", "single") if hasattr(layer, name)},
    }
    return type(f"Lazy{layer.__name__}", (mixin, base), members)


# --- convolutions -----------------------------------------------------------------------------------------------------


class _LazyConvolution(LazyModuleMixin):
    """What lazy convolutions share: `in_channels` comes from the first input."""

    open_size = "in_channels"

    def _leave_open(self, out_channels: int, bias: bool, device: Device, dtype: dtype | None) -> None:
        """Set what is known, and leave weight and bias without a shape."""
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new values if the shape is known."""
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args, **kwargs) -> None:
        """Take `in_channels` from an input and draw the parameters.

        Raises:
            ValueError: the channels are not divisible by the groups.
            RuntimeError: the input has another number of dims.
        """
        if not self.has_uninitialized_params():
            return
        single = self.dims + 1
        if input.ndim not in (single, single + 1):
            raise ShapeError(
                f"Expected {single}D (unbatched) or {single + 1}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        self.in_channels = input.shape[input.ndim - single]
        if self.in_channels % self.groups:
            raise ValueProblem(
                f"in_channels must be divisible by groups; the input has {self.in_channels}, groups is {self.groups}"
            )
        channels = (self.out_channels, self.in_channels // self.groups)
        if self.transposed:
            channels = (self.in_channels, self.out_channels // self.groups)
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyPlain(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._leave_open(out_channels, bias, device, dtype)


LazyConv1d, LazyConv2d, LazyConv3d = (_lazy(_LazyPlain, layer, layer) for layer in (Conv1d, Conv2d, Conv3d))


class _LazyTransposed(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: dtype | None = None,
    ):
        options = (kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype)
        super().__init__(0, 0, *options)
        self._leave_open(out_channels, bias, device, dtype)


LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(_LazyTransposed, layer, layer) for layer in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)


# --- norms ------------------------------------------------------------------------------------------------------------


class _LazyNorm(LazyModuleMixin):
    """What lazy norms share: `num_features` is size 1 of the first input."""

    open_size = "num_features"

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = zeros((), dtype=int64, device=device)

    def reset_parameters(self) -> None:
        """Set parameters and statistics to their initial values if the shape is known."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take `num_features` from an input and set the parameters and statistics to their initial values."""
        self.num_features = self.num_features or input.shape[1]
        if not self.has_uninitialized_params():
            return
        for own in (self.weight, self.bias, self.running_mean, self.running_var):
            if own is not None:
                own.materialize((self.num_features,))
        self.reset_parameters()


LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _lazy(_LazyNorm, BatchNorm, layer) for layer in (BatchNorm1d, BatchNorm2d, BatchNorm3d)
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(_LazyNorm, InstanceNorm, layer) for layer in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
