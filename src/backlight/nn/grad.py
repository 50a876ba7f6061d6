"""PyTorch's `torch.nn.grad`: the gradients of convolutions as functions.

x.grad of conv(x, w):  the transposed convolution of grad_output and w
w.grad of conv(x, w):  Σ over batch and positions of grad_output · the input patch there
"""

from collections.abc import Callable, Sequence

from backlight.ops.nn.convolution import as_tuple, convolution, convolution_weight
from backlight.ops.nn.convolution_sizes import cropped, missing_sizes
from backlight.tensor.tensor import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

Sizes = int | Sequence[int]  # one for each dim, or one for all


def _options(dims: int, **given: Sizes) -> list[tuple[int, ...]]:
    return [as_tuple(name, value, dims) for name, value in given.items()]


def _named(function: Callable, dims: int, what: str, shapes: str) -> Callable:
    """Give a function its public name and its docstring."""
    function.__name__ = function.__qualname__ = f"conv{dims}d_{what}"
    meaning = f"Return the gradient of conv{dims}d for its {what}"
    function.__doc__ = f"{meaning}.\n\nShapes: {shapes}" if dims == 1 else f"{meaning}; see `conv1d_{what}`."
    return function


def _input_gradient(dims: int) -> Callable[..., Tensor]:
    def conv_input(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Tensor:
        stride, padding, dilation = _options(dims, stride=stride, padding=padding, dilation=dilation)
        places, kernel = grad_output.shape[2:], weight.shape[2:]
        more = missing_sizes(input_size[2:], places, kernel, stride, padding, dilation)
        found = convolution(grad_output, weight, None, stride, padding, dilation, True, more, groups)
        return cropped(found, input_size)

    shapes = "weight (out, in / groups, kernel), grad_output (batch, out, places) -> input_size"
    return _named(conv_input, dims, "input", shapes)


def _weight_gradient(dims: int) -> Callable[..., Tensor]:
    def conv_weight(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Tensor:
        stride, padding, dilation = _options(dims, stride=stride, padding=padding, dilation=dilation)
        return convolution_weight(grad_output, input, tuple(weight_size[2:]), stride, padding, dilation, groups)

    shapes = "input (batch, in, length), grad_output (batch, out, places) -> weight_size"
    return _named(conv_weight, dims, "weight", shapes)


conv1d_input, conv2d_input, conv3d_input = map(_input_gradient, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_weight_gradient, (1, 2, 3))
