"""Explanations in a notebook and as tables: nothing loaded, nothing of a text read as HTML, all values there."""

import re
from dataclasses import replace

import pyarrow
import pytest
from hostile_texts import EVIL
from tiny_bert import cross_encoder

from backlight.errors import InputError
from backlight.explain.presentation import tables
from backlight.explain.ranking import rank_and_explain
from backlight.explain.reranker import Reranker

QUERY = "how do plants make food"
DOCUMENTS = ["plants make food from sunlight", "the leaf of a green cell", f"air {EVIL}"]


@pytest.fixture(scope="module")
def ranking():
    return rank_and_explain(cross_encoder(), QUERY, DOCUMENTS, method="gradient-x-input", top=2, check=False)


def attribution(**options):
    options = {"method": "gradient-x-input", "check": False, **options}
    return rank_and_explain(cross_encoder(), QUERY, DOCUMENTS[:1], **options).documents[0].attribution


def check_safe(source):
    assert not re.findall(r"<script|<style|<link|<img|https?:|url\(|\bon\w+=", source)
    opened, closed = re.findall(r"<(\w+)[ >]", source), re.findall(r"</(\w+)>", source)
    assert sorted(opened) == sorted(closed)


def test_an_attribution_shows_its_words_score_and_account():
    found = attribution()
    source = found._repr_html_()
    check_safe(source)
    for word in (*found.query.words, *found.document.words):
        assert f">{word.text}</span>" in source
    assert f"{found.score:.3g}".replace("-", "\N{MINUS SIGN}") in source
    assert "gradient-x-input" in source
    assert "no baseline" in source
    assert "[CLS]" in source


def test_the_sign_of_a_word_is_in_its_line_and_its_colour():
    source = attribution()._repr_html_()
    assert re.search(r"rgba\(245,165,36,0\.60?\)|rgba\(79,142,240,0\.60?\)", source)
    assert "dotted rgb(79,142,240)" in source
    assert "solid rgb(245,165,36)" in source


def test_the_error_of_an_estimate_is_told():
    assert " ± 0" in attribution(method="shapley", budget=60)._repr_html_()


def test_a_ranking_shows_each_document_with_both_scores(ranking):
    source = ranking._repr_html_()
    check_safe(source)
    assert source.count("<tr>") == 3
    for ranked in ranking.documents:
        logit = f"{ranked.score:.3f}".replace("-", "\N{MINUS SIGN}")
        assert f"{ranked.activated:.3f} (logit {logit})" in source
    assert "probability (sigmoid of the logit)" in source
    assert source.count("Not measured: ") == 2, "check=False, of the two that were explained"
    assert f"(for {ranking.documents[0].name})" in source
    assert "&lt;script&gt;" in source


def test_the_check_is_said_and_failed_colours_are_hatched():
    found = attribution(method="random", check=True)
    found = replace(found, check=replace(found.check, verdict="fails"))
    source = found._repr_html_()
    check_safe(source)
    assert "do not believe these colours" in source
    assert "use method=&quot;leave-one-out&quot;" in source
    assert "repeating-linear-gradient" in source
    assert not re.search(r"background:rgba\((245|79)", source)


def test_estimated_words_are_paler_and_labelled():
    found = attribution(method="leave-one-out", words=2, check=False)
    source = found._repr_html_()
    check_safe(source)
    assert "paler: estimated, not measured" in source
    word = next(word for word in found.document.words if word.effect != word.value)
    assert "(estimated, not measured)" in re.search(rf'<span title="([^"]*)"[^>]*>{word.text}</span>', source)[1]
    assert "(measured: " in source
    assert "estimated" not in attribution(method="leave-one-out", words=200)._repr_html_()


def test_a_repr_is_one_short_line(ranking):
    assert repr(ranking).startswith("Ranking(3 documents for 'how do plants make food' by tiny, the best document ")
    made = ranking.documents[0].attribution
    assert repr(made).startswith(f"Attribution(gradient-x-input of {made.score:.4g}: ")
    assert len(repr(made)) < 160


def test_rows_hold_every_word():
    found = attribution(method="shapley", budget=60)
    rows = found.rows()
    assert [row["word"] for row in rows if row["text"] == "query"] == QUERY.split()
    assert sum(row["value"] for row in rows) == pytest.approx(
        sum(word.value for text in (found.query, found.document) for word in text.words)
    )
    assert all(row["error"] >= 0 for row in rows)


def test_pandas_and_arrow_hold_the_same_rows(ranking):
    frame, table = ranking.to_pandas(), ranking.to_arrow()
    assert isinstance(table, pyarrow.Table)
    assert list(frame.columns) == table.column_names == list(ranking.rows()[0])
    assert frame["score"].tolist() == table["score"].to_pylist() == [one.score for one in ranking.documents]
    assert [len(words) for words in frame["strongest"]] == [5, 5, 0]


def test_a_missing_library_is_named(ranking, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(tables, "import_unforked", missing)
    for method, name in ((ranking.to_pandas, "pandas"), (ranking.to_arrow, "pyarrow")):
        with pytest.raises(InputError, match=f'needs the {name} library: pip install "backlight\\[tables\\]"'):
            method()


def test_a_matrix_and_a_comparison_show_themselves():
    reranker = Reranker(cross_encoder())
    found = reranker.matrix(QUERY, DOCUMENTS[1])
    check_safe(found._repr_html_())
    assert found._repr_html_().count("<td title=") == len(found.query) * len(found.document)
    assert repr(found).startswith("Interactions(joint-occlusion of ")
    rows = found.rows()
    assert [row["value"] for row in rows] == [value for row in found.values for value in row]
    assert set(found.to_pandas().columns) == {"query", "query_start", "document", "document_start", "value"}
    found = reranker.compare(QUERY, DOCUMENTS[0], DOCUMENTS[2], names=("one", EVIL))
    source = found._repr_html_()
    check_safe(source)
    assert "orange speaks for A" in source
    assert repr(found).endswith("by leave-one-out)")
    assert {row["text"] for row in found.rows()} == {"query", "a", "b"}
