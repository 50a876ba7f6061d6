"""SmoothGrad: saliency, averaged over noisy copies of the words' embeddings.

NOTE [Noise]
The noise is normal, with a standard deviation of `noise` times that of all values in the pair's word embeddings. So it
moves a token by about the share `noise` of an embedding's length. (The paper takes a share of the range from the least
value to the greatest. For pixels the two are near each other; among hundreds of dims a range is set by a few outliers.)
Special tokens get noise like all others.

Source: Smilkov, Thorat, Kim, Viégas, Wattenberg, SmoothGrad: removing noise by adding noise, 2017, arXiv:1706.03825.
"""

from collections.abc import Callable, Iterator

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution, Recipe, attribute_pair
from backlight.explain.checks import check_same_scores, check_values, ordinary_passes
from backlight.explain.methods.by_batch import Pairs, Scores, gradients_at
from backlight.explain.methods.controls import generator_of
from backlight.models.pairs import Pair
from backlight.models.scorer import Progress, Scorer, no_progress

LARGEST_SAMPLES = 100_000


def smoothgrad(
    ranker: Scorer,
    pairs: Pairs,
    *,
    noise: float = 0.2,
    samples: int = 32,
    seed: int = 0,
    scores: Scores = None,
    progress: Progress = no_progress,
) -> list[Attribution]:
    """Return Σ |∂score/∂embedding| of each token, averaged over noisy copies: the paper's mean of saliency maps.

    Values are in units of the score per unit of embedding.

    Args:
        noise: the noise level, see NOTE [Noise].
        samples: the number of noisy copies.
        seed: seed of the noise, which depends only on the pair and the seed. Others as in NOTE [A method].

    Raises:
        InputError: `samples` is below 1, or the noise is not positive.
        RuntimeError: a gradient is missing, zero or not finite, or the two calls disagree.
    """
    meaning = "mean of Σ|∂score/∂embedding| over noisy embeddings"

    def size(gradients: np.ndarray) -> np.ndarray:
        return np.abs(gradients).sum(axis=1, keepdims=True)

    return _explained(ranker, pairs, "smoothgrad", meaning, size, noise, samples, seed, scores, progress)


def smoothgrad_mean(
    ranker: Scorer,
    pairs: Pairs,
    *,
    noise: float = 0.2,
    samples: int = 32,
    seed: int = 0,
    scores: Scores = None,
    progress: Progress = no_progress,
) -> list[Attribution]:
    """Return Σ |mean of ∂score/∂embedding over noisy copies|; arguments and errors as `smoothgrad`.

    If the gradient changes direction between copies, its mean is small: only components common to all copies remain.
    """
    meaning = "Σ|mean ∂score/∂embedding over noisy embeddings|"
    return _explained(
        ranker, pairs, "smoothgrad-mean", meaning, lambda gradients: gradients, noise, samples, seed, scores, progress
    )


def _explained(
    ranker: Scorer,
    pairs: Pairs,
    method: str,
    meaning: str,
    part: Callable[[np.ndarray], np.ndarray],
    noise: float,
    samples: int,
    seed: int,
    scores: Scores,
    progress: Progress,
) -> list[Attribution]:
    """Return the L1 norm of the mean of a part of each gradient; part: (tokens, hidden) -> (tokens, …)."""
    if samples < 1 or not noise > 0:
        raise InputError(f"samples must be 1 or more and noise above 0, got {samples} and {noise}")
    if samples > LARGEST_SAMPLES:
        raise InputError(f"samples must be {LARGEST_SAMPLES:,} or less, got {samples:,}: each takes two passes")
    settings = {"noise": noise, "samples": samples, "seed": seed}
    recipe = Recipe(method, meaning, passes=2 + 2 * samples, settings=settings)
    done = []
    for batch, ordinary in ordinary_passes(ranker, pairs, scores):
        embeddings = ranker.embed(batch)
        check_same_scores(ranker.score(batch, embeddings), ordinary, batch.pairs, ranker.rounding)
        copies = (
            (pair, copy)
            for pair, own in zip(batch.pairs, batch.by_pair(embeddings))
            for copy in noisy(pair, own, noise, samples, seed)
        )
        found = gradients_at(ranker, copies)
        for pair, score in zip(batch.pairs, ordinary):
            mean = sum(part(gradients).astype(np.float64) for _, (_, gradients) in zip(range(samples), found)) / samples
            values = np.abs(mean).sum(axis=1)
            check_values(values, pair.name)
            done.append(attribute_pair(pair, values, recipe, ranker.name, score))
            progress(1)
    return done


def noisy(pair: Pair, embeddings: np.ndarray, noise: float, samples: int, seed: int) -> Iterator[np.ndarray]:
    """Yield noisy copies of a pair's word embeddings (see NOTE [Noise]); each (tokens, hidden)."""
    draws, size = generator_of(pair, seed), np.float32(noise * embeddings.std())
    for _ in range(samples):
        yield embeddings + size * draws.standard_normal(embeddings.shape, np.float32)
