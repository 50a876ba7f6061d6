"""Why one document stands above another: values of the difference, the smallest swap, and scores after edits."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from tiny_bert import cross_encoder, real_ranker

from backlight.errors import InputError
from backlight.explain.attribution import Word
from backlight.explain.comparison import compare, what_if
from backlight.explain.counterfactuals import Search, Tried
from backlight.explain.edits import Add, Cut, Remove, Replace, Rewrite
from backlight.explain.methods.ablation import removal_called, score_groups
from backlight.explain.methods.registry import METHODS
from backlight.explain.parts import word_parts
from backlight.explain.presentation.wording import no_swap_line
from backlight.explain.words import is_mark
from backlight.models.pairs import DOCUMENT, PairBatch

QUERY = "how do plants make food"
PLANTS = "Green plants make food from air and water."
LEAF = "unlike the sun, a leaf"
SIGNED = [name for name, method in METHODS.items() if method.signed]


def score(ranker, *texts):
    return float(ranker.score(PairBatch.of(ranker.read([texts])))[0])


def ordered(ranker):
    """Return the two documents, the better one first."""
    return sorted([PLANTS, LEAF], key=lambda text: -score(ranker, QUERY, text))


class Sums:
    """A scorer whose score is the sum of a number for each of the document's tokens that are left."""

    name, score_name, highest_score = "sums", "sum", None
    tokens_a_pass = 2048

    def __init__(self, alone):
        self._alone = alone

    def read(self, pairs):
        return cross_encoder().read(pairs)

    def activate(self, scores):
        return scores

    def score(self, batch, inputs_embeds=None):
        return np.array(
            [self._scored({pair.pieces[place] for place in pair.of_side(DOCUMENT)}) for pair in batch.pairs]
        )

    def _scored(self, held):
        return sum(self._alone.get(piece, 0.0) for piece in held)


def values(text):
    return np.array([word.value for word in text.words])


@pytest.mark.parametrize("method", SIGNED)
def test_values_are_those_of_a_less_those_of_b(method):
    ranker = cross_encoder()
    found = compare(ranker, QUERY, PLANTS, LEAF, method=method, most=0)
    options = {"words": 100} if method == "leave-one-out" else {}
    one, other = METHODS[method].explain(ranker, ranker.read([(QUERY, PLANTS), (QUERY, LEAF)]), **options)
    np.testing.assert_allclose(values(found.a.document), values(one.document), atol=1e-6)
    np.testing.assert_allclose(values(found.b.document), -values(other.document), atol=1e-6)
    np.testing.assert_allclose(values(found.query_words), values(one.query) - values(other.query), atol=1e-5)
    assert found.difference == pytest.approx(score(ranker, QUERY, PLANTS) - score(ranker, QUERY, LEAF), abs=1e-5)
    assert found.difference == found.score_a - found.score_b
    assert (found.swap, found.passes) == (None, one.passes + other.passes)


def test_values_of_a_complete_method_add_up_to_the_difference():
    ranker = cross_encoder()
    found = compare(ranker, QUERY, PLANTS, LEAF, method="shapley", most=0, budget=100)
    total = values(found.a.document).sum() + values(found.b.document).sum() + values(found.query_words).sum()
    bare = [pair.kept(pair.sides == 2) for pair in ranker.read([(QUERY, PLANTS), (QUERY, LEAF)])]
    (none,) = score_groups(ranker, [bare])
    assert total == pytest.approx(found.difference - (none[0] - none[1]), abs=1e-5)


def test_what_a_comparison_shows_is_what_explain_shows_and_what_the_changed_text_scores():
    ranker = cross_encoder()
    better, worse = ordered(ranker)
    found = compare(ranker, QUERY, better, worse)
    (explained,) = METHODS["leave-one-out"].explain(ranker, ranker.read([(QUERY, better)]), words=100)
    assert [word.effect for word in found.a.document.words] == [word.effect for word in explained.document.words]
    assert None not in [word.effect for word in found.a.document.words], "all words are measured"
    assert found.swap is not None
    left = better
    for word in reversed(found.swap.words):
        left = left[: word.start] + left[word.end :]
    assert score(ranker, QUERY, left) == pytest.approx(found.swap.score_after, abs=1e-5)


def test_b_above_a_is_the_same_turned_round():
    ranker = cross_encoder()
    forth, back = compare(ranker, QUERY, PLANTS, LEAF), compare(ranker, QUERY, LEAF, PLANTS)
    np.testing.assert_allclose(values(forth.a.document), -values(back.b.document), atol=1e-5)
    np.testing.assert_allclose(values(forth.query_words), -values(back.query_words), atol=1e-5)
    assert forth.difference == pytest.approx(-back.difference, abs=1e-5)
    assert {forth.swap.side, back.swap.side} == {"a", "b"}
    assert [word.text for word in forth.swap.words] == [word.text for word in back.swap.words]


