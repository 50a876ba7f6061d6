"""Integrated gradients: the gradient, averaged along a straight path from a baseline to the words' embeddings.

NOTE [Completeness]
For a token with embedding e and baseline b, and a score s,

    value = Σ over dims of (e − b) · ∫₀¹ ∂s/∂e at b + α (e − b) dα

The values of all tokens add up to s(words) − s(baseline): exactly for the integral, nearly for a sum over steps. What
is missing is the gap, and steps are doubled until it is small. A gap that stays is reported. That the sum is
right says nothing about each word: where the way leads through embeddings that no text has, the gradients there count
as much as those near the words.

Source: Sundararajan, Taly, Yan, Axiomatic Attribution for Deep Networks, 2017, arXiv:1703.01365.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution, Recipe, attribute_pair
from backlight.explain.checks import check_same_scores, check_values, ordinary_passes
from backlight.explain.methods.by_batch import Pairs, Scores, gradients_at
from backlight.models.pairs import DOCUMENT, QUERY, Pair, PairBatch
from backlight.models.scorer import Progress, Scorer, no_progress

BASELINES = {
    "zero": "zero in place of each word's embedding",
    "pad": "the padding token in place of each word's",
    "mask": "the mask token in place of each word's",
    "average": "the vocabulary's mean embedding in place of each word's",
}
MOVED = {"both": (QUERY, DOCUMENT), "query": (QUERY,), "document": (DOCUMENT,)}


LARGEST_STEPS = 10_000


def midpoint(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of the midpoint rule on [0, 1].

    >>> midpoint(2)
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """
    return (np.arange(steps) + 0.5) / steps, np.full(steps, 1 / steps)


