"""Controls: values that know nothing of the score. A method that measures no better than these explains nothing.

They run only when requested by name. The size of an embedding looks like an explanation: rare words
have long embeddings and strong gradients, so it agrees with saliency on many texts. But it is the same for every query.
"""

import zlib
from collections.abc import Callable, Sequence

import numpy as np

from backlight.explain.attribution import Attribution, attribute_pair, attribute_words, words_of
from backlight.explain.checks import ordinary_passes
from backlight.models.pairs import DOCUMENT, QUERY, Pair
from backlight.models.scoring import PairScorer


def generator_of(pair: Pair, seed: int) -> np.random.Generator:
    """Return random numbers that belong to a pair and a seed, whatever else is explained with it."""
    return np.random.default_rng([seed, zlib.crc32(pair.query.encode()), zlib.crc32(pair.document.encode())])


def embedding_magnitude(
    ranker: PairScorer,
    pairs: Sequence[Pair],
    *,
    scores: np.ndarray | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Attribution]:
    """Return the length of each token's word embedding, which depends neither on the other text nor on the score.

    Args:
        pairs: as `ranker.read` gives them.
        scores: what the ordinary call gave, (pairs,); by default it is made here.
        progress: called with the number of pairs newly done.

    Returns:
        One record a pair, in units of the embedding: a control, not an explanation.
    """
    done = []
    for batch, found in ordinary_passes(ranker, pairs, scores):
        lengths = batch.by_pair(np.linalg.norm(ranker.embed(batch), axis=1))
        fields = {"method": "embedding-magnitude", "model": ranker.name, "meaning": _LENGTH}
        done += [
            attribute_pair(pair, own, score=float(score), **fields)
            for pair, score, own in zip(batch.pairs, found, lengths)
        ]
        progress(len(batch.pairs))
    return done


def random_values(
    ranker,
    pairs: Sequence[Pair],
    *,
    seed: int = 0,
    scores: np.ndarray | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Attribution]:
    """Return a number between 0 and 1 for each word, drawn without a look at the model; arguments as above.

    Args:
        seed: another gives other numbers; the same gives the same for a pair, in any company.
    """
    found = ranker.scores_of(pairs) if scores is None else scores
    done = []
    for pair, score in zip(pairs, found):
        draws = generator_of(pair, seed)
        values = {side: draws.random(len(words_of(pair, side))) for side in (QUERY, DOCUMENT)}
        fields = {"method": "random", "model": ranker.name, "meaning": _DRAWN, "settings": {"seed": seed}}
        done.append(attribute_words(pair, values, score=float(score), **fields))
        progress(1)
    return done


_LENGTH = "‖embedding‖, a control: it does not depend on the query, nor on the score"
_DRAWN = "drawn from [0, 1), a control: it knows nothing of the model"
