"""A batch names texts in languages that the model does not read, counts them, and says so once."""

import json

import pyarrow.parquet
import pytest
from batch_inputs import parts_of, write_lines
from tiny_bert import cross_encoder, write_cross_encoder

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.batch import Settings, run_batch
from backlight.explain.batch.job import describe
from backlight.explain.reranker import Reranker
from backlight.web.batch import batch_page

GERMAN = "Die Pflanze ist grün und wird von der Sonne mit Energie versorgt"
FRENCH = "La plante est verte et elle vit avec le soleil dans une forêt"
ROWS = [
    {"query": "how do plants make food", "document": "plants make food from sunlight"},
    {"query": "wie macht eine Pflanze das und warum nicht", "document": GERMAN},
    {"query": "how do plants make food", "document": FRENCH},
    {"query": "how do plants make food", "document": GERMAN},
]
COUNTED = {"rows": 3, "query": {"German": 1}, "document": {"German": 2, "French": 1}}
PLAIN = Settings(method="none", rows=2)


def english(**settings) -> Reranker:
    return Reranker(cross_encoder(**settings), languages=("en",))


def test_rows_and_summary_name_other_languages(tmp_path):
    found = run_batch(ROWS, tmp_path, english(), PLAIN)
    rows = parts_of(tmp_path)
    assert [row.get("query_language") for row in rows] == [None, "German", None, None]
    assert [row.get("document_language") for row in rows] == [None, "German", "French", "German"]
    assert found.summary["languages"] == COUNTED
    assert "In another language" in batch_page(tmp_path, "1")


@pytest.mark.parametrize("languages", [(), ("en", "de")])
def test_a_model_that_is_not_known_to_read_english_only_names_none(languages, tmp_path):
    found = run_batch(ROWS, tmp_path, Reranker(cross_encoder(), languages=languages), PLAIN)
    assert found.summary["languages"] is None
    assert all("document_language" not in row for row in parts_of(tmp_path))
    assert "In another language" not in batch_page(tmp_path, "1")


def test_parquet_has_the_languages_as_columns(tmp_path):
    run_batch(ROWS, tmp_path, english(), Settings(method="none", format="parquet"))
    (file,) = (tmp_path / "parts").iterdir()
    assert pyarrow.parquet.read_table(file).column("document_language").to_pylist() == [
        None,
        "German",
        "French",
        "German",
    ]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_job_whose_parts_were_written_before_languages_goes_on_and_counts_them(format, tmp_path, monkeypatch):
    settings = Settings(method="none", rows=2, format=format)
    columns = Settings.columns
    with monkeypatch.context() as old:
        without = ("query_language", "document_language", "windows_read", "windows_chosen_by")
        old.setattr(Settings, "columns", lambda self: {k: v for k, v in columns(self).items() if k not in without})
        run_batch(ROWS, tmp_path, english(), settings)
    (second, *_) = [file for file in (tmp_path / "done").iterdir() if "00001" in file.name]
    second.unlink()
    found = run_batch(ROWS, tmp_path, english(), settings)
    assert found.resumed == 2
    assert found.summary["languages"] == COUNTED
    assert found.summary["windows"] == {"rows": 0, "preselected": 0}


def test_a_job_that_was_begun_without_the_limit_of_windows_goes_on_when_all_are_asked_for(tmp_path, monkeypatch):
    def described(*given):
        found = describe(*given)
        del found["settings"]["max_windows"]
        return found

    every = Settings(method="none", rows=2, max_windows=0)
    with monkeypatch.context() as old:
        old.setattr("backlight.explain.batch.running.describe", described)
        run_batch(ROWS, tmp_path, english(), every)
    assert run_batch(ROWS, tmp_path, english(), every).resumed == len(ROWS)
    with pytest.raises(InputError, match="settings max_windows was 0 and is 64"):
        run_batch(ROWS, tmp_path, english(), PLAIN)


def test_rows_of_preselected_windows_say_so_and_are_counted(tmp_path):
    long = {"query": "plants", "document": "a cell ! " * 200 + "plants make food"}
    ranker = cross_encoder()
    found = run_batch([long, ROWS[0]], tmp_path, ranker, Settings(method="none", max_windows=5))
    first, second = parts_of(tmp_path)
    assert (first["windows_read"], first["windows_chosen_by"]) == (5, "BM25")
    assert first["windows"] == len(ranker.windows(long["query"], long["document"])) > 5
    (ranked,) = Reranker(ranker).rank(long["query"], [long["document"]], max_windows=5).documents
    assert (first["window"], first["score"]) == (ranked.window.number, pytest.approx(ranked.score, abs=1e-5))
    assert second["windows_read"] == second["windows"] == 1 and "windows_chosen_by" not in second
    assert found.summary["windows"] == {"rows": 1, "preselected": 1}


def test_a_mean_of_preselected_windows_counts_the_tokens_that_it_left_out(tmp_path):
    long = {"query": "plants", "document": "a cell ! " * 200}
    run_batch([long], tmp_path, cross_encoder(), Settings(method="none", windows="mean", max_windows=5))
    (row,) = parts_of(tmp_path)
    assert (row["windows_read"], row["windows_chosen_by"]) == (5, "evenly spread")
    assert 0 < row["document_left_out"] < 600
    assert batch_page(tmp_path, "1")


def test_the_command_says_it_once_at_the_end(tmp_path, capsys):
    model = write_cross_encoder(tmp_path / "model")
    (model / "README.md").write_text("---\nlanguage: en\n---\n")
    rows = [*ROWS, {"query": "plants", "document": "a cell ! " * 600}]
    file = write_lines(tmp_path / "rows.jsonl", rows)
    given = ["batch", str(file), "-o", str(tmp_path / "out"), "--model", str(model), "--method", "none", "--json"]
    assert main(given) == 0
    found = capsys.readouterr()
    named = "query: German 1; document: German 2, French 1"
    said = f"3 rows look to be in another language ({named}); model reads English only"
    assert found.err.count(said) == 1
    assert "of 1 long document only 64 windows were scored" in found.err
    assert json.loads(found.out)["summary"]["languages"] == COUNTED
