"""The everyday questions that judge rerankers are what they are said to be, and their measures are right."""

import importlib
import re
import sys

import numpy as np
import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
everyday = importlib.import_module("everyday")

FUNCTION_WORDS = (
    "a an the i my me we you your it its is are be been being was were do does did don't doesn't can can't "
    "could should would may must will won't what when where who whom which why how if in on at of to from for "
    "with and or not no that this these those there there's isn't i'm so as by any all have has had get gets "
    "got still am up out off about into than then after before because they them he she his her their our us "
    "very much many like now just always need"
)


@pytest.fixture(scope="module")
def questions():
    return everyday.read_everyday()


def content_words(text: str) -> set[str]:
    found = re.findall(r"[a-z0-9'\-]+", text.lower())
    return {re.sub(r"(ing|ed|es|s)$", "", word) for word in found if word not in FUNCTION_WORDS.split()}


def test_there_are_forty_short_passages_and_sixty_questions(questions):
    assert len(set(questions.passages)) == 40
    assert len({question for question, _ in questions.questions}) == 60
    assert all(25 <= len(passage.split()) <= 90 for passage in questions.passages)
    assert all(right and right <= set(range(40)) for _, right in questions.questions)
    assert set().union(*(right for _, right in questions.questions)) == set(range(40))


def test_most_questions_have_other_words_than_the_passage(questions):
    shared = [
        max(len(content_words(question) & content_words(questions.passages[number])) for number in right)
        for question, right in questions.questions
    ]
    assert sum(count <= 1 for count in shared) >= len(shared) / 2


def test_measures_are_those_of_the_ranks():
    assert everyday.ndcg([3, 1, 2], frozenset([1])) == pytest.approx(1 / np.log2(3))
    assert everyday.ndcg([1, 3, 2], frozenset([1, 2])) == pytest.approx((1 + 1 / np.log2(4)) / (1 + 1 / np.log2(3)))
    assert everyday.ndcg(range(12), frozenset([11])) == 0
    assert everyday.reciprocal_rank([3, 1, 2], frozenset([1, 2])) == 1 / 2


def test_bm25_ranks_all_passages_and_finds_shared_words():
    two = everyday.Everyday(("the cat sat on the mat", "stars shine at night"), (("shine stars", frozenset([1])),))
    assert everyday.orders_of(two, everyday.BM25) == [[1, 0]]
