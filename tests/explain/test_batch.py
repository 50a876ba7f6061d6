"""Batches: every way in, bad rows, parts that survive a kill, and what is said of all rows at the end."""

import io
import json
import math
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from batch_inputs import PAIRS, WAYS, WORDS, as_beir, bytes_of, many, parts_of, records, write_lines
from tiny_bert import cross_encoder, write_bert, write_cross_encoder

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.batch import Columns, Reading, Settings, run_batch
from backlight.explain.batch.lock import only_process
from backlight.explain.batch.rows import BadRow, Row, rows_of
from backlight.explain.batch.summary import Tally, label_summary, ndcg, reciprocal_rank
from backlight.explain.batch.work import Worker
from backlight.models.ranker import load_ranker
from backlight.web.batch import batch_page, pieces


def bad_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "bad_rows.jsonl").read_text().split("\n")[:-1]]


# --- ways in -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_every_way_in_gives_the_same_pairs_with_the_same_scores(way, format, tmp_path):
    (tmp_path / "in").mkdir()
    given, reading = way(tmp_path / "in")
    found = run_batch(given, tmp_path / "out", cross_encoder(), Settings(format=format), reading=Reading(**reading))
    assert (found.rows, found.bad, found.resumed) == (4, 0, 0)
    rows = parts_of(tmp_path / "out")
    scores = cross_encoder().scores_of(cross_encoder().read([(query, document) for query, document, _ in PAIRS]))
    for row, (query, document, label), score in zip(rows, PAIRS, scores, strict=True):
        assert (row["query"], row["document"], row["label"]) == (query, document, label)
        assert row["score"] == pytest.approx(float(score), abs=1e-6)
        assert row["activated"] == pytest.approx(1 / (1 + math.exp(-score)), abs=1e-6)
        for side in ("query", "document"):
            words = row[f"{side}_words"]
            assert all(row[side][word["start"] : word["end"]] == word["text"] for word in words)
            assert row[f"{side}_total"] == pytest.approx(sum(abs(word["value"]) for word in words), rel=1e-5)


def test_standard_input_is_kept_so_that_the_job_can_go_on_without_it(tmp_path, monkeypatch):
    given = "".join(json.dumps(record) + "\n" for record in records()).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert run_batch("-", tmp_path, cross_encoder()).rows == 4
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    again = run_batch("-", tmp_path, cross_encoder())
    assert (again.rows, again.resumed) == (4, 4)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given + given)))
    with pytest.raises(InputError, match="holds another job"):
        run_batch("-", tmp_path, cross_encoder())


def test_a_table_without_quotes_keeps_its_quotation_marks(tmp_path):
    file = write_lines(tmp_path / "a.tsv", ["query\tdocument", 'a 5" leaf\t"green', 'food\tair"'])
    run_batch(file, tmp_path / "out", cross_encoder())
    assert [(row["query"], row["document"]) for row in parts_of(tmp_path / "out")] == [
        ('a 5" leaf', '"green'),
        ("food", 'air"'),
    ]


def test_an_unclosed_quote_takes_rows_with_it_and_they_are_reported(tmp_path):
    file = write_lines(tmp_path / "a.csv", ["query,document", "food,air", 'a,"b', "c,d", "e,f"])
    found = run_batch(file, tmp_path / "out", cross_encoder())
    (row,) = [row for row in parts_of(tmp_path / "out") if row["query"] == "a"]
    assert found.rows == 2 and row["document"] == "b\nc,d\ne,f\n"


def test_a_header_without_the_columns_is_refused_with_what_it_has(tmp_path):
    file = write_lines(tmp_path / "a.csv", ["question,passage", "food,air"])
    with pytest.raises(InputError, match="must name the columns query and document, got question, passage"):
        run_batch(file, tmp_path / "out", cross_encoder())
    run_batch(file, tmp_path / "out", cross_encoder(), reading=Reading(Columns(query="question", document="passage")))
    assert len(parts_of(tmp_path / "out")) == 1


def test_a_column_named_on_purpose_must_be_there(tmp_path):
    file = write_lines(tmp_path / "a.csv", ["query,document", "food,air"])
    with pytest.raises(InputError, match="must have the column relevant"):
        run_batch(file, tmp_path / "out", cross_encoder(), reading=Reading(Columns(label="relevant")))


