"""`backlight evaluate`: reads data in its formats, measures every method, loses nothing when it is killed."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from test_faithfulness import QED_ROW
from tiny_bert import write_cross_encoder

import backlight
from backlight.cli.evaluate import held_out, variants_of
from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.faithfulness.columns import PANELS
from backlight.explain.faithfulness.measure import Plan, measure_pair
from backlight.explain.faithfulness.questions import Listed, choose, read_questions
from backlight.explain.faithfulness.records import Records
from backlight.explain.methods.interactions import ESTIMATES
from backlight.models.retrieval.bm25 import best_by_bm25
from backlight.report.intervals import Mean
from backlight.web.curves import curves

WORDS = ("plants", "make", "food", "from", "sunlight", "water", "and", "air", "the", "leaf", "of", "a")


def texts(rng, length):
    return " ".join(rng.choice(WORDS, length))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a model and lists of candidates."""
    folder = tmp_path_factory.mktemp("evaluate")
    write_cross_encoder(folder / "model")
    rng = np.random.default_rng(0)
    rows = [
        {"query": texts(rng, 3), "candidates": [texts(rng, 8) for _ in range(4)], "labels": [0, 0, 1, 0]}
        for _ in range(30)
    ]
    (folder / "lists.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return folder


def test_a_line_of_the_records_that_is_damaged_is_measured_again(place, tmp_path, capsys):
    kept = tmp_path / "kept.jsonl"
    command = arguments(place, "--json", "--records", str(kept))
    assert main(command) == 0
    before, lines = rows_of(capsys.readouterr().out), kept.read_bytes().split(b"\n")
    for place_of, damaged in enumerate(
        [b"{broken", b"", b"[1]", b'{"key": 1, "result": {}}', b"[" * 99_999, b"\xff"], 1
    ):
        lines[place_of] = damaged
    kept.write_bytes(b"\n".join(lines))
    assert main([*command, "--resume"]) == 0
    assert rows_of(capsys.readouterr().out) == before


def arguments(place, *more, methods="saliency,occlusion", pairs=5):
    model = ["--model", str(place / "model"), "--methods", methods]
    return ["evaluate", str(place / "lists.jsonl"), *model, "--pairs", str(pairs), "--detailed-pairs", "3", *more]


def rows_of(printed):
    """Return the rows that a run printed, without how long anything took."""
    rows = json.loads(printed)["rows"]
    for row in rows:
        row["means"].pop("seconds")
    return rows


def test_a_study_tells_every_measure_of_every_method(place, tmp_path, capsys):
    page = tmp_path / "new" / "page.html"
    assert main(arguments(place, "--json", "--html", str(page), "--records", str(tmp_path / "kept.jsonl"))) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["label"] for row in found["rows"]} == {"saliency", "occlusion", "random", "embedding-magnitude"}
    assert (found["data"], found["model"], found["plan"]["pairs"]) == ("lists.jsonl", "model", 5)
    names = {column.name for panel in PANELS for column in panel.columns} - {"behind"}
    for row in found["rows"]:
        promised = names - {"gap"} - (set() if row["signed"] else {"comprehensiveness_by_magnitude"})
        assert promised <= set(row["means"]) | {"shortcut"}
        assert row["means"]["comprehensiveness"]["count"] == row["pairs"] == 5
        assert row["means"]["deletion_auc"]["count"] == 3 and row["means"]["naopc"]["count"] == 5
        assert 0 <= row["means"]["naopc"]["value"] <= 1
        assert row["means"]["batch_effect"]["value"] < 1e-4
        assert row["curve"][0] == 0 and len(row["curve"]) == 11
    by_label = {row["label"]: row["means"] for row in found["rows"]}
    assert by_label["embedding-magnitude"]["all_random"]["value"] == pytest.approx(1)
    assert by_label["occlusion"]["comprehensiveness"]["value"] > by_label["random"]["comprehensiveness"]["value"]
    assert found["rows"][0]["behind"] is None and all(row["behind"]["value"] >= 0 for row in found["rows"][1:])
    text = page.read_text()
    assert "<h1>Faithfulness of explanations of model</h1>" in text and "http://" not in text.replace(
        "http://www.w3.org", ""
    )
    assert text.count("<table>") == 3 and "random (control)" in text