def smallest_by_all(ranker, query, better, target):
    """Return how many words the better document must lose, by trying every set."""
    (pair,) = ranker.read([(query, better)])
    parts = [part for part in word_parts(pair, DOCUMENT) if not is_mark(better[part.start : part.end])]
    for size in range(1, len(parts)):
        removals = [list(some) for some in combinations(parts, size)]
        if score_groups(ranker, [removal_called("drop")(ranker, pair, removals)])[0].min() < target:
            return size
    return None


@pytest.mark.parametrize("seed", range(4))
def test_an_exact_swap_is_smallest_and_swaps(seed):
    ranker = cross_encoder(seed)
    better, worse = ordered(ranker)
    found = compare(ranker, QUERY, better, worse).swap
    expected = smallest_by_all(ranker, QUERY, better, score(ranker, QUERY, worse))
    assert (len(found.words) if found else None) == expected
    if found:
        (pair,) = ranker.read([(QUERY, better)])
        gone = {(word.start, word.end) for word in found.words}
        away = [part for part in word_parts(pair, DOCUMENT) if (part.start, part.end) in gone]
        (after,) = score_groups(ranker, [removal_called("drop")(ranker, pair, [away])])[0]
        assert found.score_after == pytest.approx(after, abs=1e-6)
        assert after < score(ranker, QUERY, worse)
        assert (found.exact, found.side) == (True, "a")


def search(ranker, document, target, *, beam, budget=10_000, most=5):
    (pair,) = ranker.read([("a leaf", document)])
    looking = Search(ranker, pair, "mask", budget)
    return looking.swap(score(ranker, "a leaf", document), target, "a", most=most, beam=beam)


def test_a_swap_of_several_words_is_proven_smallest():
    model = Sums({"green": 1.0, "plants": 1.0, "make": 1.0, "food": 1.0, "of": 0.1})
    found = search(model, "green plants make food of air water", 0.5, beam=1)
    assert {word.text for word in found.words} == {"green", "plants", "make", "food"}
    assert found.exact
    assert found.passes > 7 + 21 + 35  # all sets of one, two and three words


def test_a_beam_that_went_astray_is_mended_by_trying_all_smaller_sets():
    """Losing one of air and water brings nothing while the other is there: greedy takes three words, two do it."""

    class Either(Sums):
        def _scored(self, held):
            return super()._scored(held) + (5.0 if held & {"air", "water"} else 0.0)

    model = Either({"green": 2.0, "plants": 2.0, "make": 2.0})
    found = search(model, "green plants make food of air water", 6.5, beam=1)
    assert {word.text for word in found.words} == {"air", "water"}
    assert found.exact
    hasty = search(model, "green plants make food of air water", 6.5, beam=1, budget=20)
    assert {word.text for word in hasty.words} == {"green", "plants", "make"}
    assert not hasty.exact
    assert hasty.passes <= 20


def test_no_swap_is_said_where_there_is_none():
    assert search(Sums({"green": 1.0}), "green plants make food", -1.0, beam=2) is None
    assert search(Sums({"green": 1.0, "plants": 1.0}), "green plants make food", 0.5, beam=2, most=1) is None
    assert search(Sums({"green": 1.0, "plants": 1.0}), "green plants make food", 0.5, beam=2, budget=3) is None


def test_words_of_a_swap_tell_what_each_brings_alone():
    found = search(Sums({"green": 3.0, "plants": 2.0}), "green plants make food", 0.5, beam=2)
    assert [(word.text, word.value) for word in found.words] == [("green", 3.0), ("plants", 2.0)]
    assert found.score_after == 0.0


def test_equal_scores_have_no_swap():
    found = compare(cross_encoder(), QUERY, PLANTS, PLANTS)
    assert (found.difference, found.swap) == (0.0, None)


def test_a_bi_encoder_is_compared_by_the_same_call():
    found = compare(
        real_ranker(), "what moves the sea", "The tides follow the Moon.", "The Moon pulls water.", names=("x", "y")
    )
    assert (found.name_a, found.name_b, found.swap.side) == ("x", "y", "a")
    assert found.swap.exact
    assert found.activated_a == pytest.approx(found.score_a)


def test_punctuation_stays_and_no_swap_says_what_was_tried():
    ranker = cross_encoder()
    better, worse = ordered(ranker)
    found = compare(ranker, QUERY, f"# {better} #", f"# {worse} #", most=1, by="mask")
    words = sum(not word.is_mark for word in (found.a if found.score_a > found.score_b else found.b).document.words)
    assert found.tried == Tried(words, words, False)
    if found.swap is None:
        assert f"{words} sets of up to 1 of its {words} words were tried, and a larger --most" in no_swap_line(found)
    spent = compare(ranker, QUERY, better, worse, budget=2)
    assert spent.tried.sets == 0 and no_swap_line(spent).endswith("a larger --budget tries more.")
    assert "were looked for" in no_swap_line(compare(ranker, QUERY, better, worse, most=0))


