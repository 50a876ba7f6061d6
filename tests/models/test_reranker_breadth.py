"""The last stages of the built-in reranker: the teacher, the mean of two runs, and the cosine beside it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from paths import ROOT  # noqa: F401 - puts the examples on the path
from reranker_data import PLACES
from tiny_bert import write_bert

from backlight.errors import InputError
from backlight.models.checkpoint import find_model, read_weights
from backlight.models.pairs import PairBatch
from backlight.models.ranker import load_ranker
from backlight.training.reranker.model import scores_of, starting_model
from reranker.breadth import Breadth, answer_threshold, train_breadth, write_rows
from reranker.fusion import Fusion, fuse
from reranker.package import write_card, write_package
from reranker_sources.teacher import split, taught

SECTION = {"about": "6 questions", "lines": ["| BM25 | 0.9 |"]}
SMALL = Breadth(epochs=0.3, negatives=2, looks=1, looked_at=4, candidates=4, held_out=0.2, fewest=2)


def row(query, positive, negatives, kinds, domain="letters"):
    return {"query": query, "positive": positive, "negatives": negatives, "kinds": kinds, "domain": domain}


def same(texts):
    """Embed all texts alike, so that words in common decide."""
    return np.ones((len(texts), 1), np.float32)


@pytest.fixture(scope="module")
def rows():
    return [
        row(
            f"what is {letter} {place}",
            f"the {letter} {place} is a {letter} of {place}",
            [f"what is {letter} {place}", f"the {place} of {other}", f"a cell makes {other}"],
            ["echo", "bm25", "random"],
            domain,
        )
        for domain, letters in (("first", "abc"), ("second", "defg"))
        for letter, other in zip(letters, letters[1:] + letters[0])
        for place in PLACES
    ]


def test_the_teacher_puts_the_right_passage_first_and_says_nothing_of_traps(rows):
    for one in taught(rows, same):
        right, echo, *others = one["teacher"]
        assert echo is None
        assert right >= max(others) + 1
        assert (
            others[0] > others[1] == pytest.approx(20, abs=3)
        )  # the cosine of all is 1, and BM25 adds words in common


def test_the_teacher_of_a_query_that_nothing_answers_orders_the_wrong_passages(rows):
    (one,) = taught([{**rows[0], "positive": None}], same)
    assert one["teacher"][:2] == [None, None] and len(one["teacher"]) == 4


def test_the_teacher_adds_the_cosine_over_its_temperature():
    axes = {"north": (1.0, 0.0), "south": (-1.0, 0.0), "east": (0.0, 1.0)}
    rows = [row("north", "east", ["south"], ["random"])]
    (one,) = taught(rows, lambda texts: np.array([axes[text] for text in texts], np.float32))
    assert one["teacher"] == [0.0, -20.0]


def test_rows_are_split_by_domain_and_queries_of_the_same_words_stay_together(rows):
    twice = rows + [{**rows[0], "query": " ".join(reversed(rows[0]["query"].upper().split()))}]
    training, validation = split(twice, 0.1, 3, seed=1)
    assert len(training) + len(validation) == len(twice)
    assert {one["domain"] for one in validation} == {"first", "second"}
    words = [{frozenset(one["query"].casefold().split()) for one in part} for part in (training, validation)]
    assert not words[0] & words[1]
    assert split(twice, 0.1, 3, seed=1) == (training, validation) != split(twice, 0.1, 3, seed=2)


def test_the_threshold_lies_between_what_answers_and_what_does_not():
    probabilities = np.array([0.8, 0.1, 0.2, 0.7, 0.3, 0.3, 0.4, 0.9])
    labels, units = np.array([1.0, 0, 0, 1, 0, 0, 0, 0]), np.array([0, 0, 0, 1, 1, 1, 2, 2])  # the last is unanswered
    found = answer_threshold(probabilities, labels, units)
    assert 0.3 < found["probability"] <= 0.7
    assert (found["found"], found["refused"]) == (1.0, 1.0)


def test_a_domain_that_is_left_out_is_in_neither_part(rows, tmp_path):
    pairs, files = tmp_path / "pairs.jsonl", (tmp_path / "training.jsonl", tmp_path / "validation.jsonl")
    pairs.write_text("".join(json.dumps(one) + "\n" for one in rows))
    bert = str(write_bert(tmp_path / "bert"))
    write_rows(pairs, files, replace(SMALL, teacher=bert, left_out=("first",)))
    read = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(read) == sum(one["domain"] == "second" for one in rows)
    assert {one["domain"] for one in read} == {"second"}
    with pytest.raises(InputError, match="third: it has first, second"):
        write_rows(pairs, files, replace(SMALL, teacher=bert, left_out=("third",)))


@pytest.fixture(scope="module")
def trained(rows, tmp_path_factory):
    """Return the folder of a third stage, and the bi-encoder that it began with."""
    tmp_path = tmp_path_factory.mktemp("breadth")
    bert = write_bert(tmp_path / "bert")
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "out"
    pairs.write_text("".join(json.dumps(one) + "\n" for one in rows))
    source = {"name": "alphabet", "domain": "first", "licence": "public domain", "rows": 24}
    (tmp_path / "pairs.manifest.json").write_text(json.dumps({"sources": [source]}))
    train_breadth(pairs, str(bert), out, replace(SMALL, teacher=str(bert)), False, lambda line: None)
    return out, bert


def test_the_model_is_the_calibrated_mean_of_two_runs(trained, rows):
    out, bert = trained
    pairs, stage, model = out.parent / "pairs.jsonl", replace(SMALL, teacher=str(bert)), out / "model"
    runs = [starting_model(out / f"run-{seed}") for seed in stage.seeds]
    found, (one, other) = starting_model(model).copied(), (run.copied() for run in runs)
    last = runs[0].last_layer
    for name in found:
        if not name.startswith(last):
            mean = (one[name] + other[name]) / 2
            np.testing.assert_allclose(found[name], mean, rtol=1e-5, atol=1e-7)
            assert not np.array_equal(one[name], other[name])
    figures = json.loads((out / "figures.json").read_text())
    scale = figures["calibration"]["platt"]["scale"]
    mean = (one[f"{last}.weight"] + other[f"{last}.weight"]) / 2
    np.testing.assert_allclose(found[f"{last}.weight"], scale * mean, rtol=1e-4)
    assert {*figures["validation"]} == {"all", "first", "second"} and len(figures["runs"]) == 2
    asked = [(one["query"], one["positive"]) for one in rows[:3]]
    before = scores_of(load_ranker(model), asked)
    again = train_breadth(pairs, str(bert), out, stage, True, lambda line: None)
    np.testing.assert_array_equal(scores_of(load_ranker(again), asked), before)
    with pytest.raises(InputError, match="--resume"):
        train_breadth(pairs, str(bert), out, stage, False, lambda line: None)


def test_the_third_stage_and_a_cosine_become_a_package(trained, rows, tmp_path):
    breadth, bert = trained
    out, package = tmp_path / "fused", tmp_path / "package"
    model = fuse(breadth, out, Fusion(str(bert), cosine_weight=2.0))
    asked = [(one["query"], one["positive"]) for one in rows[:3]]
    cross, similar = load_ranker(breadth / "model"), load_ranker(bert)
    logits, cosines = (scores_of(one, asked) for one in (cross, similar))
    plain = load_ranker(out / "start")
    words = plain.encoder.parameters()["embeddings.word_embeddings.weight"].numpy()
    np.testing.assert_array_equal(words, read_weights(bert)["embeddings.word_embeddings.weight"])
    parts = plain.parts_of(PairBatch.of(plain.read(asked)))
    np.testing.assert_allclose(parts[1], 2 * cosines / (1 + np.exp(-(parts[0] + 6) / 0.7)), rtol=1e-4)
    np.testing.assert_allclose(parts[0], logits, atol=1.0)  # with the bi-encoder's words
    figures = json.loads((out / "figures.json").read_text())
    scale, offset = (figures["calibration"]["platt"][name] for name in ("scale", "offset"))
    before = scores_of(load_ranker(model), asked)
    np.testing.assert_allclose(before, scale * sum(parts) + offset, rtol=1e-4, atol=1e-4)
    measured = tmp_path / "measured.json"
    collection = {"collection": "maps", "queries": 6, "reliability": [[0.2, 0.3, 7]]}
    measured.write_text(json.dumps({"sections": [SECTION], "collections": [collection]}))
    write_package(find_model("builtin"), breadth, out, package, [measured])
    held_out = json.loads((package / "held_out.json").read_text())
    assert held_out == json.loads((find_model("builtin") / "held_out.json").read_text())
    card = (package / "README.md").read_text()
    assert "6 questions.\n\n| BM25 | 0.9 |" in card and "$" not in card
    assert "| alphabet | first | public domain | 24 |" in card and "| all |" in card
    assert "(reliability.svg)" in card and "said 20%, right 30%: 7 pairs" in (package / "reliability.svg").read_text()
    write_card(package, [])
    assert "Not measured yet." in (package / "README.md").read_text()
    assert (package / "curves.svg").read_text().startswith("<svg ")
    np.testing.assert_allclose(scores_of(load_ranker(package), asked), before, atol=0.2)
    with pytest.raises(InputError, match="once it has ended"):
        write_package(find_model("builtin"), tmp_path / "nothing", out, package)
