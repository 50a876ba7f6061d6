"""The only ground truth: a model that was trained to depend on two words, and explanations that must find them.

NOTE [The shortcut]
A copy of the model learns, in a few hundred quick steps, that a document with both of two odd words is right and any
other is wrong: one of the words alone, or none, whatever the document says. Where one is missing, a word of another
document stands in its place: without it the model would learn to count words. Then it is known which words make the
score: the two. How many of a method's two strongest words are these is its precision. First the shortcut must have
taken: on held-out pairs the documents with both words must stand above those without.

Source: Bastings, Ebert, Zablotskaia, Sandholm, Filippova, "Will You Find These Shortcuts?" A Protocol for Evaluating
the Faithfulness of Input Salience Methods for Text Classification, 2021, arXiv:2111.07367.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backlight.errors import GraphError, InputError
from backlight.explain.attribution import Attribution
from backlight.explain.faithfulness.curves import importance, strongest_first, word_values
from backlight.explain.faithfulness.randomisation import changeable, weights_by_depth
from backlight.explain.faithfulness.removal import scores_of
from backlight.explain.parts import word_parts
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.pairs import DOCUMENT, Pair, PairBatch
from backlight.models.scorer import Progress, Scorer, Texts, no_progress
from backlight.ops.loss.likelihoods import binary_cross_entropy_with_logits
from backlight.optim.adam import Adam
from backlight.tensor.creation import from_numpy

WORDS = ("violin", "marble")
LENGTH = 30  # words of a document that are used: a longer text teaches no more, and costs
BATCH = 16
ENOUGH = 0.95  # share of held-out couples in the right order from which the shortcut has taken


@dataclass(frozen=True, eq=False)
class Shortcut:
    """A model with a known shortcut."""

    ranker: CrossEncoder
    words: tuple[str, str]
    agreement: float  # share of held-out couples of a document with both words and one without that are in order
    steps: int


def can_learn(ranker: Scorer) -> bool:
    """Return whether a shortcut can be taught: to a cross-encoder on backlight's engine."""
    return isinstance(ranker, CrossEncoder)


def teach(
    ranker: CrossEncoder,
    pairs: Sequence[Texts],
    held_out: Sequence[Texts],
    *,
    words: tuple[str, str] = WORDS,
    steps: int = 100,
    rate: float = 3e-4,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Shortcut:
    """Return a copy of the model that has learnt the shortcut (see NOTE [The shortcut]).

    The head and the upper half of the layers learn.

    Args:
        pairs: to learn from.
        held_out: to test on whether it took.
        words: the two that together make a document right; no document may hold them already.
        progress: called with the number of steps newly done.

    Raises:
        InputError: the model cannot learn it, or a document holds one of the words.
        RuntimeError: the shortcut did not take.
    """
    if not can_learn(ranker):
        raise InputError(f"{ranker.name} must be a cross-encoder on backlight's engine to learn a shortcut, and is not")
    for query, document in [*pairs, *held_out]:
        if set(words) & set(f"{query} {document}".lower().split()):
            raise InputError(f"no text must hold {' or '.join(words)}, and this one does: {document[:60]}")
    made = changeable(ranker)
    _train(made, pairs, words, steps, rate, np.random.default_rng([seed, 1]), progress)
    agreement = _agreement(made, held_out, words, np.random.default_rng([seed, 2]))
    if agreement < ENOUGH:
        raise GraphError(
            f"the shortcut must take, {ENOUGH:.0%} of the held-out couples in order, got {agreement:.0%} after {steps} "
            "steps: give it more steps"
        )
    return Shortcut(made, words, agreement, steps)


def _train(
    ranker: CrossEncoder,
    pairs: Sequence[Texts],
    words: tuple[str, str],
    steps: int,
    rate: float,
    rng: np.random.Generator,
    progress: Progress,
) -> None:
    groups = weights_by_depth(ranker)
    layers = sum(title.startswith("layer") for title, _ in groups)
    upper = groups[: 1 + (layers + 1) // 2]
    weights = [weight.requires_grad_() for _, group in upper for weight in group.values()]
    optimizer = Adam(weights, lr=rate)
    for _ in range(steps):
        chosen = [pairs[place] for place in rng.integers(len(pairs), size=BATCH)]
        right = np.arange(BATCH) % 2 == 0
        missing = np.where(right, 0, 1 + np.arange(BATCH) // 2 % 3)
        texts = [(q, _planted(d, words, int(kind), pairs, rng)) for (q, d), kind in zip(chosen, missing)]
        scores = ranker.pair_scores(PairBatch.of(ranker.read(texts)))
        loss = binary_cross_entropy_with_logits(scores, from_numpy(right.astype(np.float32)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress(1)
    for weight in weights:
        weight.requires_grad_(False)
        weight.grad = None


def planted(document: str, words: tuple[str, str], rng: np.random.Generator) -> str:
    """Return the first `LENGTH` words of a document with both of the words somewhere among them."""
    return _planted(document, words, 0, (), rng)


def _planted(
    document: str, words: tuple[str, str], missing: int, pairs: Sequence[Texts], rng: np.random.Generator
) -> str:
    """Put both words into a document (missing 0), only the second (1), only the first (2) or neither (3).

    Args:
        pairs: where a word is taken from that stands in for a missing one.
    """
    text = document.split()[:LENGTH]
    for number, word in enumerate(words, 1):
        if missing in (number, 3):
            word = rng.choice(pairs[int(rng.integers(len(pairs)))][1].split())
        text.insert(int(rng.integers(len(text) + 1)), str(word))
    return " ".join(text)


def _agreement(ranker: CrossEncoder, pairs: Sequence[Texts], words: tuple[str, str], rng: np.random.Generator) -> float:
    """Return the share of couples of a document with both words and one without that stand in the right order."""
    texts = [(q, _planted(d, words, kind, pairs, rng)) for kind in range(4) for q, d in pairs]
    right, *wrong = np.reshape(scores_of(ranker, ranker.read(texts)), (4, len(pairs)))
    return float((right[:, None] > np.concatenate(wrong)[None, :]).mean())


def precision(explained: Attribution, pair: Pair, words: tuple[str, str]) -> float:
    """Return how many of the strongest words of a document are the shortcut's, as a share; as many as it has."""
    parts = word_parts(pair, DOCUMENT)
    best = strongest_first(importance(word_values(explained, parts), explained.signed))[: len(words)]
    texts = [pair.document[parts[place].start : parts[place].end] for place in best.tolist()]
    return sum(text in words for text in texts) / len(words)
