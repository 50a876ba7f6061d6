"""The sizes of convolutions, and what PyTorch refuses of inputs, weights, biases and options."""

from collections.abc import Sequence

import numpy as np

from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.ops.linalg.matrix_products import big_name, small_name
from backlight.ops.number_operands import no_kernel


def places_of(
    sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...]:
    """Return at how many places a kernel fits into each dim."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation)
    )


def spread_sizes(places, kernel, stride, padding, dilation, output_padding) -> tuple[int, ...]:
    """Return the sizes of a transposed convolution's output."""
    return tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + 1 + more
        for n, k, s, p, d, more in zip(places, kernel, stride, padding, dilation, output_padding)
    )


def missing_sizes(sizes, places, kernel, stride, padding, dilation) -> tuple[int, ...]:
    """Return the output_padding with which a transposed convolution of `places` gives `sizes`."""
    plain = spread_sizes(places, kernel, stride, padding, dilation, (0,) * len(sizes))
    return tuple(wanted - found for wanted, found in zip(sizes, plain))


def cropped(value: np.ndarray, shape: Sequence[int]):
    """Return the corner of a tensor or an array that has this shape."""
    if tuple(value.shape) == tuple(shape):
        return value
    return value[tuple(slice(size) for size in shape)]


def _check_kind(kind: np.dtype, dims: int, transposed: bool) -> None:
    """Raise PyTorch's error, in the name of its kernel, for a dtype that convolutions do not take."""
    if kind.kind == "b" or (transposed and kind.kind in "iu" and kind.itemsize < 8):
        volume = "slow_conv_transpose3d_out_cpu" if transposed else "compute_columns3d"
        plane = "slow_conv_transpose2d_out_cpu" if transposed else "slow_conv2d_cpu"
        raise no_kernel(volume if dims == 3 else plane, kind, "convert input and weight with .float()")


def check(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) -> None:
    """Raise PyTorch's error unless input, weight, bias and options fit together."""
    _check_options(stride, padding, dilation, transposed, output_padding, groups)
    if input.ndim != weight.ndim:
        raise ShapeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight {list(weight.shape)}, but "
            f"got {input.ndim}-dimensional input of size {list(input.shape)} instead"
        )
    if not transposed:
        _check_bias_dtype(input, bias)
    _check_channels(input.shape, weight.shape, bias, transposed, groups)
    if input.dtype != weight.dtype:
        names = [big_name(array.dtype) for array in (input, weight)]
        raise ShapeError(f"expected scalar type {names[0]} but found {names[1]}; convert one with .to(dtype)")
    if input.dtype.kind != "f":
        _check_kind(input.dtype, weight.ndim - 2, transposed)
    if transposed:
        _check_spread_bias(input, bias)
    if 0 in weight.shape[2:]:
        names = ("kernel_depth", "kernel_height", "kernel_width")[-max(weight.ndim - 2, 2) :]
        sizes = (1, *weight.shape[2:])[-len(names) :]
        listed = " ".join(f"{name}: {size}" for name, size in zip(names, sizes))
        raise ShapeError(f"kernel size should be greater than zero, but got {listed}")
    _check_sizes(input.shape[2:], weight.shape[2:], stride, padding, dilation, transposed, output_padding)
    if 0 in input.shape[2:] and input.shape[0]:
        shape = [*input.shape[:2], 1, *input.shape[2:]] if input.ndim == 3 else list(input.shape)
        raise ShapeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {shape}")


def _check_bias_dtype(input: np.ndarray, bias: TensorState | None) -> None:
    if bias is not None and bias._data.dtype != input.dtype:
        names = [small_name(array.dtype) for array in (input, bias._data)]
        raise ShapeError(
            f"Input type ({names[0]}) and bias type ({names[1]}) should be the same; convert one with .to(dtype)"
        )


def _check_spread_bias(input: np.ndarray, bias: TensorState | None) -> None:
    """Refuse the bias dtypes that PyTorch refuses for a transposed convolution: over one or two dims it casts."""
    if bias is None or bias._data.dtype == input.dtype:
        return
    names = [big_name(array.dtype) for array in (input, bias._data)]
    if names[0] == "BFloat16":
        raise ShapeError(
            f"Input type (CPUBFloat16Type) and bias type (torch.{names[1]}Tensor) should be the same or input should "
            "be a MKLDNN tensor and bias is a dense tensor; convert one with .to(dtype)"
        )
    if input.ndim == 5:
        raise ShapeError(f"expected scalar type {names[0]} but found {names[1]}; cast the bias with .to(input.dtype)")


def _check_options(stride, padding, dilation, transposed, output_padding, groups) -> None:
    if min(padding) < 0:
        raise ShapeError(f"negative padding is not supported, got padding={list(padding)}")
    if min(stride) <= 0:
        raise ShapeError(f"non-positive stride is not supported, got stride={list(stride)}")
    if min(dilation) <= 0:
        raise ShapeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise ShapeError(f"non-positive groups is not supported, got groups={groups}")
    if min(output_padding) < 0:
        raise ShapeError(f"negative output_padding is not supported, got output_padding={list(output_padding)}")
    if transposed and any(more >= max(s, d) for more, s, d in zip(output_padding, stride, dilation)):
        options = {"output_padding": output_padding, "stride": stride, "dilation": dilation}
        dims = ("depth", "height", "width")[-len(stride) :]
        listed = " ".join(f"{name}_{dim}: {n}" for name, value in options.items() for dim, n in zip(dims, value))
        raise ShapeError(f"output padding must be smaller than either stride or dilation, but got {listed}")


def _check_channels(
    shape: Sequence[int], sizes: Sequence[int], bias: TensorState | None, transposed: bool, groups: int
) -> None:
    given = f"Given transposed={int(transposed)}" if transposed else f"Given groups={groups}"
    if sizes[0] < groups:
        raise ShapeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(sizes)} instead"
        )
    if sizes[0] % groups:
        raise ShapeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{list(sizes)}] instead"
        )
    wanted = sizes[0] if transposed else sizes[1] * groups
    if shape[1] != wanted:
        raise ShapeError(
            f"{given}, weight of size {list(sizes)}, expected input{list(shape)} to have {wanted} channels, but got "
            f"{shape[1]} channels instead"
        )
    outs = sizes[1] * groups if transposed else sizes[0]
    if bias is not None and bias._data.shape != (outs,):
        given = f"{given}, " if transposed else "Given "
        raise ShapeError(
            f"{given}weight of size {list(sizes)}, expected bias to be 1-dimensional with {outs} elements, but got "
            f"bias of size {list(bias._data.shape)} instead"
        )


def _check_sizes(sizes, kernel, stride, padding, dilation, transposed, output_padding) -> None:
    if transposed:
        found = spread_sizes(sizes, kernel, stride, padding, dilation, output_padding)
        if min(found) < 0 or (min(found) == 0 and min(sizes) > 0):
            raise ShapeError(
                f"Given input size per channel: {_times(sizes)}. Calculated output size per channel: {_times(found)}. "
                "Output size is too small"
            )
        return
    padded = [n + 2 * p for n, p in zip(sizes, padding)]
    needed = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    if any(size < need for size, need in zip(padded, needed)):
        raise ShapeError(
            f"Calculated padded input size per channel: {_times(padded)}. Kernel size: {_times(needed)}. "
            "Kernel size can't be greater than actual input size"
        )


def _times(sizes: Sequence[int]) -> str:
    return f"({' x '.join(map(str, sizes))})"
