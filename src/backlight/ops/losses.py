"""Losses that compare numbers: squared, absolute, logarithmic.

Each op computes one loss an element, then the reduction. Where its derivative has cases (clipped, saturated), the rule
runs on arrays, and the composite beside it is what create_graph differentiates.
"""

import math
import warnings

from backlight.dtypes import from_numpy_dtype
from backlight.errors import ShapeError, ValueProblem
from backlight.kernels.halves import rounded, widened
from backlight.ops.declare import Array, op
from backlight.ops.promotion import is_float
from backlight.ops.repeating import broadcast_tensors
from backlight.ops.special import xlogy
from backlight.sizes import Size

__all__ = []


def reduction_of(reduction: str, size_average=None, reduce=None) -> str:
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


def _old_names(size_average, reduce) -> str:
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def reduced(losses, reduction: str):
    """Return the mean or the sum of losses, or the losses themselves: arrays or tensors."""
    if reduction == "mean":
        return losses.mean()
    return losses.sum() if reduction == "sum" else losses


def share(grad, reduction: str, shape):
    """Return the gradient that each element's loss gets."""
    return grad / math.prod(shape) if reduction == "mean" and math.prod(shape) else grad


def same_size(input, target):
    """Return both, expanded to one shape, after PyTorch's warning if they had two."""
    if input._data.shape == target._data.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({Size(target._data.shape)}) that is different to the input size "
        f"({Size(input._data.shape)}). This will likely lead to incorrect results due to broadcasting. Please ensure "
        "they "
        "have the same size.",
        UserWarning,
        stacklevel=3,
    )
    return broadcast_tensors(input, target)


def both_signs(slope, needs, kind, other_kind):
    """Return the slope for the first input and its negative for the second, where they are needed."""
    return rounded(slope, kind) if needs[0] else None, rounded(-slope, other_kind) if needs[1] else None


def _finish(losses, reduction: str, kind):
    """Reduce an array of losses and round it to its dtype."""
    return rounded(reduced(losses, reduction), kind)


def _check_weight(weight, input) -> None:
    if weight._data.shape != input._data.shape:
        raise ValueProblem(
            f"Weights and input must have the same size. Got {list(weight._data.shape)} and {list(input._data.shape)}"
        )


def _weighted(losses, weight, reduction: str):
    """Reduce losses times weights; the mean divides by the sum of the weights."""
    losses = losses * weight
    return losses.sum() / weight.sum() if reduction == "mean" else reduced(losses, reduction)


# --- squared ----------------------------------------------------------------------------------------------------------


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
def squared_error(xp, input, target, reduction: str):
    """(input − target)², reduced."""
    if not is_float(input.dtype):
        name = from_numpy_dtype(input.dtype).old_name
        raise ShapeError(f"\"mse_cpu\" not implemented for '{name}'; convert input and target with .float()")
    difference = widened(input) - widened(target)
    if reduction == "none":
        return rounded(difference * difference, input.dtype)
    total = xp.vdot(difference, difference)
    return rounded(total / difference.size if reduction == "mean" else total, input.dtype)


@squared_error.derivative("input", formula="2 · (input − target) · grad, / n for the mean")
def squared_error_input(grad, input, target, input_shape, reduction):
    return (input - target) * (share(grad, reduction, input_shape) * 2)


@squared_error.derivative("target", formula="2 · (target − input) · grad, / n for the mean")
def squared_error_target(grad, input, target, input_shape, reduction):
    return (target - input) * (share(grad, reduction, input_shape) * 2)


# --- absolute ---------------------------------------------------------------------------------------------------------


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Return |input − target|, by default its mean; arguments as `mse_loss`."""
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = same_size(input, target)
    if weight is None:
        return reduced((input - target).abs(), reduction)
    _check_weight(weight, input)
    return _weighted((input - target).abs(), weight, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Return d² / (2 · beta) where d = |input − target| is below beta, else d − beta / 2."""
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = same_size(input, target)
    if beta < 0:
        raise ShapeError(f"smooth_l1_loss does not support negative values for beta. Got {beta}")
    if beta == 0:
        return reduced((input - target).abs(), reduction)
    return smooth_absolute_error(input, target, reduction, float(beta))


@op(name="smooth_l1_loss", promote="same", node="SmoothL1LossBackward0")
def smooth_absolute_error(xp, input, target, reduction: str, beta: float):
    """d² / (2 · beta) or d − beta / 2; both are c · (d − c / 2) / beta with c = min(d, beta)."""
    distance = xp.abs(widened(input) - widened(target))
    near = xp.minimum(distance, beta)
    return _finish(near * (distance - near * 0.5) / beta, reduction, input.dtype)


@smooth_absolute_error.derivative("input", "target", formula="± clip((input − target) / beta, −1, 1) · grad")
def smooth_absolute_error_both(grad, input, target, input_shape, reduction, beta, needs, xp):
    slope = xp.clip((widened(input) - widened(target)) / beta, -1, 1) * share(widened(grad), reduction, input_shape)
    return both_signs(slope, needs, input.dtype, target.dtype)


