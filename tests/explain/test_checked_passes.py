"""Methods of one differentiated pass run each pair once, and one pair more, by which the score is checked."""

import numpy as np
import pytest
from tiny_bert import cross_encoder, real_ranker

from backlight.errors import GraphError
from backlight.explain.methods.attention import attention_rollout, attention_x_gradient
from backlight.explain.methods.gradients import gradient_x_input, saliency, saliency_l2
from backlight.explain.methods.layers import layer_gradient_x_activation

QUERY = "how do plants make food"
DOCUMENTS = [
    "Green plants make food from sunlight, water and air.",
    "The leaf is green.",
    "Unlike a plant, a cell makes food from other food, water and air.",
]
ONCE = [
    saliency,
    saliency_l2,
    gradient_x_input,
    layer_gradient_x_activation,
    attention_rollout,
    attention_x_gradient,
]


class Counted:
    """A scorer that notes what is run, and may tamper with the scores of differentiated calls."""

    def __init__(self, inner, tamper=lambda batch, scores: scores):
        self._inner, self._tamper, self.scored, self.differentiated = inner, tamper, [], []

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def score(self, batch, inputs_embeds=None):
        self.scored += batch.pairs
        return self._inner.score(batch, inputs_embeds)

    def gradients(self, batch, inputs_embeds=None):
        self.differentiated += batch.pairs
        scores, gradients = self._inner.gradients(batch, inputs_embeds)
        return self._tamper(batch, scores), gradients

    def inside(self, batch, *, slopes=False):
        self.differentiated += batch.pairs
        return self._inner.inside(batch, slopes=slopes)

    def state_gradients(self, batch, layer=None):
        self.differentiated += batch.pairs
        return self._inner.state_gradients(batch, layer)


def read(ranker, times=1):
    return ranker.read([(QUERY, document) for document in DOCUMENTS * times])


@pytest.mark.parametrize("method", ONCE)
@pytest.mark.parametrize("made", [cross_encoder, real_ranker])
def test_each_pair_runs_once_and_the_shortest_once_more(method, made):
    ranker = Counted(made())
    pairs = read(ranker, times=40)
    found = method(ranker, pairs)
    assert ranker.differentiated == pairs
    assert ranker.scored == [pairs[1]]
    np.testing.assert_allclose([one.score for one in found], ranker.scores_of(pairs), rtol=1e-4, atol=1e-6)
    assert {one.passes for one in found} == {1 if method is attention_rollout else 2}


@pytest.mark.parametrize("method", ONCE)
def test_scores_that_are_given_are_not_made_again(method):
    ranker = Counted(cross_encoder())
    pairs = read(ranker)
    method(ranker, pairs, scores=ranker.scores_of(pairs))
    assert ranker.scored == [] and ranker.differentiated == pairs


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_every_score_that_is_given_is_compared(number):
    ranker = cross_encoder()
    pairs = read(ranker)
    scores = ranker.scores_of(pairs)
    scores[number] += 0.01
    with pytest.raises(GraphError, match="do not read the same input"):
        saliency(ranker, pairs, scores=scores)


def test_a_differentiated_pass_that_scores_otherwise_is_an_error_without_given_scores():
    ranker = Counted(cross_encoder(), lambda batch, scores: scores + np.float32(0.01))
    with pytest.raises(GraphError, match="must be the same in an ordinary call and in the one that is explained"):
        saliency(ranker, read(ranker))


def test_a_pass_that_mixes_pairs_is_an_error():
    ranker = Counted(cross_encoder(), lambda batch, scores: np.roll(scores, 1))
    with pytest.raises(GraphError, match="do not read the same input"):
        saliency(ranker, read(ranker))


@pytest.mark.parametrize("method", ONCE)
def test_no_pairs_have_no_explanations(method):
    assert method(cross_encoder(), []) == []