def test_links_make_a_table_of_their_own(place, tmp_path, capsys):
    (tmp_path / "qed.jsonl").write_text(json.dumps(QED_ROW))
    kept = ["--records", str(tmp_path / "kept.jsonl"), "--links", str(tmp_path / "qed.jsonl")]
    assert main(arguments(place, *kept, "--json", methods="saliency", pairs=2)) == 0
    found = json.loads(capsys.readouterr().out)["links"]
    assert {row["label"] for row in found} == {*ESTIMATES, "attention", "same word", "random"}
    assert main(arguments(place, *kept, "--resume", methods="saliency", pairs=2)) == 0
    shown = capsys.readouterr().out
    assert "Do interactions find the words that people linked?" in shown and "joint occlusion" in shown


def test_tables_are_printed_for_people_and_in_markdown(place, tmp_path, capsys):
    kept = ["--records", str(tmp_path / "kept.jsonl")]
    assert main(arguments(place, *kept)) == 0
    shown = capsys.readouterr().out
    assert "model on 5 pairs of lists.jsonl" in shown and max(map(len, shown.splitlines())) <= 80
    assert main(arguments(place, *kept, "--resume", "--markdown")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("### What the score loses") and lines[2].startswith("| method | pairs | comp. ↑ |")
    assert sum(line.startswith("| occlusion |") for line in lines) == 3


def test_a_study_that_was_killed_goes_on_and_ends_the_same(place, tmp_path, capsys):
    whole = ["--json", "--records", str(tmp_path / "whole.jsonl")]
    assert main(arguments(place, *whole, methods="saliency,occlusion,smoothgrad:samples=4", pairs=6)) == 0
    expected = rows_of(capsys.readouterr().out)
    kept = tmp_path / "kept.jsonl"
    command = arguments(
        place, "--json", "--records", str(kept), methods="saliency,occlusion,smoothgrad:samples=4", pairs=6
    )
    source = str(Path(backlight.__file__).parent.parent)
    for lines in (3, 7):
        again = ["--resume"] if kept.exists() else []
        process = subprocess.Popen(
            [sys.executable, "-m", "backlight", *command, *again],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": source},
        )
        while process.poll() is None and (not kept.exists() or kept.read_bytes().count(b"\n") < lines):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    before = kept.read_bytes()
    kept.write_bytes(before[:-20])  # as if the last line had been cut off
    assert main([*command, "--resume"]) == 0
    assert rows_of(capsys.readouterr().out) == expected
    assert kept.read_bytes().startswith(before[: before[:-20].rfind(b"\n")])


def test_a_study_that_was_stopped_shows_what_it_has(place, tmp_path, capsys, monkeypatch):
    measured = []

    def stop_at_the_third(*given, **more):
        measured.append(given)
        if len(measured) == 3:
            raise KeyboardInterrupt
        return measure_pair(*given, **more)

    monkeypatch.setattr("backlight.explain.faithfulness.study.measure_pair", stop_at_the_third)
    kept = ["--json", "--records", str(tmp_path / "kept.jsonl")]
    assert main(arguments(place, *kept)) == 130
    shown = capsys.readouterr()
    assert {row["pairs"] for row in json.loads(shown.out)["rows"]} == {2}
    assert "Stopped: the tables show what was measured so far" in shown.err
    assert main(arguments(place, *kept, "--resume")) == 0
    assert {row["pairs"] for row in json.loads(capsys.readouterr().out)["rows"]} == {5}


def test_results_of_another_study_are_not_mixed_in(place, tmp_path, capsys):
    kept = ["--records", str(tmp_path / "kept.jsonl")]
    assert main(arguments(place, *kept)) == 0
    assert main(arguments(place, *kept)) == 2
    assert "holds the results of an earlier run: give --resume to go on" in capsys.readouterr().err
    assert main(arguments(place, *kept, "--resume", methods="saliency")) == 2
    assert "holds the results of another study (its methods differ)" in capsys.readouterr().err


def test_a_costly_method_explains_fewer_pairs(place, tmp_path, capsys):
    more = ["--json", "--budget", "30", "--records", str(tmp_path / "kept.jsonl")]
    plan = Plan(pairs=100, budget=1000, fewest=7)
    assert [plan.share_of(passes, 90) for passes in (1, 50, 500)] == [90, 20, 7]
    assert main(arguments(place, *more)) == 0
    assert {row["pairs"] for row in json.loads(capsys.readouterr().out)["rows"]} == {5}


def test_records_keep_whole_lines_only(tmp_path):
    file = tmp_path / "kept.jsonl"
    first = Records(file, {"a": 1})
    first.add("one", {"x": 0.1})
    first.close()
    with file.open("a") as stream:
        stream.write('{"key": "two", "resu')
    again = Records(file, {"a": 1}, resume=True)
    assert "one" in again and "two" not in again and again["one"] == {"x": 0.1} and len(again) == 1
    again.add("two", {})
    again.close()
    last = Records(file, {"a": 1}, resume=True)
    assert len(last) == 2
    last.close()


def test_methods_are_named_with_their_options():
    labels = [one.label for one in variants_of("smoothgrad:samples=8:seed=1,random")]
    assert labels == ["smoothgrad:samples=8:seed=1", "random", "embedding-magnitude"]
    everything = [one.label for one in variants_of("all")]
    assert "integrated-gradients:baseline=mask" in everything and everything[-2:] == ["random", "embedding-magnitude"]
    with pytest.raises(InputError, match="methods must differ, got saliency twice"):
        variants_of("saliency,saliency")
    with pytest.raises(InputError, match="method must be one of"):
        variants_of("tea-leaves")
    with pytest.raises(InputError, match="saliency has no options"):
        variants_of("saliency:steps=3")


def test_pairs_of_one_query_become_a_list(tmp_path):
    (tmp_path / "pairs.csv").write_text('query,document,label\nq,"one, two",0\nr,three,\nq,four,1\n')
    found = read_questions(tmp_path / "pairs.csv")
    assert found == [Listed("q", ("one, two", "four"), (0.0, 1.0)), Listed("r", ("three",), None)]
    chosen = choose(found, None, 5, seed=0)
    by_text = {one.text: one for one in chosen}
    assert (by_text["q"].document, by_text["q"].rivals, by_text["q"].labels) == ("four", ("one, two",), (1.0, 0.0))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.csv", "query;document;label\nq;one, two;0\nr;three\nq;four;1\n"),
        ("pairs.tsv", "query\tdocument\tlabel\nq\tone, two\t0\nr\tthree\nq\tfour\t1\n"),
        ("lists.jsonl", '{"query": "q", "documents": ["one, two", "four"], "labels": [0, 1]}\n{"query": "r"\n'),
    ],
)
def test_what_batch_reads_is_read_and_what_cannot_be_used_is_left_out(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    bad = []
    assert read_questions(tmp_path, left_out=bad.extend) == [Listed("q", ("one, two", "four"), (0.0, 1.0))]
    assert len(bad) == 1


def test_without_labels_the_document_that_ranks_first_is_explained():
    (one,) = choose([Listed("q", ("a", "b", "c"))], lambda query, documents: np.array([0.0, 2.0, 1.0]), 1, 0)
    assert (one.document, one.rivals, one.labels) == ("b", ("a", "c"), None)


def squad(folder):
    paragraphs = [" ".join(["common", word, word]) for word in ("sun", "rain", "wind", "snow")]
    articles = [
        {
            "title": title,
            "paragraphs": [{"context": text, "qas": [{"question": f"why {text.split()[1]}"}]} for text in part],
        }
        for title, part in (("A", paragraphs[:2]), ("B", paragraphs[2:]))
    ]
    (folder / "squad.json").write_text(json.dumps({"data": articles}))
    return folder


def test_squads_questions_get_bm25s_candidates(tmp_path):
    found = read_questions(squad(tmp_path))
    assert [one.query for one in found] == ["why sun", "why rain", "why wind", "why snow"]
    assert found[1].candidates[0] == "common rain rain" and found[1].labels == (1.0, 0.0, 0.0, 0.0)
    only = read_questions(tmp_path / "squad.json", titles=["B"])
    assert len(only) == 2 and all("sun" not in text for one in only for text in one.candidates)


def test_bm25_puts_the_document_with_the_rare_word_first():
    documents = ["the cat sat", "the dog sat", "the dog ran"]
    assert best_by_bm25(documents, ["cat", "ran dog"], 2)[0][0] == 0
    assert best_by_bm25(documents, ["ran dog"], 9)[0][0] == 2


def test_held_out_articles_are_read_from_the_models_folder(place, tmp_path):
    assert held_out(str(place / "model")) is None
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "held_out.json").write_text('{"articles": ["B"]}')
    assert held_out(str(tmp_path)) == ["B"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", "[1]", "holds none; line 1: a line must be an object with fields, got a list"),
        ("a.jsonl", "{", "holds none; line 1: must be JSON"),
        ("a.jsonl", "", "must hold a question at least"),
        ("a.jsonl", '{"query": "q"}', "line 1: must have the field document, has query"),
        ("a.jsonl", '{"query": "q", "document": "d", "label": "x"}', "label must be a number, got x"),
        ("a.jsonl", '{"query": "q", "candidates": []}', "candidates must not be empty"),
        ("a.jsonl", '{"query": "q", "candidates": ["a"], "labels": [1, 2]}', "must have a label for each of 1"),
        ("a.csv", "question;document\nq;d\n", "must name the columns query and document, got question, document"),
        ("a.json", "[]", "must be in SQuAD's format"),
        ("a.json", '{"data": [{"title": "A"}]}', "it lacks 'paragraphs'"),
        ("a.json", '{"data": []}', "must hold questions on some article"),
        ("a.txt", "", "the data must be .jsonl, .csv, .tsv, .parquet or .json"),
    ],
)
def test_data_that_cannot_be_read_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_questions(tmp_path / name)


