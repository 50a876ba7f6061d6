"""What is shown is true: one scale for all documents, bars from zero, sentences that the scores bear out."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_bert import cross_encoder, real_ranker

from backlight.explain.attribution import Joint, Word
from backlight.explain.presentation.scales import Look, activation_of, bar_share, largest_value, look_of, ranking_scales
from backlight.explain.presentation.scores import write_scores
from backlight.explain.presentation.verdict import measured_text, verdict_line
from backlight.explain.presentation.wording import closeness_line, effect_sentence, gap_text, joint_lines
from backlight.explain.ranking import rank_and_explain
from backlight.explain.typos import TypoEffect, try_typos, typo_effect, typos

QUERY = "how do plants make food"
DOCUMENTS = ["plants make food from sunlight", "the leaf of a green cell", "air and water"]


@pytest.fixture(scope="module")
def ranking():
    return rank_and_explain(cross_encoder(), QUERY, DOCUMENTS)


def scores_only(scores, name="logit", activated=None):
    activated = scores if activated is None else activated
    documents = [
        SimpleNamespace(rank=place, index=place, score=score, activated=after, attribution=None, window=None)
        for place, (score, after) in enumerate(zip(scores, activated), 1)
    ]
    return SimpleNamespace(score_name=name, documents=documents)


def bars(ranking):
    return [bar_share(ranked, ranking) for ranked in ranking.documents]


def test_shades_are_shares_of_the_strongest_word_of_all_documents(ranking):
    asked, told = ranking_scales(ranking)
    words = [word for ranked in ranking.documents for word in ranked.attribution.document.words]
    assert told == max(abs(word.value) for word in words)
    assert asked == max(abs(word.value) for ranked in ranking.documents for word in ranked.attribution.query.words)
    shares = [abs(Look(True, told).share(word)) for word in words]
    assert max(shares) == 1
    assert shares == pytest.approx([abs(word.value) / told for word in words])


def test_a_document_without_effect_is_pale_and_says_so(ranking):
    made = ranking.documents[0].attribution
    check = replace(made.check, verdict="no effect", threshold=0.25)
    made = replace(made, check=check)
    assert all(look_of(made, 1e-9).share(word) == 0 for word in made.document.words)
    words = len(made.document.words)
    assert verdict_line(made, "probability") == (
        f"No word matters: deleting any of its {words} words changes the logit by less than 0.25"
    )


def test_bars_begin_at_zero():
    assert bars(scores_only([0.6, 0.59, -0.2], "cosine of mean-pooled embeddings")) == [0.6, 0.59, -0.2]
    logits = np.array([2.0, -1.0, -3.0])
    assert bars(scores_only(logits, activated=1 / (1 + np.exp(-logits)))) == pytest.approx(
        [0.881, 0.269, 0.047], abs=1e-3
    )
    assert bars(scores_only([4.0, 3.0, -1.0])) == [1.0, 0.75, -0.25]
    assert bars(scores_only([0.0, 0.0])) == [0.0, 0.0]


def test_the_activation_is_named_by_what_it_is(ranking):
    assert activation_of(ranking.documents) == "probability"
    assert activation_of(scores_only([1.0, 2.0]).documents) is None
    assert activation_of(scores_only([1.0, 2.0], activated=[0.2, 0.9]).documents) == "activation"


def test_punctuation_has_no_shade_and_no_part_in_the_scale():
    document = Word("plants", 0, 6, 1.0, 1), Word("!", 6, 7, -4.0, 1)
    text = SimpleNamespace(words=document)
    scale = largest_value([text])
    assert scale == 1.0
    assert [Look(True, scale).share(word) for word in document] == [1.0, 0.0]


LONG = ["green plants make food from water and air in each leaf , and sunlight makes the plants green " * 2]


def test_measured_words_are_told_from_estimated_ones():
    made = rank_and_explain(cross_encoder(), QUERY, DOCUMENTS[:1], words=2, check=False).documents[0].attribution
    look = look_of(made, 1.0)
    words = (*made.query.words, *made.document.words)
    assert sum(not look.is_estimated(word) for word in words) == 2
    made = rank_and_explain(cross_encoder(), QUERY, LONG, words=2).documents[0].attribution
    own = [word for word in made.document.words if not word.is_mark]
    known = sum(word.effect is not None for word in own)
    assert known < len(own)
    assert measured_text(made) == f"{known} of its {len(own)} words measured"


def test_the_fall_that_is_told_is_the_fall_that_happens():
    """Take the word out, and rank again."""
    ranker = cross_encoder()
    ranking = rank_and_explain(ranker, QUERY, DOCUMENTS)
    told = 0
    for ranked in ranking.documents:
        sentence = effect_sentence(ranked, ranking)
        if sentence is None:
            continue
        word = sentence.split("“")[1].split("”")[0]
        without = next(one for one in ranked.attribution.document.words if one.text == word)
        text = (ranked.text[: without.start] + ranked.text[without.end :]).replace("  ", " ").strip()
        texts = [text if number == ranked.index else document for number, document in enumerate(DOCUMENTS)]
        again = rank_and_explain(ranker, QUERY, texts, top=0)
        place = next(one.rank for one in again.documents if one.index == ranked.index)
        score = next(one.score for one in again.documents if one.index == ranked.index)
        written = write_scores([ranked.score, score], "probability")
        assert f"from {written.texts[0]} to {written.texts[1]}" in sentence
        assert written.quantity in sentence
        assert ("this document" in sentence) is (place != ranked.rank)
        told += 1
    assert told


def ranked_with(word, rank, scores):
    ranking = scores_only(scores)
    ranked = ranking.documents[rank - 1]
    words = (word,)
    ranked.attribution = SimpleNamespace(document=SimpleNamespace(words=words), check=None)
    return ranked, ranking


def test_places_are_said_in_words():
    word = Word("refund", 0, 6, 2.5, 1, effect=2.5)
    assert effect_sentence(*ranked_with(word, 1, [3.0, 2.0, 1.0, 0.6, 0.1])) == (
        "without “refund” this document falls from 1st to 4th (score from 3.000 to 0.500)"
    )
    assert effect_sentence(*ranked_with(word, 1, [3.0, 2.0, 1.0])).endswith(
        "to 3rd, the last shown (score from 3.000 to 0.500)"
    )
    assert effect_sentence(*ranked_with(replace(word, effect=-0.02), 2, [3.0, 2.0])) == (
        "without “refund” its score rises from 2.000 to 2.020"
    )
    assert effect_sentence(*ranked_with(replace(word, effect=None), 1, [3.0, 2.0])) is None


def test_places_are_said_with_probabilities_where_there_is_a_sigmoid():
    word = Word("refund", 0, 6, 2.5, 1, effect=2.5)
    logits = np.array([2.0, 1.0, -3.0])
    ranking = scores_only(logits, activated=1 / (1 + np.exp(-logits)))
    ranking.documents[0].attribution = SimpleNamespace(document=SimpleNamespace(words=(word,)), check=None)
    assert effect_sentence(ranking.documents[0], ranking) == (
        "without “refund” this document falls from 1st to 2nd (probability from 0.881 to 0.378)"
    )


def test_words_that_act_together_are_listed():
    words = [
        Word(match[0], match.start(), match.end(), 0.25, 1, effect=0.25)
        for match in re.finditer(r"\w+|,", "new york, New")
    ]
    new, york, comma, again = words
    made = SimpleNamespace(
        together=[
            Joint((new, york), 2.1, 0.5),
            Joint((new, york, again), 0.04, 0.25),
            Joint((york, again), -2, 1, True),
        ],
        query=SimpleNamespace(words=[york, comma, again]),
        document=SimpleNamespace(words=words),
        check=None,
    )
    assert joint_lines(made) == [
        "“new york” (1st): +2.10 together, +0.50 one by one",
        "“new york” (1st) and “New” (2nd), apart in the text: +0.04 together, +0.25 one by one",
        "in the query, “york” and “New”, apart in the text: \N{MINUS SIGN}2.00 together, +1.00 one by one",
    ]
    made.check = SimpleNamespace(verdict="no effect")
    assert joint_lines(made) == []


def test_values_say_whether_they_add_up():
    assert [gap_text(gap) for gap in (None, 0.0, -0.021)] == ["not additive", "additive", "additive within 0.021"]


def test_typos_change_one_letter_and_are_the_same_each_time():
    query = "Where is 2 the plant?"
    found = typos(query)
    assert found == typos(query)
    assert len(set(found)) == 3
    for typo in found:
        changed = [place for place, (a, b) in enumerate(zip(query, typo, strict=True)) if a != b]
        assert len(changed) == 1
        assert query[changed[0]].isalpha()
    assert typos("東京 12") == []


def test_the_effect_of_a_typo_is_the_mean_change_of_the_score():
    query, document, ranker = "plants food", "the leaf", real_ranker()
    (score,) = ranker.scores_of(ranker.read([(query, document)]))
    others = [ranker.scores_of(ranker.read([(one, document)]))[0] for one in typos(query)]
    expected = np.mean([abs(float(other) - float(score)) for other in others])
    assert typo_effect(ranker, query, document) == pytest.approx(expected, abs=1e-6)
    assert expected > 0
    assert typo_effect(ranker, "東京", document) is None


def test_the_order_under_typos_is_that_of_the_scores_of_the_misspelt_queries():
    query, ranker = "plants food", real_ranker()
    documents = ["plants eat", "the leaf eats", "plant food", "air and water"]
    scores = dict(zip(documents, ranker.scores_of(ranker.read([(query, one) for one in documents])).tolist()))
    documents.sort(key=scores.get, reverse=True)
    found = try_typos(ranker, query, documents, [scores[one] for one in documents])
    assert found.effect == typo_effect(ranker, query, documents[0])
    close = [one for one in documents if scores[documents[0]] - scores[one] < found.effect]
    assert (found.close, found.tried) == (len(close), 3)
    assert found.close > 1
    tried = [ranker.scores_of(ranker.read([(typo, one) for one in close])) for typo in typos(query)]
    assert found.overturned == sum(scores.argmax() != 0 for scores in tried)
    assert try_typos(ranker, "東京", documents, [1.0] * 4) is None


def test_documents_closer_than_a_typo_are_said():
    assert closeness_line(scores_only([3.0, 2.9, 2.5, 1.0]), TypoEffect(0.8, 3, tried=3, overturned=2)) == (
        "the top 3 documents are close: their scores differ by 0.50, and a typo in the query changes the best one's "
        "by 0.80; 2 of 3 typos tried put another of them first"
    )
    logits = np.array([3.0, 2.9])
    probabilities = scores_only(logits, activated=1 / (1 + np.exp(-logits)))
    assert closeness_line(probabilities, TypoEffect(0.8, 2, tried=3, overturned=0)) == (
        "the top 2 documents' logits differ by 0.10, less than a typo in the query changes the best one's (0.80); "
        "but none of 3 typos tried puts the other first"
    )
    assert closeness_line(scores_only([3.0, 2.0]), TypoEffect(0.8, 1, tried=3, overturned=0)) is None
    assert closeness_line(scores_only([3.0, 2.9]), None) is None
