"""PyTorch's `torch.nn.functional`: layers as functions."""

from backlight.ops import embedding as tables
from backlight.ops import softmax as softmaxes
from backlight.ops.attention import scaled_dot_product_attention
from backlight.ops.linear import linear
from backlight.ops.losses import cross_entropy, nll_loss
from backlight.ops.normalisation import layer_norm

__all__ = [
    "cross_entropy",
    "embedding",
    "layer_norm",
    "linear",
    "log_softmax",
    "nll_loss",
    "scaled_dot_product_attention",
    "softmax",
]


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Return exp(x) / Σ exp(x) along `dim`."""
    return softmaxes.softmax(input, softmaxes.implicit_dim("softmax", input.ndim) if dim is None else dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Return the logarithm of softmax along `dim`."""
    return softmaxes.log_softmax(
        input, softmaxes.implicit_dim("log_softmax", input.ndim) if dim is None else dim, dtype
    )


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Return the rows of `weight` that `input` numbers.

    Shapes: input (…), weight (n, dim) -> (…, dim)

    Args:
        padding_idx: the row that gets no gradient.
        max_norm: rows taken that are longer than this are shortened in `weight` itself.
        norm_type: which norm `max_norm` speaks of.
        scale_grad_by_freq: divide each row's gradient by how often the row was taken.
        sparse: accepted; gradients are dense.
    """
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
