"""Patches as columns and back (unfold, fold), and channels laid out as pixels."""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.nn import patches
from backlight.ops.nn.convolution_sizes import places_of
from backlight.ops.nn.pooling_sizes import numbers_of
from backlight.ops.number_operands import no_integers, no_kernel
from backlight.sizes import Shape

__all__ = ["channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]


def _refuse_whole_numbers(kind: np.dtype):
    return None if kind.kind == "b" else no_integers("im2col_out_cpu")(kind)


@op(node="Im2ColBackward0", tangent="linear", dtype_error=_refuse_whole_numbers, complex="linear")
def im2col(xp, input: Array, kernel_size: tuple, dilation: tuple, padding: tuple, stride: tuple):
    """Return what a kernel sees at each place, a column a place."""
    stack = input.reshape((-1, *input.shape[-3:])) if input.size else input
    places = places_of(stack.shape[2:], kernel_size, stride, padding, dilation)
    out = xp.empty((*stack.shape[:2], *kernel_size, *places), input.dtype)
    for part, columns in patches.column_chunks(stack, kernel_size, stride, padding, dilation, places):
        out[part] = columns
    return out.reshape((*input.shape[:-3], stack.shape[1] * prod(kernel_size), prod(places)))


@im2col.derivative("input", formula="grad's columns added where they were seen")
def im2col_input(
    grad: Array, input_shape: Shape, kernel_size: tuple, dilation: tuple, padding: tuple, stride: tuple, ops
):
    return ops.col2im(grad, tuple(input_shape[-2:]), kernel_size, dilation, padding, stride)


@op(node="Col2ImBackward0", tangent="linear", complex="linear")
def col2im(xp, input: Array, output_size: tuple, kernel_size: tuple, dilation: tuple, padding: tuple, stride: tuple):
    """Return zeros with each column added where the kernel stood."""
    places = places_of(output_size, kernel_size, stride, padding, dilation)
    channels = input.shape[-2] // prod(kernel_size)
    columns = widened(input).reshape((prod(input.shape[:-2]), channels, *kernel_size, *places))
    full = [size + 2 * before for size, before in zip(output_size, padding)]
    out = patches.added(columns, stride, dilation, full)[patches.unpadded(padding, output_size)]
    return rounded(out.reshape((*input.shape[:-2], channels, *output_size)), input.dtype)


col2im.derivative("input", formula="what the kernel sees of grad at each place")(
    lambda grad, kernel_size, dilation, padding, stride, ops: ops.im2col(grad, kernel_size, dilation, padding, stride)
)


def _pairs(name: str, **options) -> list[tuple[int, int]]:
    """Return each option as two numbers, or raise PyTorch's error."""
    found = {option: numbers_of(name, option, value, 2) for option, value in options.items()}
    for option, pair in found.items():
        if min(pair) < (0 if option == "padding" else 1):
            rule = "non-negative" if option == "padding" else "greater than zero"
            words, start = option.replace("_", " "), option.removesuffix("_size")
            raise ShapeError(f"{words} should be {rule}, but got {start}_height: {pair[0]} {start}_width: {pair[1]}")
    return list(found.values())


def unfold(
    input: TensorState, kernel_size: Sequence[int], dilation: Sequence[int] = 1, padding: int = 0, stride: int = 1
):
    """Return what a kernel sees at each place of a picture, a column a place.

    Shapes: input (batch, channels, height, width) or without batch -> (batch, channels · kernel, places)

    Raises:
        RuntimeError: the kernel fits nowhere, or the input is no batch of pictures.
    """
    pairs = _pairs("unfold", kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    kernel, dilation, padding, stride = pairs
    shape = input._data.shape
    if len(shape) not in (3, 4) or not prod(shape[-3:]):
        raise ShapeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(shape)}"
        )
    places = places_of(shape[-2:], kernel, stride, padding, dilation)
    if min(places) < 1:
        raise ShapeError(
            f"Given input with spatial size {tuple(shape[-2:])}, kernel_size={kernel}, dilation={dilation}, "
            f"padding={padding}, calculated shape of the array of sliding blocks as {places}, but its components must "
            "be at least one."
        )
    return im2col(input, kernel, dilation, padding, stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Add columns of patches where they were seen: the transpose of `unfold`.

    Shapes: input (batch, channels · kernel, places) or without batch -> (batch, channels, *output_size)

    Raises:
        RuntimeError: the input has not one column a place, or the rows do not fit the kernel.
    """
    pairs = _pairs("fold", kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    kernel, dilation, padding, stride = pairs
    output_size, shape = numbers_of("fold", "output_size", output_size, 2), input._data.shape
    if len(shape) not in (2, 3) or not prod(shape[-2:]):
        raise ShapeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(shape)}"
        )
    if shape[-2] % prod(kernel):
        raise ShapeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={shape[-2]} and kernel_size={kernel}."
        )
    places = places_of(output_size, kernel, stride, padding, dilation)
    if shape[-1] != prod(places):
        raise ShapeError(
            f"Given output_size={output_size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
            f"stride={stride}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{' * '.join(map(str, places))} = {prod(places)}, but got input.size(2)={shape[-1]}."
        )
    if input._data.dtype.kind in "iu":
        raise no_kernel("col2im_out_cpu", input._data.dtype, "convert the columns with .float()")
    return col2im(input, output_size, kernel, dilation, padding, stride)


@op(tangent="linear", complex="linear", layout="suggested")
def pixel_shuffle(xp, input: Array, upscale_factor: int):
    """Lay groups of r² channels out as squares of r × r pixels.

    Shapes: input (…, channels · r², height, width) -> (…, channels, height · r, width · r)
    """
    r = _checked_factor("pixel_shuffle", "upscale_factor", upscale_factor, input)
    *lead, channels, height, width = input.shape
    if channels % r**2:
        raise ShapeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r**2}"
        )
    parts = input.reshape((prod(lead), channels // r**2, r, r, height, width)).transpose((0, 1, 4, 2, 5, 3))
    return xp.ascontiguousarray(parts).reshape((*lead, channels // r**2, height * r, width * r))


pixel_shuffle.derivative("input", formula="grad's squares, laid back as channels")(
    lambda grad, upscale_factor, ops: ops.pixel_unshuffle(grad, upscale_factor)
)


@op(tangent="linear", complex="linear", layout="suggested")
def pixel_unshuffle(xp, input: Array, downscale_factor: int):
    """Lay squares of r × r pixels out as r² channels.

    Shapes: input (…, channels, height · r, width · r) -> (…, channels · r², height, width)
    """
    r = _checked_factor("pixel_unshuffle", "downscale_factor", downscale_factor, input)
    *lead, channels, height, width = input.shape
    for name, dim, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise ShapeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={size} is "
                f"not divisible by {r}"
            )
    parts = input.reshape((prod(lead), channels, height // r, r, width // r, r)).transpose((0, 1, 3, 5, 2, 4))
    return xp.ascontiguousarray(parts).reshape((*lead, channels * r**2, height // r, width // r))


pixel_unshuffle.derivative("input", formula="grad's channels, laid back as squares")(
    lambda grad, downscale_factor, ops: ops.pixel_shuffle(grad, downscale_factor)
)


def _checked_factor(name: str, option: str, factor: int, input: Array) -> int:
    if input.ndim < 3:
        raise ShapeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if factor <= 0:
        raise ShapeError(f"{name} expects a positive {option}, but got {factor}")
    return int(factor)


@op(tangent="linear", complex="linear", layout="suggested")
def channel_shuffle(xp, input: Array, groups: int):
    """Mix channels: take the first of each group, then the second of each, …

    Shapes: input (batch, channels, …) -> as input
    """
    if input.ndim < 3:
        raise ShapeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    batch, channels = input.shape[:2]
    if groups <= 0:
        raise ShapeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise ShapeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    parts = input.reshape((batch, groups, channels // groups, *input.shape[2:])).swapaxes(1, 2)
    return xp.ascontiguousarray(parts).reshape(input.shape)


channel_shuffle.derivative("input", formula="grad, mixed back")(
    lambda grad, input_shape, groups, ops: ops.channel_shuffle(grad, input_shape[1] // groups)
)


def native_channel_shuffle(input: TensorState, groups: int):
    """Mix channels; the same as `channel_shuffle`."""
    return channel_shuffle(input, groups)
