"""Pooling layers, and layers that rearrange patches and pixels; none has parameters."""

from collections.abc import Sequence

from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.conv import Sizes, for_each_dim
from backlight.nn.modules.module import Layer, Module
from backlight.tensor.tensor import Tensor

_WINDOWS = [f"{kind}Pool{dims}d" for kind in ("Max", "Avg", "LP", "AdaptiveAvg", "AdaptiveMax") for dims in (1, 2, 3)]

__all__ = [
    *_WINDOWS,
    "ChannelShuffle",
    "Fold",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
]


class _Windows(Layer):
    """What pools of windows share; the stride is the size of a window by default."""

    _shown: tuple[str, ...] = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, ceil_mode: bool):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode


class _Max(_Windows):
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__(kernel_size, stride, padding, ceil_mode)
        self.dilation = dilation
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return the largest element of each window, with `return_indices` also its index."""
        options = (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)
        return self._function(input, *options)


class _Mean(_Windows):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__(kernel_size, stride, padding, ceil_mode)
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        options = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return self._function(input, *options, self.divisor_override)


class AvgPool1d(_Windows):
    """Take the mean of each window over the last dim; see `nn.functional.avg_pool1d`."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        stride = kernel_size if stride is None else stride
        super().__init__(*[for_each_dim(one, 1) for one in (kernel_size, stride, padding)], ceil_mode)
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        options = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return F.avg_pool1d(input, *options)


class _Norm(Layer):
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return (Σ x^p)^(1/p) of each window, p = `norm_type`."""
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveMean(Layer):
    _shown = ("output_size",)

    def __init__(self, output_size: int | Sequence[int | None] | None):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.output_size)


class _AdaptiveMax(_AdaptiveMean):
    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return the largest elements of `output_size` windows, with `return_indices` also their indices."""
        return self._function(input, self.output_size, self.return_indices)


def _layer(name: str, parent: type, what: str) -> type:
    """Return the layer for one number of dims."""
    function = f"{name[: -len('Pool1d')]}_pool{name[-2:]}".lower().replace("adaptive", "adaptive_")
    many = {"1": "the last dim", "2": "the last two dims", "3": "the last three dims"}[name[-2]]
    document = f"Take {what} over {many}; see `nn.functional.{function}`."
    members = {"_function": staticmethod(getattr(F, function)), "__doc__": document, "__module__": __name__}
    return type(name, (parent,), members)


MaxPool1d, MaxPool2d, MaxPool3d = (_layer(f"MaxPool{d}d", _Max, "the largest element of each window") for d in "123")
AvgPool2d, AvgPool3d = (_layer(f"AvgPool{d}d", _Mean, "the mean of each window") for d in "23")
LPPool1d, LPPool2d, LPPool3d = (_layer(f"LPPool{d}d", _Norm, "a norm of each window") for d in "123")
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (
    _layer(f"AdaptiveAvgPool{d}d", _AdaptiveMean, "the means of as many windows as are wanted") for d in "123"
)
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = (
    _layer(f"AdaptiveMaxPool{d}d", _AdaptiveMax, "the largest elements of as many windows as are wanted") for d in "123"
)


class _Unpooling(Layer):
    _shown = ("kernel_size", "stride", "padding")
    dims: int

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0):
        super().__init__()
        self.kernel_size = for_each_dim(kernel_size, self.dims)
        self.stride = for_each_dim(kernel_size if stride is None else stride, self.dims)
        self.padding = for_each_dim(padding, self.dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        unpool = getattr(F, f"max_unpool{self.dims}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_Unpooling):
    """Invert `MaxPool1d`: put its results back at their indices, with zeros elsewhere."""

    dims = 1


class MaxUnpool2d(_Unpooling):
    """Invert `MaxPool2d`: put its results back at their indices, with zeros elsewhere."""

    dims = 2


class MaxUnpool3d(_Unpooling):
    """Invert `MaxPool3d`: put its results back at their indices, with zeros elsewhere."""

    dims = 3


class _Kernel(Layer):
    _shown: tuple[str, ...] = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride


class Unfold(_Kernel):
    """Extract sliding blocks as columns (im2col); see `nn.functional.unfold`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(_Kernel):
    """Sum sliding blocks back into an array (col2im); see `nn.functional.fold`."""

    _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ):
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class PixelShuffle(Layer):
    """Rearrange groups of r² channels as r × r pixels."""

    _shown = ("upscale_factor",)

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Layer):
    """Rearrange r × r pixels as r² channels."""

    _shown = ("downscale_factor",)

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Layer):
    """Mix channels: the first of each group, then the second of each, …"""

    _shown = ("groups",)

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)


class _Fractional(Module):
    dims: int

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):
        super().__init__()
        self.kernel_size = self._for_each_dim(kernel_size)
        if self.dims == 3 and min(self.kernel_size) <= 0:
            raise ValueProblem(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        if output_size is None and output_ratio is None:
            raise ValueProblem(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueProblem("only one of output_size and output_ratio may be specified")
        self.output_size = None if output_size is None else self._for_each_dim(output_size)
        self.output_ratio = None if output_ratio is None else self._for_each_dim(output_ratio)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueProblem(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _for_each_dim(self, value: float | Sequence[float]) -> tuple:
        return for_each_dim(value, self.dims)

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return the largest element of each window, with `return_indices` also its index."""
        pool = getattr(F, f"fractional_max_pool{self.dims}d")
        options = (self.kernel_size, self.output_size, self.output_ratio, self.return_indices)
        return pool(input, *options, _random_samples=self._random_samples)


class FractionalMaxPool2d(_Fractional):
    """Take the largest element of windows at random positions; see `nn.functional.fractional_max_pool2d`."""

    dims = 2


class FractionalMaxPool3d(_Fractional):
    """Take the largest element of windows at random positions; see `nn.functional.fractional_max_pool3d`."""

    dims = 3