def test_a_run_scores_its_own_pairs_of_a_beir_folder_and_labels_the_judged(tmp_path):
    folder, _ = as_beir(tmp_path)
    run = write_lines(tmp_path / "my.run", ["q0 Q0 d9 1 3.0 x", "q0 Q0 d0 2 2.0 x", "q0 Q0 gone 3 1.0 x"])
    found = run_batch(folder, tmp_path / "out", cross_encoder(), reading=Reading(run=run))
    assert [(row["id"], row.get("label")) for row in parts_of(tmp_path / "out")] == [("q0/d9", None), ("q0/d0", 1.0)]
    assert bad_of(tmp_path / "out")[0]["reason"] == "document gone must be in corpus.jsonl"
    assert found.summary["queries"]["queries"] == 1


def test_what_is_no_input_is_refused(tmp_path):
    (tmp_path / "a.docx").write_text("?")
    for given, said in [(tmp_path / "no.jsonl", "there is no file"), (tmp_path / "a.docx", "must end in .jsonl")]:
        with pytest.raises(InputError, match=said):
            run_batch(given, tmp_path / "out", cross_encoder())
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"must hold corpus.jsonl"):
        run_batch(tmp_path / "folder", tmp_path / "out", cross_encoder())


# --- bad rows ----------------------------------------------------------------------------------------------------

GOOD = {"query": "food", "document": "air"}
BAD_LINES = [
    ('{"query": "food"', "not JSON", "must be JSON"),
    ("[1, 2]", "wrong type", "must be an object"),
    ('{"query": "food"}', "missing field", "must have the field document, has query"),
    ('{"query": "food", "document": 7}', "wrong type", "document must be text, got a number"),
    ('{"query": " ", "document": "air"}', "empty text", "query must not be empty"),
    ('{"query": "food", "document": "\\ud800"}', "not UTF-8", "halves of characters"),
    ('{"query": "food", "document": "air", "label": "yes"}', "wrong type", "label must be a number, got yes"),
    ('{"query": "food", "document": "air", "label": NaN}', "wrong type", "label must be a number"),
    ('{"query": "food", "documents": []}', "empty text", "documents must not be empty"),
    (
        '{"query": "food", "documents": ["air", "a leaf"], "labels": [1]}',
        "wrong length",
        "a label for each of 2 documents, got 1",
    ),
    ('{"query": "food", "documents": ["air"], "labels": 1}', "wrong type", "labels must be a list, got a number"),
    ('{"query": "food", "id": 0.5, "documents": ["air"]}', "wrong type", "id must be text or a whole number"),
    ('{"query": "food", "document": "air", "label": 1' + 400 * "0" + "}", "wrong type", "label must be a number"),
    ('{"query": "food", "document": "\\u200b"}', "not readable", "tokenizer finds nothing"),
    ('{"query": "food", "document": "a\\u0000"}', "binary", "document must be text, and has a NUL at character 1"),
]


def test_bad_rows_are_written_with_line_and_reason_and_the_others_go_on(tmp_path):
    lines = [line for bad, _, _ in BAD_LINES for line in (bad, GOOD)]
    file = write_lines(tmp_path / "a.jsonl", lines)
    file.write_bytes(file.read_bytes() + b'{"query": "\xff", "document": "air"}\n')
    found = run_batch(file, tmp_path / "out", cross_encoder(), Settings(rows=4))
    bad = bad_of(tmp_path / "out")
    assert (found.rows, found.bad) == (31, 16)
    expected = [*BAD_LINES, ("", "not UTF-8", "byte 11 is not")]
    for number, (row, (_, kind, said)) in enumerate(zip(bad, expected, strict=True)):
        assert (row["line"], row["kind"]) == (2 * number + 1, kind)
        assert said in row["reason"]
    assert [row["line"] for row in parts_of(tmp_path / "out")] == list(range(2, 31, 2))
    assert [row["row"] for row in parts_of(tmp_path / "out")] == list(range(1, 30, 2))
    assert found.summary["bad"]["kinds"]["wrong type"]["count"] == 7


