"""Of a long list candidates are reranked, the others follow without a score, and every output says so."""

import json
import re

import numpy as np
import pytest
from tiny_bert import cross_encoder, write_bert, write_cross_encoder
from tiny_fused import write_fused

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.models.retrieval.index import RERANKED_WHOLE, Retrieval, build_index
from backlight.web.page_data import PageData
from backlight.web.pictures import ranking_svg
from backlight.web.report import report

QUERY = "how do plants make food"
DOCUMENTS = [
    "a leaf of a cell",
    "plants make food",
    "unlike cells",
    "food from water and air",
    "a green leaf",
    "plants",
]
SHARING = {1, 3, 5}  # what has a word of the query


@pytest.fixture
def reranker():
    return Reranker(cross_encoder())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    for number, text in enumerate(DOCUMENTS):
        (folder / f"{number}.txt").write_text(text)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_cross_encoder(tmp_path_factory.mktemp("reranker")))


def written(drawn: str) -> str:
    """Return the text of a picture, without spaces: its words stand apart."""
    return re.sub(r"<[^>]*>|\s", "", drawn)


def test_candidates_are_reranked_and_the_others_follow_in_the_retrievers_order(reranker):
    whole = reranker.rank(QUERY, DOCUMENTS)
    ranking = reranker.rank(QUERY, DOCUMENTS, candidates=3)
    assert ranking.retrieval == Retrieval("BM25", 3, 6)
    assert [one.index for one in ranking.documents] == [one.index for one in whole.documents if one.index in SHARING]
    scores = {one.index: one.score for one in whole.documents}
    np.testing.assert_allclose(
        [one.score for one in ranking.documents], [scores[one.index] for one in ranking.documents]
    )
    order = build_index(DOCUMENTS).order(QUERY)
    assert [one.index for one in ranking.not_reranked] == order[3:]
    assert [one.rank for one in (*ranking.documents, *ranking.not_reranked)] == [1, 2, 3, 4, 5, 6]
    assert all(one.text == DOCUMENTS[one.index] for one in (*ranking.documents, *ranking.not_reranked))
    assert ranking.not_reranked[0].name == f"document {order[3] + 1}"


def test_a_short_list_is_reranked_whole(reranker):
    for options in ({}, {"candidates": 6}, {"candidates": 60}, {"retriever": "bm25"}):
        ranking = reranker.rank(QUERY, DOCUMENTS, **options)
        assert (len(ranking.documents), ranking.retrieval, ranking.not_reranked) == (6, None, ())


def test_a_long_list_is_not_reranked_whole_unless_that_is_said(reranker):
    documents = [f"{DOCUMENTS[number % 6]} {number}" for number in range(RERANKED_WHOLE + 1)]
    ranking = reranker.rank(QUERY, documents)
    assert (len(ranking.documents), len(ranking.not_reranked)) == (100, RERANKED_WHOLE - 99)
    assert {one.index for one in (*ranking.documents, *ranking.not_reranked)} == set(range(len(documents)))
    assert {one.index % 6 for one in ranking.documents} <= SHARING
    whole = reranker.rank(QUERY, documents, retriever="none")
    assert (len(whole.documents), whole.retrieval) == (len(documents), None)


def test_top_k_counts_the_documents_that_were_not_reranked(reranker):
    for top_k, expected in ((2, (2, 0)), (3, (3, 0)), (5, (3, 2)), (50, (3, 3))):
        ranking = reranker.rank(QUERY, DOCUMENTS, top_k, candidates=3)
        assert (len(ranking.documents), len(ranking.not_reranked)) == expected


def test_candidates_are_explained_as_in_a_list_of_their_own(reranker):
    chosen = sorted(SHARING)
    alone = reranker.rank(QUERY, [DOCUMENTS[i] for i in chosen], explain=2, method="occlusion")
    ranking = reranker.rank(QUERY, DOCUMENTS, candidates=3, explain=2, method="occlusion")
    assert [one.attribution for one in ranking.documents] == [one.attribution for one in alone.documents]


def test_an_index_is_used_for_several_queries(reranker):
    index = build_index(DOCUMENTS)
    for query in (QUERY, "a green leaf"):
        ranking = reranker.rank(query, DOCUMENTS, candidates=2, retriever=index)
        assert ranking == reranker.rank(query, DOCUMENTS, candidates=2)
    with pytest.raises(InputError, match="must be an index of the documents that are ranked, got one of others"):
        reranker.rank(QUERY, DOCUMENTS[:5], candidates=2, retriever=index)


def test_a_models_own_bi_encoder_is_used(tmp_path):
    write_cross_encoder(tmp_path / "mine")
    write_bert(tmp_path / "mine" / "retriever")
    ranking = Reranker.from_pretrained(tmp_path / "mine").rank(QUERY, DOCUMENTS, candidates=2)
    assert ranking.retrieval.retriever.startswith("BM25 and the cosine of ")


