"""Tables of pairs in other libraries' pipelines: the same rows, a fixed schema, the scores of the model."""

import pickle

import numpy as np
import pandas
import pyarrow
import pytest
from batch_inputs import many
from tiny_bert import write_cross_encoder

from backlight.errors import InputError, InputTypeError
from backlight.explain.batch import Columns, Settings
from backlight.explain.batch.tables import PYTERRIER, PyTerrierReranker, TableExplainer, explain_batch, explained_schema
from backlight.explain.reranker import Reranker

SETTINGS = Settings(options={"words": 2})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_cross_encoder(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def table():
    rows = [{"number": n, **row, "label": n % 2} for n, row in enumerate(many(12))]
    rows[5]["document"] = " "
    return pyarrow.Table.from_pylist(rows)


@pytest.fixture(scope="module")
def scores(model, table):
    pairs = [(row["query"], row["document"]) for row in table.to_pylist() if row["document"] != " "]
    found = iter(Reranker.from_pretrained(model).predict(pairs, activation="identity"))
    return [None if row["document"] == " " else float(next(found)) for row in table.to_pylist()]


def test_an_arrow_table_keeps_its_rows_and_columns_and_gets_scores_and_words(model, table, scores):
    found = explain_batch(table, model, SETTINGS)
    assert found.column_names == ["number", *explained_schema(SETTINGS).names]
    assert pyarrow.schema(list(found.schema)[1:]) == explained_schema(SETTINGS)
    assert found.column("number").to_pylist() == list(range(12))
    for row, given, score in zip(found.to_pylist(), table.to_pylist(), scores, strict=True):
        if score is None:
            assert (row["score"], row["problem"]) == (None, "document must not be empty")
            continue
        assert row["score"] == pytest.approx(score, abs=1e-5) and row["problem"] is None
        assert (row["query"], row["document"], row["label"]) == (given["query"], given["document"], given["label"])
        assert all(row["document"][word["start"] : word["end"]] == word["text"] for word in row["document_words"])


def test_every_kind_of_table_comes_back_as_its_kind_with_the_same_values(model, table):
    expected = explain_batch(table, model, SETTINGS).to_pylist()
    (batch,) = table.to_batches()
    assert isinstance(found := explain_batch(batch, model, SETTINGS), pyarrow.RecordBatch)
    assert found.to_pylist() == expected
    columns = explain_batch(table.to_pydict(), model, SETTINGS)
    assert [dict(zip(columns, row)) for row in zip(*columns.values())] == expected
    frame = explain_batch(table.to_pandas(), model, SETTINGS)
    assert isinstance(frame, pandas.DataFrame)
    assert np.array_equal(frame["score"], [row["score"] or np.nan for row in expected], equal_nan=True)
    assert frame["query_words"][0].tolist() == expected[0]["query_words"]


def test_an_empty_table_has_the_same_schema(model, table):
    found = explain_batch(table.slice(0, 0), model, SETTINGS)
    assert found.num_rows == 0 and found.schema == explain_batch(table, model, SETTINGS).schema


def test_polars_frames_come_back_as_polars_frames(model, table):
    polars = pytest.importorskip("polars", reason="Polars is not installed here")
    found = explain_batch(polars.from_arrow(table), model, SETTINGS)
    assert isinstance(found, polars.DataFrame)
    assert found["score"].to_list() == explain_batch(table, model, SETTINGS).column("score").to_pylist()


def test_a_dataset_is_mapped_in_batches(model, table):
    datasets = pytest.importorskip("datasets", reason="Hugging Face's datasets is not installed here")
    explainer = TableExplainer(model, SETTINGS)
    given = datasets.Dataset(table)
    found = given.with_format("arrow").map(explainer, batched=True, batch_size=4)
    assert found.with_format(None)["number"][:] == list(range(12))
    assert [row["problem"] is None for row in found.with_format(None)] == [n != 5 for n in range(12)]
    assert given.map(explainer, batched=True, batch_size=12)["score"][:] == explainer(table).column("score").to_pylist()


def test_an_explainer_travels_to_other_processes_without_its_model(model, table):
    explainer = pickle.loads(content := pickle.dumps(TableExplainer(model, SETTINGS)))
    assert len(content) < 2000
    assert explainer(table).equals(explain_batch(table, model, SETTINGS))


def test_columns_may_have_other_names_and_scores_alone_have_no_words(model, table):
    renamed = table.rename_columns({"query": "q", "document": "passage"})
    found = explain_batch(renamed, model, Settings(method="none"), columns=Columns(query="q", document="passage"))
    assert found.column_names[:3] == ["number", "q", "passage"] and "query_words" not in found.column_names
    assert found.column("document").to_pylist()[0] == table.column("document").to_pylist()[0]


def test_what_is_no_table_of_pairs_is_refused(model, table):
    with pytest.raises(InputError, match="a table must have the column document, has number, query, label"):
        explain_batch(table.drop_columns("document"), model)
    with pytest.raises(InputTypeError, match=r"a table must be a pyarrow Table or RecordBatch, .* got list"):
        explain_batch([1, 2], model)
    with pytest.raises(InputError, match="there is no model folder nowhere"):
        explain_batch(table, "nowhere")


def test_a_pyterrier_frame_is_ranked_anew_for_each_query(model, table, scores):
    frame = table.to_pandas().rename(columns={"document": "text", "number": "docno"}).drop(columns="label")
    frame["qid"] = [f"q{2 - n % 2}" for n in range(12)]
    frame["docno"] = frame["docno"].astype(str)
    frame["score"], frame["rank"] = 1.0, 0
    found = PyTerrierReranker(TableExplainer(model, SETTINGS, PYTERRIER))(frame)
    assert list(found["qid"]) == ["q2"] * 6 + ["q1"] * 6
    assert list(found["rank"]) == [*range(6), *range(6)]
    for qid, some in found.groupby("qid"):
        there = some["score"].dropna()
        assert list(there) == sorted(there, reverse=True)
        assert set(some["docno"]) == set(frame[frame["qid"] == qid]["docno"])
        assert some["problem"].dropna().tolist() == (["text must not be empty"] if qid == "q1" else [])
        assert qid == "q2" or some["docno"].iloc[-1] == "5"
    by_number = {int(row.docno): row.score for row in found.itertuples()}
    assert [by_number[n] for n in range(12) if n != 5] == pytest.approx([s for s in scores if s is not None], abs=1e-5)
    assert set(frame.columns) <= set(found.columns) and "document_words" in found.columns
    with pytest.raises(InputError, match="must have the column qid"):
        PyTerrierReranker(TableExplainer(model, SETTINGS, PYTERRIER))(frame.drop(columns="qid"))
