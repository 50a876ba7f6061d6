"""PyTorch's `torch.nn.functional`: layers as functions."""

# ruff: noqa: F401 - what is imported without an underscore is exported

import warnings
from collections.abc import Sequence

import numpy as np

from backlight.dispatch.arguments.checked import public_functions as _public_functions
from backlight.dispatch.arguments.checked import with_checks as _with_checks
from backlight.dtypes import dtype
from backlight.engine.tensor_state import wrap as _wrap
from backlight.errors import ShapeError
from backlight.kernels.random import distributions
from backlight.kernels.random.generator import default_twister as _default_twister
from backlight.nn.activations import *  # noqa: F403 - each in one line, with its option `inplace`
from backlight.nn.attention import multi_head_attention_forward
from backlight.nn.fractional_pooling import (
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
)
from backlight.nn.interpolation import (
    affine_grid,
    grid_sample,
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from backlight.ops.elementwise.activations import (
    hardshrink,
    logsigmoid,
    prelu,
    sigmoid,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
)
from backlight.ops.elementwise.gated_activations import gelu, glu
from backlight.ops.elementwise.transcendental import tanh
from backlight.ops.indexing import embedding as tables
from backlight.ops.indexing.embedding_bags import embedding_bag
from backlight.ops.indexing.index_selection import one_hot
from backlight.ops.loss.cross_entropy import cross_entropy, linear_cross_entropy, nll_loss
from backlight.ops.loss.ctc import ctc_loss
from backlight.ops.loss.distances import cosine_similarity, pairwise_distance, pdist
from backlight.ops.loss.likelihoods import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    gaussian_nll_loss,
    kl_div,
    poisson_nll_loss,
    soft_margin_loss,
)
from backlight.ops.loss.margin_losses import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from backlight.ops.loss.regression_losses import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from backlight.ops.nn import adaptive_pooling
from backlight.ops.nn import softmax as softmaxes
from backlight.ops.nn.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from backlight.ops.nn.attention import scaled_dot_product_attention
from backlight.ops.nn.channel_norms import batch_norm as _normalise_batch
from backlight.ops.nn.channel_norms import check_several as _check_several
from backlight.ops.nn.channel_norms import group_norm as _normalise_groups
from backlight.ops.nn.channel_norms import instance_norm as _normalise_instances
from backlight.ops.nn.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from backlight.ops.nn.im2col import (
    channel_shuffle,
    fold,
    native_channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
)
from backlight.ops.nn.linear import bilinear, linear
from backlight.ops.nn.normalization import layer_norm, local_response_norm, normalize, rms_norm
from backlight.ops.nn.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)
from backlight.ops.out_variants import with_out as _with_out
from backlight.ops.random import dropout as dropouts
from backlight.ops.random.dropout import dropout1d, dropout2d, dropout3d
from backlight.ops.shape.padding import pad
from backlight.tensor.tensor import Tensor

Sizes = int | Sequence[int | None]


