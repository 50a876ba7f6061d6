"""Losses that compare numbers: squared, absolute, and between the two.

Each op computes one loss an element, then the reduction. Where its derivative has cases (clipped, saturated), the rule
runs on arrays, and create_graph differentiates the decomposition next to it.
"""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError, UnsupportedError, ValueProblem
from backlight.kernels.half_precision import rounded, widened
from backlight.ops.elementwise.copying import cast
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.number_operands import no_integers
from backlight.ops.shape.expanding import broadcast_tensors
from backlight.ops.type_promotion import category, is_float
from backlight.sizes import Size


def reduction_of(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """Return the reduction, also from its two old names.

    Raises:
        ValueError: there is no such reduction.
    """
    if size_average is not None or reduce is not None:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{_old_names(size_average, reduce)}' "
            "instead.",
            UserWarning,
            stacklevel=3,
        )
        return _old_names(size_average, reduce)
    if reduction not in ("mean", "sum", "none"):
        raise ValueProblem(f"{reduction} is not a valid value for reduction; it must be 'mean', 'sum' or 'none'")
    return reduction


def _old_names(size_average: bool | None, reduce: bool | None) -> str:
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def in_dtype_of(input: TensorState, loss: TensorState) -> TensorState:
    """Return a loss in the dtype of the input, where PyTorch does not promote it with the target.

    Raises:
        RuntimeError: the input holds integers, the loss floats.
    """
    kind, found = input._data.dtype, loss._data.dtype
    if category(found) > category(kind):
        names = [from_numpy_dtype(one).old_name for one in (found, kind)]
        raise ShapeError(f"result type {names[0]} can't be cast to the desired output type {names[1]}")
    return cast(loss, kind)


def reduced(losses: Array, reduction: str):
    """Return the mean or the sum of losses, or the losses themselves: arrays or tensors."""
    if reduction == "mean":
        return losses.mean()
    return losses.sum() if reduction == "sum" else losses


def share(grad: Array, reduction: str, shape: Sequence[int]):
    """Return the gradient that each element's loss gets."""
    return grad / math.prod(shape) if reduction == "mean" and math.prod(shape) else grad


def same_size(input: TensorState, target: TensorState):
    """Return both, expanded to one shape, after PyTorch's warning if they had two."""
    if input._data.shape == target._data.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({Size(target._data.shape)}) that is different to the input size "
        f"({Size(input._data.shape)}). This will likely lead to incorrect results due to broadcasting. Please ensure "
        "they have the same size.",
        UserWarning,
        stacklevel=3,
    )
    return broadcast_tensors(input, target)


def both_signs(grad_both: Array, needs: Sequence[bool], kind: np.dtype, other_kind: np.dtype):
    """Return the gradient of the first input and its negative for the second, where they are needed."""
    return rounded(grad_both, kind) if needs[0] else None, rounded(-grad_both, other_kind) if needs[1] else None


def reduced_and_rounded(losses: Array, reduction: str, kind: np.dtype):
    """Reduce an array of losses and round it to its dtype."""
    return rounded(reduced(losses, reduction), kind)


def _check_weight(weight: TensorState, input: TensorState) -> None:
    if weight._data.shape != input._data.shape:
        raise ValueProblem(
            f"Weights and input must have the same size. Got {list(weight._data.shape)} and {list(input._data.shape)}"
        )


def _weighted(losses: TensorState, weight: TensorState, reduction: str):
    """Reduce losses times weights; the mean divides by the sum of the weights."""
    losses = losses * weight
    return losses.sum() / weight.sum() if reduction == "mean" else reduced(losses, reduction)


@public_function
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Return (input − target)², by default its mean.

    Args:
        reduction: "mean", "sum" or "none".
        weight: one factor an element; the mean then divides by their sum.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = same_size(input, target)
    if weight is None:
        return squared_error(input, target, reduction)
    _check_weight(weight, input)
    return _weighted(squared_error(input, target, "none"), weight, reduction)


@op(name="mse_loss", promote="same")
def squared_error(xp, input: Array, target: Array, reduction: str):
    """(input − target)², reduced."""
    if not is_float(input.dtype):
        name = from_numpy_dtype(input.dtype).old_name
        raise UnsupportedError(f"\"mse_cpu\" not implemented for '{name}'; convert input and target with .float()")
    difference = widened(input) - widened(target)
    if reduction == "none":
        return rounded(difference * difference, input.dtype)
    total = xp.vdot(difference, difference)
    return rounded(total / difference.size if reduction == "mean" else total, input.dtype)


