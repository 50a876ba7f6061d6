"""Layers that bring activations to mean 0 and variance 1."""

from collections.abc import Sequence
from math import prod

from numpy import ascontiguousarray, dtype, zeros

from backlight.codegen.declaration import Array, op
from backlight.dtypes import finfo, float32, from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError, ValueProblem
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.nn import row_norms
from backlight.ops.nn.softmax import check_float
from backlight.ops.number_operands import no_integers, no_kernel, require_floats
from backlight.ops.shape.padding import constant_pad_nd

__all__ = ["layer_norm", "rms_norm"]


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """Normalise over the last dims, then scale and shift.

        (x − mean) / √(variance + eps) · weight + bias

    Shapes: input (…, *normalized_shape), weight and bias (*normalized_shape) -> as input

    Raises:
        RuntimeError: the input does not end in `normalized_shape`, or weight or bias have another shape.
    """
    if isinstance(normalized_shape, int):
        raise ArgumentError("layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    return native_layer_norm(input, weight, bias, tuple(normalized_shape), eps)


@op(
    name="layer_norm",
    node="NativeLayerNormBackward0",
    residuals=("mean", "inverse"),
    zero_derivative=("input", "weight", "bias"),
)
def native_layer_norm(
    xp, input: Array, weight: Array | None, bias: Array | None, normalized_shape: tuple, eps: float = 1e-5
):
    """(x − mean) / √(variance + eps) · weight + bias over the last dims."""
    check_layer_norm(input, weight, bias, normalized_shape)
    x, size = ascontiguousarray(widened(input)), prod(normalized_shape)
    out, mean, inverse = row_norms.normalised(x, size, _columns(weight), _columns(bias), float(eps), True)
    return rounded(out, input.dtype), mean, inverse


@native_layer_norm.derivative(
    "input",
    "weight",
    "bias",
    formula="with g = grad · weight: (g − mean(g) − n · mean(g · n)) / √(variance + eps); Σ grad · n; Σ grad",
)
def native_layer_norm_all(grad, input, weight, mean, inverse, normalized_shape, needs, xp):
    return _gradients(grad, input, weight, mean, inverse, normalized_shape, needs)


def _gradients(grad, input, weight, mean, inverse, shape, needs):
    """Return the gradients of input, weight and bias that are needed."""
    wide, x = ascontiguousarray(widened(grad)), ascontiguousarray(widened(input))
    g_input, g_weight, g_bias = row_norms.normalised_gradients(wide, x, mean, inverse, _columns(weight), needs)
    return (
        None if g_input is None else rounded(g_input, grad.dtype),
        None if g_weight is None else rounded(_shaped(g_weight, shape), weight.dtype),
        None if g_bias is None else rounded(_shaped(g_bias, shape), grad.dtype),
    )


def _columns(array: Array | None):
    """Return weight or bias as one number a column, in float32 if it holds halves."""
    if array is None or (array.ndim == 1 and array.dtype.itemsize > 2):
        return array
    return _shaped(widened(array), (array.size,))


def _shaped(array: Array, shape: Sequence[int]):
    """Return an array in a shape: itself if it has it, so that its memory stays its own; zeros of no rows."""
    if array.shape == shape:
        return array
    return array.reshape(shape) if array.size == prod(shape) else zeros(shape, array.dtype)


@native_layer_norm.decomposition
def native_layer_norm_decomposition(
    input: TensorState, weight: TensorState | None, bias: TensorState | None, normalized_shape: tuple, eps: float
):
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    centred = input - input.mean(dims, keepdim=True)
    out = centred * ((centred * centred).mean(dims, keepdim=True) + eps).rsqrt()
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def check_parameter_dtypes(input: Array, parameters: tuple) -> None:
    """Raise PyTorch's error unless parameters (arrays or None) are of the input's dtype.

    The parameters of halves may be float32, all of them.

    Raises:
        RuntimeError: they are of other dtypes.
    """
    kinds = [one.dtype for one in parameters if one is not None]
    other = next((kind for kind in kinds if kind != input.dtype), None)
    if other is None:
        return
    names = {kind: from_numpy_dtype(kind).old_name for kind in (*kinds, input.dtype)}
    remedy = f"the input is {names[input.dtype]}, weight, bias or statistics are not: convert one with .to(dtype)"
    if kinds[0] == input.dtype:
        raise ShapeError(f"expected scalar type {names[input.dtype]} but found {names[other]}; {remedy}")
    if any(names[kind] != "Float" for kind in kinds):
        raise ShapeError(f"mixed dtype (CPU): expect parameter to have scalar type of Float; {remedy}")
    if input.dtype.itemsize > 2:
        raise ShapeError(f"mixed dtype (CPU): all inputs must share same datatype. {remedy[0].upper()}{remedy[1:]}")


def check_layer_norm(input: Array, weight: Array | None, bias: Array | None, normalized_shape: Sequence[int]) -> None:
    """Raise PyTorch's error for shapes and dtypes that do not fit."""
    shape = list(normalized_shape)
    if not shape:
        raise ShapeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []; name the sizes of the last dims"
        )
    for name, array in (("weight", weight), ("bias", bias)):
        if array is None:
            continue
        if list(array.shape) != shape:
            raise ShapeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(array.shape)} "
                f"and normalized_shape = {shape}"
            )
    check_parameter_dtypes(input, (weight, bias))
    check_float(input, "LayerNormKernelImpl")
    if list(input.shape[-len(shape) :]) != shape:
        wanted = ", ".join(map(str, shape))
        raise ShapeError(
            f"Given normalized_shape={shape}, expected input with shape [*, {wanted}], but got input of size"
            f"{list(input.shape)}"
        )


