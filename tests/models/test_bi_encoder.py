"""A bi-encoder runs each distinct sequence once, and scores pairs as if each were alone."""

import dataclasses

import numpy as np
import pytest
from tiny_bert import real_ranker

from backlight.explain.methods.ablation import WAYS
from backlight.explain.parts import word_parts
from backlight.models.encoders.bert import Bert
from backlight.models.pairs import PairBatch
from backlight.models.scoring import TOKENS_A_PASS

QUERY = "how do plants make food"
DOCUMENTS = [
    "Green plants make food from sunlight, water and air.",
    "Unlike animals, a plant builds its own sugar.",
    "The tides follow the Moon. " * 40,
]


class Counted:
    """An encoder that notes the texts of each call."""

    def __init__(self, inner: Bert):
        self.inner, self.calls = inner, []

    def __call__(self, batch, *rest, **named):
        self.calls.append(batch.lengths)
        return self.inner(batch, *rest, **named)


def counted(**changes):
    ranker = real_ranker()
    return dataclasses.replace(ranker, encoder=Counted(ranker.encoder), **changes)


def without_words(ranker, way="mask"):
    """Return a pair without each of its words in turn, those of the query and those of the document."""
    (pair,) = ranker.read([(QUERY, DOCUMENTS[0])])
    return list(WAYS[way](ranker, pair, [[], *([part] for part in word_parts(pair))]))


def alone(ranker, pairs):
    """Return the score of each pair by the model's own graph, one pair at a time."""
    return np.concatenate([ranker.pair_scores(PairBatch.of([pair])).numpy() for pair in pairs])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pooling", ["mean", "max", "cls", "lasttoken"])
def test_scores_of_pairs_that_share_sequences_are_those_of_each_pair_alone(way, pooling):
    ranker = dataclasses.replace(real_ranker(), pooling=pooling)
    pairs = without_words(ranker, way) + ranker.read([(QUERY, document) for document in DOCUMENTS])
    expected = alone(ranker, pairs)
    assert len(set(np.round(expected, 4))) > len(pairs) // 2
    np.testing.assert_allclose(ranker.score(PairBatch.of(pairs)), expected, atol=2e-6)
    np.testing.assert_allclose(ranker.scores_of(pairs), expected, atol=2e-6)


def test_each_distinct_sequence_runs_once():
    ranker = counted()
    pairs = without_words(ranker)
    queries, words = 5, len(pairs) - 1
    ranker.score(PairBatch.of(pairs))
    (lengths,) = ranker.encoder.calls
    assert len(lengths) == words + 2  # each text without one of its words, and both as they are
    assert words - queries == sum(length == pairs[0].lengths[1] - 1 for length in lengths)


def test_the_same_tokens_at_other_positions_are_another_sequence():
    ranker = real_ranker()
    (pair,) = ranker.read([(QUERY, DOCUMENTS[0])])
    moved = dataclasses.replace(pair, positions=pair.positions + 3)
    scores = ranker.score(PairBatch.of([pair, moved]))
    np.testing.assert_allclose(scores, alone(ranker, [pair, moved]), atol=2e-6)
    assert abs(scores[0] - scores[1]) > 1e-4


def test_embeddings_that_stand_in_for_words_are_run_as_they_are():
    ranker = real_ranker()
    pairs = ranker.read([(QUERY, DOCUMENTS[0])] * 2)
    batch = PairBatch.of(pairs)
    embeddings = ranker.embed(batch).copy()
    embeddings[len(pairs[0]) :] *= 0.5
    first, second = ranker.score(batch, embeddings)
    assert first == pytest.approx(ranker.score(batch)[0], abs=2e-6)
    assert abs(first - second) > 1e-3


def test_many_pairs_run_in_full_passes_and_progress_counts_each_pair_once():
    ranker, told = counted(), []
    pairs = [pair for document in DOCUMENTS for pair in ranker.read([(QUERY, f"{document} {n}") for n in range(12)])]
    pairs += pairs[:5]
    scores = ranker.scores_of(pairs, told.append)
    assert sum(told) == len(pairs) and min(told) >= 0 and len(told) == len(ranker.encoder.calls) > 1
    assert sum(map(len, ranker.encoder.calls)) == 1 + 12 * len(DOCUMENTS)
    assert all(sum(lengths) > TOKENS_A_PASS // 2 for lengths in ranker.encoder.calls[:-1])
    np.testing.assert_array_equal(scores[-5:], scores[:5])
    np.testing.assert_allclose(scores, ranker.rank_scores(QUERY, [pair.document for pair in pairs]), atol=2e-6)


def test_no_pairs_have_no_scores():
    assert real_ranker().scores_of([]).shape == (0,)
