"""The judge of signs recognises the truth and its opposite, counts what it says, and goes on where it was."""

import argparse
import importlib
import json
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies
from paths import ROOT
from tiny_bert import write_cross_encoder

from backlight.errors import InputError
from backlight.explain.words import word_spans

sys.path.insert(0, str(ROOT / "benchmarks"))
closer, query_sets, signs = map(importlib.import_module, ("closer", "query_sets", "signs"))

WORTH = {
    "tide": 3.0,
    "moon": 2.0,
    "sea": 1.0,
    "dry": -2.5,
    "land": -1.5,
    "wave": 0.5,
    "the": 0.0,
    "salt": 0.25,
    "is": -0.1,
}
TEXT = "the tide is dry and the moon pulls the wave of salt land sea"


@dataclass(frozen=True)
class Word:
    """A word of an explanation that may have been measured."""

    text: str
    start: int
    end: int
    value: float
    effect: float | None = None


class Known:
    """A reranker whose score is the sum of its words' worths; it explains by their worths times a factor."""

    def __init__(self, factor=1.0, measured=()):
        self.factor, self.measured, self.explained, self.scored = factor, measured, 0, 0

    def predict(self, pairs, activation):
        assert activation == "identity"
        self.scored += len(pairs)
        return np.array([sum(WORTH.get(word, 0.0) for text in pair for word in text.split()) for pair in pairs])

    def explain(self, query, document, **options):
        if options.get("method") == "none":
            raise InputError("this method must be tried elsewhere")
        self.explained += 1
        texts = [SimpleNamespace(words=self._words(text)) for text in (query, document)]
        return SimpleNamespace(query=texts[0], document=texts[1], passes=7, signed=True)

    def _words(self, text):
        found = []
        for start, end in word_spans(text):
            worth = WORTH.get(text[start:end], 0.0)
            effect = worth if text[start:end] in self.measured else None
            found.append(Word(text[start:end], start, end, self.factor * worth, effect))
        return found


def query(document=TEXT):
    return query_sets.Query("moon of the sea", (document, "dry land", "tide tide tide"))


def measured(reranker, methods=("default",), number=0, **options):
    return signs.measure_pair(reranker, query(), number, methods, np.random.default_rng(0), **options)


@pytest.mark.parametrize(("factor", "right"), [(1.0, 1.0), (0.01, 1.0), (-1.0, 0.0)])
def test_true_values_are_right_and_turned_ones_wrong(factor, right):
    found = [measured(Known(factor))["default"]]
    for side in ("document", "query"):
        row = signs.row_of(found, side, 0)
        assert row["signs"]["value"] == row["top"]["value"] == right
    assert signs.row_of(found, "document", 0)["order"]["value"] == pytest.approx(1.0 if right else -1.0)
    assert row["passes"] == 7


def test_what_is_true_is_what_the_text_loses():
    words = measured(Known(factor=5.0))["default"]["words"]
    assert len(words) == len(TEXT.split()) + 4
    assert all(word["true"] == pytest.approx(WORTH.get(word["text"], 0.0)) for word in words)


def test_a_word_counts_if_it_moves_the_score_by_more_than_2_percent_of_the_range():
    words = [
        {"side": "document", "rank": rank, "value": 1.0, "true": true} for rank, true in enumerate((-0.21, 0.19, 0.3))
    ]
    pair = {"range": 10.0, "words": [*words, {"side": "document", "rank": 5, "value": 1.0, "true": 9.0}]}
    assert signs.signs(pair, "document", 5) == (1, 2)
    assert signs.signs(pair, "document", 1) == (0, 1)
    assert signs.signs(pair, "query", 3) == (0, 0)


def test_measured_words_and_others_are_told_apart():
    mixed = measured(Known(measured=("tide", "moon", "sea", "dry", "land")))["default"]
    row = signs.row_of([mixed], "document", 0)
    assert row["measured"]["value"] == pytest.approx(1) and row["order"]["value"] == pytest.approx(1)
    alone = signs.row_of([measured(Known())["default"]], "document", 0)
    assert alone["measured"] is None and alone["order"] is not None


def test_strongest_words_that_were_measured_are_counted():
    words = [{"side": "document", "rank": rank, "effect": effect} for rank, effect in enumerate((1.0, None, 0.5, -2.0))]
    assert signs.known({"words": [*words, {"side": "document", "rank": 7, "effect": 1.0}]}, "document") == (3, 4)
    assert signs.known({"words": words}, "query") == (0, 0)


