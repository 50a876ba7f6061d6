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
    qkv: np.ndarray, lengths: tuple[int, ...], heads: int, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return softmax(q · kᵀ · scale) · v for each text and head, and log Σ exp(q · kᵀ · scale).

    Shapes: qkv (tokens, 3 · heads · dim) -> (tokens, heads · dim), (tokens, heads)
    """
    tokens, size = qkv.shape[0], qkv.shape[1] // 3
    out, logs = np.empty((tokens, size), qkv.dtype), np.empty((tokens, heads), qkv.dtype)
    for here in _sequences(lengths):
        q, k, v = _heads(qkv[here], heads)
        scores = (q @ k.mT) * qkv.dtype.type(scale)
        top = scores.max(-1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(-1, keepdims=True)
        out[here] = (weights @ v / total).transpose(1, 0, 2).reshape((-1, size))
        logs[here] = (top + np.log(total))[..., 0].T
    return out, logs


@native
def ragged_attention_gradient(
    grad: np.ndarray, qkv: np.ndarray, logs: np.ndarray, lengths: tuple[int, ...], heads: int, scale: float
) -> np.ndarray:
    """Return the gradient of `ragged_attention` for qkv.

    With p the probabilities, d = grad · vᵀ, s = p · (d − Σ d · p) · scale: s · k; sᵀ · q; pᵀ · grad.
    """
    found = np.empty(qkv.shape, qkv.dtype)
    factor = qkv.dtype.type(scale)
    for here in _sequences(lengths):
        q, k, v = _heads(qkv[here], heads)
        arrived = grad[here].reshape((len(q[0]), heads, -1)).transpose(1, 0, 2)
        p = np.exp((q @ k.mT) * factor - logs[here].T[..., None])
        p /= p.sum(-1, keepdims=True)  # the logarithm has lost digits as a rounded number
        grad_scores = arrived @ v.mT
        grad_scores -= (grad_scores * p).sum(-1, keepdims=True)
        grad_scores *= p * factor
        for part, gradient in zip(_heads(found[here], heads), (grad_scores @ k, grad_scores.mT @ q, p.mT @ arrived)):
            part[...] = gradient
    return found


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
