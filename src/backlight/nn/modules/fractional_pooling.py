"""Layers of fractional max pooling; not trained."""

from collections.abc import Sequence

from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.convolution import for_each_dim
from backlight.nn.modules.module import Module
from backlight.tensor.tensor import Tensor

__all__ = ["FractionalMaxPool2d", "FractionalMaxPool3d"]


class _Fractional(Module):
    dims: int

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
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

    def _for_each_dim(self, value) -> tuple:
        return for_each_dim(value, self.dims)

    def forward(self, input: Tensor):
        """Return the largest element of each window, with `return_indices` also where it lies."""
        pool = getattr(F, f"fractional_max_pool{self.dims}d")
        options = (self.kernel_size, self.output_size, self.output_ratio, self.return_indices)
        return pool(input, *options, _random_samples=self._random_samples)


class FractionalMaxPool2d(_Fractional):
    """Take the largest element of windows at drawn distances; see `nn.functional.fractional_max_pool2d`."""

    dims = 2


class FractionalMaxPool3d(_Fractional):
    """Take the largest element of windows at drawn distances; see `nn.functional.fractional_max_pool3d`."""

    dims = 3
