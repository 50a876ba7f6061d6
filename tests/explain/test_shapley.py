"""Shapley values are the means of what words add over all orders: exactly where all coalitions fit the budget."""

from itertools import permutations

import numpy as np
import pytest
import torch
import transformers
from captum.attr import ShapleyValueSampling
from tiny_bert import cross_encoder, real_ranker, write_cross_encoder

from backlight.errors import GraphError, InputError
from backlight.explain.methods.ablation import removal_called, score_groups
from backlight.explain.methods.shapley import (
    all_coalitions,
    coalitions_drawn,
    from_all,
    from_coalitions,
    from_orders,
    kernel_shap,
    orders_drawn,
    shapley,
)
from backlight.explain.parts import word_parts
from backlight.models.ranker import load_ranker

SMALL = ("a leaf", "green plants make food")
LARGE = ("how do plants make food", "Green plants make food from air and water, unlike a cell.")
ESTIMATORS = {"orders": (orders_drawn, from_orders), "coalitions": (coalitions_drawn, from_coalitions)}
METHODS = {"shapley": shapley, "kernel-shap": kernel_shap}


def read(*pairs):
    return cross_encoder().read(pairs)


def words_of(found):
    return [word for text in (found.query, found.document) for word in text.words]


def values_of(found):
    return np.array([word.value for word in words_of(found)])


def game(players=7, seed=0):
    """Return v of a game with interactions of two and three players, over rows of coalitions."""
    rng = np.random.default_rng(seed)
    alone, twos, threes = (rng.normal(size=(players,) * order) for order in (1, 2, 3))

    def worth(coalitions):
        z = coalitions.astype(float)
        return z @ alone + np.einsum("si,sj,ij->s", z, z, twos) + 0.3 * np.einsum("si,sj,sk,ijk->s", z, z, z, threes)

    return worth


def by_orders(players, worth):
    """Return Shapley values as the mean over all orders, by their definition."""
    orders = list(permutations(range(players)))
    total = np.zeros(players)
    for order in orders:
        rows = np.zeros((players + 1, players), bool)
        for number, player in enumerate(order):
            rows[number + 1 :, player] = True
        total[list(order)] += np.diff(worth(rows))
    return total / len(orders)


def estimated(kind, players, worth, budget, seed):
    draw, estimate = ESTIMATORS[kind]
    coalitions = draw(players, budget, np.random.default_rng(seed), "the game")
    ends = worth(np.stack([np.zeros(players, bool), np.ones(players, bool)]))
    return estimate(coalitions, worth(coalitions), *ends.tolist())


def exact(players, worth):
    coalitions = all_coalitions(players)
    found = worth(coalitions)
    return from_all(coalitions, found, found[0], found[-1])


def test_all_coalitions_give_the_mean_over_all_orders():
    found = exact(6, game(6))
    np.testing.assert_allclose(found.values, by_orders(6, game(6)), rtol=1e-10)
    assert not found.errors.any()


@pytest.mark.parametrize("method", METHODS)
def test_few_words_are_exact_by_the_definition(method):
    ranker, (pair,) = cross_encoder(), read(SMALL)
    parts = word_parts(pair)

    def worth(coalitions):
        removals = [[part for part, stays in zip(parts, row) if not stays] for row in coalitions]
        return score_groups(ranker, [removal_called("mask")(ranker, pair, removals)])[0]

    (found,) = METHODS[method](ranker, [pair], budget=64)
    np.testing.assert_allclose(values_of(found), by_orders(len(parts), worth), atol=2e-6)
    assert (found.settings["coalitions"], found.passes) == ("all", 64)
    assert all(word.error == 0 for word in words_of(found))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [100, 300])
def test_values_add_up_to_what_all_words_bring(method, budget):
    ranker, pairs = cross_encoder(), read(LARGE, SMALL)
    found = METHODS[method](ranker, pairs, budget=budget)
    for pair, one in zip(pairs, found):
        bare = pair.kept(pair.sides == 2)
        none = score_groups(ranker, [[bare]])[0][0]
        assert values_of(one).sum() == pytest.approx(one.score - none, abs=2e-6)
        assert abs(one.gap) < 1e-9


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_errors_cover_the_exact_values_at_about_their_rate(kind):
    players, worth = 8, game(8)
    truth = exact(players, worth).values
    found = [estimated(kind, players, worth, 300, seed) for seed in range(200)]
    inside = [np.abs(one.values - truth) < 1.96 * one.errors for one in found]
    assert 0.90 < np.mean(inside) < 0.985
    spread = np.std([one.values for one in found], axis=0)
    np.testing.assert_allclose(np.mean([one.errors for one in found], axis=0), spread, rtol=0.25)
    np.testing.assert_allclose(np.mean([one.values for one in found], axis=0), truth, atol=5 * spread.max() / 200**0.5)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_linear_game_is_exact_from_any_sample(kind):
    weights = np.arange(1.0, 13.0)
    found = estimated(kind, 12, lambda rows: 3 + rows @ weights, 80, 0)
    np.testing.assert_allclose(found.values, weights, rtol=1e-9)
    np.testing.assert_allclose(found.errors, 0, atol=1e-9)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_games_of_two_players_at_a_time_are_exact_from_orders_and_reverses(kind):
    """What a pair of players adds together is halved by an order and its reverse; complements do it by regression."""
    twos = np.random.default_rng(0).normal(size=(9, 9))

    def worth(rows):
        return np.einsum("si,sj,ij->s", rows.astype(float), rows.astype(float), twos)

    found = estimated(kind, 9, worth, 150, 3)
    np.testing.assert_allclose(found.values, (twos + twos.T).sum(axis=1) / 2, rtol=1e-8)