# --- softmax ----------------------------------------------------------------------------------------------------------


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None):
    """Return exp(x) / Σ exp(x) along `dim`."""
    dim = softmaxes.implicit_dim("softmax", input.ndim) if dim is None else dim
    return softmaxes.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None):
    """Return the logarithm of softmax along `dim`."""
    dim = softmaxes.implicit_dim("log_softmax", input.ndim) if dim is None else dim
    return softmaxes.log_softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None):
    """Return softmax(−x) along `dim`."""
    dim = softmaxes.implicit_dim("softmin", input.ndim) if dim is None else dim
    return softmaxes.softmax(-input, dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1):
    """Draw a differentiable (relaxed) sample from the distribution softmax(logits).

        softmax((logits + g) / tau), g = −log(−log(u)), u uniform

    Args:
        tau: the temperature; smaller values are closer to one-hot.
        hard: return a one-hot sample with the gradient of the relaxed one (straight-through).

    Source: Jang, Gu and Poole, Categorical Reparameterization with Gumbel-Softmax, 2016, arXiv 1611.01144.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", UserWarning, stacklevel=2)
    data = logits._data
    if not logits.is_floating_point():
        raise ShapeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {logits.dtype.old_name}; convert the logits with .float()"
        )
    waits = distributions.exponential(_default_twister, data.size).reshape(data.shape).astype(data.dtype)
    smooth = softmaxes.softmax((logits + _wrap(-np.log(waits))) / tau, dim)
    if not hard:
        return smooth
    places = np.expand_dims(smooth._data.argmax(dim), dim)
    chosen = np.zeros_like(data)
    np.put_along_axis(chosen, places, 1, dim)
    return _wrap(chosen) - smooth.detach() + smooth


# --- dropout ----------------------------------------------------------------------------------------------------------


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False):
    """Set each element to 0 with probability p while training, and divide the others by 1 − p."""
    return dropouts.dropout(input, p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False):
    """Drop elements while keeping mean and variance, for networks of SELU units."""
    return dropouts.alpha_dropout(input, p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False):
    """Drop full channels while keeping mean and variance, for networks of SELU units."""
    return dropouts.feature_alpha_dropout(input, p, training, inplace)


# --- tables -----------------------------------------------------------------------------------------------------------


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
):
    """Look up the rows of `weight` by the indices in `input`.

    Shapes: input (…), weight (n, dim) -> (…, dim)

    Args:
        padding_idx: the row that gets no gradient.
        max_norm: looked-up rows with a larger norm are rescaled in `weight` itself.
        norm_type: the order of the norm for `max_norm`.
        scale_grad_by_freq: divide each row's gradient by the number of times it was looked up.
        sparse: the gradient of the rows is a sparse tensor, for `SparseAdam`, `SGD` or `Adagrad`.
    """
    if weight._data.ndim != 2:
        raise ShapeError(f"'weight' must be 2-D; it has shape {list(weight._data.shape)}")
    count = weight._data.shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -count <= padding_idx < count:
        raise AssertionError(f"Padding_idx must be within num_embeddings; got {padding_idx} for {count} rows")
    elif padding_idx < 0:
        padding_idx += count
    if max_norm is not None:
        tables.shorten_rows(weight, input, max_norm, norm_type)
    return tables.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


# --- channels ---------------------------------------------------------------------------------------------------------


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
):
    """Normalise each channel over batch and space, then scale and shift it.

    In training it uses the batch's mean and variance, and updates the running statistics with `momentum`. In
    evaluation it uses the running statistics.

    Shapes: input (batch, channels, …), all others (channels,) -> as input
    """
    if training:
        _check_several(input._data.shape, "value per channel")
    return _normalise_batch(input, running_mean, running_var, weight, bias, training, momentum, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
):
    """Normalise each group of channels of each example, then scale and shift each channel.

    Shapes: input (batch, channels, …), weight and bias (channels,) -> as input

    Raises:
        ValueError: a group has only one element, so its variance is undefined.
    """
    shape = input._data.shape
    if len(shape) > 1 and isinstance(num_groups, int) and num_groups > 0:
        groups = [shape[0] * shape[1] // num_groups, num_groups, *shape[2:]]
        _check_several(groups, "value per channel", shown=groups)
    return _normalise_groups(input, num_groups, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
):
    """Normalise each channel of each example over space, then scale and shift the channel.

    Shapes: input (batch, channels, …), all others (channels,) -> as input
    """
    shape = input._data.shape
    if use_input_stats:
        _check_several((1, 1, *shape[2:]), "spatial element", shape)
    return _normalise_instances(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


# --- pooling ----------------------------------------------------------------------------------------------------------


def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False):
    """Return the maxima of `output_size` windows over the last dim, optionally with their indices.

    Shapes: input (batch, channels, length) or without batch -> (batch, channels, output_size)
    """
    both = adaptive_pooling.adaptive_max_pool1d(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Sizes, return_indices: bool = False):
    """Return the maxima of windows over the last dim, and their indices."""
    return adaptive_pooling.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Sizes, return_indices: bool = False):
    """Return the maxima of windows over the last two dims, and their indices in the plane."""
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Sizes, return_indices: bool = False):
    """Return the maxima of windows over the last three dims, and their indices in the volume."""
    return adaptive_max_pool3d(input, output_size, True)


_TAKING_OUT = (
    "avg_pool2d",
    "avg_pool3d",
    "gelu",
    "hardshrink",
    "linear",
    "logsigmoid",
    "normalize",
    "softplus",
    "softshrink",
)
__all__ = _public_functions(globals())
globals().update(_with_out(globals(), _TAKING_OUT, __name__))
globals().update(_with_checks(globals(), __all__, __name__))
