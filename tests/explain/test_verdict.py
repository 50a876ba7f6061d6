"""The verdict line says what was measured, in probabilities where there is a sigmoid, and what was not."""

import math
from dataclasses import replace

import pytest
from tiny_bert import cross_encoder, real_ranker

from backlight.explain.attribution import Check, Window
from backlight.explain.presentation.scores import score_text, unit_of, write_probability, write_scores
from backlight.explain.presentation.verdict import details_line, measured_text, verdict_line, verdict_logits
from backlight.explain.ranking import rank_and_explain

QUERY = "how do plants make food"
DOCUMENTS = ["green plants make food from sunlight , water and air in each leaf", "the leaf of a green cell"]
LOGIT = {0.93: math.log(0.93 / 0.07), 0.41: math.log(0.41 / 0.59), 0.9: math.log(9)}


@pytest.fixture(scope="module")
def made():
    """Return an explanation of a document of 12 words whose score is a probability of 0.93."""
    found = rank_and_explain(cross_encoder(), QUERY, DOCUMENTS).documents
    one = next(ranked for ranked in found if ranked.text == DOCUMENTS[0]).attribution
    words = tuple(replace(word, value=1.0 + place) for place, word in enumerate(one.document.words))
    return replace(one, score=LOGIT[0.93], document=replace(one.document, words=words), method="x", settings={})


def checked(made, **changes):
    drops = {"drop": LOGIT[0.93] - LOGIT[0.41], "random": LOGIT[0.93] - LOGIT[0.9], "total": None}
    known = {"by": "drop", "words": 8, "counted": 8, "signs": 8, "threshold": 0.1, "top": 3, "passes": 13}
    return replace(made, check=Check(**{**known, **drops, "verdict": "holds", **changes}))


def test_the_line_says_the_score_with_and_without_the_strongest_words(made):
    assert verdict_line(checked(made), "probability") == (
        "Faithful: without the 3 words shown to raise it most, the probability falls from 0.930 to 0.410; "
        "without 3 random words it is 0.900"
    )
    assert verdict_logits(checked(made), "probability") == (
        "logit 2.587, without these words −0.364, without as many at random 2.197".replace("−", "\N{MINUS SIGN}")
    )


def test_without_a_sigmoid_the_score_itself_is_said(made):
    found = checked(replace(made, score=0.62), drop=0.2, random=0.02)
    assert verdict_line(found, None) == (
        "Faithful: without the 3 words shown to raise it most, the score falls from 0.620 to 0.420; "
        "without 3 random words it is 0.600"
    )
    assert verdict_logits(found, None) is None


def test_methods_without_signs_and_single_words_have_their_own_forms(made):
    found = checked(replace(made, signed=False), signs=None, top=1)
    assert verdict_line(found, "probability").startswith(
        "Faithful: without its strongest word, the probability falls from 0.930 to 0.410; without 1 random word it is "
    )
    assert "without the word shown to raise it most, the probability falls" in verdict_line(
        checked(made, top=1), "probability"
    )


@pytest.mark.parametrize(("unit", "name"), [("span", "phrase"), ("sentence", "sentence")])
def test_the_line_names_what_was_deleted(made, unit, name):
    one = replace(made, method="leave-one-out", settings={"unit": unit})
    assert verdict_line(checked(one), "probability").startswith(
        f"Faithful: without the 3 {name}s shown to raise it most"
    )
    assert f"without 3 random {name}s it is" in verdict_line(checked(one), "probability")
    failed = verdict_line(checked(one, verdict="fails"), None)
    assert f"its {name}s act together" in failed and ("--unit" in failed) == (unit == "span")


def test_without_other_words_to_compare_with_the_effects_are_called_measured(made):
    found = checked(replace(made, document=replace(made.document, words=made.document.words[-3:])), random=0.0)
    assert verdict_line(found, "probability") == (
        "Measured: without the 3 words shown to raise it most, the probability falls from 0.930 to 0.410; there are "
        "too few others to compare them with"
    )


def test_words_that_lower_the_score_raise_it_when_they_are_deleted(made):
    words = tuple(replace(word, value=-word.value) for word in made.document.words)
    found = replace(made, score=LOGIT[0.41], document=replace(made.document, words=words))
    found = checked(found, drop=LOGIT[0.41] - LOGIT[0.93], random=0.0)
    assert verdict_line(found, "probability") == (
        "Faithful: without the 3 words shown to lower it most, the probability rises from 0.410 to 0.930; "
        "without 3 random words it is 0.410"
    )