@smooth_absolute_error.composed
def smooth_absolute_error_composed(input, target, reduction, beta):
    distance = (input - target).abs()
    near = distance.clamp_max(beta)
    return reduced(near * (distance - near * 0.5) / beta, reduction)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Return d² / 2 where d = |input − target| is at most delta, else delta · (d − delta / 2)."""
    reduction = reduction_of(reduction)
    input, target = same_size(input, target)
    if delta <= 0:
        raise ShapeError(f"huber_loss does not support non-positive values for delta. Got {delta}")
    if weight is None:
        return huber_error(input, target, reduction, float(delta))
    _check_weight(weight, input)
    return reduced(huber_error(input, target, "none", float(delta)) * weight, reduction)


@op(name="huber_loss", promote="same")
def huber_error(xp, input, target, reduction: str, delta: float):
    """d² / 2 or delta · (d − delta / 2); both are c · (d − c / 2) with c = min(d, delta)."""
    distance = xp.abs(widened(input) - widened(target))
    near = xp.minimum(distance, delta)
    return _finish(near * (distance - near * 0.5), reduction, input.dtype)


@huber_error.derivative("input", "target", formula="± clip(input − target, −delta, delta) · grad")
def huber_error_both(grad, input, target, input_shape, reduction, delta, needs, xp):
    slope = xp.clip(widened(input) - widened(target), -delta, delta) * share(widened(grad), reduction, input_shape)
    return both_signs(slope, needs, input.dtype, target.dtype)


@huber_error.composed
def huber_error_composed(input, target, reduction, delta):
    distance = (input - target).abs()
    near = distance.clamp_max(delta)
    return reduced(near * (distance - near * 0.5), reduction)


# --- of probabilities -------------------------------------------------------------------------------------------------


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Return −target · log(input) − (1 − target) · log(1 − input); logarithms count no less than −100.

    Raises:
        RuntimeError: an element of input or target is outside 0 to 1.
        ValueError: the sizes differ.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if input._data.shape != target._data.shape:
        raise ValueProblem(
            f"Using a target size ({Size(target._data.shape)}) that is different to the input size "
            f"({Size(input._data.shape)}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None and weight._data.shape != input._data.shape:
        weight = weight.expand(input._data.shape)
    return binary_entropy(input, target, weight, reduction)


@op(name="binary_cross_entropy")
def binary_entropy(xp, input, target, weight: Array | None, reduction: str):
    """The cross-entropy of probabilities, reduced."""
    if target.dtype != input.dtype:
        names = from_numpy_dtype(target.dtype).old_name, from_numpy_dtype(input.dtype).old_name
        raise ShapeError(f"Found dtype {names[0]} but expected {names[1]}; convert the target with .to(input.dtype)")
    for name, array in (("input", input), ("target", target)):
        if array.size and not (array.min() >= 0 and array.max() <= 1):
            raise ShapeError(
                f"all elements of {name} should be between 0 and 1; they go from {array.min()} to {array.max()}: apply "
                "sigmoid, or use binary_cross_entropy_with_logits"
            )
    x, t = widened(input), widened(target)
    with xp.errstate(divide="ignore"):
        losses = (t - 1) * xp.maximum(xp.log1p(-x), -100) - t * xp.maximum(xp.log(x), -100)
    if weight is not None:
        losses = losses * widened(weight)
    return _finish(losses, reduction, input.dtype)


@binary_entropy.derivative(
    "input", "target", formula="grad · (input − target) / (input · (1 − input)); grad · (log(1 − input) − log(input))"
)
def binary_entropy_both(grad, input, target, weight, input_shape, reduction, needs, xp):
    grad = share(widened(grad), reduction, input_shape)
    grad = grad if weight is None else grad * widened(weight)
    x, t = widened(input), widened(target)
    g_input = g_target = None
    if needs[0]:
        g_input = rounded(grad * (x - t) / xp.maximum(x * (1 - x), x.dtype.type(1e-12)), input.dtype)
    if needs[1]:
        g_target = rounded(grad * (xp.maximum(xp.log1p(-x), -100) - xp.maximum(xp.log(x), -100)), input.dtype)
    return g_input, g_target


@binary_entropy.composed
def binary_entropy_composed(input, target, weight, reduction):
    losses = (target - 1) * (1 - input).log().clamp_min(-100) - target * input.log().clamp_min(-100)
    return reduced(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Return the binary cross-entropy of sigmoid(input), computed so that nothing overflows.

    Args:
        weight: a factor an element; broadcasts.
        pos_weight: a factor of the target's part; broadcasts.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if input._data.shape != target._data.shape:
        raise ValueProblem(
            f"Target size ({Size(target._data.shape)}) must be the same as input size ({Size(input._data.shape)})"
        )
    if not is_float(target._data.dtype):
        names = from_numpy_dtype(input._data.dtype).old_name, from_numpy_dtype(target._data.dtype).old_name
        raise ShapeError(
            f"result type {names[0]} can't be cast to the desired output type {names[1]}; convert the target with "
            ".float()"
        )
    return logistic_entropy(input, target, weight, pos_weight, reduction)


@op(name="binary_cross_entropy_with_logits")
def logistic_entropy(xp, input, target, weight: Array | None, pos_weight: Array | None, reduction: str):
    """(1 − t) · x + (1 + (w − 1) · t) · log(1 + exp(−x)), reduced; w is pos_weight."""
    x, t = widened(input), widened(target)
    softplus = xp.logaddexp(x.dtype.type(0), -x)
    if pos_weight is not None:
        softplus = softplus * ((widened(pos_weight) - 1) * t + 1)
    losses = (1 - t) * x + softplus
    if weight is not None:
        losses = losses * widened(weight)
    return _finish(losses, reduction, input.dtype)


@logistic_entropy.derivative(
    "input", "target", formula="grad · ((w · t + 1 − t) · sigmoid(x) − w · t); grad · (log s(−x) − w · log s(x))"
)
def logistic_entropy_both(grad, input, target, weight, pos_weight, input_shape, reduction, needs, xp):
    grad = share(widened(grad), reduction, input_shape)
    grad = grad if weight is None else grad * widened(weight)
    x, t, factor = widened(input), widened(target), 1 if pos_weight is None else widened(pos_weight)
    g_input = g_target = None
    if needs[0]:
        up = t if pos_weight is None else t * factor
        share_of_one = 1 if pos_weight is None else up + (1 - t)
        g_input = rounded(grad * (share_of_one / (1 + xp.exp(-x)) - up), input.dtype)
    if needs[1]:
        zero = x.dtype.type(0)
        g_target = rounded(grad * (xp.logaddexp(zero, -x) * factor - xp.logaddexp(zero, x)), target.dtype)
    return g_input, g_target


@logistic_entropy.composed
def logistic_entropy_composed(input, target, weight, pos_weight, reduction):
    softplus = (-input).clamp_min(0) + (-input.abs()).exp().log1p()
    if pos_weight is not None:
        softplus = softplus * ((pos_weight - 1) * target + 1)
    losses = (1 - target) * input + softplus
    return reduced(losses if weight is None else losses * weight, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Return log(1 + exp(−target · input)) for targets of 1 and −1."""
    return logistic_margin(input, target, reduction_of(reduction, size_average, reduce))