def test_methods_without_signs_are_refused():
    with pytest.raises(InputError, match=r"method must give signed values .* saliency does not: .*gradient-x-input"):
        compare(cross_encoder(), QUERY, PLANTS, LEAF, method="saliency")
    with pytest.raises(InputError, match="method must be one of"):
        compare(cross_encoder(), QUERY, PLANTS, LEAF, method="astrology")
    with pytest.raises(InputError, match="B must hold something that the model reads"):
        compare(cross_encoder(), QUERY, PLANTS, " ")


def test_a_query_that_one_pair_reads_further_keeps_its_words():
    found = compare(cross_encoder(), "green plants " * 14, "air", "food from the leaf " * 9, most=0, windows=None)
    assert len(found.query_words.words) == max(len(found.a.query.words), len(found.b.query.words))
    assert len(found.a.query.words) > len(found.b.query.words)
    last = found.query_words.words[-1]
    assert last.value == found.a.query.words[-1].value


def test_edits_are_scored_one_after_another():
    ranker = cross_encoder()
    edits = [Remove("food"), Replace("air and water", "sunlight"), Add("The leaf is green.")]
    found = what_if(ranker, QUERY, PLANTS, edits, candidates=[LEAF, "water water water"])
    texts = [
        PLANTS,
        "Green plants make from air and water.",
        "Green plants make from sunlight.",
        "Green plants make from sunlight. The leaf is green.",
    ]
    assert [version.document for version in found.versions] == texts
    rivals = [score(ranker, QUERY, text) for text in (LEAF, "water water water")]
    for version, text in zip(found.versions, texts):
        expected = score(ranker, QUERY, text)
        assert version.score == pytest.approx(expected, abs=1e-6)
        assert version.activated == pytest.approx(1 / (1 + np.exp(-expected)), abs=1e-6)
        assert version.rank == 1 + sum(rival > expected for rival in rivals)
    assert found.change == found.after.score - found.before.score
    assert [version.edit for version in found.versions] == [
        "",
        "without “food”",
        "“sunlight” for “air and water”",
        "with “The leaf is green.” at the end",
    ]


def test_without_candidates_there_is_no_rank():
    found = what_if(cross_encoder(), QUERY, PLANTS, [Rewrite(LEAF)])
    assert [version.rank for version in found.versions] == [None, None]
    assert found.after.document == LEAF


def test_what_a_document_became_too_long_for_is_told():
    found = what_if(cross_encoder(), QUERY, PLANTS, [Add("food from the leaf " * 9, place="start")], windows=None)
    assert not found.before.truncation
    assert found.after.truncation.tokens_left_out > 0


def test_the_words_of_a_swap_can_be_cut_from_the_text():
    ranker = real_ranker()
    texts = "The tides follow the Moon.", "The sea is salt."
    found = compare(ranker, "what moves the sea", *texts, by="drop")
    better = texts["ab".index(found.swap.side)]
    after = what_if(ranker, "what moves the sea", better, [Cut(found.swap.words)]).after
    assert after.score == pytest.approx(found.swap.score_after, abs=1e-6)


def test_only_whole_words_are_edited():
    text = "A fox, a foxglove; the fox."
    assert Remove("fox").apply(text) == "A , a foxglove; the ."
    assert Replace("fox,", "hare and").apply(text) == "A hare and a foxglove; the fox."
    assert Add("Well:", place="start").apply(text) == f"Well: {text}"
    word = Word("fox", 23, 26, 0.0, 1)
    assert Cut([word]).apply(text) == "A fox, a foxglove; the ."
    assert str(Cut([word])) == "without “fox” at their places"


def test_edits_that_do_not_fit_are_refused():
    for edit in (Remove("foxg"), Replace("Fox", "hare"), Remove(" ")):
        with pytest.raises(InputError, match="an edit must name words that the document holds"):
            edit.apply("A fox, a foxglove.")
    with pytest.raises(InputError, match="place must be one of end, start, got middle"):
        Add("x", place="middle").apply("A fox.")
    with pytest.raises(InputError, match="the words of a Cut must be those of the text, got fox where it has 'x, '"):
        Cut([Word("fox", 4, 7, 0.0, 1)]).apply("A fox, a dog.")
    with pytest.raises(InputError, match="the document rewritten must hold something"):
        what_if(cross_encoder(), QUERY, PLANTS, [Rewrite("")])


def test_results_are_plain_data():
    found = dataclasses.asdict(compare(cross_encoder(), QUERY, *ordered(cross_encoder())))
    assert found["a"]["document"]["words"][0]["text"] in (PLANTS.split()[0], LEAF.split()[0])
    assert found["settings"]["by"] == "drop"
