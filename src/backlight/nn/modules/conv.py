"""Convolution layers, plain and transposed."""

import math
from collections.abc import Iterable, Sequence

from backlight.dtypes import dtype
from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn import init
from backlight.nn.modules.module import Module, changed_options
from backlight.nn.parameter import empty_parameter
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

Sizes = int | Sequence[int]  # one for each dim, or one for all

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def for_each_dim(value: float | Sequence[float], dims: int) -> tuple:
    """Return an option given for all dims at once as a tuple with one value for each."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * dims


class _Convolution(Module):
    """What all convolutions share: options, weights, first values, the printed form."""

    dims: int
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        dilation: Sizes,
        output_padding: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Device,
        dtype: dtype | None,
    ):
        super().__init__()
        _check_options(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = for_each_dim(kernel_size, self.dims)
        self.stride = for_each_dim(stride, self.dims)
        self.padding = padding if isinstance(padding, str) else for_each_dim(padding, self.dims)
        self.dilation = for_each_dim(dilation, self.dims)
        self.output_padding = for_each_dim(output_padding, self.dims)
        self.groups = groups
        self.padding_mode = padding_mode
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = empty_parameter((*channels, *self.kernel_size), device, dtype)
        self.register_parameter("bias", empty_parameter(out_channels, device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values, uniform over ±1/√fan_in."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # the gain √(1/3) makes the bound 1/√fan_in
        if self.bias is not None:
            fan_in = init.fans(self.weight)[0]
            if fan_in:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        none, one = (0,) * self.dims, (1,) * self.dims
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        parts += changed_options(self, padding=none, dilation=one, output_padding=none, groups=1)
        parts += ["bias=False"] if self.bias is None else []
        return ", ".join(parts + changed_options(self, padding_mode="zeros"))


def _check_options(
    in_channels: int, out_channels: int, stride: Sizes, padding: Sizes | str, groups: int, padding_mode: str
) -> None:
    if groups <= 0:
        raise ValueProblem(f"groups must be a positive integer, got {groups}")
    if in_channels % groups:
        raise ValueProblem(f"in_channels must be divisible by groups; got {in_channels} and {groups}")
    if out_channels % groups:
        raise ValueProblem(f"out_channels must be divisible by groups; got {out_channels} and {groups}")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueProblem(f"Invalid padding string '{padding}', should be one of {{'same', 'valid'}}")
        if padding == "same" and any(step != 1 for step in for_each_dim(stride, 1)):
            raise ValueProblem("padding='same' is not supported for strided convolutions")
    if padding_mode not in PADDING_MODES:
        raise ValueProblem(f"padding_mode must be one of {set(PADDING_MODES)}, but got padding_mode='{padding_mode}'")


class _Plain(_Convolution):
    def __init__(
        self,
        in_channels: int,
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
        options = (kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, *options)

    def forward(self, input: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._around(), mode=self.padding_mode), 0
        convolve = getattr(F, f"conv{self.dims}d")
        return convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _around(self) -> tuple[int, ...]:
        """Return the padding before and behind each dim, the last dim first."""
        if not isinstance(self.padding, str):
            return tuple(count for count in reversed(self.padding) for _ in range(2))
        needed = [d * (k - 1) if self.padding == "same" else 0 for d, k in zip(self.dilation, self.kernel_size)]
        return tuple(count for total in reversed(needed) for count in (total // 2, total - total // 2))


class Conv1d(_Plain):
    """Convolve over the last dim with trained kernels.

    Shapes: input (batch, in_channels, length) or without batch -> (batch, out_channels, out_length)

    Args:
        padding: the number of elements added at both ends; or "same", "valid".
        groups: the number of groups of channels; each group is convolved separately.
        padding_mode: the kind of padding: "zeros", "reflect", "replicate" or "circular".

    Raises:
        ValueError: the options are inconsistent.
    """

    dims = 1


class Conv2d(_Plain):
    """Convolve over the last two dims with trained kernels; options as for `Conv1d`.

    Shapes: input (batch, in_channels, height, width) or without batch -> (batch, out_channels, height, width)
    """

    dims = 2


class Conv3d(_Plain):
    """Convolve over the last three dims with trained kernels; options as for `Conv1d`.

    Shapes: input (batch, in_channels, d, h, w) or without batch -> (batch, out_channels, d, h, w)
    """

    dims = 3


class _Transposed(_Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
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
        if padding_mode != "zeros":
            raise ValueProblem(f'Only "zeros" padding mode is supported for {type(self).__name__}, got {padding_mode}')
        options = (kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, *options)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the transposed convolution of the input.

        Args:
            output_size: the output size, which is ambiguous for a stride above 1.

        Raises:
            ValueError: the size is not possible.
        """
        more = self.output_padding if output_size is None else self._padding_to(input, list(output_size))
        convolve = getattr(F, f"conv_transpose{self.dims}d")
        options = (self.stride, self.padding, more, self.groups, self.dilation)
        return convolve(input, self.weight, self.bias, *options)

    def _padding_to(self, input: Tensor, wanted: list[int]) -> tuple[int, ...]:
        """Return the output_padding that gives an output of a size."""
        given, lead = tuple(wanted), input.ndim - self.dims
        wanted = wanted[lead:] if len(wanted) == input.ndim else wanted
        if len(wanted) != self.dims:
            raise ValueProblem(
                f"ConvTranspose{self.dims}D: for {input.ndim}D input, output_size must have {self.dims} or "
                f"{input.ndim} elements (got {len(wanted)})"
            )
        sizes = zip(input.shape[lead:], self.stride, self.padding, self.dilation, self.kernel_size)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in sizes]
        most = [size + step - 1 for size, step in zip(least, self.stride)]
        if not all(low <= size <= high for low, size, high in zip(least, wanted, most)):
            raise ValueProblem(
                f"requested an output size of {given[-self.dims :]}, but valid sizes range from {least} to {most} "
                f"(for an input of {input.shape[2:]})"
            )
        return tuple(size - low for size, low in zip(wanted, least))


class ConvTranspose1d(_Transposed):
    """Transposed convolution over the last dim: upsampling with trained kernels.

    Shapes: input (batch, in_channels, length) or without batch -> (batch, out_channels, out_length)

    Args:
        output_padding: added to the output length, which is ambiguous for a stride above 1.

    Raises:
        ValueError: the options are inconsistent.
    """

    dims = 1


class ConvTranspose2d(_Transposed):
    """Apply the transpose of a trained convolution over the last two dims; options as for `ConvTranspose1d`."""

    dims = 2


class ConvTranspose3d(_Transposed):
    """Apply the transpose of a trained convolution over the last three dims; options as for `ConvTranspose1d`."""

    dims = 3
