"""Each trap is what its name says, and the measures that judge a model by traps and domains are right."""

import re

import numpy as np
import pytest

from backlight.training.reranker.measures import auroc, calibration_error, reliability
from reranker_sources.passages import words_of
from reranker_sources.traps import (
    FAMILIES,
    TRAPS,
    Setting,
    changed_query,
    facts_of,
    make_traps,
    other_number,
    without_answer,
)

QUERY = "When did the oil crisis of 1973 reach Bergen?"
RIGHT = (
    "The crisis of 1973 had many causes. It came to Bergen in October. In Bergen the shops of 1973 closed early then."
)
WRONG = "A candle burns with a yellow flame. It is made of wax and has a wick of cotton inside."
GIVEN = Setting(
    QUERY,
    RIGHT,
    ("October",),
    (WRONG,),
    ("The passage beside it speaks of the weather in general.",),
    ("Who made the first candle?",),
    ("Havana", "Izmir"),
)


@pytest.fixture(params=range(5))
def rng(request) -> np.random.Generator:
    return np.random.default_rng(request.param)


@pytest.mark.parametrize("name", ["echo", "echo_repeated", "echo_shuffled", "echo_remarked", "echo_before"])
def test_an_echo_holds_every_word_of_the_question_and_no_answer(name, rng):
    text = TRAPS[name](GIVEN, rng)
    assert set(words_of(QUERY)) <= set(words_of(text))
    assert "October" not in text


def test_a_repeated_echo_is_the_question_over_and_over(rng):
    text = TRAPS["echo_repeated"](GIVEN, rng)
    assert text.count(QUERY) >= 2
    assert text.replace(QUERY, "").strip() == ""


def test_another_question_is_one_of_the_collection(rng):
    assert TRAPS["other_question"](GIVEN, rng) == "Who made the first candle?"


def test_a_stuffed_passage_holds_a_wrong_passage_and_the_question_words(rng):
    words = words_of(TRAPS["stuffed"](GIVEN, rng))
    assert {"oil", "crisis", "1973", "reach", "bergen"} <= set(words)
    assert [word for word in words if word in set(words_of(WRONG))] == words_of(WRONG)


def test_a_list_of_keywords_holds_the_question_words(rng):
    words = words_of(TRAPS["keyword_list"](GIVEN, rng).replace(WRONG, ""))
    assert set(words) == {"oil", "crisis", "1973", "reach", "bergen"}


def test_a_repeated_sentence_is_one_of_a_wrong_passage(rng):
    text = TRAPS["repeated"](GIVEN, rng)
    (sentence,) = [one for one in re.split(r"(?<=\.)\s", WRONG) if one in text]
    assert text.count(sentence) >= 2
    assert text.replace(sentence, "").strip() == ""


def test_a_changed_fact_differs_from_the_right_passage_by_a_fact_of_the_question(rng):
    text = TRAPS["changed_fact"](GIVEN, rng)
    different = {(old, new) for old, new in zip(words_of(RIGHT), words_of(text), strict=True) if old != new}
    assert len(different) == 1
    ((old, new),) = different
    assert old in ("1973", "bergen")
    assert new.isdigit() == old.isdigit()
    assert old not in words_of(text)
    assert "October" in text


def test_a_changed_query_names_another_thing_than_the_right_passage(rng):
    query = changed_query(GIVEN, rng)
    different = [(old, new) for old, new in zip(words_of(QUERY), words_of(query), strict=True) if old != new]
    assert len(different) == 1
    assert different[0][0] in ("1973", "bergen")
    assert different[0][1] not in words_of(RIGHT)
    assert changed_query(Setting("why is it dry", RIGHT), rng) is None


def test_facts_are_what_question_and_passage_share_and_no_answer_holds():
    assert facts_of(QUERY, RIGHT, ("October",)) == ["1973", "Bergen"]
    assert facts_of(QUERY, RIGHT, ("Bergen",)) == ["1973"]
    assert facts_of("why is it dry", RIGHT, ()) == []


def test_another_number_has_as_many_digits_and_is_another():
    for number in ("7", "40", "1973", "2100", "123456"):
        for seed in range(20):
            other = other_number(number, np.random.default_rng(seed))
            assert len(other) == len(number) and other != number


def test_the_answer_is_cut_and_the_rest_stays(rng):
    text = TRAPS["answer_cut"](GIVEN, rng)
    assert text == "The crisis of 1973 had many causes. In Bergen the shops of 1973 closed early then."
    assert without_answer("It came in October.", ("October",)) is None


def test_a_trap_that_cannot_be_made_is_none(rng):
    bare = Setting("why", "because it is so")
    for name in ("stuffed", "repeated", "changed_fact", "answer_cut", "neighbour", "other_question", "echo_before"):
        assert TRAPS[name](bare, rng) is None


def test_traps_of_a_row_are_of_different_families(rng):
    found = make_traps(GIVEN, 3, rng)
    families = [family for kind, _ in found for family, kinds in FAMILIES.items() if kind in kinds]
    assert len(found) == len(set(families)) == 3


def test_auroc_is_the_share_of_pairs_in_order_with_ties_as_half():
    assert auroc(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == 1
    assert auroc(np.array([0.0]), np.array([1.0])) == 0
    assert auroc(np.array([1.0, 2.0]), np.array([1.0])) == 0.75


def test_calibration_error_is_the_weighted_gap_of_the_bins():
    probabilities = np.array([0.25] * 4 + [0.85] * 4)
    right = np.array([True, False, False, False, True, True, False, False])
    bins = reliability(probabilities, right)
    assert calibration_error(probabilities, right) == pytest.approx(0.5 * 0.0 + 0.5 * 0.35)
    assert [(round(mean, 2), share, count) for mean, share, count in bins] == [(0.25, 0.25, 4), (0.85, 0.5, 4)]