def test_a_bad_document_of_a_list_leaves_the_others(tmp_path):
    row = {"id": "x", "query": "food", "documents": ["air", "", {"id": "d3", "text": "water"}]}
    file = write_lines(tmp_path / "a.jsonl", [row])
    run_batch(file, tmp_path / "out", cross_encoder())
    rows = parts_of(tmp_path / "out")
    assert [(one["id"], one["document"], one.get("document_id")) for one in rows] == [
        ("x.0", "air", None),
        ("x.2", "water", "d3"),
    ]
    assert bad_of(tmp_path / "out")[0]["reason"] == "document 1 of the list: document must not be empty"


def test_a_pair_that_cannot_be_explained_is_a_bad_row_and_the_others_stay_as_they_are(tmp_path):
    """A query that is its document has the highest cosine, where the gradient is zero."""
    ranker = load_ranker(write_bert(tmp_path / "model"), "tiny")
    rows = [Row(line, str(line), query, document) for line, (query, document, _) in enumerate(PAIRS, 1)]
    broken = Row(9, "9", "green food", "green food")
    settings = Settings(method="layer-gradient-x-activation")
    found = Worker(ranker, settings).results([*rows[:2], broken, *rows[2:]])
    assert isinstance(found[2], BadRow) and found[2].kind == "not explained" and "below 1.0" in found[2].reason
    alone = [Worker(ranker, settings).results([row])[0] for row in rows]
    others = [*found[:2], *found[3:]]
    assert [one["query_words"] for one in others] == [one["query_words"] for one in alone]


def test_strict_stops_at_the_first_bad_row_and_names_its_line(tmp_path):
    file = write_lines(tmp_path / "a.jsonl", [GOOD, GOOD, "oops"])
    with pytest.raises(InputError, match=r"a.jsonl, line 3: must be JSON"):
        run_batch(file, tmp_path / "out", cross_encoder(), strict=True)
    run_batch(file, tmp_path / "out", cross_encoder())
    with pytest.raises(InputError, match=r"a.jsonl, line 3: must be JSON"):
        run_batch(file, tmp_path / "out", cross_encoder(), strict=True)


@pytest.mark.parametrize("lines, said", [([], "must hold a row at least"), (["?", "?"], "of the first 2 none can")])
def test_an_input_without_a_usable_row_is_refused_and_leaves_no_job(lines, said, tmp_path):
    file = write_lines(tmp_path / "a.jsonl", lines)
    with pytest.raises(InputError, match=said):
        run_batch(file, tmp_path / "out", cross_encoder())
    assert not (tmp_path / "out" / "job.json").exists()


def test_rows_keep_a_label_of_any_kind_of_number():
    for said, meant in [(1, 1.0), ("0.5", 0.5), (True, 1.0), ("false", 0.0), ("", None), (None, None)]:
        (row,) = rows_of({**GOOD, "label": said}, 1, Columns())
        assert row.label == meant


# --- the job -----------------------------------------------------------------------------------------------------


def test_another_job_in_the_folder_is_refused_with_what_differs(tmp_path):
    file, out = write_lines(tmp_path / "a.jsonl", records()), tmp_path / "out"
    run_batch(file, out, cross_encoder())
    with pytest.raises(InputError, match="settings method was leave-one-out and is none"):
        run_batch(file, out, cross_encoder(), Settings(method="none"))
    with pytest.raises(InputError, match=r"model scores of probes was .* \(other weights\)"):
        run_batch(file, out, cross_encoder(seed=1))
    write_lines(file, records()[:3])
    with pytest.raises(InputError, match="input files lines was 4 and is 3"):
        run_batch(file, out, cross_encoder())
    assert run_batch(file, out, cross_encoder(), replace=True).rows == 3
    assert len(parts_of(out)) == 3


def test_a_file_of_the_same_content_under_another_name_is_the_same_job(tmp_path):
    run_batch(write_lines(tmp_path / "a.jsonl", records()), tmp_path / "out", cross_encoder())
    again = run_batch(write_lines(tmp_path / "b.jsonl.gz", records()), tmp_path / "out", cross_encoder())
    assert again.resumed == 4


