"""Attention over packed sequences of different lengths: each token attends to those of its own sequence.

Queries, keys and values stand side by side, `heads` times dim numbers of each, as one product with three weights gives
them. What is kept for the gradient is one number a query and head, the logarithm of Σ exp(scores); probabilities are
computed anew.
"""

from collections.abc import Iterator

import numpy as np

from backlight.kernels.native import native


@native
def ragged_attention(
    qkv: np.ndarray, bias: np.ndarray | None, lengths: tuple[int, ...], heads: int, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return softmax(q · kᵀ · scale + bias) · v for each text and head, and log Σ exp(q · kᵀ · scale + bias).

    Shapes: qkv (tokens, 3 · heads · dim), bias (tokens,) of the keys -> (tokens, heads · dim), (tokens, heads)
    """
    tokens, size = qkv.shape[0], qkv.shape[1] // 3
    out, logs = np.empty((tokens, size), qkv.dtype), np.empty((tokens, heads), qkv.dtype)
    for here in _sequences(lengths):
        q, k, v = _heads(qkv[here], heads)
        scores = (q @ k.mT) * qkv.dtype.type(scale)
        if bias is not None:
            scores += bias[here]
        top = scores.max(-1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(-1, keepdims=True)
        out[here] = (weights @ v / total).transpose(1, 0, 2).reshape((-1, size))
        logs[here] = (top + np.log(total))[..., 0].T
    return out, logs


@native
def ragged_attention_gradient(
    grad: np.ndarray,
    qkv: np.ndarray,
    bias: np.ndarray | None,
    logs: np.ndarray,
    lengths: tuple[int, ...],
    heads: int,
    scale: float,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the gradients of `ragged_attention` for qkv and, where there is one, for the bias in each head.

    With p the probabilities, d = grad · vᵀ, s = p · (d − Σ d · p): s · k · scale; sᵀ · q · scale; pᵀ · grad; Σ s over
    the queries.

    Shapes: -> that of qkv, (tokens, heads)
    """
    found = np.empty(qkv.shape, qkv.dtype)
    of_bias = None if bias is None else np.zeros((len(qkv), heads), qkv.dtype)
    factor = qkv.dtype.type(scale)
    for here in _sequences(lengths):
        q, k, v = _heads(qkv[here], heads)
        arrived = grad[here].reshape((len(q[0]), heads, -1)).transpose(1, 0, 2)
        scores = (q @ k.mT) * factor
        if bias is not None:
            scores += bias[here]
        p = np.exp(scores - logs[here].T[..., None])
        p /= p.sum(-1, keepdims=True)  # the logarithm has lost digits as a rounded number
        grad_scores = arrived @ v.mT
        grad_scores -= (grad_scores * p).sum(-1, keepdims=True)
        grad_scores *= p
        if of_bias is not None:
            of_bias[here] = grad_scores.sum(1).T
        grad_scores *= factor
        for part, gradient in zip(_heads(found[here], heads), (grad_scores @ k, grad_scores.mT @ q, p.mT @ arrived)):
            part[...] = gradient
    return found, of_bias


def _sequences(lengths: tuple[int, ...]) -> Iterator[slice]:
    """Yield the slice of each sequence that is not empty."""
    start = 0
    for length in lengths:
        if length:
            yield slice(start, start + length)
        start += length


def _heads(qkv: np.ndarray, heads: int) -> np.ndarray:
    """Return views of queries, keys and values, each (heads, tokens, dim)."""
    return qkv.reshape((len(qkv), 3, heads, -1)).transpose(1, 2, 0, 3)
