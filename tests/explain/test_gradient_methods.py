"""Methods by gradients and attention keep what they promise: completeness, zero without influence, any company."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_folders import CASES, write_reranker
from tiny_bert import WORDS, cross_encoder, real_ranker

from backlight.errors import GraphError, InputError
from backlight.explain.methods.attention import attention_rollout, attention_x_gradient
from backlight.explain.methods.controls import embedding_magnitude, random_values
from backlight.explain.methods.integrated_gradients import RULES, integrated_gradients
from backlight.explain.methods.layers import layer_gradient_x_activation, products_by_layer
from backlight.explain.methods.logit_lens import build_up
from backlight.explain.methods.smoothgrad import noisy, smoothgrad, smoothgrad_mean
from backlight.models.pairs import ADDED, DOCUMENT, QUERY, PairBatch
from backlight.models.ranker import load_ranker
from backlight.models.scoring import BASELINES
from backlight.tensor.creation import from_numpy

TEXTS = [
    ("how do plants make food", "green plants make food from sunlight, water and air."),
    ("a leaf", "unlike cells"),
    ("of a green leaf", "the leaf of a green cell"),
]
BY_SLOPES = [
    integrated_gradients,
    smoothgrad,
    smoothgrad_mean,
    layer_gradient_x_activation,
    attention_rollout,
    attention_x_gradient,
]
ALL = [*BY_SLOPES, embedding_magnitude, random_values]


def read(ranker=None, texts=TEXTS):
    return (ranker or cross_encoder()).read(texts)


def values_of(found, pair):
    """Return the values of all tokens of a pair, in its order."""
    values = np.empty(len(pair))
    for side, tokens in ((QUERY, found.query.tokens), (DOCUMENT, found.document.tokens), (ADDED, found.special)):
        values[pair.of_side(side)] = [token.value for token in tokens]
    return values


def words_of(found):
    return [word.value for text in (found.query, found.document) for word in text.words]


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("ranker", [cross_encoder, real_ranker])
def test_order_and_company_change_nothing(method, ranker):
    pairs = read(ranker())
    together, turned = method(ranker(), pairs), method(ranker(), pairs[::-1])[::-1]
    alone = [method(ranker(), [pair])[0] for pair in pairs]
    for found, *others in zip(together, turned, alone, strict=True):
        size = np.abs(words_of(found)).max()
        for other in others:
            np.testing.assert_allclose(words_of(other), words_of(found), rtol=1e-4, atol=1e-4 * size)
            assert (other.passes, other.settings.keys()) == (found.passes, found.settings.keys())


@pytest.mark.parametrize("method", ALL)
def test_scores_given_or_made_here_are_the_ordinary_ones_and_progress_is_told(method):
    ranker, told = cross_encoder(), []
    pairs = read(ranker) * 30
    scores = ranker.scores_of(pairs)
    found = method(ranker, pairs, scores=scores, progress=told.append)
    assert sum(told) == len(pairs) == len(found)
    np.testing.assert_allclose([one.score for one in found], scores, rtol=1e-5)
    np.testing.assert_allclose([one.score for one in method(ranker, pairs)], scores, rtol=1e-5)


@pytest.mark.parametrize("method", BY_SLOPES)
def test_a_score_that_is_not_the_ordinary_one_is_an_error(method):
    with pytest.raises(GraphError, match="do not read the same input"):
        method(cross_encoder(), read(), scores=np.array([0.1, 0.2, 0.3]))


@settings(max_examples=12, deadline=None)
@given(
    query=st.lists(st.sampled_from(WORDS.split()[:12]), min_size=1, max_size=5),
    document=st.lists(st.sampled_from(WORDS.split()[:12]), min_size=1, max_size=12),
    baseline=st.sampled_from(BASELINES),
    rule=st.sampled_from(list(RULES)),
)
def test_integrated_gradients_add_up_to_the_difference_of_scores(query, document, baseline, rule):
    ranker = cross_encoder()
    pairs = ranker.read([(" ".join(query), " ".join(document))])
    (found,) = integrated_gradients(ranker, pairs, baseline=baseline, rule=rule, tolerance=1e-3)
    values = values_of(found, pairs[0])
    difference = found.score - found.settings["baseline_score"]
    assert found.gap == pytest.approx(values.sum() - difference, abs=1e-6)
    assert found.settings["within_tolerance"] and abs(found.gap) <= max(1e-4, 1e-3 * abs(difference))
    assert not values[pairs[0].sides == ADDED].any()


def test_the_baseline_is_a_text_without_words_and_its_score_is_told():
    ranker, (pair, *_) = real_ranker(), read(real_ranker())
    (found,) = integrated_gradients(ranker, [pair], baseline="mask")
    masked = dataclasses.replace(pair, ids=np.where(pair.sides == ADDED, pair.ids, ranker.tokenizer.id_of("mask")))
    assert found.baseline == "the mask token in place of each word's"
    assert found.settings["baseline_score"] == pytest.approx(ranker.score(PairBatch.of([masked]))[0], abs=1e-6)


def test_the_baseline_may_take_one_text_alone():
    pairs = read()
    for side, other in (("query", "document"), ("document", "query")):
        for found in integrated_gradients(cross_encoder(), pairs, moved=side):
            assert not any(word.value for word in getattr(found, other).words)
            assert any(word.value for word in getattr(found, side).words)
            assert found.settings["moved"] == side


def test_a_gap_that_stays_is_told():
    pairs = read(real_ranker())
    found = integrated_gradients(real_ranker(), pairs, rule="midpoint", steps=1, max_steps=3, tolerance=1e-9, floor=0)
    for one in found:
        assert (one.settings["within_tolerance"], one.settings["steps"]) == (False, 2)
        assert one.passes == 3 + 2 * (1 + 2)
        assert one.gap != 0


def test_steps_double_for_the_pairs_that_need_it_and_for_no_others():
    pairs = read(real_ranker())
    found = integrated_gradients(real_ranker(), pairs, steps=4, tolerance=0.002)
    steps = [one.settings["steps"] for one in found]
    assert len(set(steps)) > 1
    assert [one.passes for one in found] == [3 + 2 * (2 * count - 4) for count in steps]
    assert all(one.settings["within_tolerance"] for one in found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "none"}, "baseline must be one of zero, pad, mask, average, got none"),
        ({"rule": "simpson"}, "rule must be one of gauss-legendre, midpoint, got simpson"),
        ({"moved": "left"}, "moved must be one of both, query, document, got left"),
        ({"steps": 0}, "steps must be from 1 to max_steps, got 0 and 512"),
    ],
)
def test_options_of_integrated_gradients_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        integrated_gradients(cross_encoder(), read(), **options)


class Deaf:
    """A scorer that some tokens' embeddings do not reach."""

    def __init__(self, inner, deaf):
        self._inner, self._deaf = inner, deaf

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def _heard(self, batch, embeds):
        own = self._inner.embed(batch)
        return own if embeds is None else np.where(np.isin(batch.ids, self._deaf)[:, None], own, embeds)

    def score(self, batch, inputs_embeds=None):
        return self._inner.score(batch, self._heard(batch, inputs_embeds))

    def gradients(self, batch, inputs_embeds=None):
        scores, slopes = self._inner.gradients(batch, self._heard(batch, inputs_embeds))
        return scores, np.where(np.isin(batch.ids, self._deaf)[:, None], 0, slopes).astype(slopes.dtype)


