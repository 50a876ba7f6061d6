"""Convolutions over one, two or three dims, and transposed ones.

NOTE [Three ops that are each other's derivatives]
With x the input, w the weight and y = x ∗ w, the gradient for x is the transposed convolution of grad and w, and the
gradient for w is `convolution_weight(grad, x)`, linear in both. A transposed convolution is the same with x and grad
exchanged. So all orders of derivative are these ops again.
"""

from collections.abc import Sequence
from numbers import Integral

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.nn import patches
from backlight.ops.elementwise.copying import cast
from backlight.ops.linalg.matrix_products import not_a_tensor
from backlight.ops.nn.convolution_sizes import check, cropped, missing_sizes, places_of, spread_sizes
from backlight.ops.shape.padding import constant_pad_nd

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
]


@op(
    name="convolution",
    tangent="multilinear",
    tangent_with={"bias": None},
    zero_derivative=("input", "weight"),
    complex="holomorphic",
    layout="convolved",
)
def convolve(
    xp,
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: tuple,
    padding: tuple,
    dilation: tuple,
    transposed: bool,
    output_padding: tuple,
    groups: int,
):
    """Σ over channels and kernel of weight · input at each place, plus bias; transposed: its transpose."""
    wide, kernel_of, added = widened(input), widened(weight), widened(bias)
    kernel, sizes = weight.shape[2:], input.shape[2:]
    if transposed:
        outs = spread_sizes(sizes, kernel, stride, padding, dilation, output_padding)
        out = patches.spread(wide, kernel_of, stride, padding, dilation, groups, outs)
        if added is not None:
            out += added.reshape((-1,) + (1,) * len(kernel))
    else:
        places = places_of(sizes, kernel, stride, padding, dilation)
        out = patches.convolve(wide, kernel_of, added, stride, padding, dilation, groups, places)
    return rounded(out, input.dtype)


@convolve.derivative("input", formula="the transposed convolution of grad and weight (of a transposed one: the plain)")
def convolve_input(grad, weight, input_shape, stride, padding, dilation, transposed, groups, ops):
    more = (0,) * len(stride)
    if not transposed:
        more = missing_sizes(input_shape[2:], grad.shape[2:], weight.shape[2:], stride, padding, dilation)
    found = ops.convolution(grad, weight, None, stride, padding, dilation, not transposed, more, groups)
    return cropped(found, input_shape)


@convolve.derivative("weight", formula="Σ over batch and places of grad · what the kernel saw there")
def convolve_weight(grad, input, weight_shape, stride, padding, dilation, transposed, groups, ops):
    seen, at = (grad, input) if transposed else (input, grad)
    return ops.convolution_weight(at, seen, weight_shape[2:], stride, padding, dilation, groups)


convolve.derivative("bias", formula="Σ grad over batch and places")(
    lambda grad, ops: ops.sum(grad, (0, *range(2, len(grad.shape))))
)
convolve.tangent("bias")(lambda tangent, weight: tangent.reshape((-1,) + (1,) * (weight.ndim - 2)))


@op(node="ConvolutionBackwardBackward0", tangent="multilinear", complex="holomorphic", layout="convolved")
def convolution_weight(
    xp, grad_output: Array, input: Array, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, groups: int
):
    """The gradient of a convolution for its weight: Σ over batch and places of grad · what the kernel saw there."""
    found = patches.weight_gradient(widened(grad_output), widened(input), kernel, stride, padding, dilation, groups)
    return rounded(found, grad_output.dtype)


@convolution_weight.derivative("grad_output", formula="the convolution of input with grad as weight")
def convolution_weight_grad_output(grad, input, grad_output_shape, stride, padding, dilation, groups, ops):
    found = ops.convolution(input, grad, None, stride, padding, dilation, False, (0,) * len(stride), groups)
    return cropped(found, grad_output_shape)


@convolution_weight.derivative("input", formula="the transposed convolution of grad_output with grad as weight")
def convolution_weight_input(grad, grad_output, input_shape, kernel, stride, padding, dilation, groups, ops):
    more = missing_sizes(input_shape[2:], grad_output.shape[2:], kernel, stride, padding, dilation)
    return ops.convolution(grad_output, grad, None, stride, padding, dilation, True, more, groups)


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Convolve over all dims behind the first two, or apply the transpose of that.

    Shapes: input (batch, in, …), weight (out, in / groups, …) -> (batch, out, …); transposed: weight (in, out / groups,
        …)

    Raises:
        RuntimeError: sizes, dtypes or options do not fit.
    """
    dims = weight._data.ndim - 2
    options = {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": output_padding}
    stride, padding, dilation, output_padding = (as_tuple(name, value, dims) for name, value in options.items())
    check(input._data, weight._data, bias, stride, padding, dilation, bool(transposed), output_padding, groups)
    if transposed and bias is not None:
        bias = cast(bias, input._data.dtype)
    return convolve(input, weight, bias, stride, padding, dilation, bool(transposed), output_padding, groups)


def as_tuple(name: str, value: int | Sequence[int], dims: int) -> tuple[int, ...]:
    """Return one number for each dim, or raise PyTorch's error."""
    if isinstance(value, Integral):
        return (int(value),) * dims
    if isinstance(value, TensorState):
        value = value.tolist() if value._data.ndim else [value.item()]
    if not isinstance(value, (tuple, list)):
        raise ArgumentError(f"argument '{name}' must be tuple of ints, not {type(value).__name__}")
    found = tuple(map(int, value))
    if len(found) == 1:
        return found * dims
    if len(found) != dims:
        raise ShapeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match the convolution "
            f"dimensions, but got {name}={list(found)}"
        )
    return found


