"""PyTorch's `torch.nn.grad`: the gradients of convolutions as functions.

x.grad of conv(x, w):  the transposed convolution of grad_output and w
w.grad of conv(x, w):  Σ over batch and positions of grad_output · the input patch there
"""

from collections.abc import Sequence

from backlight.ops.nn.convolution import as_tuple, convolution, convolution_weight
from backlight.ops.nn.convolution_sizes import cropped, missing_sizes
from backlight.tensor.tensor import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _options(dims: int, **given) -> list[tuple[int, ...]]:
    return [as_tuple(name, value, dims) for name, value in given.items()]


def _for_input(dims: int, input_size, weight, grad_output, stride, padding, dilation, groups) -> Tensor:
    stride, padding, dilation = _options(dims, stride=stride, padding=padding, dilation=dilation)
    places, kernel = grad_output.shape[2:], weight.shape[2:]
    more = missing_sizes(input_size[2:], places, kernel, stride, padding, dilation)
    found = convolution(grad_output, weight, None, stride, padding, dilation, True, more, groups)
    return cropped(found, input_size)


def _for_weight(dims: int, input, weight_size, grad_output, stride, padding, dilation, groups) -> Tensor:
    stride, padding, dilation = _options(dims, stride=stride, padding=padding, dilation=dilation)
    return convolution_weight(grad_output, input, tuple(weight_size[2:]), stride, padding, dilation, groups)


def conv1d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """Return the gradient of conv1d for its input.

    Shapes: weight (out, in / groups, kernel), grad_output (batch, out, places) -> input_size
    """
    return _for_input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """Return the gradient of conv1d for its weight.

    Shapes: input (batch, in, length), grad_output (batch, out, places) -> weight_size
    """
    return _for_weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """Return the gradient of conv2d for its input; see `conv1d_input`."""
    return _for_input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """Return the gradient of conv2d for its weight; see `conv1d_weight`."""
    return _for_weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """Return the gradient of conv3d for its input; see `conv1d_input`."""
    return _for_input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """Return the gradient of conv3d for its weight; see `conv1d_weight`."""
    return _for_weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
