"""Cross-entropy of rows by class numbers, and its gradient.

Forward keeps three numbers a row: its maximum, the sum of exp(x − maximum) and its share in the loss. With them
backward makes the gradients in one pass over the rows.
"""

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.nn.softmax import shifted, sums


@native
def class_losses(
    x: np.ndarray, targets: np.ndarray, weight: np.ndarray | None, ignored: int, reduction: str, smoothing: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return (1 − s) · weight[t] · (log Σ exp(x) − x[t]) + s / classes · Σ weight · (log Σ exp(x) − x) of each row.

    Shapes: x (n, classes), targets (n,), weight (classes,) or None -> (n,) or () by reduction, (n, 2), (n,)

    Returns:
        The losses, their sum, or that over the sum of the targets' weights, as reduction says; each row's maximum
        and Σ exp(x − maximum); each row's share in the reduced loss, 0 where its target is ignored. None if a target is
        no class.
    """
    counted = targets != ignored
    classes = np.where(counted, targets, 0).astype(np.intp)
    if classes.size and (classes.min() < 0 or classes.max() >= x.shape[1]):
        return None
    below = shifted(x, 1)
    totals = sums(np.exp(below), 1)
    spread = np.log(totals) - below
    scales = np.concatenate((x.max(1, keepdims=True) if x.size else totals, totals), axis=1)
    losses, weights = spread[np.arange(len(x)), classes], counted.astype(x.dtype)
    if weight is not None:
        weights *= weight[classes]
        losses = np.where(weights, losses * weights, x.dtype.type(0))
    if smoothing:
        everywhere = sums(spread if weight is None else spread * weight, 1)[:, 0]
        losses = losses * x.dtype.type(1 - smoothing) + everywhere * x.dtype.type(smoothing / x.shape[1])
    losses = np.where(counted, losses, x.dtype.type(0))
    factors = counted.astype(x.dtype)
    if reduction == "none":
        return losses, scales, factors
    total = np.asarray(losses.sum(dtype=np.float64))
    if reduction == "mean":
        weight_sum = weights.sum(dtype=np.float64)
        factors[counted] = np.divide(1, weight_sum) if weight_sum or counted.any() else 1
        total = total / weight_sum if weight_sum else np.asarray(np.nan)
    return np.asarray(total, x.dtype), scales, factors


@native
def class_gradients(
    grad: np.ndarray,
    x: np.ndarray,
    targets: np.ndarray,
    weight: np.ndarray | None,
    scales: np.ndarray,
    factors: np.ndarray,
    smoothing: float,
) -> np.ndarray:
    """Return the derivative of `class_losses` for x; grad has one number, or one for each row.

    grad · factor · ((1 − s) · weight[t] · (softmax(x) − 1 at t) + s / classes · (Σ weight · softmax(x) − weight))
    """
    kind = x.dtype.type
    counted = factors != 0
    classes = np.where(counted, targets, 0).astype(np.intp)
    factors = np.where(counted, np.reshape(grad, -1) * factors, kind(0))
    at_target = factors if weight is None else factors * weight[classes]
    spread = factors * kind(smoothing / max(x.shape[1], 1))
    at_target = at_target * kind(1 - smoothing)
    total = kind(x.shape[1]) if weight is None else weight.sum()
    gradients = np.exp(x - scales[:, :1])
    gradients *= (at_target + spread * total)[:, None] / scales[:, 1:]
    if smoothing:
        gradients -= spread[:, None] if weight is None else spread[:, None] * weight
    gradients[np.arange(len(x)), classes] -= at_target
    gradients[~counted] = 0
    return gradients