def _batched(name: str, dims: int, input: TensorState, weight: TensorState, options: dict):
    """Return the input with a batch dim, and whether one was added."""
    if not isinstance(input, TensorState) or not isinstance(weight, TensorState):
        raise not_a_tensor(name, input=input, weight=weight)
    ndim = input._data.ndim
    if ndim not in (dims + 1, dims + 2):
        raise ShapeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input._data.shape)}"
        )
    input, added = (input.unsqueeze(0), True) if ndim == dims + 1 else (input, False)
    if weight._data.ndim != dims + 2:
        raise _wrong_weight(dims, list(input._data.shape), list(weight._data.shape), options)
    return input, added


def _wrong_weight(dims: int, shape: list[int], sizes: list[int], options: dict) -> ShapeError:
    """Return PyTorch's error for a weight of another number of dims: PyTorch convolves over as many as it has."""
    if len(sizes) < 3:
        return ShapeError(f"weight should have at least three dimensions; it has the shape {sizes}")
    named = isinstance(options["padding"], str)
    if not (named and options["padding"] == "same"):
        for name, value in options.items():
            if not isinstance(value, str):
                as_tuple(name, (value,) * dims if isinstance(value, Integral) else value, len(sizes) - 2)
    return ShapeError(
        f"Expected {len(sizes)}-dimensional input for {len(sizes)}-dimensional weight{'' if named else ' '}{sizes}, "
        f"but got {len(shape)}-dimensional input of size {shape} instead"
    )


def _plain(dims: int, input, weight, bias, stride, padding, dilation, groups):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    input, added = _batched(f"conv{dims}d", dims, input, weight, options)
    if isinstance(padding, str):
        input, padding = _named_padding(input, weight._data.shape[2:], stride, padding, dilation)
    out = convolution(input, weight, bias, stride, padding, dilation, False, 0, groups)
    return out.squeeze(0) if added else out


def _named_padding(input: TensorState, kernel: Sequence[int], stride: int, padding: str, dilation: int):
    """Return the input, padded where one side needs more, and the padding that both sides need."""
    if padding == "valid":
        return input, 0
    if padding != "same":
        raise ShapeError(f"Invalid padding string: '{padding}'; choose 'same' or 'valid'")
    if set(as_tuple("stride", stride, len(kernel))) != {1}:
        raise ShapeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(as_tuple("dilation", dilation, len(kernel)), kernel)]
    if any(total % 2 for total in totals):
        input = constant_pad_nd(input, tuple(count for total in reversed(totals) for count in (0, total % 2)), 0)
    return input, tuple(total // 2 for total in totals)


def _transposed(dims: int, input, weight, bias, stride, padding, output_padding, groups, dilation):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    input, added = _batched(f"conv_transpose{dims}d", dims, input, weight, options)
    out = convolution(input, weight, bias, stride, padding, dilation, True, output_padding, groups)
    return out.squeeze(0) if added else out


@public_function
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolve over the last dim.

    Shapes: input (batch, in, length) or (in, length), weight (out, in / groups, kernel) -> (batch, out, places)

    Args:
        padding: zeros at both ends; or "same" for as many places as elements, "valid" for none.
        groups: into how many parts channels are divided, each of which sees only its own.
    """
    return _plain(1, input, weight, bias, stride, padding, dilation, groups)


@public_function
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolve over the last two dims; see `conv1d`.

    Shapes: input (batch, in, height, width) or without batch, weight (out, in / groups, kh, kw) -> (batch, out, h, w)
    """
    return _plain(2, input, weight, bias, stride, padding, dilation, groups)


@public_function
def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolve over the last three dims; see `conv1d`.

    Shapes: input (batch, in, d, h, w) or without batch, weight (out, in / groups, kd, kh, kw) -> (batch, out, d, h, w)
    """
    return _plain(3, input, weight, bias, stride, padding, dilation, groups)


@public_function
def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Apply the transpose of a convolution over the last dim: what its gradient does.

    Shapes: input (batch, in, places) or (in, places), weight (in, out / groups, kernel) -> (batch, out, length)

    Args:
        output_padding: added to the length, of which a stride leaves several possible.
    """
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@public_function
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Apply the transpose of a convolution over the last two dims; see `conv_transpose1d`."""
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@public_function
def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Apply the transpose of a convolution over the last three dims; see `conv_transpose1d`."""
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


@public_function
def conv_tbc(input: TensorState, weight: TensorState, bias: TensorState, pad: int = 0):
    """Convolve over the first dim, which is time.

    Shapes: input (time, batch, in), weight (kernel, in, out), bias (out,) -> (places, batch, out)

    Args:
        pad: how many zeros are added at both ends.

    Raises:
        RuntimeError: the shapes do not fit.
    """
    shape, sizes, count = (tensor._data.shape for tensor in (input, weight, bias))
    if len(shape) != 3:
        raise ShapeError("Input must have 3 dims: time, batch, in_channel")
    if len(sizes) != 3:
        raise ShapeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if len(count) != 1:
        raise ShapeError("Bias must be 1-D")
    if shape[2] != sizes[1]:
        raise ShapeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if count[0] != sizes[2]:
        raise ShapeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)