def test_a_fused_model_is_not_loaded_again_to_find_candidates(tmp_path, monkeypatch):
    reranker = Reranker.from_pretrained(write_fused(tmp_path / "fused"))
    by_name = reranker.rank(QUERY, DOCUMENTS, candidates=2, retriever=reranker.retriever)
    monkeypatch.setattr("backlight.models.retrieval.index.load_ranker", None)
    itself = reranker.rank(QUERY, DOCUMENTS, candidates=2)
    assert [one.index for one in itself.documents] == [one.index for one in by_name.documents]
    assert itself.retrieval.retriever.startswith("BM25 and the cosine of ")


def test_mistakes_are_refused_even_where_the_list_is_short(reranker, model):
    with pytest.raises(InputError, match="got the cross-encoder"):
        reranker.rank(QUERY, DOCUMENTS, retriever=model)
    with pytest.raises(InputError, match="candidates must be 1 or more, got 0"):
        reranker.rank(QUERY, DOCUMENTS, candidates=0)
    with pytest.raises(InputError, match="the query must not be empty"):
        reranker.rank(" ", DOCUMENTS, candidates=2)


def test_rows_have_no_score_for_what_was_not_reranked(reranker):
    rows = reranker.rank(QUERY, DOCUMENTS, candidates=2).rows()
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["score"] is None for row in rows] == [False] * 2 + [True] * 4
    assert len({frozenset(row) for row in rows}) == 1  # the same columns


def test_page_picture_and_notebook_name_the_retriever(reranker):
    ranking = reranker.rank(QUERY, DOCUMENTS, candidates=2, explain=1)
    line = "the 2 best of 6 documents by BM25; the others were not reranked"
    page = report(PageData([ranking]), "1")
    island = json.loads(re.search(r'type="application/json">(.*?)</script>', page, re.DOTALL)[1])
    assert island["candidates"] == {"line": line, "retriever": "BM25", "others": 4}
    assert island["notReranked"] == [[one.rank, one.name] for one in ranking.not_reranked]
    assert "Not reranked: 4 documents, in the order of BM25" in page  # without JavaScript
    assert line.replace(" ", "") in written(ranking_svg(ranking))
    assert line in ranking._repr_html_()
    whole = reranker.rank(QUERY, DOCUMENTS, explain=1)
    assert "notreranked" not in written(ranking_svg(whole) + whole._repr_html_())


def test_the_command_prints_what_was_not_reranked(folder, model, capsys):
    assert main(["rank", QUERY, str(folder), "--model", model, "--candidates", "2"]) == 0
    shown = capsys.readouterr().out
    assert "the 2 best of 6 documents by BM25; the others were not reranked" in shown
    *_, rest = shown.partition("not reranked, in the order of BM25\n")
    assert [line.split()[0] for line in rest.strip().splitlines()] == ["3", "4", "5", "6"]


def test_the_command_gives_json_of_both(folder, model, capsys):
    assert main(["rank", QUERY, str(folder), "--model", model, "--candidates", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["meta"]["retrieval"] == {"retriever": "BM25", "candidates": 3, "documents": 6}
    assert {one["index"] for one in found["results"]} == SHARING
    assert [one["rank"] for one in found["not_reranked"]] == [4, 5, 6]
    assert {one["index"] for one in found["not_reranked"]} == set(range(6)) - SHARING
    assert main(["explain", QUERY, str(folder), "--model", model, "--candidates", "3", "--top", "1", "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["retrieval"]["candidates"] == 3
    assert len(explained["not_reranked"]) == 3


def test_the_command_keeps_embeddings(folder, model, tmp_path, capsys):
    own = str(write_bert(tmp_path / "bi-encoder"))
    asked = ["rank", QUERY, str(folder), "--model", model, "--candidates", "3", "--retriever", own]
    outputs = []
    for more in ([], ["--cache", str(tmp_path / "cache")], ["--cache", str(tmp_path / "cache")]):
        assert main([*asked, *more, "--json"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]
    assert len(list((tmp_path / "cache").iterdir())) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--candidates", "0"], "must be a number, 1 or more, got 0"),
        (["--retriever", "nowhere"], "got nowhere: there is no model folder"),
        (["--cache", "somewhere"], "a cache must come with a retriever that is a bi-encoder, got bm25"),
        (["--retriever", "none", "--candidates", "2"], "candidates must come with a retriever"),
    ],
)
def test_the_command_refuses_mistakes_in_one_line(folder, model, capsys, options, message):
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(["rank", QUERY, str(folder), "--model", model, *options]))
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in said
    assert said.count("\n") == 1
