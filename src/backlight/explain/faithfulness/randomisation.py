"""Cascading randomisation: an explanation of a model must change when the model's weights are replaced by noise.

From the head down, more and more of the model becomes random, all but the embeddings. A method whose ranking of the
words stays the same explains the input and not the model: the size of the embeddings stays at 1.00 throughout.

Source: Adebayo, Gilmer, Muelly, Goodfellow, Hardt, Kim, Sanity Checks for Saliency Maps, 2018, arXiv:1810.03292.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from backlight.explain.attribution import Attribution
from backlight.explain.faithfulness.curves import importance
from backlight.explain.faithfulness.depth import changeable, weights_by_depth
from backlight.models.pairs import Pair
from backlight.tensor.creation import from_numpy

HALF, WHOLE = "upper half", "all layers"


def randomised(ranker, *, seed: int = 0) -> dict[str, object]:
    """Return copies of a model: with its head and the upper half of its layers random, and with all layers random.

    Each weight is drawn from the normal distribution of its own mean and spread; the embeddings stay.

    Raises:
        InputError: the model is of another engine.
    """
    layers = sum(title.startswith("layer") for title, _ in weights_by_depth(ranker))
    return {HALF: _reinitialised(ranker, (layers + 1) // 2, seed), WHOLE: _reinitialised(ranker, layers, seed)}


def _reinitialised(ranker, layers: int, seed: int):
    """Return a copy with the head and this many of the upper layers random."""
    made = changeable(ranker)
    rng = np.random.default_rng(seed)
    groups = weights_by_depth(made)
    heads = groups[0][0] == "head"
    for _, group in groups[: layers + heads]:
        for weight in group.values():
            old = weight.numpy()
            weight.data = from_numpy(rng.normal(old.mean(), old.std(), old.shape).astype(old.dtype))
    return made


def similarity(
    explain: Callable, ranker, others: Mapping[str, object], pairs: Sequence[Pair]
) -> dict[str, list[float]]:
    """Return the rank correlation of the document's words by a model and by each of others, for each pair.

    Args:
        explain: gives explanations, `explain(ranker, pairs) -> list[Attribution]`.
        others: the randomised models by name.
    """
    ours = explain(ranker, pairs)
    return {
        name: [spearman(_values(one), _values(theirs)) for one, theirs in zip(ours, explain(other, pairs), strict=True)]
        for name, other in others.items()
    }


def _values(explained: Attribution) -> np.ndarray:
    return importance(np.array([word.value for word in explained.document.words]), explained.signed)


def spearman(values: np.ndarray, others: np.ndarray) -> float:
    """Return the correlation of two rankings; 0 where one of them has no order."""
    first, second = ranks(values), ranks(others)
    first, second = first - first.mean(), second - second.mean()
    size = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / size) if size > 0 else 0.0


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value, from 1, the mean one among equals."""
    _, own, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    return (ends - (sizes - 1) / 2)[own]
