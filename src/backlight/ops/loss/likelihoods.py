"""Losses that compare probabilities: binary cross-entropy, divergence, likelihoods of counts and of numbers.

Ops as in losses.py: where a derivative has cases, the rule runs on arrays, the decomposition is differentiated twice.
"""

import math
import warnings

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ShapeError, ValueProblem
from backlight.kernels.half_precision import rounded, widened
from backlight.ops.elementwise.activations import logsigmoid
from backlight.ops.loss.regression_losses import in_dtype_of, reduced, reduced_and_rounded, reduction_of, share
from backlight.ops.number_operands import no_integers, require_floats
from backlight.ops.special.special_functions import xlogy
from backlight.ops.type_promotion import category, holds_complex, is_float
from backlight.sizes import Size


@public_function
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
    if input._data.dtype != target._data.dtype:
        names = [from_numpy_dtype(one._data.dtype).old_name for one in (target, input)]
        raise ShapeError(f"Found dtype {names[0]} but expected {names[1]}; convert the target with .to(input.dtype)")
    if weight is not None and weight._data.shape != input._data.shape:
        weight = weight.expand(input._data.shape)
    return binary_entropy(input, target, weight, reduction)


@op(name="binary_cross_entropy", dtype_error=no_integers("binary_cross_entropy"))
def binary_entropy(xp, input: Array, target: Array, weight: Array | None, reduction: str):
    """The cross-entropy of probabilities, reduced."""
    for name, array in (("input", input), ("target", target)):
        if array.size and not (array.min() >= 0 and array.max() <= 1):
            raise ShapeError(
                f"all elements of {name} should be between 0 and 1; they go from {array.min()} to {array.max()}: apply "
                "sigmoid, or use binary_cross_entropy_with_logits"
            )
    x, t = widened(input), widened(target)
    losses = (t - 1) * xp.maximum(xp.log1p(-x), -100) - t * xp.maximum(xp.log(x), -100)
    if weight is not None:
        losses = losses * widened(weight)
    return reduced_and_rounded(losses, reduction, input.dtype)


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
        g_target = rounded(grad * (xp.log1p(-x) - xp.log(x)), input.dtype)
    return g_input, g_target


@binary_entropy.decomposition
def binary_entropy_decomposition(input: TensorState, target: TensorState, weight: TensorState | None, reduction: str):
    losses = (target - 1) * (1 - input).log().clamp_min(-100) - target * input.log().clamp_min(-100)
    return reduced(losses if weight is None else losses * weight, reduction)


@public_function
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
    require_floats("log_sigmoid_cpu", input)
    if not is_float(target._data.dtype):
        names = from_numpy_dtype(input._data.dtype).old_name, from_numpy_dtype(target._data.dtype).old_name
        raise ShapeError(
            f"result type {names[0]} can't be cast to the desired output type {names[1]}; convert the target with "
            ".float()"
        )
    return in_dtype_of(target, logistic_entropy(input, target, weight, pos_weight, reduction))


@op(name="binary_cross_entropy_with_logits")
def logistic_entropy(xp, input: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str):
    """(1 − t) · x + (1 + (w − 1) · t) · log(1 + exp(−x)), reduced; w is pos_weight."""
    x, t = widened(input), widened(target)
    softplus = xp.logaddexp(x.dtype.type(0), -x)
    if pos_weight is not None:
        softplus = softplus * ((widened(pos_weight) - 1) * t + 1)
    losses = (1 - t) * x + softplus
    if weight is not None:
        losses = losses * widened(weight)
    return reduced_and_rounded(losses, reduction, input.dtype)


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


@logistic_entropy.decomposition
def logistic_entropy_decomposition(
    input: TensorState, target: TensorState, weight: TensorState | None, pos_weight: TensorState | None, reduction: str
):
    softplus = -logsigmoid(input)
    if pos_weight is not None:
        softplus = softplus * ((pos_weight - 1) * target + 1)
    losses = (1 - target) * input + softplus
    return reduced(losses if weight is None else losses * weight, reduction)


@public_function
def soft_margin_loss(input: TensorState, target: TensorState, size_average=None, reduce=None, reduction: str = "mean"):
    """Return log(1 + exp(−target · input)) for targets of 1 and −1.

    Raises:
        RuntimeError: the target requires grad.
    """
    if modes.grad_enabled and target._edge is not None:
        raise GraphError(
            "The function 'soft_margin_loss' is not differentiable with respect to argument 'target'. This input "
            "cannot have requires_grad True. Give it target.detach()"
        )
    if target._data.dtype.kind == "b":
        return -target  # raises
    if category(input._data.dtype) < 2:
        raise _not_cast(input)
    return in_dtype_of(input, logistic_margin(input, target, reduction_of(reduction, size_average, reduce)))


@op(name="soft_margin_loss", promote="same")
def logistic_margin(xp, input: Array, target: Array, reduction: str):
    """log(1 + exp(−target · input)), reduced."""
    product = widened(target) * widened(input)
    return reduced_and_rounded(xp.logaddexp(product.dtype.type(0), -product), reduction, input.dtype)


@logistic_margin.derivative(
    "input", "target", formula="−grad · target · sigmoid(−target · input), and the same swapped"
)
def logistic_margin_both(grad, input, target, input_shape, target_shape, reduction, needs, xp):
    x, t = widened(input), widened(target)
    shape = xp.broadcast_shapes(input_shape, target_shape)
    found = share(widened(grad), reduction, shape) / -(1 + xp.exp(t * x))
    return rounded(found * t, input.dtype) if needs[0] else None, rounded(found * x, input.dtype) if needs[1] else None


@logistic_margin.decomposition
def logistic_margin_decomposition(input: TensorState, target: TensorState, reduction: str):
    return reduced(-logsigmoid(input * target), reduction)


def _not_cast(input: TensorState) -> ShapeError:
    """Return PyTorch's error for integers or bools where the loss, a float, would be written."""
    kind = from_numpy_dtype(input._data.dtype).old_name
    return ShapeError(f"result type Float can't be cast to the desired output type {kind}; convert it with .float()")


@public_function
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
    if category(input._data.dtype) < 2 or category(target._data.dtype) < 2:
        raise ShapeError("kl_div: Integral inputs not supported.; convert them with .float()")
    if holds_complex(input) or holds_complex(target):
        raise ShapeError("kl_div: Complex inputs not supported.")
    by_batch = reduction == "batchmean"
    reduction = reduction_of("sum" if by_batch else reduction, size_average, reduce)
    if log_target:
        losses = target.exp() * (target - input)
    else:
        losses = xlogy(target, target) - target * input
    total = reduced(losses, reduction)
    return total / input._data.shape[0] if by_batch and input._data.ndim else total


@public_function
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
        counts = target if target.requires_grad else target.clamp(min=1)  # of those below nothing is used: no log(0)
        stirling = counts * counts.log() - counts + 0.5 * (2 * math.pi * counts).log()
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
    if category(var._data.dtype) < 2:
        raise _not_cast(var)
    raised = var + (var.detach().clamp_min(eps) - var.detach())
    losses = 0.5 * (raised.log() + (input - target) ** 2 / raised)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction)
