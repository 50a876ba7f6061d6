"""Losses for classes: cross-entropy and negative log-likelihood."""

import math
from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError
from backlight.kernels.half_precision import is_half, rounded, widened
from backlight.kernels.loss import class_losses
from backlight.ops.indexing.index_selection import owned
from backlight.ops.linalg.matrix_products import not_a_tensor
from backlight.ops.loss.class_targets import (
    check_classes,
    check_target,
    class_numbers,
    class_rows,
    class_weights,
    wrong_class,
)
from backlight.ops.loss.regression_losses import reduction_of
from backlight.ops.nn.linear import linear
from backlight.ops.nn.softmax import check_float, log_softmax
from backlight.ops.number_operands import no_integers
from backlight.ops.type_promotion import is_float
from backlight.sizes import Shape


@public_function
def cross_entropy(
    input: TensorState,
    target: TensorState,
    weight: TensorState | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
):
    """Return −log softmax(input) at the target classes.

    Shapes: input (classes,), (batch, classes) or (batch, classes, …); target the same without classes if it names
    classes, or as input if it holds probabilities

    Args:
        weight: one factor a class.
        ignore_index: positions with this target count for nothing.
        reduction: "mean" (over the weights of the targets), "sum" or "none".
        label_smoothing: the share of the target that is spread evenly over all classes.

    Raises:
        IndexError: a target is no class.
        RuntimeError, ValueError: shapes or dtypes do not fit.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    try:
        shape, target_shape = input._data.shape, target._data.shape
    except AttributeError:
        raise not_a_tensor("cross_entropy_loss", input=input, target=target) from None
    if not 0 <= label_smoothing <= 1:
        raise ShapeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if shape == target_shape:
        if ignore_index >= 0:
            raise ShapeError("ignore_index is not supported for floating point target; leave it out")
        return _cross_entropy_of_probabilities(input, target, weight, reduction, label_smoothing)
    if label_smoothing:
        weighs = weight is not None and weight.requires_grad
        smoothed = smoothed_decomposition if weighs else smoothed_cross_entropy
        return smoothed(input, target, weight, reduction, ignore_index, float(label_smoothing))
    by_class = cross_entropy_of_classes if len(shape) <= 2 else cross_entropy_of_maps
    return by_class(input, target, weight, reduction, ignore_index)


def linear_cross_entropy(
    input: TensorState,
    linear_weight: TensorState,
    target: TensorState,
    *,
    linear_bias: TensorState | None = None,
    weight: TensorState | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options=None,
):
    """Return the cross-entropy of linear(input, linear_weight, linear_bias).

    Shapes: input (in,) or (batch, in); linear_weight (classes, …, in), where … are the positions that `cross_entropy`
    takes after the classes

    Args:
        options: how to save memory; accepted, and the loss is computed at once, of halves in float32.

    Raises:
        RuntimeError: the shapes do not fit.
    """
    shape, sizes, kind = input._data.shape, linear_weight._data.shape, input.dtype
    if len(shape) not in (1, 2):
        raise ShapeError(f"expected input with dimensionality 1 or 2, got {len(shape)}")
    if len(sizes) < 2:
        raise ShapeError(f"expected linear_weight with dimensionality at least 2, got {len(sizes)}")
    if shape[-1] != sizes[-1]:
        raise ShapeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {shape[-1]} and {sizes[-1]}, respectively"
        )
    if len(shape) == 1 and len(sizes) > 2:
        raise ShapeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(sizes)} requires batched input, "
            f"(N, {shape[0]}), got unbatched input with shape {tuple(shape)}"
        )
    if linear_bias is not None and linear_bias._data.shape != sizes[:-1]:
        raise ShapeError(f"expected linear_bias shape {sizes[:-1]}, got {linear_bias._data.shape}")
    if options is not None and is_half(input._data):
        input, linear_weight = input.float(), linear_weight.float()
        linear_bias, weight = [None if one is None else one.float() for one in (linear_bias, weight)]
        target = target.float() if target.dtype is kind else target
    bias = None if linear_bias is None else linear_bias.reshape((-1,))
    logits = linear(input, linear_weight.reshape((math.prod(sizes[:-1]), sizes[-1])), bias).reshape(
        (*shape[:-1], *sizes[:-1])
    )
    if ignore_index is None:
        ignore_index = -100
    elif target._data.shape == logits._data.shape:
        raise ShapeError("ignore_index cannot be specified when target contains probabilities")
    elif not isinstance(ignore_index, (int, np.integer)):
        kind = type(ignore_index).__name__
        raise ArgumentError(f"cross_entropy_loss(): argument 'ignore_index' (position 5) must be int, not {kind}")
    return cross_entropy(
        logits, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    ).to(kind)


def _reduced(losses: Array, weights: Array | None, reduction: str, shape: Sequence[int]):
    """Return the loss, and the factors that turn its gradient into that of each position."""
    one = losses.dtype.type(1)
    if weights is not None:
        losses = np.where(weights, losses * weights, 0)
    if reduction == "none":
        return losses.reshape(shape), one if weights is None else weights
    total = losses.sum()
    if reduction == "sum":
        return total, one if weights is None else weights
    share = one / (losses.dtype.type(len(losses)) if weights is None else weights.sum())
    mean = total * share if np.isfinite(share) else total * np.nan
    return mean, share if weights is None else weights * share


def _cross_entropy_forward(
    input: Array, target: Array, weight: Array, reduction: str, ignore_index: int, smoothing: float
):
    """−weight · log softmax at the target; maxima, sums of exponentials and shares in the loss for backward."""
    check_float(input, "log_softmax_lastdim_kernel_impl")
    check_target(input, target, weight)
    found = class_losses.class_losses(
        class_rows(widened(input)), class_numbers(target), widened(weight), ignore_index, reduction, smoothing
    )
    if found is None:
        raise wrong_class(target, input.shape[min(input.ndim - 1, 1)], ignore_index)
    out, scales, factors = found
    return rounded(out.reshape(target.shape) if reduction == "none" else out, input.dtype), scales, factors


def _cross_entropy_gradient(
    grad: Array, input: Array, target: Array, weight: Array, scales: Array, factors: Array, smoothing: float
):
    """grad · factor · (softmax − 1 at the target)."""
    flat = class_rows(widened(input))
    found = class_losses.class_gradients(
        widened(grad).reshape(-1), flat, class_numbers(target), widened(weight), scales, factors, smoothing
    )
    if input.ndim > 2:
        found = np.moveaxis(found.reshape((input.shape[0], *input.shape[2:], input.shape[1])), -1, 1)
    return rounded(found if found.shape == input.shape else found.reshape(input.shape), grad.dtype)


def _cross_entropy(xp, input: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int):
    """−log softmax at the target; the classes are in dim 1 of inputs with more than one."""
    return _cross_entropy_forward(input, target, weight, reduction, ignore_index, 0.0)


KEPT = ("scales", "factors")
cross_entropy_of_classes = op(_cross_entropy, name="cross_entropy", node="NllLossBackward0", residuals=KEPT)
cross_entropy_of_maps = op(_cross_entropy, name="cross_entropy_2d", node="NllLoss2DBackward0", residuals=KEPT)


@cross_entropy_of_classes.derivative("input", formula="grad · factor · (softmax(input) − 1 at the target)")
@cross_entropy_of_maps.derivative("input", formula="grad · factor · (softmax(input) − 1 at the target)")
def cross_entropy_input(
    grad: Array, input: Array, target: Array, weight: Array | None, scales: Array, factors: Array, xp
):
    return _cross_entropy_gradient(grad, input, target, weight, scales, factors, 0.0)


@cross_entropy_of_classes.decomposition
@cross_entropy_of_maps.decomposition
def cross_entropy_decomposition(
    input: TensorState, target: TensorState, weight: TensorState | None, reduction: str, ignore_index: int
):
    logs = log_softmax(input, min(input.ndim - 1, 1))
    return nll(logs, target, weight, reduction, ignore_index)


@op(node="AddBackward0", residuals=KEPT)
def smoothed_cross_entropy(
    xp, input: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int, smoothing: float
):
    """(1 − s) · cross-entropy + s · the mean over all classes of −log softmax."""
    return _cross_entropy_forward(input, target, weight, reduction, ignore_index, smoothing)


@smoothed_cross_entropy.derivative(
    "input",
    formula="grad · factor · ((1 − s) · (softmax(input) − 1 at the target) + s / classes · Σ (softmax(input) − 1))",
)
def smoothed_cross_entropy_input(
    grad: Array, input: Array, target: Array, weight: Array | None, scales: Array, factors: Array, smoothing: float, xp
):
    return _cross_entropy_gradient(grad, input, target, weight, scales, factors, smoothing)


@smoothed_cross_entropy.decomposition
def smoothed_decomposition(input, target, weight, reduction, ignore_index, smoothing):
    dim = min(input.ndim - 1, 1)
    logs = log_softmax(input, dim)
    at_target = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    everywhere = -(logs if weight is None else logs * _class_factor(weight, input)).sum(dim)
    target = target.reshape(everywhere.shape)
    counted = target != ignore_index
    everywhere = everywhere.masked_fill(~counted, 0)
    if reduction == "sum":
        everywhere = everywhere.sum()
    elif reduction == "mean":
        total = counted if weight is None else counted * weight[target.masked_fill(~counted, 0)]
        everywhere = everywhere.sum() / total.sum()
    return at_target * (1 - smoothing) + everywhere * (smoothing / input._data.shape[dim])


@public_function
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Return −input at the target classes, where input holds logarithms of probabilities.

    Shapes and arguments: as `cross_entropy`
    """
    reduction = reduction_of(reduction, size_average, reduce)
    by_class = nll if input._data.ndim <= 2 else nll_of_maps
    return by_class(input, target, weight, reduction, ignore_index)