def gauss_legendre(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of the Gauss–Legendre rule on [0, 1], exact for polynomials of degree 2 · steps − 1."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    return (points + 1) / 2, weights / 2


Rule = Callable[[int], tuple[np.ndarray, np.ndarray]]
RULES: dict[str, Rule] = {"gauss-legendre": gauss_legendre, "midpoint": midpoint}


@dataclass(eq=False)
class _Path:
    """A pair's way from the baseline to its words."""

    pair: Pair
    start: np.ndarray  # (tokens, hidden)
    change: np.ndarray  # (tokens, hidden)
    score: float
    baseline_score: float
    passes: int = 3  # the ordinary score, the score of the embeddings, the baseline's
    steps: int = 0
    gradients: np.ndarray = field(init=False)  # averaged along the way, (tokens, hidden)

    @property
    def values(self) -> np.ndarray:
        return (self.change * self.gradients).sum(axis=1)

    @property
    def gap(self) -> float:
        return float(self.values.sum()) - (self.score - self.baseline_score)

    def points(self, alphas: np.ndarray) -> Iterator[tuple[Pair, np.ndarray]]:
        return ((self.pair, self.start + np.float32(alpha) * self.change) for alpha in alphas)


def integrated_gradients(
    ranker: Scorer,
    pairs: Pairs,
    *,
    baseline: str = "zero",
    moved: str = "both",
    rule: str = "midpoint",
    steps: int = 16,
    max_steps: int = 512,
    tolerance: float = 0.01,
    floor: float = 1e-4,
    scores: Scores = None,
    progress: Progress = no_progress,
) -> list[Attribution]:
    """Return each token's share of the difference between score and baseline's score (see NOTE [Completeness]).

    Special tokens keep their own embeddings in the baseline, as is usual for BERT, so their values are zero.

    Args:
        baseline: the embeddings that words are compared with: `zero`, `pad`, `mask` or `average`.
        moved: the texts whose words are replaced in the baseline: `both`, only the `query`, or only the `document`. Two
            texts without words are similar, and a model may score them above every real pair: see `baseline_score`.
        rule: the quadrature rule: `midpoint` or `gauss-legendre`. On BERTs the midpoint rule converges in fewer
            steps, because the gradient changes most near the baseline.
        steps: the number of points on the path at first; it is doubled until the gap is small.
        max_steps: the largest number of points. The remaining gap is reported.
        tolerance: the allowed gap, relative to |score − baseline's score|.
        floor: a gap that is always allowed, in units of the score. Others as in NOTE [A method].

    Returns:
        One explanation per pair, in units of the score. Its settings say whether the gap is `within_tolerance`.

    Raises:
        InputError: an option is not one of those, or the model has no such baseline.
        RuntimeError: a gradient is missing, zero or not finite, or the two calls disagree.
    """
    _check(baseline, moved, rule, steps, max_steps)
    baseline_embeddings, done = ranker.baseline(baseline), []
    for batch, ordinary in ordinary_passes(ranker, pairs, scores):
        paths = _paths(ranker, batch, baseline_embeddings, MOVED[moved], ordinary)
        _integrate(ranker, paths, RULES[rule], steps, max_steps, tolerance, floor, progress)
        for path in paths:
            check_values(path.values, path.pair.name, "the integrated gradient")
            recipe = Recipe(
                "integrated-gradients",
                "(embedding − baseline) · mean ∂score/∂embedding on the way between them",
                signed=True,
                baseline=BASELINES[baseline],
                passes=path.passes,
                settings={
                    "steps": path.steps,
                    "baseline_score": path.baseline_score,
                    "moved": moved,
                    "rule": rule,
                    "tolerance": tolerance,
                    "within_tolerance": _is_small(path, tolerance, floor),
                },
            )
            done.append(attribute_pair(path.pair, path.values, recipe, ranker.name, path.score, path.gap))
    return done


def _check(baseline: str, moved: str, rule: str, steps: int, max_steps: int) -> None:
    for name, value, known in (("baseline", baseline, BASELINES), ("moved", moved, MOVED), ("rule", rule, RULES)):
        if value not in known:
            raise InputError(f"{name} must be one of {', '.join(known)}, got {value}")
    if not 1 <= steps <= max_steps:
        raise InputError(f"steps must be from 1 to max_steps, got {steps} and {max_steps}")
    if max_steps > LARGEST_STEPS:
        raise InputError(f"max_steps must be {LARGEST_STEPS:,} or less, got {max_steps:,}: each step takes two passes")


def _paths(
    ranker: Scorer, batch: PairBatch, baseline_embeddings: np.ndarray, sides: tuple[int, ...], ordinary: np.ndarray
) -> list[_Path]:
    """Return each pair's way, after comparing the score at its end with an ordinary call's."""
    embeddings = ranker.embed(batch)
    check_same_scores(ranker.score(batch, embeddings), ordinary, batch.pairs, ranker.rounding)
    moves = np.isin(np.concatenate([pair.sides for pair in batch.pairs]), sides)
    starts = np.where(moves[:, None], baseline_embeddings, embeddings).astype(embeddings.dtype)
    changes = (batch.by_pair(part) for part in (starts, embeddings - starts))
    ends = (np.asarray(part, np.float64).tolist() for part in (ordinary, ranker.score(batch, starts)))
    return [_Path(*path) for path in zip(batch.pairs, *changes, *ends)]


def _integrate(
    ranker: Scorer,
    paths: list[_Path],
    rule: Rule,
    steps: int,
    max_steps: int,
    tolerance: float,
    floor: float,
    progress: Progress,
) -> None:
    """Average the gradient along every way, again with twice the steps where the gap is not small."""
    while paths:
        alphas, weights = rule(steps)
        found = gradients_at(ranker, (point for path in paths for point in path.points(alphas)))
        for path in paths:
            path.gradients = np.zeros(path.change.shape)
            for weight, (_, gradients) in zip(weights, found):
                path.gradients += weight * gradients
            path.steps = steps
            path.passes += 2 * steps
        settled = [path for path in paths if 2 * steps > max_steps or _is_small(path, tolerance, floor)]
        progress(len(settled))
        paths = [path for path in paths if path not in settled]
        steps *= 2


def _is_small(path: _Path, tolerance: float, floor: float) -> bool:
    return abs(path.gap) <= max(floor, tolerance * abs(path.score - path.baseline_score))
