"""Measures of faithfulness equal their definitions, and give a perfect explanation the best value there is."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_scorer import explained, linear_scorer, noise, truth
from tiny_bert import cross_encoder, real_ranker

from backlight.errors import GraphError, InputError
from backlight.explain.attribution import words_of
from backlight.explain.faithfulness.curves import (
    Bounds,
    aopc,
    area,
    beam_bounds,
    counts,
    deletion,
    importance,
    insertion,
    lost,
    only_first,
    runs_of_words,
    strongest_first,
    without_first,
    word_values,
)
from backlight.explain.faithfulness.links import attention, auc, linked_words, measure_links, read_links
from backlight.explain.faithfulness.measure import ndcg, rank_among
from backlight.explain.faithfulness.randomisation import (
    batch_difference,
    randomised,
    similarity,
    spearman,
    weights_by_depth,
)
from backlight.explain.faithfulness.removal import DocumentScores
from backlight.explain.faithfulness.shortcuts import planted, precision, teach
from backlight.explain.methods.gradients import saliency
from backlight.explain.methods.interactions import ESTIMATES
from backlight.explain.methods.occlusion import occlusion, occlusion_by_sentence
from backlight.explain.methods.registry import METHODS
from backlight.models.pairs import DOCUMENT, PairBatch
from backlight.report.intervals import difference, mean_of

QUERY, TEXT = "how do plants make food", "the leaf of a green plant makes food from air and water . cells"
WORDS = ("plants", "make", "food", "from", "sunlight", "water", "and", "air", "the", "leaf", "of", "a")


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    return linear_scorer(tmp_path_factory.mktemp("linear"))


def pair_of(ranker, document=TEXT):
    return ranker.read([(QUERY, document)])[0]


def random_texts(count, length=9, seed=0):
    rng = np.random.default_rng(seed)
    return [(" ".join(rng.choice(WORDS, 3)), " ".join(rng.choice(WORDS, length))) for _ in range(count)]


def score_by_hand(ranker, document):
    return float(ranker.score(PairBatch.of(ranker.read([(QUERY, document)])))[0])


def test_a_dropped_word_is_cut_out_of_the_text():
    ranker = cross_encoder()
    scores = DocumentScores(ranker, pair_of(ranker), "drop")
    keep = np.ones(len(scores), bool)
    keep[[1, 4]] = False
    expected = score_by_hand(ranker, "the of a plant makes food from air and water . cells")
    assert scores(keep[None])[0] == pytest.approx(expected, abs=1e-6)


def test_a_masked_word_leaves_and_the_others_keep_their_positions():
    ranker = cross_encoder()
    pair = pair_of(ranker)
    gone = words_of(pair, DOCUMENT)[4]
    mask = np.ones(len(pair), bool)
    mask[list(gone.tokens)] = False
    scores = DocumentScores(ranker, pair)
    keep = np.arange(len(scores)) != 4
    expected = ranker.score(PairBatch.of([pair.kept(mask)]))[0]
    assert scores(keep[None])[0] == pytest.approx(expected, abs=1e-6)
    assert scores(keep[None])[0] != pytest.approx(DocumentScores(ranker, pair, "drop")(keep[None])[0], abs=1e-6)


def test_with_all_words_the_score_is_the_ordinary_one():
    ranker = cross_encoder()
    for by in ("mask", "drop"):
        scores = DocumentScores(ranker, pair_of(ranker), by)
        assert scores(np.ones((1, len(scores)), bool))[0] == scores.whole == pytest.approx(score_by_hand(ranker, TEXT))


def test_removal_needs_words_and_a_way(linear):
    with pytest.raises(InputError, match="by must be one of"):
        DocumentScores(linear, pair_of(linear), "burn")
    with pytest.raises(InputError, match="must have words to leave out, and has none"):
        DocumentScores(linear, pair_of(linear, ""))


@pytest.mark.parametrize("by", ["mask", "drop"])
def test_curves_equal_their_definition(by):
    ranker = cross_encoder()
    pair = pair_of(ranker)
    words = [TEXT[word.start : word.end] for word in words_of(pair, DOCUMENT)]
    order = np.random.default_rng(1).permutation(len(words))
    scores = DocumentScores(ranker, pair, by)
    for share, without, only in zip(
        (0.1, 0.3, 0.5), deletion(scores, order, (0.1, 0.3, 0.5)), insertion(scores, order, (0.1, 0.3, 0.5))
    ):
        first = set(order[: math.ceil(share * len(words))].tolist())
        for found, kept in ((without, [i for i in range(len(words)) if i not in first]), (only, sorted(first))):
            if by == "drop":
                expected = score_by_hand(ranker, " ".join(words[i] for i in kept))
            else:
                keep = np.ones(len(pair), bool)
                keep[[t for i, w in enumerate(words_of(pair, DOCUMENT)) if i not in kept for t in w.tokens]] = False
                expected = ranker.score(PairBatch.of([pair.kept(keep)]))[0]
            assert found == pytest.approx(expected, abs=1e-6)


def test_lost_and_area_are_means():
    assert lost(3.0, np.array([2.0, 1.0])) == 1.5
    assert area((0, 0.5, 1), (1.0, 0.0, 0.0)) == 0.25


def test_shares_of_words_are_rounded_up():
    assert counts((0, 0.1, 0.2, 0.5, 1), 10).tolist() == [0, 1, 2, 5, 10]
    assert counts((0.1, 0.3), 1).tolist() == [1, 1]


def test_signed_values_go_by_value_and_others_by_size():
    values = np.array([1.0, -3.0, 2.0, 2.0])
    assert strongest_first(importance(values, True)).tolist() == [2, 3, 0, 1]
    assert strongest_first(importance(values, False)).tolist() == [1, 2, 3, 0]


def test_leaving_out_and_leaving_alone_are_complements():
    order = np.array([2, 0, 1])
    assert without_first(order, [0, 1, 2]).tolist() == [[True] * 3, [True, True, False], [False, True, False]]
    assert np.array_equal(only_first(order, [0, 1, 2]), ~without_first(order, [0, 1, 2]))


def test_a_sentences_value_is_shared_by_its_words():
    ranker = cross_encoder()
    pair = pair_of(ranker, "The leaf make. Green cell. A food")
    (found,) = occlusion_by_sentence(ranker, [pair])
    parts = [part.value for part in found.document.words]
    values = word_values(found, DocumentScores(ranker, pair).words)
    assert values.sum() == pytest.approx(sum(parts)) and values[0] == values[1] == pytest.approx(parts[0] / 4)


def test_an_explanation_of_other_words_is_an_error(linear):
    (found,) = truth(linear, [pair_of(linear, "the leaf")])
    with pytest.raises(GraphError, match="must explain all 3 words of the document, and leaves out 1"):
        word_values(found, DocumentScores(linear, pair_of(linear, "the leaf green")).words)


def all_aopcs(scores, count):
    """Return the area over the perturbation curve of every order, by its definition."""
    found = []
    for order in itertools.permutations(range(count)):
        losses = []
        for taken in range(1, count + 1):
            keep = np.ones((1, count), bool)
            keep[0, list(order[:taken])] = False
            losses.append(scores.whole - scores(keep)[0])
        found.append(np.mean(losses))
    return found


def test_aopc_and_its_bounds_equal_a_search_of_all_orders():
    ranker = cross_encoder()
    scores = DocumentScores(ranker, pair_of(ranker, "the leaf make green food"))
    found = all_aopcs(scores, 5)
    bounds = beam_bounds(scores, scores.whole, 5, width=10)
    assert (bounds.low, bounds.high) == pytest.approx((min(found), max(found)))
    for order in itertools.permutations(range(5)):
        assert bounds.low - 1e-9 <= aopc(scores, scores.whole, np.array(order)) <= bounds.high + 1e-9


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 5))
def test_bounds_bracket_every_order_of_any_game(seed, count):
    rng = np.random.default_rng(seed)
    worth = rng.normal(size=2**count)

    def scores(keeps):
        return worth[keeps @ (1 << np.arange(count))]

    whole = worth[-1]
    bounds = beam_bounds(scores, whole, count, width=10)
    found = [aopc(scores, whole, np.array(order)) for order in itertools.permutations(range(count))]
    assert (bounds.low, bounds.high) == pytest.approx((min(found), max(found)))
    narrow = beam_bounds(scores, whole, count, width=1).including(*found)
    assert (narrow.low, narrow.high) == pytest.approx((min(found), max(found)))


def test_a_perfect_explanation_of_a_linear_scorer_has_naopc_1_and_a_random_one_a_half(linear):
    perfect, drawn, turned = [], [], []
    for number, (_, text) in enumerate(random_texts(60)):
        pair = pair_of(linear, text)
        scores = DocumentScores(linear, pair)
        bounds = beam_bounds(scores, scores.whole, len(scores))
        for (found,), into in ((truth(linear, [pair]), perfect), (noise(linear, [pair], seed=number), drawn)):
            order = strongest_first(word_values(found, scores.words))
            into.append(bounds.normalised(aopc(scores, scores.whole, order)))
            if into is perfect:
                turned.append(bounds.normalised(aopc(scores, scores.whole, order[::-1])))
    assert perfect == pytest.approx([1.0] * 60) and turned == pytest.approx([0.0] * 60, abs=1e-6)
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.06)


def test_the_best_order_of_a_linear_scorer_loses_most_and_misses_least(linear):
    for _, text in random_texts(5, seed=3):
        pair = pair_of(linear, text)
        scores = DocumentScores(linear, pair)
        values = word_values(explained(linear, pair), scores.words)
        best = strongest_first(values)
        for order in (np.random.default_rng(0).permutation(len(values)), best[::-1]):
            assert lost(scores.whole, deletion(scores, best)) >= lost(scores.whole, deletion(scores, order))
            assert lost(scores.whole, insertion(scores, best)) <= lost(scores.whole, insertion(scores, order))


def test_bounds_that_are_one_point_put_every_order_in_the_middle():
    assert Bounds(2.0, 2.0).normalised(2.0) == 0.5


def test_groups_of_words_leave_together(linear):
    pair = pair_of(linear)
    alone, groups = DocumentScores(linear, pair), runs_of_words(13, 4)
    together = DocumentScores(linear, pair, groups=groups)
    keep = np.ones((1, 13), bool)
    keep[0, groups[1]] = False
    assert together(np.array([[True, False, True, True]])) == pytest.approx(alone(keep))
    assert [number for group in groups for number in group] == list(range(13))


def test_a_place_counts_those_above_and_half_of_those_beside():
    assert rank_among(2.0, [3.0, 1.0, 2.0]) == 2.5
    assert rank_among(5.0, [3.0, 1.0]) == 1


def test_ndcg_equals_its_formula():
    assert ndcg([1.0, 3.0, 2.0], [1, 0, 0]) == pytest.approx(1 / math.log2(4))
    found = (3 / math.log2(3) + 1) / (3 + 1 / math.log2(3))
    assert ndcg([1.0, 2.0, 0.0], [2, 1, 0]) == pytest.approx(found)
    assert ndcg([0.0, *range(1, 12)], [1] + [0] * 11) == 0
    assert ndcg([1.0, 1.0], [1, 0]) == pytest.approx(1 / math.log2(3))
    assert ndcg([1.0, 2.0], [0, 0]) == 0


def test_intervals_hold_the_true_mean_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    held = 0
    for trial in range(300):
        found = mean_of(rng.exponential(size=80), draws=400, seed=trial)
        held += found.low <= 1.0 <= found.high
    assert 0.88 <= held / 300 <= 0.985


def test_pairs_of_one_question_are_drawn_together():
    values = np.repeat(np.random.default_rng(1).normal(size=30), 10)
    alone, together = mean_of(values), mean_of(values, np.repeat(np.arange(30), 10))
    assert together.high - together.low > 2 * (alone.high - alone.low)
    assert together.value == alone.value == pytest.approx(values.mean())


def test_a_difference_is_taken_on_the_same_pairs():
    values = np.random.default_rng(2).normal(0, 10, 50)
    found = difference(values + 1, values)
    assert (found.value, found.low, found.high) == pytest.approx((1, 1, 1)) and found.clear
    assert not mean_of([-1.0, 1.0]).clear


def test_no_value_has_no_mean():
    with pytest.raises(InputError, match="got none"):
        mean_of([])


def test_rank_correlation_equals_its_formula():
    assert spearman(np.array([1.0, 2, 3]), np.array([10.0, 20, 15])) == pytest.approx(0.5)
    assert spearman(np.array([1.0, 1, 2]), np.array([0.0, 0, 5])) == pytest.approx(1)
    assert spearman(np.array([1.0, 1, 1]), np.array([0.0, 1, 5])) == 0


def test_random_weights_change_saliency_and_not_the_size_of_embeddings():
    ranker = cross_encoder(num_hidden_layers=4)
    before = [weight.numpy().copy() for _, group in weights_by_depth(ranker) for weight in group.values()]
    pairs = ranker.read(random_texts(6, 12))
    others = randomised(ranker)
    changed = similarity(saliency, ranker, others, pairs)
    same = similarity(METHODS["embedding-magnitude"].explain, ranker, others, pairs)
    for stage in others:
        assert np.mean(changed[stage]) < 0.9
        assert same[stage] == pytest.approx([1.0] * 6)
    after = [weight.numpy() for _, group in weights_by_depth(ranker) for weight in group.values()]
    assert all(np.array_equal(old, new) for old, new in zip(before, after))


def test_weights_are_counted_from_the_head_down():
    titles = [title for title, _ in weights_by_depth(cross_encoder())]
    assert titles == ["head", "layer 1", "layer 0", "embeddings"]
    assert [title for title, _ in weights_by_depth(real_ranker())] == [
        *(f"layer {n}" for n in range(5, -1, -1)),
        "embeddings",
    ]


def test_company_that_matters_is_seen(linear):
    def in_company(ranker, pairs):
        return [
            explained(ranker, pair, [float(len(pairs) + n) for n, _ in enumerate(words_of(pair, 1))]) for pair in pairs
        ]

    pairs = linear.read(random_texts(3))
    assert batch_difference(truth, linear, pairs) == [0, 0, 0]
    assert min(batch_difference(in_company, linear, pairs)) > 0.1
    assert max(batch_difference(saliency, cross_encoder(), cross_encoder().read(random_texts(4)))) < 1e-4


def test_occlusion_finds_an_injected_shortcut():
    ranker, words = cross_encoder(), ("green", "cell")
    texts = random_texts(160)
    taught = teach(ranker, texts[:120], texts[120:], words=words, rate=1e-2, steps=250)
    assert taught.agreement > 0.95
    rng = np.random.default_rng(0)
    pairs = taught.ranker.read([(query, planted(text, words, rng)) for query, text in texts[120:]])
    found = [precision(one, pair, words) for one, pair in zip(occlusion(taught.ranker, pairs), pairs)]
    assert np.mean(found) > 0.9
    before = [precision(one, pair, words) for one, pair in zip(occlusion(ranker, pairs), pairs)]
    assert np.mean(before) < 0.6


def test_a_shortcut_that_did_not_take_is_an_error():
    texts = random_texts(40)
    with pytest.raises(GraphError, match="the shortcut must take, 95% of the held-out couples in order"):
        teach(cross_encoder(), texts[:20], texts[20:], words=("green", "cell"), steps=1)


def test_a_shortcut_needs_a_cross_encoder_and_new_words():
    texts = random_texts(4)
    with pytest.raises(InputError, match="must be a cross-encoder on backlight's engine"):
        teach(real_ranker(), texts, texts)
    with pytest.raises(InputError, match="no text must hold plants or cell"):
        teach(cross_encoder(), [("plants", "make food")], texts, words=("plants", "cell"))


QED_ROW = {
    "question_text": "who make the food",
    "paragraph_text": "air of a leaf . green plants make the food . water",
    "annotation": {
        "selected_sentence": {"start": 16, "end": 45},
        "referential_equalities": [
            {"question_reference": {"start": 9, "end": 17}, "sentence_reference": {"start": 34, "end": 42}},
            {"question_reference": {"start": 0, "end": 3}, "sentence_reference": {"start": 16, "end": 28}},
            {"question_reference": {"start": 0, "end": 3}, "sentence_reference": {"start": -1, "end": -1}},
            {"question_reference": {"start": 0, "end": 3}, "sentence_reference": {"start": 0, "end": 3}},
        ],
    },
}


def test_links_are_read_as_couples_of_words(tmp_path):
    (tmp_path / "qed.jsonl").write_text(json.dumps(QED_ROW) + "\n")
    (linked,) = read_links(tmp_path / "qed.jsonl")
    assert linked.document == "green plants make the food ." and len(linked.links) == 2
    (pair,) = cross_encoder().read([(linked.query, linked.document)])
    expected = np.zeros((4, 6), bool)
    expected[2:, 3:5] = expected[0, :2] = True
    assert np.array_equal(linked_words(pair, linked), expected)
    with pytest.raises(InputError, match="as QED's links, lines of JSON"):
        read_links(tmp_path / "none.jsonl")


def test_every_matrix_is_held_against_links(tmp_path):
    (tmp_path / "qed.jsonl").write_text(json.dumps(QED_ROW))
    found = measure_links(cross_encoder(), read_links(tmp_path / "qed.jsonl")[0], 0)
    assert set(found) == {*ESTIMATES, "attention", "same word", "random"}
    assert all(0 <= one["auc"] <= 1 and 0 <= one["precision"] <= 1 for one in found.values())
    # of 6 linked couples 2 are the same word, of 18 others 1 ("make"); among unlike words nothing tells
    assert found["same word"]["auc"] == pytest.approx((2 * 17 + 2 * 0.5 + 4 * 17 * 0.5) / (6 * 18), abs=1e-9)
    assert found["same word"]["auc_unlike"] == 0.5


def test_attention_between_words_is_the_mean_of_both_ways():
    ranker = cross_encoder()
    (pair,) = ranker.read([("plants make", "leaf")])
    seen = ranker.inside(PairBatch.of([pair])).attentions
    mean = np.mean([layer[0].mean(axis=0) for layer in seen], axis=0)
    expected = [[mean[1, 4] + mean[4, 1]], [mean[2, 4] + mean[4, 2]]]
    assert pair.pieces == ("[CLS]", "plants", "make", "[SEP]", "leaf", "[SEP]")
    np.testing.assert_allclose(attention(ranker, pair), expected, rtol=1e-6)


def test_auc_equals_its_definition():
    rng = np.random.default_rng(0)
    linked, others = rng.integers(0, 5, 7).astype(float), rng.integers(0, 5, 11).astype(float)
    expected = np.mean([(a > b) + (a == b) / 2 for a in linked for b in others])
    assert auc(linked, others) == pytest.approx(expected)
    assert auc(linked, others[:0]) is None
