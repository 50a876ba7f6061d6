"""Controls: values that do not depend on the score. A method that does no better than these explains nothing.

They run only when requested by name. The size of an embedding looks like an explanation: rare words
have long embeddings and strong gradients, so it agrees with saliency on many texts. But it is the same for every query.
"""

import zlib

import numpy as np

from backlight.explain.attribution import Attribution, Recipe, attribute_pair
from backlight.explain.checks import ordinary_passes
from backlight.explain.methods.by_batch import Pairs, Scores
from backlight.explain.parts import attribute_parts, word_parts
from backlight.models.pairs import Pair
from backlight.models.scorer import Progress, Scorer, no_progress


def generator_of(pair: Pair, seed: int) -> np.random.Generator:
    """Return a random generator that depends only on the pair and the seed."""
    return np.random.default_rng([seed, zlib.crc32(pair.query.encode()), zlib.crc32(pair.document.encode())])


def embedding_magnitude(
    ranker: Scorer, pairs: Pairs, *, scores: Scores = None, progress: Progress = no_progress
) -> list[Attribution]:
    """Return the norm of each token's word embedding, which depends neither on the other text nor on the score.

    Arguments as in NOTE [A method]. Values are in units of the embedding: a control, not an explanation.
    """
    recipe = Recipe("embedding-magnitude", "‖embedding‖, a control: it does not depend on the query, nor on the score")
    done = []
    for batch, ordinary in ordinary_passes(ranker, pairs, scores):
        lengths = np.linalg.norm(ranker.embed(batch), axis=1)
        for pair, score, own in zip(batch.pairs, ordinary, batch.by_pair(lengths)):
            done.append(attribute_pair(pair, own, recipe, ranker.name, score))
        progress(len(batch.pairs))
    return done


def random_values(
    ranker: Scorer, pairs: Pairs, *, seed: int = 0, scores: Scores = None, progress: Progress = no_progress
) -> list[Attribution]:
    """Return a random number between 0 and 1 for each word, independent of the model.

    Args:
        seed: the numbers of a pair depend only on the pair and the seed. Others as in NOTE [A method].
    """
    meaning = "drawn from [0, 1), a control: it knows nothing of the model"
    recipe = Recipe("random", meaning, settings={"seed": seed})
    found = ranker.scores_of(pairs) if scores is None else scores
    done = []
    for pair, score in zip(pairs, found):
        parts = word_parts(pair)
        values = generator_of(pair, seed).random(len(parts))
        done.append(attribute_parts(pair, parts, values, recipe, ranker.name, score))
        progress(1)
    return done