def _declare_nll(name: str, node: str, kernel: str):
    """Declare the op for rows or for maps; they differ by their names only."""

    @op(
        name=name,
        node=node,
        residuals=("factors",),
        tangent="linear",
        zero_derivative=("input",),
        dtype_error=no_integers(kernel),
    )
    def nll(xp, input: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int):
        """−weight · input at the target; the classes are in dim 1 of inputs with more than one."""
        target = owned(target)
        check_classes(input, target, weight, ignore_index)
        flat = class_rows(widened(input))
        classes, weights = class_weights(target, weight, ignore_index, flat.shape[1], flat.dtype)
        out, factors = _reduced(-flat[np.arange(len(classes)), classes], weights, reduction, target.shape)
        return rounded(out, input.dtype), factors

    @nll.derivative("input", formula="−grad · factor at the target, 0 elsewhere")
    def nll_input(grad: Array, target: Array, input_shape: Shape, factors: Array, ignore_index: int, ops):
        return ops.spread_over_classes(grad, target, factors, input_shape, ignore_index)

    return nll


nll = _declare_nll("nll_loss", "NllLossBackward0", "nll_loss_out_frame")
nll_of_maps = _declare_nll("nll_loss2d", "NllLoss2DBackward0", "nll_loss2d_forward_out_frame")


