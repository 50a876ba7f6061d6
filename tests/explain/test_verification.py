"""The check says what plain scoring says: of words one by one, of the strongest together, of words at random."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_bert import real_ranker

from backlight.explain.methods.ablation import text_without
from backlight.explain.presentation.wording import joint_lines
from backlight.explain.reranker import Reranker
from backlight.explain.verification import FAILS, HOLDS, NO_EFFECT, ExplainedDocument, check_explanations

QUERY = "how long until I get my refund"
TEXT = "Refunds are paid within ten days. Send unworn shoes back in their box, and keep the receipt until then."


def reranker():
    return Reranker(real_ranker())


def predicted(document, query=QUERY):
    return float(reranker().predict((query, document), activation="identity"))


def checked(made, spread=0.0):
    ranker = real_ranker()
    pairs = tuple(ranker.read([(made.query.text, made.document.text)]))
    return check_explanations(ranker, [ExplainedDocument(pairs, made)], spread)[0]


def test_the_figures_of_a_check_are_those_of_plain_scores():
    made = reranker().explain(QUERY, TEXT, method="gradient-x-input")
    strongest = made.document.strongest(5)
    for word in strongest:
        effect = made.score - predicted(text_without(TEXT, [(word.start, word.end)]))
        assert word.effect == pytest.approx(effect, abs=1e-5)
    way = np.sign(strongest[0].value)
    top = [w for w in made.document.strongest() if w.value * way > 0 and not w.is_mark][:5]
    without = predicted(text_without(TEXT, [(word.start, word.end) for word in top]))
    assert made.check.drop == pytest.approx(made.score - without, abs=1e-5)
    assert made.check.total == pytest.approx(made.score - predicted(""), abs=1e-5)
    assert made.check.words == 8
    shown = [w for text in (made.query, made.document) for w in text.words if w.effect is not None]
    counted = [w for w in shown if abs(w.effect) >= made.check.threshold]
    assert made.check.counted == len(counted)
    assert made.check.signs == sum(w.value * w.effect > 0 for w in counted)


def test_an_explanation_turned_upside_down_fails():
    made = reranker().explain(QUERY, TEXT, words=1000, check=False)
    assert checked(made).check.verdict == HOLDS

    def turned(text):
        return replace(text, words=tuple(replace(w, value=-w.value, effect=None) for w in text.words))

    wrong = checked(replace(made, query=turned(made.query), document=turned(made.document)))
    assert wrong.check.verdict == FAILS
    assert wrong.check.signs == 0


def test_words_that_together_move_the_score_the_other_way_fail_without_others_to_compare():
    made = reranker().explain(QUERY, "refund refund refund")  # each alone lowers the score: the others still answer
    assert [word.effect < 0 for word in made.document.words] == [True] * 3
    assert (made.check.top, made.check.random, made.check.drop > 0) == (3, 0.0, True)
    assert made.check.signs == made.check.counted
    assert made.check.verdict == FAILS
    assert any(line.startswith("“refund refund") for line in joint_lines(made))


def test_a_short_document_is_not_compared_with_nearly_the_same_words():
    document = "how long until I get a refund"
    made = reranker().explain(QUERY, document)
    count = len([word for word in made.document.words if not word.is_mark])
    assert 2 * made.check.top > count
    assert (made.check.random, made.check.verdict) == (0.0, HOLDS)
    unsigned = reranker().explain(QUERY, document, method="saliency")
    assert 2 * unsigned.check.top <= count, "a method without signs has nothing else to be held against"


def test_a_document_of_which_no_word_matters_has_no_effect():
    made = reranker().explain(QUERY, TEXT, words=1000, check=False)
    assert checked(made, spread=1e6).check.verdict == NO_EFFECT


def test_a_method_without_signs_is_checked_by_size():
    made = reranker().explain(QUERY, TEXT, method="saliency")
    assert made.check.signs is None
    assert made.check.verdict == (HOLDS if abs(made.check.drop) > 2 * abs(made.check.random) else FAILS)


def test_the_check_is_left_out_where_it_is_not_wanted():
    made = reranker().explain(QUERY, TEXT, method="saliency", check=False)
    assert made.check is None
    assert all(word.effect is None for word in made.document.words)


@pytest.mark.parametrize("windows", ["best", "mean"])
def test_long_documents_are_checked_in_their_windows(windows):
    text = " ".join([TEXT] * 30)
    ranking = reranker().rank(QUERY, [text, "Bread rises."], explain=2, windows=windows, words=8)
    first = next(one for one in ranking.documents if one.text == text)
    assert first.attribution.check is not None
    assert np.isfinite(first.attribution.check.drop)


def test_one_word_and_empty_texts_do_not_break_the_check():
    made = reranker().explain("refund", "refund!")
    assert made.check.top == 1
    assert made.check.random == 0.0
