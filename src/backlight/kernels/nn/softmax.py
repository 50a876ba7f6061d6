"""Row by row work: sums and softmax, in the fewest passes that NumPy allows.

A row is what lies along `dim`, mostly the last one. Results keep that dim, with size 1 where it was summed over.

NOTE [Sums by a product]
`x.sum(-1)` costs one ufunc reduction a row; a product with a vector of ones is one BLAS call and six times faster.
"""

import functools

import numpy as np

from backlight.kernels.native import compiled, native

# exp of numbers this small neither overflows nor loses digits, in float32 too and in rows of any length
_SAFE = 60.0
_BLOCK = 2**16  # numbers: 256 KiB of float32


@functools.lru_cache(maxsize=64)
def _ones(size: int, kind: np.dtype) -> np.ndarray:
    return np.ones(size, kind)


def sums(x: np.ndarray, dim: int = -1) -> np.ndarray:
    """Return `x.sum(dim, keepdims=True)` (see NOTE [Sums by a product])."""
    if x.ndim and (dim == -1 or dim == x.ndim - 1) and x.shape[-1] >= 8:
        return (x @ _ones(x.shape[-1], x.dtype))[..., None]
    return x.sum(dim, keepdims=True)


def dots(a: np.ndarray, b: np.ndarray, dim: int = -1) -> np.ndarray:
    """Return `(a * b).sum(dim, keepdims=True)`; along the last dim the product is never materialised."""
    if a.ndim and (dim == -1 or dim == a.ndim - 1):
        return np.vecdot(a, b)[..., None]
    return (a * b).sum(dim, keepdims=True)


def _all_small(x: np.ndarray) -> bool:
    """Tell whether exp may be taken of all of x unshifted: two fast passes, while the maxima of rows are slow."""
    return x.size > 0 and x.min() > -_SAFE and x.max() < _SAFE


def shifted(x: np.ndarray, dim: int) -> np.ndarray:
    """Return a new array: x less the maximum of each row."""
    return np.asarray(x - x.max(dim, keepdims=True)) if x.size else np.empty_like(x)


@native
def softmax(x: np.ndarray, dim: int = -1) -> np.ndarray:
    """Return exp(x) / Σ exp(x), a new array; NaN in a row of nothing but −inf."""
    if _all_small(x):
        weights = np.exp(x)
    else:
        weights = shifted(x, dim)
        np.exp(weights, out=weights)
    if weights.size:
        weights *= np.reciprocal(sums(weights, dim))
    return weights


def attention_weights(scores: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Turn scores, which are overwritten, into softmax(scores + mask) over the last dim.

    A boolean mask says which scores count. A row where none counts gives zeros.
    """
    if mask is not None and np.broadcast_shapes(scores.shape, mask.shape) != scores.shape:
        scores = np.broadcast_to(scores, np.broadcast_shapes(scores.shape, mask.shape)).copy()
    if compiled is not None:
        # the fewest passes where softmax is compiled
        _mask(scores, mask)
        found = softmax(scores, -1)
        if mask is not None and found.size and np.isnan(found[..., 0]).any():
            found[(scores == -np.inf).all(-1)] = 0
        return found
    if _all_small(scores) and (mask is None or _is_switch(mask)):
        np.exp(scores, out=scores)
        if mask is not None:
            scores *= mask.astype(scores.dtype) if mask.dtype.kind == "b" else np.exp(mask)
    else:
        _exp_shifted(scores, mask)
    total = sums(scores)
    scores *= np.reciprocal(total, out=np.zeros_like(total), where=total != 0)
    return scores


@functools.lru_cache(maxsize=16)
def causal_mask(queries: int, keys: int) -> np.ndarray:
    """Return which keys each query may look at: its own and those before."""
    mask = np.tri(queries, keys, dtype=bool)
    mask.flags.writeable = False
    return mask


def _is_switch(mask: np.ndarray) -> bool:
    """Tell whether exp(scores) · exp(mask) keeps all digits: in each row −inf only, or something near 0."""
    if mask.dtype.kind == "b":
        return True
    tops = mask.max(-1) if mask.size else mask
    return bool(np.all((np.abs(tops) < _SAFE) | (tops == -np.inf)))


def _mask(scores: np.ndarray, mask: np.ndarray | None) -> None:
    """Add a mask to scores; where a boolean one says that a score does not count, that is −inf."""
    if mask is not None and mask.dtype.kind == "b":
        np.copyto(scores, -np.inf, where=~mask)
    elif mask is not None:
        scores += mask


def _exp_shifted(scores: np.ndarray, mask: np.ndarray | None) -> None:
    """Overwrite scores with exp(scores + mask − maximum of the row)."""
    _mask(scores, mask)
    if scores.size:
        tops = scores.max(-1, keepdims=True)
        scores -= np.where(tops == -np.inf, tops.dtype.type(0), tops)
        np.exp(scores, out=scores)


@native
def log_softmax(x: np.ndarray, dim: int = -1) -> np.ndarray:
    """Return x − log Σ exp(x), a new array."""
    if _all_small(x):
        return x - np.log(sums(np.exp(x), dim))
    out = shifted(x, dim)
    out -= np.log(sums(np.exp(out), dim))
    return out


@native
def softmax_gradient(grad: np.ndarray, out: np.ndarray, dim: int = -1) -> np.ndarray:
    """Return out · (grad − Σ grad · out), the derivative of softmax."""
    found = np.asarray(grad - dots(grad, out, dim))
    found *= out
    return found


@native
def log_softmax_gradient(grad: np.ndarray, out: np.ndarray, dim: int = -1) -> np.ndarray:
    """Return grad − exp(out) · Σ grad, the derivative of log_softmax."""
    found = np.asarray(np.exp(out))
    found *= sums(grad, dim)
    return np.subtract(grad, found, out=found)


def blocks(count: int, size: int):
    """Return slices that together cover `count` rows of `size` numbers, each small enough to stay in the cache."""
    step = max(1, _BLOCK // max(size, 1))
    return [slice(start, start + step) for start in range(0, count, step)]