@op(node="NllLossBackwardBackward0", tangent="linear")
def spread_over_classes(xp, input: Array, target: Array, factors: Array, size: tuple, ignore_index: int):
    """Zeros of `size` with −input · factor at the target classes; `input` is 0-d or of the target's shape."""
    out = xp.zeros((target.size, size[min(len(size) - 1, 1)]), factors.dtype)
    classes = target.reshape(-1)
    counted = classes != ignore_index
    out[xp.arange(classes.size), xp.where(counted, classes, 0)] = -(widened(input).reshape(-1) * factors)
    if len(size) > 2:
        out = xp.moveaxis(out.reshape((size[0], *size[2:], size[1])), -1, 1)
    return rounded(xp.ascontiguousarray(out).reshape(size), input.dtype)


@spread_over_classes.derivative("input", formula="−grad · factor at the target")
def spread_over_classes_input(grad: Array, target: Array, factors: Array, input_shape: Shape, ignore_index: int, ops):
    return ops.take_of_classes(grad, target, factors, input_shape, ignore_index)


@op(node="NllLossBackwardBackward0", tangent="linear")
def take_of_classes(xp, input: Array, target: Array, factors: Array, size: tuple, ignore_index: int):
    """−input · factor at the target classes, in the target's shape, or added up if `size` is ()."""
    classes = target.reshape(-1)
    counted = classes != ignore_index
    found = -class_rows(widened(input))[xp.arange(classes.size), xp.where(counted, classes, 0)] * factors
    return rounded(found.sum() if size == () else found.reshape(size), input.dtype)


@take_of_classes.derivative("input", formula="−grad · factor at the target, 0 elsewhere")
def take_of_classes_input(grad: Array, target: Array, factors: Array, input_shape: Shape, ignore_index: int, ops):
    return ops.spread_over_classes(grad, target, factors, input_shape, ignore_index)


def _class_factor(weight: TensorState, input: TensorState):
    """Return the weights in a shape that multiplies the input's class dim."""
    return weight.reshape((-1,) + (1,) * (input.ndim - 2)) if input.ndim > 2 else weight


def _cross_entropy_of_probabilities(
    input: TensorState, target: TensorState, weight: TensorState, reduction: str, label_smoothing: float
):
    """−Σ target · log softmax(input), averaged over positions (the weights do not count in the mean)."""
    if not is_float(target._data.dtype):
        name = from_numpy_dtype(target._data.dtype).old_name
        raise ShapeError(f"Expected floating point type for target with class probabilities, got {name}")
    dim = min(input.ndim - 1, 1)
    classes = input._data.shape[dim]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / (classes or 1)
    terms = log_softmax(input, dim) * target
    if weight is not None:
        terms = terms * _class_factor(weight, input)
    if reduction == "none":
        return -terms.sum(dim)
    if reduction == "sum":
        return -terms.sum()
    return -terms.sum() / (input._data.size // classes if classes else 0)