@op(name="soft_margin_loss", promote="same")
def logistic_margin(xp, input, target, reduction: str):
    """log(1 + exp(−target · input)), reduced."""
    product = widened(target) * widened(input)
    return _finish(xp.logaddexp(product.dtype.type(0), -product), reduction, input.dtype)


@logistic_margin.derivative(
    "input", "target", formula="−grad · target · sigmoid(−target · input), and the same swapped"
)
def logistic_margin_both(grad, input, target, input_shape, target_shape, reduction, needs, xp):
    x, t = widened(input), widened(target)
    shape = xp.broadcast_shapes(input_shape, target_shape)
    slope = share(widened(grad), reduction, shape) / -(1 + xp.exp(t * x))
    return rounded(slope * t, input.dtype) if needs[0] else None, rounded(slope * x, input.dtype) if needs[1] else None


@logistic_margin.composed
def logistic_margin_composed(input, target, reduction):
    product = input * target
    return reduced((-product).clamp_min(0) + (-product.abs()).exp().log1p(), reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Return target · (log(target) − input), where input holds logarithms: the Kullback-Leibler divergence.

    Args:
        reduction: "batchmean" (the divergence itself: the sum over the size of dim 0), "mean", "sum" or "none".
        log_target: whether the target holds logarithms too.
    """
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            UserWarning,
            stacklevel=2,
        )
    by_batch = reduction == "batchmean"
    reduction = reduction_of("sum" if by_batch else reduction, size_average, reduce)
    if log_target:
        losses = target.exp() * (target - input)
    else:
        losses = xlogy(target, target) - target * input
    total = reduced(losses, reduction)
    return total / input._data.shape[0] if by_batch and input._data.ndim else total


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """Return exp(input) − target · input, the negative log-likelihood of counts; input is the logarithm of the rate.

    Args:
        log_input: if False, input is the rate itself: input − target · log(input + eps).
        full: add Stirling's approximation of log(target!) for targets above 1.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return reduced(losses, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Return (log(var) + (input − target)² / var) / 2, the negative log-likelihood of a normal distribution.

    Args:
        var: the variances, or one number; no smaller than eps counts.
        full: add the constant log(2π) / 2.
    """
    if isinstance(var, float):
        var = input.detach() * 0 + var
    if (var._data < 0).any():
        raise ValueProblem("var has negative entry/entries; a variance is at least 0")
    shape, found = input._data.shape, var._data.shape
    if found != shape:
        if found == shape[:-1]:
            var = var.reshape((*found, 1))
        elif len(found) != len(shape) or sum(size for known, size in zip(shape, found) if known != size) != 1:
            raise ValueProblem(f"var is of incorrect size; it is {list(found)} and the input {list(shape)}")
    if reduction not in ("none", "mean", "sum"):
        raise ValueProblem(f"{reduction} is not valid; reduction must be 'mean', 'sum' or 'none'")
    raised = var + (var.detach().clamp_min(eps) - var.detach())
    losses = 0.5 * (raised.log() + (input - target) ** 2 / raised)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction)
