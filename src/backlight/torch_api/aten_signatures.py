"""Layers and losses under `torch.*`: PyTorch's aten functions, with other argument orders than nn.functional.

A loss's reduction is a number here: 0 for none, 1 for the mean, 2 for the sum. Left out it is 0, as in PyTorch.
"""

import numpy as np

from backlight.codegen.declaration import op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.grad_mode import is_grad_enabled
from backlight.engine.tensor_state import TensorState, wrap
from backlight.engine.views import check_may_write
from backlight.errors import ShapeError
from backlight.kernels.random import distributions
from backlight.kernels.random.generator import default_twister
from backlight.ops.elementwise import activations
from backlight.ops.indexing import embedding_bags
from backlight.ops.indexing.embedding import shorten_rows
from backlight.ops.inplace import inplace
from backlight.ops.linalg.matrix_norms import norm
from backlight.ops.loss import ctc, likelihoods, margin_losses
from backlight.ops.loss.regression_losses import reduced
from backlight.ops.nn import channel_norms
from backlight.ops.number_operands import no_kernel
from backlight.ops.random import dropout

__all__ = [
    "alpha_dropout_",
    "batch_norm",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "ctc_loss",
    "dropout_",
    "embedding_bag",
    "embedding_renorm_",
    "feature_alpha_dropout_",
    "feature_dropout_",
    "hinge_embedding_loss",
    "instance_norm",
    "kl_div",
    "margin_ranking_loss",
    "norm_except_dim",
    "poisson_nll_loss",
    "rrelu",
    "rrelu_",
    "triplet_margin_loss",
]

REDUCTIONS = ("none", "mean", "sum")


# --- layers -----------------------------------------------------------------------------------------------------------


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Normalise each channel over batch and space; nn.functional.batch_norm has the arguments in another order."""
    return channel_norms.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """Normalise each channel of each example; nn.functional.instance_norm has the arguments in another order."""
    return channel_norms.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def embedding_bag(
    weight: TensorState,
    indices: TensorState,
    offsets: TensorState,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: TensorState | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
):
    """Return the sums (mode 0), means (1) or maxima (2) of bags of rows, and PyTorch's three auxiliary tensors.

    Returns: the result of nn.functional.embedding_bag; the bag of each index; how many count in each bag (zeros for
        sums); of maxima, which row each element is from, else the sizes again. Where PyTorch leaves the second empty
        (sums without a padding row, but not in float64), it is empty here.
    """
    out = embedding_bags.embedding_bag(
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq,
        mode=("sum", "mean", "max")[mode],
        sparse=sparse,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    rows, bag, count = embedding_bags.bags_of(indices._data, offsets._data, include_last_offset)
    counted = np.ones(len(rows), bool) if padding_idx is None else rows != padding_idx % weight._data.shape[0]
    sizes = np.bincount(bag[counted], minlength=count) if mode else np.zeros(count, np.int64)
    fills_all = mode or padding_idx is not None or weight._data.dtype == np.float64
    of_numbers = bag if fills_all else bag[:0]
    rows, bag = rows[counted], bag[counted]
    return (
        out,
        wrap(of_numbers),
        wrap(sizes),
        wrap(_sources(weight._data, rows, bag, sizes) if mode == 2 else sizes.copy()),
    )


def _sources(table: np.ndarray, rows: np.ndarray, bag: np.ndarray, sizes: np.ndarray):
    """Return the row of the table of each bag's maxima; 0 for an empty bag."""
    if not len(rows):
        return np.zeros((len(sizes), table.shape[1]), np.int64)
    return rows[embedding_bags.places_of_maxima(table[rows], bag, len(sizes))] * (sizes > 0)[:, None]


def embedding_renorm_(input: TensorState, indices: TensorState, max_norm: float, norm_type: float):
    """Rescale, in place, the looked-up rows that are longer than `max_norm`."""
    if is_grad_enabled():
        check_may_write(input)
    shorten_rows(input, indices, max_norm, norm_type)
    return input


def dropout_(input: TensorState, p: float, train: bool):
    """In-place `dropout`."""
    return dropout.dropout(input, p, train, inplace=True)


def alpha_dropout_(input: TensorState, p: float, train: bool):
    """In-place `alpha_dropout`."""
    return dropout.alpha_dropout(input, p, train, inplace=True)


def feature_dropout_(input: TensorState, p: float, train: bool):
    """In-place `feature_dropout`."""
    return dropout.feature_dropout(input, p, train, inplace=True)


def feature_alpha_dropout_(input: TensorState, p: float, train: bool):
    """In-place `feature_alpha_dropout`."""
    return dropout.feature_alpha_dropout(input, p, train, inplace=True)