def test_what_was_not_measured_is_called_so(made):
    assert verdict_line(replace(made, check=None)).startswith("Not measured: ")
    assert details_line(replace(made, check=None)) is None
    everything = checked(made, top=len(made.document.words), random=0.0)
    assert verdict_line(everything, "probability").endswith("; there are too few others to compare them with")


@pytest.mark.parametrize(
    ("signs", "drop", "random", "said"),
    [
        (3, 4.0, 0.4, "only 3 of 8 words move the logit as shown when deleted one by one"),
        (None, 0.1, 0.4, "without its 3 strongest words, the probability falls from 0.930 to 0.923; without 3 random "
                         "words it is 0.899"),
        (None, -0.1, 0.4, "without its 3 strongest words, the probability rises from 0.930 to 0.936; without 3 random "
                          "words it is 0.899"),
    ],
)  # fmt: skip
def test_a_failed_check_says_why_and_what_to_use(made, signs, drop, random, said):
    found = checked(replace(made, signed=signs is not None), signs=signs, drop=drop, random=random, verdict="fails")
    line = verdict_line(found, "probability")
    assert line == f"Not faithful, do not believe these colours: {said}; use --method leave-one-out"
    assert verdict_line(found, option='{name}="{value}"').endswith('use method="leave-one-out"')


def test_words_that_are_shown_wrong_are_not_said_to_do_what_they_do_not(made):
    found = checked(made, drop=-1.0, verdict="fails")
    assert "without the 3 words shown to raise it most, the probability rises from 0.930" in verdict_line(
        found, "probability"
    )


def test_of_a_document_of_many_windows_the_best_window_is_meant(made):
    many = Window("best", 2, 5, 0, 10, read=5, effects_of="window")
    assert "the best window's probability falls" in verdict_line(checked(made), "probability", many)
    assert "window" not in verdict_line(checked(made), "probability", replace(many, effects_of="document"))


def test_the_details_count_words_and_tell_the_score_without_any(made):
    total = LOGIT[0.93] - LOGIT[0.41]
    words = tuple(replace(word, effect=total / 4) for word in made.document.words)
    found = replace(made, document=replace(made.document, words=words))
    assert details_line(checked(found, total=total), "probability") == (
        f"{measured_text(made)}; 8 of 8 words move the logit as shown; deleting all its words takes the probability "
        "from 0.930 to 0.410"
    )


def test_words_that_act_only_together_are_said_to(made):
    def measured(*effects):
        words = (replace(word, effect=value) for word, value in zip(made.document.words, effects))
        return details_line(checked(replace(made, document=replace(made.document, words=tuple(words))), total=4.0))

    assert measured(0.2, -0.4).endswith(
        "; no single word carries the match: together the words add 4.00 to the score, and the strongest measured one "
        "alone adds only 0.20"
    )
    assert measured(-0.2, -0.4).endswith("the strongest measured one alone adds nothing")
    assert "no single word" not in measured(0.7, -0.4)


def test_probabilities_have_the_digits_that_tell_them_apart():
    assert write_scores([2.6, 2.55], "probability").texts == ("0.931", "0.928")
    assert write_scores([8.5, 2.0], "probability").texts == (">0.999", "0.881")
    assert write_scores([12.0, 11.0], "probability").quantity == "logit"
    assert write_scores([12.0, 12.0], "probability").quantity == "probability"
    assert write_scores([0.5, 0.4991], None).texts == ("0.50000", "0.49910")
    assert write_probability(1.0) == ">0.999"


def test_a_score_is_labelled_by_what_it_is():
    assert score_text(3.004, 0.953, "probability") == "0.953 (logit 3.004)"
    assert score_text(0.62, 0.62, None) == "0.620"
    assert score_text(0.62, 0.55, "activation") == "0.620 (after the activation 0.550)"
    assert [unit_of(kind) for kind in ("probability", "activation", None)] == ["logit", "score", "score"]


def test_effects_are_of_the_best_window_alone_from_five_windows_on():
    long = "plants make food from sunlight and the leaf of a green cell unlike water . "
    seen = {}
    for repeats in (8, 12, 16, 24, 60):
        (ranked,) = rank_and_explain(real_ranker(), QUERY, [long * repeats], top=0).documents
        if ranked.window is not None:
            seen[ranked.window.of] = ranked.window.effects_of
    assert {of <= 4 for of in seen} == {True, False}, seen
    assert all((said == "document") is (of <= 4) for of, said in seen.items())
    (ranked,) = rank_and_explain(real_ranker(), QUERY, [long * 60], top=0, windows="mean").documents
    assert ranked.window.effects_of == "document"