@pytest.mark.parametrize("players", [5, 9])
def test_a_player_who_adds_nothing_gets_nothing_and_equals_get_the_same(players):
    def worth(rows):
        z = rows.astype(float)
        return z[:, 0] * z[:, 1] * z[:, 2] + z[:, 0] + z[:, 1]

    values = exact(players, worth).values
    np.testing.assert_allclose(values[3:], 0, atol=1e-12)
    assert values[0] == pytest.approx(values[1])
    assert values[:3] == pytest.approx([4 / 3, 4 / 3, 1 / 3])
    assert estimated("orders", players, worth, 200, 0).values[3:] == pytest.approx([0] * (players - 3))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [90, 200])
def test_the_budget_is_kept_and_no_coalition_is_scored_twice(method, budget):
    real = cross_encoder()
    seen = []

    class Counting:
        name = real.name
        tokens_a_pass = real.tokens_a_pass

        def score(self, batch, inputs_embeds=None):
            seen.extend(tuple(pair.positions.tolist()) for pair in batch.pairs)
            return real.score(batch)

    (found,) = METHODS[method](Counting(), read(LARGE), budget=budget)
    assert len(seen) == len(set(seen)) == found.passes <= budget
    assert found.passes > 0.7 * budget


@pytest.mark.parametrize("method", METHODS)
def test_a_larger_budget_comes_nearer_to_the_exact_values(method):
    """2¹⁸ coalitions are too many here, so a large budget of the other method stands for the exact values."""
    ranker, pairs = cross_encoder(), read(LARGE)
    other = METHODS["kernel-shap" if method == "shapley" else "shapley"]
    truth = values_of(other(ranker, pairs, budget=6000)[0])
    small, large = (METHODS[method](ranker, pairs, budget=budget)[0] for budget in (80, 2400))
    assert np.abs(values_of(large) - truth).mean() < 0.5 * np.abs(values_of(small) - truth).mean()
    errors = [np.mean([word.error for word in words_of(found)]) for found in (small, large)]
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("method", METHODS)
def test_order_and_company_of_pairs_change_nothing_and_the_seed_does(method):
    ranker, pairs = cross_encoder(), read(LARGE, SMALL, LARGE[::-1])
    together, turned = (METHODS[method](ranker, some, budget=100) for some in (pairs, pairs[::-1]))
    for pair, first, second in zip(pairs, together, turned[::-1], strict=True):
        (alone,) = METHODS[method](ranker, [pair], budget=100)
        for other in (second, alone):
            np.testing.assert_allclose(values_of(other), values_of(first), atol=1e-4)
    (another,) = METHODS[method](ranker, pairs[:1], budget=100, seed=1)
    assert np.abs(values_of(another) - values_of(together[0])).max() > 1e-3


def test_a_bi_encoder_is_explained_by_the_same_call():
    ranker = real_ranker()
    pairs = ranker.read([("what moves the sea", "The tides follow the Moon.")])
    (first,), (second,) = (method(ranker, pairs, budget=1024) for method in METHODS.values())
    assert values_of(first).tolist() == values_of(second).tolist()


def test_a_budget_that_is_too_small_is_refused():
    for method, least in ((shapley, 70), (kernel_shap, 74)):
        with pytest.raises(
            InputError, match=f"budget must be {least} or more for the 18 words of the document, got 50"
        ):
            method(cross_encoder(), read(LARGE), budget=50)


def test_a_score_that_no_word_changes_is_an_error():
    class Deaf:
        name = "deaf"
        tokens_a_pass = 2048

        def score(self, batch, inputs_embeds=None):
            return np.ones(len(batch.pairs), np.float32)

    with pytest.raises(GraphError, match="what a word brings to the score of the document must not be zero"):
        shapley(Deaf(), read(SMALL))


@pytest.mark.parametrize("method", METHODS)
def test_values_are_near_what_captum_samples_for_the_attention_mask(tmp_path, method):
    ranker = load_ranker(write_cross_encoder(tmp_path))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    (pair,) = ranker.read([SMALL])
    parts = word_parts(pair)
    inputs = {"input_ids": torch.tensor(pair.ids)[None], "token_type_ids": torch.tensor(pair.type_ids)[None]}

    def logit(words):
        mask = torch.ones(len(words), len(pair))
        for number, part in enumerate(parts):
            mask[:, list(part.tokens)] = words[:, number, None]
        rows = {name: row.expand(len(words), -1) for name, row in inputs.items()}
        return model(attention_mask=mask, **rows).logits[:, 0]

    torch.manual_seed(0)
    with torch.no_grad():
        expected = ShapleyValueSampling(logit).attribute(torch.ones(1, len(parts)), n_samples=150)[0].numpy()
    (found,) = METHODS[method](ranker, [pair])
    size = np.abs(values_of(found)).max()
    np.testing.assert_allclose(values_of(found), expected, atol=0.15 * size)
    assert np.corrcoef(values_of(found), expected)[0, 1] > 0.99