squared_error.derivative("input", formula="2 · (input − target) · grad, / n for the mean")(
    lambda grad, input, target, input_shape, reduction: (input - target) * (share(grad, reduction, input_shape) * 2)
)
squared_error.derivative("target", formula="2 · (target − input) · grad, / n for the mean")(
    lambda grad, input, target, input_shape, reduction: (target - input) * (share(grad, reduction, input_shape) * 2)
)


@public_function
def l1_loss(
    input: TensorState, target: TensorState, size_average=None, reduce=None, reduction: str = "mean", weight=None
):
    """Return |input − target|, by default its mean; arguments as `mse_loss`."""
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = same_size(input, target)
    if weight is None:
        return reduced((input - target).abs(), reduction)
    _check_weight(weight, input)
    return _weighted((input - target).abs(), weight, reduction)


@public_function
def smooth_l1_loss(
    input: TensorState, target: TensorState, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0
):
    """Return d² / (2 · beta) where d = |input − target| is below beta, else d − beta / 2."""
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = same_size(input, target)
    if beta < 0:
        raise ShapeError(f"smooth_l1_loss does not support negative values for beta. Got {beta}")
    if beta == 0:
        return reduced((input - target).abs(), reduction)
    return smooth_absolute_error(input, target, reduction, float(beta))


@op(name="smooth_l1_loss", promote="same", dtype_error=no_integers("smooth_l1_cpu"))
def smooth_absolute_error(xp, input: Array, target: Array, reduction: str, beta: float):
    """d² / (2 · beta) or d − beta / 2; both are c · (d − c / 2) / beta with c = min(d, beta)."""
    distance = xp.abs(widened(input) - widened(target))
    near = xp.minimum(distance, beta)
    return reduced_and_rounded(near * (distance - near * 0.5) / beta, reduction, input.dtype)


@smooth_absolute_error.derivative("input", "target", formula="± clip((input − target) / beta, −1, 1) · grad")
def smooth_absolute_error_both(grad, input, target, input_shape, reduction, beta, needs, xp):
    grad_both = xp.clip((widened(input) - widened(target)) / beta, -1, 1) * share(widened(grad), reduction, input_shape)
    return both_signs(grad_both, needs, input.dtype, target.dtype)


def _within(difference: TensorState, bound: float) -> TensorState:
    """Return a difference cut off at ± bound; its derivative there is 0, as PyTorch's."""
    return where((difference < bound) & (difference > -bound), difference, difference.sign() * bound)


@smooth_absolute_error.decomposition
def smooth_absolute_error_decomposition(input: TensorState, target: TensorState, reduction: str, beta: float):
    difference = input - target  # not its size, which has no second derivative at 0
    near = _within(difference, beta)
    return reduced(near * (difference - near * 0.5) / beta, reduction)


@public_function
def huber_loss(input: TensorState, target: TensorState, reduction: str = "mean", delta: float = 1.0, weight=None):
    """Return d² / 2 where d = |input − target| is at most delta, else delta · (d − delta / 2)."""
    reduction = reduction_of(reduction)
    input, target = same_size(input, target)
    if delta <= 0:
        raise ShapeError(f"huber_loss does not support non-positive values for delta. Got {delta}")
    if weight is None:
        return in_dtype_of(input, huber_error(input, target, reduction, float(delta)))
    _check_weight(weight, input)
    return reduced(huber_error(input, target, "none", float(delta)) * weight, reduction)


@op(name="huber_loss", promote="same", dtype_error=no_integers("huber_cpu"))
def huber_error(xp, input: Array, target: Array, reduction: str, delta: float):
    """d² / 2 or delta · (d − delta / 2); both are c · (d − c / 2) with c = min(d, delta)."""
    distance = xp.abs(widened(input) - widened(target))
    near = xp.minimum(distance, delta)
    return reduced_and_rounded(near * (distance - near * 0.5), reduction, input.dtype)


@huber_error.derivative("input", "target", formula="± clip(input − target, −delta, delta) · grad")
def huber_error_both(grad, input, target, input_shape, reduction, delta, needs, xp):
    grad_both = xp.clip(widened(input) - widened(target), -delta, delta) * share(widened(grad), reduction, input_shape)
    return both_signs(grad_both, needs, input.dtype, target.dtype)


@huber_error.decomposition
def huber_error_decomposition(input: TensorState, target: TensorState, reduction: str, delta: float):
    difference = input - target
    near = _within(difference, delta)
    return reduced(near * (difference - near * 0.5), reduction)
