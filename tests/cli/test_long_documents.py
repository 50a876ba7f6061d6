"""Long documents on the page and in data, what a comparison of one text says, and which measures pairs allow."""

import json

import pytest
from tiny_bert import cross_encoder, write_cross_encoder

from backlight.cli.main import main
from backlight.explain.ranking import rank_and_explain
from backlight.web import page_data
from backlight.web.page_data import PageData, excerpt_of
from backlight.web.report import report

QUERY = "how do plants make food"
LONG = "a cell ! " * 60 + "plants make food . " + "a leaf ? " * 60


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_cross_encoder(tmp_path_factory.mktemp("reranker")))


def island_of(page: str) -> dict:
    return json.loads(page.split('type="application/json">')[1].split("</script>")[0])


def words_in(data: dict) -> list[str]:
    (made,) = data["explanations"].values()
    return [data["text"][start:end] for start, end, *_ in made["document"]]


def test_a_page_has_an_excerpt_of_a_long_document_whose_places_are_its_own(monkeypatch):
    ranking = rank_and_explain(cross_encoder(), QUERY, [LONG, "plants make food"], method="gradient-x-input")
    (whole,) = [one for one in island_of(report(PageData([ranking]), "1"))["documents"] if one["window"]]
    assert (whole["from"], whole["length"], whole["text"]) == (0, len(LONG), LONG)
    monkeypatch.setattr(page_data, "CARRIED", 200)
    monkeypatch.setattr(page_data, "AROUND", 20)
    (part,) = [one for one in island_of(report(PageData([ranking]), "1"))["documents"] if one["window"]]
    assert part["window"] == whole["window"]
    first, last = part["window"]["first_character"], part["window"]["last_character"]
    assert part["text"] == LONG[max(0, first - 20) : last + 20]
    assert (part["from"], part["length"]) == (max(0, first - 20), len(LONG))
    assert words_in(part) == words_in(whole) != []
    assert part["text"][slice(*part["read"])] == whole["text"][slice(*whole["read"])] == LONG[first:last]


def test_a_long_document_that_is_not_explained_has_its_window_on_the_page(monkeypatch):
    monkeypatch.setattr(page_data, "CARRIED", 200)
    monkeypatch.setattr(page_data, "AROUND", 20)
    (ranked,) = rank_and_explain(cross_encoder(), QUERY, [LONG], top=0).documents
    window = ranked.window
    assert excerpt_of(ranked, [0, len(LONG)]) == (
        max(0, window.first_character - 20),
        min(len(LONG), window.last_character + 20),
    )


def test_data_names_the_window_by_default_and_none_where_none_was_asked_for(model, capsys):
    for options, expected in ([], True), (["--windows", "none"], False):
        assert main(["rank", QUERY, LONG, "--model", model, "--json", *options]) == 0
        (result,) = json.loads(capsys.readouterr().out)["results"]
        assert (result["window"] is not None) == expected
        if expected:
            assert result["window"]["of"] > 4
            assert result["window"]["effects_of"] == "window", "of the best window alone"
            first, last = result["window"]["first_character"], result["window"]["last_character"]
            assert (result["truncation"]["first_character"], result["truncation"]["characters_read"]) == (first, last)
    assert main(["rank", QUERY, LONG, "--model", model, "--windows", "all"]) == 2
    assert "--windows" in capsys.readouterr().err


def test_a_comparison_of_identical_texts_says_so(model, capsys, tmp_path):
    page = tmp_path / "page.html"
    command = ["compare", QUERY, "plants make food", "plants make food", "--model", model]
    assert main([*command, "--html", str(page)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "A and B are identical texts" in out
    assert "change places" not in out
    assert island_of(page.read_text(encoding="utf-8"))["comparisons"][0]["identical"] is True
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["identical"] is True
    assert main(["compare", QUERY, "plants make food", "a leaf", "--model", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["identical"] is False


@pytest.mark.parametrize("candidates", [False, True])
def test_evaluate_leaves_out_measures_that_pairs_without_candidates_cannot_have(candidates, model, capsys, tmp_path):
    texts = ["plants make food", "a green leaf", "water and air"]
    rows = [{"query": f"{QUERY} {place}", "candidates": texts, "labels": [1, 0, 0]} for place in range(2)]
    if not candidates:
        rows = [{"query": row["query"], "document": texts[0]} for row in rows]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    command = ["evaluate", str(data), "--model", model, "--methods", "saliency", "--close", "1"]
    records = str(tmp_path / "records.jsonl")
    assert main([*command, "--records", records, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    means = {name for row in found["rows"] for name in row["means"]}
    ranked = {"ranks_lost", "ndcg_lost"}
    assert ranked & set(found["measures"]) == ranked & means == (ranked if candidates else set())
    assert set(found["measures"]) == means | {"behind"}
    assert main([*command, "--records", records, "--resume", "--markdown"]) == 0
    assert ("ranks lost" in capsys.readouterr().out) == candidates