def test_a_folder_with_other_files_is_refused_and_untouched(tmp_path):
    file = write_lines(tmp_path / "a.jsonl", records())
    with pytest.raises(InputError, match=r"must be a new or empty folder or a batch's, and holds a.jsonl"):
        run_batch(file, tmp_path, cross_encoder(), replace=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.jsonl"]


def test_two_processes_cannot_work_in_one_folder(tmp_path):
    file = write_lines(tmp_path / "a.jsonl", records())
    with only_process(tmp_path / "out"), pytest.raises(InputError, match="one process at a time"):
        run_batch(file, tmp_path / "out", cross_encoder())
    assert run_batch(file, tmp_path / "out", cross_encoder()).rows == 4


RUN = """
import sys
from backlight.explain.batch import Settings, run_batch
from backlight.models.ranker import load_ranker

run_batch(sys.argv[1], sys.argv[2], load_ranker(sys.argv[3], "tiny"), Settings(rows=20, format=sys.argv[4]),
          watch=lambda stand: print(stand.rows, flush=True))
"""


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_job_killed_at_random_moments_ends_complete_and_byte_for_byte_the_same(format, tmp_path):
    lines = [record if number % 37 else "{broken" for number, record in enumerate(many(600))]
    file, model = write_lines(tmp_path / "a.jsonl", lines), write_cross_encoder(tmp_path / "model")
    command = [sys.executable, "-c", RUN, str(file), str(tmp_path / "killed"), str(model), format]
    rng = random.Random(format)
    for kill in range(3):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(rng.randint(1, 12)):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, f"it ended before kill {kill}"
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(found.stdout.split()[0]) > 20, "nothing was left of the killed runs"
    run_batch(file, tmp_path / "whole", load_ranker(model, "tiny"), Settings(rows=20, format=format))
    assert bytes_of(tmp_path / "killed") == bytes_of(tmp_path / "whole")
    rows = [row["row"] for row in parts_of(tmp_path / "whole")]
    assert rows == [number for number in range(600) if number % 37]
    assert [row["line"] - 1 for row in bad_of(tmp_path / "whole")] == list(range(0, 600, 37))


def test_half_written_files_of_a_killed_process_are_cleared_away(tmp_path):
    file = write_lines(tmp_path / "a.jsonl", records())
    run_batch(file, tmp_path / "out", cross_encoder())
    before = bytes_of(tmp_path / "out")
    (tmp_path / "out" / "parts" / ".part-00001.jsonl").write_text("{")
    (tmp_path / "out" / ".mine").write_text("not the batch's")
    run_batch(file, tmp_path / "out", cross_encoder())
    assert bytes_of(tmp_path / "out") == before | {".mine": b"not the batch's"}


# --- what is kept ------------------------------------------------------------------------------------------------


def test_results_stand_in_the_order_of_the_rows_though_pairs_run_by_length(tmp_path):
    rows = many(40)
    run_batch(rows, tmp_path, cross_encoder(), Settings(rows=16))
    found = parts_of(tmp_path)
    assert [row["document"] for row in found] == [row["document"] for row in rows]
    alone = [Worker(cross_encoder(), Settings()).results([Row(1, "", r["query"], r["document"])])[0] for r in rows[:5]]
    for one, row in zip(alone, found):
        assert row["score"] == pytest.approx(one["score"], abs=1e-5)


def test_top_words_keeps_the_strongest_in_the_order_of_the_text(tmp_path):
    run_batch(records(), tmp_path / "all", cross_encoder())
    run_batch(records(), tmp_path / "two", cross_encoder(), Settings(top_words=2))
    for every, two in zip(parts_of(tmp_path / "all"), parts_of(tmp_path / "two"), strict=True):
        ranks = [
            (not re.search(r"\w", w["text"]), "effect" not in w, -abs(w["value"])) for w in every["document_words"]
        ]
        strongest = [word for _, word in sorted(zip(ranks, every["document_words"]), key=lambda both: both[0])[:2]]
        assert two["document_words"] == sorted(strongest, key=lambda word: word["start"])
        assert two["document_total"] == every["document_total"]


def test_scores_only_have_no_words_and_tokens_are_kept_when_asked_for(tmp_path):
    run_batch(records(), tmp_path / "scores", cross_encoder(), Settings(method="none"))
    assert not any("words" in name for row in parts_of(tmp_path / "scores") for name in row)
    assert not (tmp_path / "scores" / "words.jsonl").exists()
    run_batch(records(), tmp_path / "tokens", cross_encoder(), Settings(method="saliency", tokens=True))
    row = parts_of(tmp_path / "tokens")[0]
    assert [token["text"] for token in row["special_tokens"]] == ["[CLS]", "[SEP]", "[SEP]"]
    in_word = [
        sum(t["value"] for t in row["document_tokens"] if word["start"] <= t["start"] < word["end"])
        for word in row["document_words"]
    ]
    assert sum(map(abs, in_word)) == pytest.approx(row["document_total"], rel=1e-5)


def test_the_best_window_of_a_long_document_counts(tmp_path):
    long = {"query": "plants", "document": " ".join(WORDS * 5)}
    ranker = cross_encoder()
    run_batch([long, GOOD], tmp_path, ranker, Settings(windows="best"))
    first, second = parts_of(tmp_path)
    windows = ranker.windows(long["query"], long["document"])
    scores = ranker.scores_of(windows)
    assert (first["window"], first["windows"]) == (1 + int(np.argmax(scores)), len(windows))
    assert first["score"] == pytest.approx(float(scores.max()), abs=1e-6)
    assert (second["window"], second["windows"]) == (1, 1)


def test_the_mean_of_all_windows_reads_the_whole_document(tmp_path):
    long = {"query": "plants", "document": " ".join(WORDS * 5)}
    ranker = cross_encoder()
    run_batch([long], tmp_path, ranker, Settings(windows="mean"))
    (row,) = parts_of(tmp_path)
    scores = ranker.scores_of(ranker.windows(long["query"], long["document"]))
    assert row["score"] == pytest.approx(float(scores.mean()), abs=1e-6)
    assert [word["text"] for word in row["document_words"]] == WORDS * 5
    assert row["document_left_out"] == 0


def test_settings_that_cannot_be_are_refused():
    for told, said in [
        ({"method": "magic"}, "method must be one of"),
        ({"format": "xml"}, "format must be one of jsonl, parquet"),
        ({"rows": 0}, "rows must be 1 or more"),
        ({"windows": "worst"}, "windows must be one of best, mean"),
        ({"stride": 4, "windows": None}, "stride must come with windows"),
    ]:
        with pytest.raises(InputError, match=said):
            Settings(**told)


# --- the summary -------------------------------------------------------------------------------------------------


def test_the_summary_counts_words_as_the_parts_have_them(tmp_path):
    summary = run_batch(many(50), tmp_path, cross_encoder(), Settings(rows=7)).summary
    rows = parts_of(tmp_path)
    water = [(row, word) for row in rows for word in row["document_words"] if word["text"] == "water"]
    (found,) = [word for word in summary["words"]["document"] if word["word"] == "water"]
    assert found["count"] == len(water)
    assert found["pairs"] == len({row["row"] for row, _ in water})
    shares = [abs(word["value"]) / row["document_total"] for row, word in water]
    assert found["mean_share"] == pytest.approx(np.mean(shares), rel=1e-5)
    assert found["mean_place"] == pytest.approx(np.mean([w["start"] / len(r["document"]) for r, w in water]))
    scores = [row["score"] for row in rows]
    assert summary["score"]["mean"] == pytest.approx(np.mean(scores))
    assert summary["score"]["standard_deviation"] == pytest.approx(np.std(scores))
    assert summary["score"]["quantiles"]["50 %"] in scores
    assert sum(summary["score"]["histogram"]["counts"]) == 50


def test_auc_counts_pairs_won_and_half_of_the_ties(tmp_path):
    scores, labels = [0.1, 0.5, 0.5, 0.9, 0.3], [0, 1, 0, 1, 1]
    tally = Tally(tmp_path / "t")
    texts = {"query": "q", "document": "d", "query_left_out": 0, "document_left_out": 0}
    tally.add(0, [{"row": n, "score": s, "label": y, **texts} for n, (s, y) in enumerate(zip(scores, labels))])
    wins = [(a > b) + (a == b) / 2 for a, x in zip(scores, labels) if x for b, y in zip(scores, labels) if not y]
    assert label_summary(tally) == {"labelled": 5, "relevant": 3, "roc_auc": pytest.approx(np.mean(wins))}
    tally.close()


def test_ranking_is_judged_by_what_is_known_of_the_query():
    assert ndcg([0, 1], [1, 0]) == pytest.approx(1 / math.log2(3))
    assert ndcg([1], [1, 1]) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert reciprocal_rank([0, 0, 2]) == pytest.approx(1 / 3)
    assert reciprocal_rank([0] * 10 + [1]) == 0


def test_errors_against_labels_are_named_with_their_strongest_words(tmp_path):
    rows = [{**row, "label": number % 2} for number, row in enumerate(many(30))]
    labels = run_batch(rows, tmp_path, cross_encoder()).summary["labels"]
    false_positives = [row["score"] for row in labels["false positives"]]
    assert false_positives == sorted((row["score"] for row in parts_of(tmp_path) if row["label"] == 0), reverse=True)
    assert labels["false negatives"][0]["score"] == min(r["score"] for r in parts_of(tmp_path) if r["label"] == 1)
    assert len(labels["false negatives"][0]["strongest"]) > 0


# --- the command and the page ------------------------------------------------------------------------------------


def test_the_command_writes_a_page_says_what_was_bad_and_goes_on(tmp_path, capsys):
    file, model = write_lines(tmp_path / "a.jsonl", [*records(), "?"]), write_cross_encoder(tmp_path / "model")
    command = ["batch", str(file), "-o", str(tmp_path / "out"), "--model", str(model), "--json"]
    assert main(command) == 0
    printed, said = capsys.readouterr()
    assert json.loads(printed)["rows"] == 5
    assert "1 of 5 rows could not be used" in said
    assert main([*command, "--strict"]) == 2
    assert main([*command[:-1]]) == 0
    printed, _ = capsys.readouterr()
    assert "4 pairs (5 rows done before)" in printed and "ROC-AUC" in printed and "logit: mean " in printed
    assert re.search(r"the logit (falls|rises) by \d+\.\d+ without the 5 strongest words, (falls|rises) by", printed)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Scores (logit)" in page and '"unit": "logit"' in page.replace('"unit":"', '"unit": "')
    assert main([*command, "--method", "none"]) == 2
    assert "holds another job" in capsys.readouterr().err


def test_the_page_escapes_what_others_wrote_and_asks_no_network(tmp_path):
    attack = "</script><script>alert(1)</script> food"
    run_batch([{"id": attack, "query": attack, "document": attack}, GOOD], tmp_path, cross_encoder())
    page = batch_page(tmp_path, "1.0")
    assert "<script>alert" not in page and "\\u003c/script>\\u003cscript>alert" in page
    assert not any(outside in page for outside in ("http://", "https://", "@import", "url("))


def test_the_pages_theme_follows_the_address_and_the_button(tmp_path, browser):
    run_batch(records(), tmp_path, cross_encoder())
    page = tmp_path / "page.html"
    page.write_text(batch_page(tmp_path, "1.0"), encoding="utf-8")
    browser.open(page, "dark")
    theme = "document.documentElement.dataset.theme"
    assert browser.run(theme) == "dark"
    browser.run("document.getElementById('theme').click()")
    assert browser.run(theme) == "light"
    assert browser.run("document.getElementById('theme').textContent") == "Dark"
    assert browser.problems() == []


def test_pieces_of_a_text_join_to_the_text_whatever_its_characters(tmp_path):
    run_batch(records(), tmp_path, cross_encoder())
    for row in parts_of(tmp_path):
        for side in ("query", "document"):
            found = pieces(row, side)
            assert "".join(piece if isinstance(piece, str) else piece[0] for piece in found) == row[side]


def test_explanations_of_some_rows_are_held_to_the_score_and_the_summary_adds_them_up(tmp_path):
    found = run_batch(many(60), tmp_path, cross_encoder(), Settings(method="gradient-x-input", rows=16))
    rows = parts_of(tmp_path)
    checked = [row["row"] for row in rows if "check_verdict" in row]
    assert checked == [*range(10), 50]
    total = found.summary["check"]
    assert total["rows"] == len(checked) == total["holds"] + total["fails"] + total["no effect"]
    assert total["signs"] == sum(row["check_signs"] for row in rows if "check_verdict" in row) <= total["counted"]


def test_seconds_do_not_decide_what_a_batch_writes():
    assert Settings().method_options == {"words": 8}
    assert Settings(options={"words": 3}).method_options == {"words": 3}
    with pytest.raises(InputError, match="budget must be left out in a batch"):
        Settings(options={"budget": 2.0})
