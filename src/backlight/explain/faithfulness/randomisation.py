"""Sanity checks: an explanation must change when the model's weights are randomised, and be the same in any batch.

From the head down, more and more of a copy of the model becomes random, all but the embeddings. A method whose ranking
of the words stays the same explains the input and not the model: the size of the embeddings stays at 1.00 throughout.

Source: Adebayo, Gilmer, Muelly, Goodfellow, Hardt, Kim, Sanity Checks for Saliency Maps, 2018, arXiv:1810.03292.
"""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution
from backlight.explain.faithfulness.curves import importance
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.pairs import Pair
from backlight.models.scorer import Scorer
from backlight.models.scoring import PairScorer
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

LAYER = re.compile(r"(?:^|\.)layers?\.(\d+)\.")  # how the families name the weights of a layer


def is_native(ranker: Scorer) -> bool:
    """Return whether a model runs on backlight's own engine, which alone lets its weights be changed."""
    return isinstance(ranker, PairScorer) and hasattr(ranker, "encoder")


def changeable(ranker: Scorer):
    """Return a copy of a model whose weights may be changed: the given one stays as it is.

    Raises:
        InputError: the model is of another engine.
    """
    if not is_native(ranker):
        raise InputError(f"{ranker.name} must run on backlight's engine for its weights to be changed, and does not")
    parts = {"encoder": copy.deepcopy(ranker.encoder)}
    if isinstance(ranker, CrossEncoder):
        parts["head"] = copy.deepcopy(ranker.head)
    return replace(ranker, **parts)


def weights_by_depth(ranker: Scorer) -> list[tuple[str, dict[str, Tensor]]]:
    """Return a model's weights in groups from the top down: "head", "layer 5", … "layer 0", "embeddings".

    The head holds what belongs to no layer and is no embedding: a last norm too. A bi-encoder may have none.
    """
    found: dict[str, dict[str, Tensor]] = {"head": {}}
    if isinstance(ranker, CrossEncoder):
        found["head"] = {f"head.{name}": weight for name, weight in ranker.head.parameters().items()}
    layers: dict[int, dict[str, Tensor]] = {}
    embeddings = {}
    for name, weight in ranker.encoder.parameters().items():
        layer = LAYER.search(name)
        group = layers.setdefault(int(layer[1]), {}) if layer else embeddings if "embed" in name else found["head"]
        group[name] = weight
    found |= {f"layer {number}": layers[number] for number in sorted(layers, reverse=True)}
    return [(title, group) for title, group in [*found.items(), ("embeddings", embeddings)] if group]


HALF, WHOLE = "upper half", "all layers"
Explain = Callable[[Scorer, Sequence[Pair]], list[Attribution]]


def randomised(ranker: Scorer, *, seed: int = 0) -> dict[str, Scorer]:
    """Return copies of a model: with its head and the upper half of its layers random, and with all layers random.

    Each weight is drawn from the normal distribution of its own mean and spread; the embeddings stay.

    Raises:
        InputError: the model is of another engine.
    """
    layers = sum(title.startswith("layer") for title, _ in weights_by_depth(ranker))
    return {HALF: _reinitialised(ranker, (layers + 1) // 2, seed), WHOLE: _reinitialised(ranker, layers, seed)}


def _reinitialised(ranker: Scorer, layers: int, seed: int):
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
    explain: Explain, ranker: Scorer, others: Mapping[str, Scorer], pairs: Sequence[Pair]
) -> dict[str, list[float]]:
    """Return the rank correlation of the document's words by a model and by each of others, for each pair.

    Args:
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


def batch_difference(
    explain: Callable, ranker: Scorer, pairs: Sequence[Pair], others: Sequence[Pair] = ()
) -> list[float]:
    """Return for each pair how much its values change in a batch with the others, relative to its largest value.

    Args:
        others: further pairs in the batch, which are not compared.
    """
    together = explain(ranker, [*pairs, *others])
    return [_difference(explain(ranker, [pair])[0], other) for pair, other in zip(pairs, together)]


def _difference(alone: Attribution, together: Attribution) -> float:
    first, second = (
        np.array([word.value for text in (one.query, one.document) for word in text.words]) for one in (alone, together)
    )
    largest = np.abs(first).max(initial=0)
    return float(np.abs(first - second).max(initial=0) / largest) if largest else 0.0