def test_a_folder_must_hold_one_file(tmp_path):
    with pytest.raises(InputError, match=r"must hold one .jsonl, .csv, .tsv, .parquet or .json file, got 0"):
        read_questions(tmp_path)
    with pytest.raises(InputError, match="there is no data file"):
        read_questions(tmp_path / "none.jsonl")


def test_a_plan_needs_something_to_do():
    with pytest.raises(InputError, match="pairs must be 1 or more, got 0"):
        Plan(pairs=0)


def test_curves_are_drawn_within_their_picture_with_every_name():
    lines = {f"method {n} <&>": [0.0, n + 1.0, n * 2.0] for n in range(9)}
    root = ET.fromstring(curves("lost", (0, 0.5, 1), lines, ["method 3 <&>"]))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    drawn = [part for part in root if part.tag.endswith("polyline")]
    points = [tuple(map(float, point.split(","))) for part in drawn for point in part.attrib["points"].split()]
    assert len(drawn) == 9 and all(0 < x < width and 0 < y < height for x, y in points)
    assert sum("control" in part.attrib["class"] for part in drawn) == 1
    names = [part for part in root if part.tag.endswith("text") and (part.text or "").startswith("method")]
    places = sorted(float(part.attrib["y"]) for part in names)
    assert len(names) == 9 and min(np.diff(places)) >= 14 and places[-1] < height


def test_a_cell_has_its_interval():
    column = PANELS[0].columns[0]
    assert column.written(Mean(1.234, 1.0, 1.5, 9)) == "1.23 (1.00 to 1.50)"
    assert column.brief(Mean(-1.234, -1.5, -1.0, 9)) == "−1.23\n±0.25"