def rms_norm(
    input: TensorState, normalized_shape: Sequence[int], weight: TensorState | None = None, eps: float | None = None
):
    """Divide by the root of the mean square over the last dims, then scale.

        x / √(mean(x²) + eps) · weight

    Args:
        eps: the machine epsilon of the dtype by default (float32's for half precision).
    """
    shape = list(normalized_shape)
    if not shape:
        raise ShapeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    if weight is not None and list(weight._data.shape) != shape:
        raise ShapeError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{list(weight._data.shape)} and normalized_shape = {shape}"
        )
    if list(input._data.shape[len(input._data.shape) - len(shape) :]) != shape:
        wanted = ", ".join(map(str, shape))
        raise ShapeError(
            f"Given normalized_shape={shape}, expected input with shape [*{wanted}], but got input of size"
            f"{list(input._data.shape)}"
        )
    require_floats("rms_norm", input)
    if eps is None:
        eps = finfo(float32 if input.dtype.itemsize == 2 else input.dtype).eps
    return native_rms_norm(input, weight, tuple(shape), float(eps))


@op(name="rms_norm", node="MulBackward0", residuals=("inverse",), dtype_error=no_integers("rms_norm"))
def native_rms_norm(xp, input: Array, weight: Array | None, normalized_shape: tuple, eps: float):
    """x / √(mean(x²) + eps) · weight over the last dims."""
    x = ascontiguousarray(widened(input))
    out, _, inverse = row_norms.normalised(x, prod(normalized_shape), _columns(weight), None, eps, False)
    return rounded(out, input.dtype), inverse


@native_rms_norm.derivative(
    "input", "weight", formula="with g = grad · weight: (g − n · mean(g · n)) / √(mean(x²) + eps); Σ grad · n"
)
def native_rms_norm_all(grad, input, weight, inverse, normalized_shape, needs, xp):
    return _gradients(grad, input, weight, None, inverse, normalized_shape, (*needs, False))[:2]


@native_rms_norm.decomposition
def native_rms_norm_decomposition(input: TensorState, weight: TensorState | None, normalized_shape: tuple, eps: float):
    wide = input.float() if input.dtype.itemsize == 2 else input
    normal = wide * ((wide * wide).mean(tuple(range(-len(normalized_shape), 0)), keepdim=True) + eps).rsqrt()
    if weight is None:
        return normal.to(input.dtype)
    return (normal * (weight.float() if weight.dtype.itemsize == 2 else weight)).to(input.dtype)


def normalize(input: TensorState, p: float = 2.0, dim: int = 1, eps: float = 1e-12):
    """Divide by the p-norm along `dim`, or by eps where that is larger."""
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)


def _check_averaged(kind: dtype, dims: int) -> None:
    """Raise PyTorch's error for dtypes of which its kernels take no averages over channels."""
    if kind.itemsize < 4 or (kind.kind == "i" and kind.itemsize == 4):
        if dims == 3 and kind.kind in "iub":
            raise no_kernel("avg_pool2d", kind, "convert the input with .float()")
        if dims > 3:
            raise no_kernel("avg_pool3d_out_frame", kind, "convert the input with .float()")


def local_response_norm(input: TensorState, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
    """Divide by (k + alpha · the mean square of `size` neighbouring channels) to the power beta.

    Shapes: input (batch, channels, …) -> as input
    """
    dims = input._data.ndim
    if dims < 3:
        raise ValueProblem(
            f"Expected 3D or higher dimensionality                          input (got {dims} dimensions)"
        )
    if not input._data.size:
        return input
    _check_averaged(input._data.dtype, dims)
    channels = input._data.shape[1]
    padding = (*(0, 0) * (dims - 2), size // 2, (size - 1) // 2)
    squares = constant_pad_nd(input * input, padding)
    total = squares.narrow(1, 0, channels)
    for place in range(1, size):
        total = total + squares.narrow(1, place, channels)
    scaled = total * (alpha / size) if total.dtype.is_floating_point else total // size * alpha
    return input / (scaled + k) ** beta