@pytest.mark.parametrize("method", [integrated_gradients, smoothgrad, smoothgrad_mean])
def test_a_token_without_influence_gets_exactly_zero(method):
    pairs = read()
    plants = pairs[0].pieces.index("plants")
    ranker = Deaf(cross_encoder(), [pairs[0].ids[plants]])
    values = values_of(method(ranker, pairs)[0], pairs[0])
    assert values[plants] == 0 and (values != 0).sum() > 5


def test_smoothgrad_is_the_mean_over_the_noise_that_its_seed_gives():
    ranker, pairs = cross_encoder(), read()
    batch = PairBatch.of(pairs[:1])
    copies = list(noisy(pairs[0], ranker.embed(batch), 0.3, 5, seed=7))
    slopes = np.stack([ranker.gradients(batch, copy)[1] for copy in copies])
    options = {"noise": 0.3, "samples": 5, "seed": 7}
    of_sizes, of_mean = (method(ranker, pairs, **options)[0] for method in (smoothgrad, smoothgrad_mean))
    np.testing.assert_allclose(values_of(of_sizes, pairs[0]), np.abs(slopes).mean(0).sum(1), rtol=1e-5)
    np.testing.assert_allclose(values_of(of_mean, pairs[0]), np.abs(slopes.mean(0)).sum(1), rtol=1e-4)
    assert of_sizes.passes == 2 + 2 * 5 and of_sizes.settings == options


def test_the_noise_has_the_size_that_is_asked_for():
    ranker, (pair, *_) = real_ranker(), read(real_ranker())
    own = ranker.embed(PairBatch.of([pair]))
    moved = np.stack([copy - own for copy in noisy(pair, own, 0.2, 50, seed=0)])
    assert moved.std() == pytest.approx(0.2 * own.std(), rel=0.02)
    assert not np.array_equal(moved[0], moved[1])


def test_smoothgrad_needs_noise_and_samples():
    with pytest.raises(InputError, match=r"samples must be 1 or more and noise above 0, got 0 and 0\.2"):
        smoothgrad(cross_encoder(), read(), samples=0)
    with pytest.raises(InputError, match="noise above 0, got 32 and 0"):
        smoothgrad_mean(cross_encoder(), read(), noise=0)