def test_as_many_words_are_drawn_as_requested_of_either_kind():
    words = Known(measured=("tide", "moon", "sea"))._words(TEXT)
    rows = signs.chosen_words("document", words, 2, np.random.default_rng(0).random(1000))
    drawn = [row for row in rows if row["drawn"]]
    assert sorted(row["effect"] is None for row in drawn) == [False, False, True, True]
    assert {row["rank"] for row in rows} >= {0, 1, 2, 3, 4}
    assert len(signs.chosen_words("document", words, 0, np.zeros(1000))) == len(words)


def test_a_text_of_one_word_is_left_alone():
    assert signs.chosen_words("query", [Word("tide", 0, 4, 1.0)], 5, np.zeros(9)) == []


def test_words_without_an_effect_attribute_are_not_measured():
    words = [SimpleNamespace(text="a", start=n, end=n + 1, value=1.0) for n in range(3)]
    assert all(row["effect"] is None for row in signs.chosen_words("query", words, 5, np.arange(9.0)))


def test_of_every_fourth_query_a_rival_is_explained():
    assert measured(Known())["default"]["score"] != measured(Known(), number=3)["default"]["score"]
    words = measured(Known(), number=3)["default"]["words"]
    assert [word["text"] for word in words if word["side"] == "document"] == ["dry", "land"]


def test_methods_share_what_is_true():
    first, second = Known(), Known()
    measured(first)
    measured(second, methods=("default", "saliency", "random"))
    assert first.scored == second.scored and second.explained == 3


def test_a_method_that_refuses_is_reported():
    found = measured(Known(), methods=("none", "default"))
    assert (
        found["none"] == {"failed": "InputError: this method must be tried elsewhere"} and "words" in found["default"]
    )


def test_pairs_that_failed_are_counted_in_the_row():
    found = {"failed": "InputError: this method must be tried elsewhere"}
    records = {"squad 0 none": measured(Known())["default"], "squad 1 none": found, "squad 2 none": found}
    given = argparse.Namespace(collection=["squad"], method=["none"], pairs=5, seed=0)
    assert [(row["text"], row["pairs"], row["failed"]) for row in signs.rows_of(records, given)] == [
        ("document", 1, 2),
        ("query", 1, 2),
    ]


def test_a_method_is_named_with_its_options():
    assert signs.method_of("default") == ({}, {})
    assert signs.method_of("smoothgrad:samples=4:noise=0.5") == (
        {"method": "smoothgrad"},
        {"samples": 4, "noise": 0.5},
    )
    assert signs.method_of("occlusion:by=drop") == ({"method": "occlusion"}, {"by": "drop"})


@pytest.mark.parametrize(
    ("text", "start", "end", "left"),
    [
        ("a red fox", 0, 1, "red fox"),
        ("a red fox", 2, 5, "a fox"),
        ("a red fox", 6, 9, "a red"),
        ("a (red) fox", 3, 6, "a () fox"),
        ("fox\n red  dog", 5, 8, "fox\n dog"),
        ("fox", 0, 3, ""),
    ],
)
def test_a_word_is_cut_out_with_the_space_that_is_doubled(text, start, end, left):
    assert signs.cut(text, start, end) == left


@given(strategies.lists(strategies.tuples(strategies.integers(-3, 3), strategies.integers(-3, 3)), min_size=2))
def test_the_correlation_is_pearsons_of_ranks(pairs):
    first, second = map(list, zip(*pairs))
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert signs.spearman(first, second) is None
    else:
        ranks = [[sum(b < a for b in some) + sum(b == a for b in some) / 2 for a in some] for some in (first, second)]
        assert signs.spearman(first, second) == pytest.approx(np.corrcoef(ranks)[0, 1])


def test_shares_are_of_all_words_and_intervals_are_of_pairs():
    found = signs.share([(1, 1), (0, 3), (4, 4)], 0)
    assert (found.value, found.count) == (5 / 8, 8) and found.low == 0 and found.high == 1
    assert signs.share([(0, 0)], 0) is None and signs.mean([None], 0) is None
    many = signs.share([(number % 2, 1) for number in range(400)], 0)
    assert many.low == pytest.approx(0.45, abs=0.02) and many.high == pytest.approx(0.55, abs=0.02)
    assert signs.mean([1.0, None, 3.0], 0).value == 2


def test_deletion_and_sufficiency_equal_their_definition():
    words, reranker = Known()._words(TEXT), Known()
    scores = signs.Scores(reranker)
    found = closer.closer("moon", words, TEXT, reranker.explain, scores, np.random.default_rng(0))
    assert found["lost"] == pytest.approx(3 + 2 + 1 + 0.5 + 0.25)
    assert found["missing"] == pytest.approx(sum(WORTH[word] for word in ("is", "dry", "land")))
    assert found["lost"] >= found["lost_random"] and found["missing"] <= found["missing_random"]
    assert closer.closer("moon", words[:5], TEXT, reranker.explain, scores, np.random.default_rng(0)) == {}


