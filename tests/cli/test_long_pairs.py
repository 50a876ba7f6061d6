"""compare, matrix and what-if read long documents in windows; evaluate cuts them; all of them say so."""

import json
import re

import numpy as np
import pytest
from tiny_bert import cross_encoder

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.edits import Add
from backlight.models.pairs import DOCUMENT
from backlight.web import page_data

QUERY = "how do plants make food"
LONG = "a cell ! " * 60 + "plants make food . " + "a leaf ? " * 60
SHORT = "a leaf"


def best_of(reranker, text):
    return reranker.rank(QUERY, [text]).documents[0]


def test_a_comparison_is_of_the_best_window_of_each_document(reranker):
    found = reranker.compare(QUERY, LONG, SHORT, most=0)
    best = best_of(reranker, LONG)
    assert found.a.window == best.window and found.b.window is None
    assert found.score_a == pytest.approx(best.score, abs=1e-5)
    first, last = best.window.first_character, best.window.last_character
    assert all(first <= word.start < word.end <= last for word in found.a.document.words)
    cut = reranker.compare(QUERY, LONG, SHORT, most=0, windows=None)
    assert cut.a.window is None and cut.a.document.truncation.first_character == 0
    assert cut.score_a == pytest.approx(reranker.predict((QUERY, LONG), windows=None, activation="identity"), abs=1e-5)


def test_a_matrix_is_of_the_best_window(reranker):
    found = reranker.matrix(QUERY, LONG)
    best = best_of(reranker, LONG)
    assert found.window == best.window
    assert found.score == pytest.approx(best.score, abs=1e-5)
    assert found.truncation.tokens_left_out > 0
    assert reranker.matrix(QUERY, SHORT).window is None


def test_each_version_of_an_edited_document_is_read_in_windows(reranker):
    found = reranker.what_if(QUERY, LONG, [Add("green plants make food", place="start")], candidates=[SHORT], stride=5)
    for version in found.versions:
        scores = reranker.scorer.scores_of(reranker.scorer.windows(QUERY, version.document, 5))
        assert version.score == pytest.approx(scores.max(), abs=1e-5)
        assert version.window.number == 1 + int(scores.argmax())
    mean = reranker.what_if(QUERY, LONG, [Add("food")], windows="mean").before
    scores = reranker.scorer.scores_of(reranker.scorer.windows(QUERY, LONG))
    assert mean.score == pytest.approx(np.mean(scores), abs=1e-5)


def test_what_explains_one_pair_refuses_a_mean_of_windows(reranker):
    with pytest.raises(InputError, match="windows must be best or None, got mean"):
        reranker.compare(QUERY, LONG, SHORT, windows="mean")
    with pytest.raises(InputError, match="windows must be best or None, got mean"):
        reranker.matrix(QUERY, LONG, windows="mean")


COMMANDS = {
    "compare": (["compare", QUERY, LONG, SHORT, "--most", "2"], lambda data: data["a"]["window"]),
    "matrix": (["matrix", QUERY, LONG], lambda data: data["window"]),
    "what-if": (["what-if", QUERY, LONG, "--add", "food"], lambda data: data["versions"][0]["window"]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_say_which_window_they_read_and_where_they_cut(name, model, capsys):
    command, window_in = COMMANDS[name]
    command = [*command, "--model", model, "--max-windows", "4"]
    assert main([*command, "--json"]) == 0
    found = capsys.readouterr()
    window = window_in(json.loads(found.out))
    assert (window["read"], window["chosen_by"]) == (4, "BM25") and window["of"] > 4
    said = f"4 windows scored of {window['of']}, chosen by BM25"
    assert said in found.err and "was cut" not in found.err
    assert main(command) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    assert main([*command, "--windows", "none", "--json"]) == 0
    found = capsys.readouterr()
    assert window_in(json.loads(found.out)) is None
    assert "was cut at character" in found.err and "after it were not read" in found.err


def test_a_query_that_is_cut_is_said(model, capsys):
    assert main(["rank", "plants " * 60, "green plants make food", "--model", str(model)]) == 0
    assert re.search(r"the query was cut at character \d+: \d+ tokens after it were not read", capsys.readouterr().err)


def test_the_page_of_a_comparison_has_the_part_around_the_window(model, monkeypatch, tmp_path):
    monkeypatch.setattr(page_data, "CARRIED", 100)
    monkeypatch.setattr(page_data, "AROUND", 10)
    page = tmp_path / "page.html"
    assert main(["compare", QUERY, LONG, SHORT, "--model", model, "--html", str(page)]) == 0
    (made,) = json.loads(page.read_text(encoding="utf-8").split('type="application/json">')[1].split("</script>")[0])[
        "comparisons"
    ]
    side = made["a"]
    first, last = side["window"]["first_character"], side["window"]["last_character"]
    assert side["text"] == LONG[max(0, first - 10) : last + 10]
    assert side["text"][slice(*side["read"])] == LONG[first:last]
    words = [side["text"][start:end] for start, end, *_ in side["words"]]
    assert words == [word for word in LONG[first:last].split() if word]
    if made["swap"] and made["swap"]["side"] == "a":
        assert set(made["swap"]["words"]) <= {start for start, *_ in side["words"]}


@pytest.mark.parametrize("quick", [False, True])
def test_evaluate_says_how_many_documents_it_cuts(quick, model, capsys, tmp_path):
    data = tmp_path / "data.jsonl"
    rows = [{"query": QUERY, "document": text} for text in (LONG, SHORT)]
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    more = ["--quick", "--seconds", "5"] if quick else ["--close", "1", "--records", str(tmp_path / "records.jsonl")]
    assert main(["evaluate", str(data), "--model", model, "--methods", "saliency", "--json", *more]) == 0
    found = capsys.readouterr()
    cut = json.loads(found.out)["cut"]
    (pair,) = cross_encoder().read([(QUERY, LONG)])
    assert cut == {"documents": 2, "cut": 1, "max_tokens": 32, "most_left_out": pair.left_out[DOCUMENT]}
    assert "1 of 2 documents is cut at the 32 tokens that the model reads" in found.err
