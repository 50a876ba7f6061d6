"""Layers that resize images: `nn.functional.interpolate` with stored options."""

from collections.abc import Sequence

from backlight.nn import functional as F
from backlight.nn.modules.conv import Sizes
from backlight.nn.modules.module import Module
from backlight.tensor.tensor import Tensor

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resize signals, images or volumes; options as for `nn.functional.interpolate`."""

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        options = (self.size, self.scale_factor, self.mode, self.align_corners)
        return F.interpolate(input, *options, recompute_scale_factor=self.recompute_scale_factor)

    def extra_repr(self) -> str:
        given = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{given}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resize images by taking the nearest pixel."""

    def __init__(self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resize images bilinearly, with the centres of the corner pixels aligned."""

    def __init__(self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