# --- random slopes ----------------------------------------------------------------------------------------------------


def rrelu(input, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    """Return x above 0 and slope · x below; the slope is random while training, (lower + upper) / 2 else.

    Raises:
        RuntimeError: the lower bound is above the upper one.
    """
    return _leaking(input, lower, upper, training, generator, _scale, activations.leaky_relu)


def rrelu_(input, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    """In-place `rrelu`."""
    return _leaking(input, lower, upper, training, generator, _scale_, _leaky_relu_)


@op(name="rrelu_with_noise", node="RreluWithNoiseBackward0", tangent="linear", zero_derivative=("input",))
def _scale(xp, input, noise):
    """input · noise."""
    return input * noise


@_scale.derivative("input", formula="grad · noise")
def _scale_input(grad, noise):
    return grad * noise


_scale_, _leaky_relu_ = inplace(_scale, "rrelu_"), inplace(activations.leaky_relu)


def _leaking(input, lower, upper, training, generator, multiply, leak):
    if lower > upper:
        raise ShapeError(f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}")
    if not training:
        return leak(input, (lower + upper) / 2)
    data = input._data
    if data.dtype.kind not in "fV" or data.dtype == np.float16:
        raise no_kernel("rrelu_with_noise_out_cpu", data.dtype, "convert the input with .float()")
    below, factors = data <= 0, np.ones_like(data)
    twister = default_twister if generator is None else generator.twister
    factors[below] = distributions.uniform(twister, int(below.sum()), np.dtype(np.float64), lower, upper)
    return multiply(input, wrap(factors))


# --- losses -----------------------------------------------------------------------------------------------------------


def _named(reduction: int) -> str:
    """Return the name of a reduction given as a number."""
    if reduction not in (0, 1, 2):
        raise ShapeError(f"{reduction} is not a valid value for reduction; it must be 0 (none), 1 (mean) or 2 (sum)")
    return REDUCTIONS[reduction]


@public_function
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    """Return the binary cross-entropy of sigmoid(input); the reduction is a number."""
    of_names = likelihoods.binary_cross_entropy_with_logits
    return of_names(input, target, weight, pos_weight=pos_weight, reduction=_named(reduction))


@public_function
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    """Return 1 − cos of matching pairs, max(0, cos − margin) of others; the reduction is a number."""
    return margin_losses.cosine_embedding_loss(input1, input2, target, margin, reduction=_named(reduction))


@public_function
def hinge_embedding_loss(input: TensorState, target: TensorState, margin: float = 1.0, reduction: int = 0):
    """Return distances where the target is 1, max(0, margin − distance) where it is −1; the reduction is a number."""
    return margin_losses.hinge_embedding_loss(input, target, margin, reduction=_named(reduction))


@public_function
def kl_div(input: TensorState, target: TensorState, reduction: int = 0, *, log_target: bool = False):
    """Return target · (log(target) − input), where input holds logarithms; the reduction is a number."""
    losses = likelihoods.kl_div(input, target, reduction="none", log_target=log_target)
    return reduced(losses, _named(reduction))


@public_function
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    """Return max(0, −target · (input1 − input2) + margin); the reduction is a number."""
    return margin_losses.margin_ranking_loss(input1, input2, target, margin, reduction=_named(reduction))


@public_function
def poisson_nll_loss(input: TensorState, target: TensorState, log_input: bool, full: bool, eps: float, reduction: int):
    """Return the negative log-likelihood of counts; the reduction is a number."""
    return likelihoods.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_named(reduction))


@public_function
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=0):
    """Return max(0, d(anchor, positive) − d(anchor, negative) + margin); the reduction is a number."""
    return margin_losses.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_named(reduction)
    )


@public_function
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    """Return the negative log-likelihood of texts in longer signals; the reduction is a number."""
    lengths = input_lengths, target_lengths
    return ctc.ctc_loss(log_probs, targets, *lengths, blank, _named(reduction), zero_infinity)


# --- norms -----------------------------------------------------------------------------------------------------------


def norm_except_dim(v: TensorState, pow: float = 2, dim: int = 0):
    """Return the norm of each slice along `dim`, as `weight_norm` takes it; of all elements with dim −1."""
    if dim == -1:
        return norm(v, pow)
    if dim not in (0, v._data.ndim - 1):
        return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)
    size, ones = v._data.shape[dim], (1,) * (v._data.ndim - 1)
    if dim == 0:
        return norm(v.reshape((size, -1)), pow, 1).reshape((size, *ones))
    return norm(v.reshape((-1, size)), pow, 0).reshape((*ones, size))