@pytest.mark.parametrize("ranker", [cross_encoder, real_ranker])
def test_rollout_is_the_product_of_whole_matrices(ranker):
    ranker = ranker()
    pairs = read(ranker)
    batch = PairBatch.of(pairs)
    rows = []
    for number, weights in enumerate(ranker.read_weights(batch)):
        flow = np.eye(len(weights))
        for layer in ranker.inside(batch).attentions:
            flow = (0.5 * layer[number].mean(0) + 0.5 * np.eye(len(weights))) @ flow
        rows.append(weights @ flow)
        assert rows[-1].sum() == pytest.approx(1, abs=1e-5)
    for found, pair, expected in zip(attention_rollout(ranker, pairs), pairs, batch.by_pair(np.concatenate(rows))):
        np.testing.assert_allclose(values_of(found, pair), expected, rtol=1e-5)


@pytest.mark.parametrize("ranker", [cross_encoder, real_ranker])
def test_attention_x_gradient_is_the_published_rule_less_its_identity(ranker):
    ranker = ranker()
    pairs = read(ranker)
    batch = PairBatch.of(pairs)
    inside, rows = ranker.inside(batch, slopes=True), []
    for number, weights in enumerate(ranker.read_weights(batch)):
        relevance = np.eye(len(weights))
        for attentions, slopes in zip(inside.attentions, inside.attention_slopes):
            raised = np.maximum(attentions[number] * slopes[number], 0).mean(0)
            relevance = relevance + raised @ relevance
        rows.append(weights @ (relevance - np.eye(len(weights))))
    expected_rows = batch.by_pair(np.concatenate(rows))
    for found, pair, expected in zip(attention_x_gradient(ranker, pairs), pairs, expected_rows):
        np.testing.assert_allclose(values_of(found, pair), expected, rtol=1e-4, atol=1e-8)
        assert expected.min() >= 0


def test_a_layer_may_be_chosen_and_is_told():
    ranker, pairs = cross_encoder(), read()
    _, rows = products_by_layer(ranker, PairBatch.of(pairs))
    assert rows.shape == (3, sum(len(pair) for pair in pairs))
    for layer in (0, 1):
        found = layer_gradient_x_activation(ranker, pairs, layer=layer)
        np.testing.assert_allclose(values_of(found[0], pairs[0]), rows[layer][: len(pairs[0])], rtol=1e-5, atol=1e-7)
        assert found[0].settings == {"layer": layer, "layers": 2}
    with pytest.raises(InputError, match="layer must be from 0 to 2, got 3"):
        layer_gradient_x_activation(ranker, pairs, layer=3)


def test_a_layer_where_only_special_tokens_are_read_explains_no_word():
    with pytest.raises(InputError, match="after layer 2 of 2 the score reads special tokens alone"):
        layer_gradient_x_activation(cross_encoder(), read(), layer=2)
    found = layer_gradient_x_activation(real_ranker(), read(real_ranker()), layer=6)
    assert all(any(words_of(one)) for one in found)


def test_controls_say_that_they_are_controls():
    found = embedding_magnitude(cross_encoder(), read())
    assert "does not depend on the query, nor on the score" in found[0].meaning
    drawn = random_values(cross_encoder(), read(), seed=3)
    assert "knows nothing of the model" in drawn[0].meaning and drawn[0].settings == {"seed": 3}
    assert words_of(drawn[0]) != words_of(random_values(cross_encoder(), read(), seed=4)[0])


@pytest.mark.parametrize("ranker", [cross_encoder, real_ranker])
def test_a_score_builds_up_to_the_raw_score(ranker):
    ranker = ranker()
    pairs = read(ranker)
    inside = ranker.inside(PairBatch.of(pairs))
    for number, (found, score) in enumerate(zip(build_up(ranker, pairs), ranker.scores_of(pairs), strict=True)):
        assert found.after[-1] == pytest.approx(found.score, abs=1e-5) == pytest.approx(score, abs=1e-5)
        assert found.after[0] + sum(found.steps) == pytest.approx(found.score, abs=1e-4)
        assert len(found.after) == len(inside.states)
        first = ranker.score_states(from_numpy(inside.states[1]), PairBatch.of(pairs)).numpy()[number]
        assert found.after[1] == pytest.approx(first, abs=1e-5)


@pytest.mark.parametrize("kind", CASES)
def test_models_of_every_family_are_explained(tmp_path, kind):
    ranker = load_ranker(write_reranker(tmp_path, kind))
    pairs = read(ranker)
    scores = ranker.scores_of(pairs)
    for method in ALL:
        found = method(ranker, pairs)
        np.testing.assert_allclose([one.score for one in found], scores, rtol=1e-5, atol=1e-6)
        assert all(np.abs(words_of(one)).max() > 0 for one in found)
    for found in integrated_gradients(ranker, pairs, baseline="mask"):
        assert found.settings["within_tolerance"]
