"""Logits whose sigmoid is a probability: a scale and an offset, fitted on pairs that were not trained on.

Source: Platt, Probabilistic Outputs for Support Vector Machines, 1999; Lin, Lin, Weng, A note on Platt's probabilistic
outputs for support vector machines, 2007, doi:10.1007/s10994-007-5018-6.
"""

from dataclasses import dataclass

import numpy as np

from backlight.training.reranker.measures import calibration_error

STEPS = 100  # of Newton's method, at most
FLAT = 1e-10  # a gradient that is as good as zero


@dataclass(frozen=True)
class Platt:
    """probability = sigmoid(scale · logit + offset)."""

    scale: float = 1.0
    offset: float = 0.0

    def __call__(self, logits: np.ndarray) -> np.ndarray:
        """Return probabilities; (pairs,) -> the same."""
        return sigmoid(self.scale * np.asarray(logits, np.float64) + self.offset)


@dataclass(frozen=True)
class Calibration:
    """What was fitted, and the expected calibration error before and after.

    Args:
        platt: the scale and offset that were folded into the model.
        before: the error of sigmoid(logit), by domain, and of "all".
        after: the same with scale and offset that were fitted on the other half of the queries.
    """

    platt: Platt
    before: dict[str, float]
    after: dict[str, float]


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(−logits)), without overflow."""
    return np.exp(-np.logaddexp(0, -logits))


def fit_platt(logits: np.ndarray, labels: np.ndarray) -> Platt:
    """Return the scale and offset that give the labels the highest likelihood, by Newton's method.

    As in Platt's paper labels are drawn in a little, to (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2). Where the best scale is
    not above zero, so that the model is worse than chance, nothing is changed.

    Shapes: logits, labels (pairs,), labels from 0 to 1
    """
    logits, labels = np.asarray(logits, np.float64), np.asarray(labels, np.float64)
    right = labels.sum()
    if not 0 < right < len(labels):
        return Platt()
    low, high = 1 / (len(labels) - right + 2), (right + 1) / (right + 2)
    wanted = low + (high - low) * labels
    inputs = np.stack([logits, np.ones_like(logits)], 1)
    found = np.array([1.0, np.log(right / (len(labels) - right))])
    loss = _likelihood_loss(inputs @ found, wanted)
    for _ in range(STEPS):
        guess = sigmoid(inputs @ found)
        gradient = inputs.T @ (guess - wanted) / len(labels)
        if np.abs(gradient).max() < FLAT:
            break
        curvature = (inputs * (guess * (1 - guess))[:, None]).T @ inputs / len(labels) + 1e-12 * np.eye(2)
        step, share = np.linalg.solve(curvature, gradient), 1.0
        while share > FLAT and _likelihood_loss(inputs @ (found - share * step), wanted) > loss:
            share /= 2
        found = found - share * step
        loss = _likelihood_loss(inputs @ found, wanted)
    return Platt(*found.tolist()) if found[0] > 0 else Platt()


def calibrate(logits: np.ndarray, labels: np.ndarray, units: np.ndarray, domains: np.ndarray) -> Calibration:
    """Fit a scale and an offset on all pairs, and measure by halves how good such probabilities are.

    Args:
        logits: of the model, (pairs,).
        labels: how right each document is, from 0 to 1.
        units: the number of each pair's query, from 0: halves are of whole queries, each second one.
        domains: of each query.
    """
    half = units % 2 == 1
    after = np.empty(len(logits))
    for own in (half, ~half):
        if own.any():
            after[own] = fit_platt(logits[~own], labels[~own])(logits[own])
    before = sigmoid(np.asarray(logits, np.float64))
    return Calibration(
        fit_platt(logits, labels), *(_errors(found, labels, domains[units]) for found in (before, after))
    )


def _errors(probabilities: np.ndarray, labels: np.ndarray, domains: np.ndarray) -> dict[str, float]:
    found = {"all": calibration_error(probabilities, labels)}
    names = sorted(set(domains))
    if len(names) > 1:
        own = {name: domains == name for name in names}
        found |= {name: calibration_error(probabilities[own[name]], labels[own[name]]) for name in names}
    return found


def _likelihood_loss(logits: np.ndarray, wanted: np.ndarray) -> float:
    return float((np.logaddexp(0, logits) - wanted * logits).mean())