def test_a_typo_changes_two_letters_of_a_word_that_hardly_matters():
    words = [
        Word(text, start, start + len(text), value) for text, start, value in (("alpha", 0, 5.0), ("omega", 6, 0.1))
    ]
    many = words + [Word("x", 12 + 2 * n, 13 + 2 * n, 1.0) for n in range(9)]
    text = "alpha omega " + " ".join("x" * 9)
    changed = closer.with_typo(many, text, np.random.default_rng(0))
    assert changed == text.replace("omega", "oemga")
    assert closer.with_typo(many[:1], text, np.random.default_rng(0)) is None


def test_a_synonym_replaces_a_word_that_hardly_matters():
    words = [Word(f"w{n}", 3 * n, 3 * n + 2, 2.0) for n in range(5)] + [Word("big", 15, 18, 0.1)]
    assert closer.with_synonym(words, "w0 w1 w2 w3 w4 big", np.random.default_rng(0)) == "w0 w1 w2 w3 w4 large"
    assert closer.with_synonym(words[:5], "w0 w1 w2 w3 w4", np.random.default_rng(0)) is None
    assert not any(len(synonym.split()) > 1 for synonym in closer.SYNONYMS.values())


def test_the_same_strongest_words_are_counted_by_their_place():
    words = [Word("w", n, n + 1, float(10 - n)) for n in range(8)]
    turned = [Word("w", n, n + 1, float(n)) for n in range(8)]
    assert closer.same_strongest(words, words) == 1 and closer.same_strongest(words, turned) == 2 / 5


def test_passages_end_with_sentences():
    text = "One two three. Four five! Six? Seven eight nine ten."
    assert query_sets.passages_of(text, 4) == ["One two three. Four five!", "Six? Seven eight nine ten."]
    assert query_sets.passages_of("Short.", 4) == ["Short."]


@pytest.fixture
def data(tmp_path):
    """Return a folder with a collection as the shared data have it."""
    folder = tmp_path / "data" / "question_sentence"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    words = ("plants", "make", "food", "from", "sunlight", "water", "and", "air", "the", "leaf", "of", "green", "cell")
    for name, length in (("questions.txt", 4), ("sentences.txt", 9)):
        (folder / name).write_text("\n".join(" ".join(rng.choice(words, length)) for _ in range(30)))
    return folder.parent


def test_the_first_candidate_is_the_right_one_and_none_is_there_twice(data):
    lines = [
        (data / "question_sentence" / name).read_text().splitlines() for name in ("questions.txt", "sentences.txt")
    ]
    right = set(zip(*lines))
    found = query_sets.queries_of(data, "question_sentence", 10, 0)
    assert len(found) == 10 and all((one.text, one.candidates[0]) in right for one in found)
    assert all(len(set(one.candidates)) == len(one.candidates) == query_sets.CANDIDATES for one in found)
    assert found == query_sets.queries_of(data, "question_sentence", 10, 0)
    assert found != query_sets.queries_of(data, "question_sentence", 10, 1)


def test_a_run_goes_on_where_it_was_and_prints_its_tables(data, tmp_path, monkeypatch, capsys):
    write_cross_encoder(tmp_path / "model")
    kept, figures = tmp_path / "kept.jsonl", tmp_path / "figures.json"
    command = ["signs.py", str(data), "--model", str(tmp_path / "model"), "--collection", "question_sentence"]
    command += [
        "--method",
        "occlusion:by=drop",
        "random",
        "--records",
        str(kept),
        "--json",
        str(figures),
        "--closer",
        "2",
    ]
    monkeypatch.setattr(sys, "argv", [*command, "--pairs", "3"])
    signs.main()
    assert len(kept.read_text().splitlines()) == 1 + 2 * 3
    before = capsys.readouterr().out
    again = []
    monkeypatch.setattr(signs, "measure_pair", lambda *given, **more: again.append(given) or {})
    signs.main()
    assert capsys.readouterr().out == before and not again
    found = {(row["method"], row["text"]): row for row in json.loads(figures.read_text())["rows"]}
    assert len(found) == 4
    assert {row["failed"] for row in found.values()} == {0}
    truth = found["occlusion:by=drop", "document"]
    assert truth["signs"]["value"] == 1 and truth["order"]["value"] > 0.99 and truth["lost"]["count"] == 2
    assert "shares of the range" in before and "| random |" in before


def test_the_arguments_name_where_records_are_kept(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["signs.py", "data", "--model", "/some/model"])
    assert isinstance(found := signs._arguments(), argparse.Namespace)
    assert str(found.records) == "out/signs-model.jsonl" and found.method == ["default"]
