"""Work that would not end is refused before it begins, in one line that says what to do."""

import json

import pytest
from tiny_bert import cross_encoder

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.batch import Columns
from backlight.explain.batch.inputs import JsonLines
from backlight.explain.batch.rows import BadRow, rows_of
from backlight.explain.methods.interactions import MOST, joint_occlusion
from backlight.explain.parts import word_parts
from backlight.models.pairs import DOCUMENT, QUERY


def test_a_matrix_of_more_passes_than_allowed_is_refused_with_what_it_would_cost(capsys):
    """The model reads as many words as fit; of a query of 5,000 words beside a short document that is nearly all."""
    line = ["matrix", "plants " * 5000, "green plants make their food from water, air and sunlight every day, the " * 3]
    assert main(line) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"joint-occlusion may take {MOST:,} passes" in said
    assert "minutes or more: shorten a text, or allow it with most=" in said


@pytest.mark.parametrize("method", ["integrated-hessians", "hessian", "joint-occlusion"])
def test_every_matrix_has_a_bound_that_can_be_raised(method, capsys):
    line = ["matrix", "green plants", "plants make food", "--method", method]
    assert main([*line, "--option", "most=3"]) == 2
    said = capsys.readouterr().err
    needed = said.rpartition("most=")[2].rstrip(")\n")
    assert main([*line, "--option", f"most={needed}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passes"] >= int(needed)


def test_the_bound_counts_the_passes_that_a_matrix_takes():
    ranker = cross_encoder()
    (pair,) = ranker.read([("green plants", "plants make food")])
    needed = (1 + len(word_parts(pair, QUERY))) * (1 + len(word_parts(pair, DOCUMENT)))
    assert joint_occlusion(ranker, pair, most=needed).passes == needed
    with pytest.raises(InputError, match=f"need {needed} of {len(pair)} tokens"):
        joint_occlusion(ranker, pair, most=needed - 1)


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("shapley", ["budget=1000000000000"], "budget must be 1,000,000 or less"),
        ("kernel-shap", ["budget=1000000000000"], "budget must be 1,000,000 or less"),
        ("integrated-gradients", ["steps=1000000000", "max_steps=1000000000"], "max_steps must be 10,000 or less"),
        ("smoothgrad", ["samples=1000000000"], "samples must be 100,000 or less"),
        ("smoothgrad-mean", ["samples=1000000000"], "samples must be 100,000 or less"),
    ],
)
def test_absurd_options_of_methods_are_refused(method, options, said, capsys):
    given = [word for option in options for word in ("--option", option)]
    words = "plants make food from sunlight water and air the green leaf of a cell moon pulls tide train leaves coast"
    assert main(["explain", "plants", words, "--method", method, *given]) == 2
    assert said in capsys.readouterr().err


DEEP = {
    "opened": "a = " + "[" * 60_000,
    "closed": "a = " + "[" * 10_000 + "]" * 10_000,
    "inline tables": "a = " + "{a = " * 10_000 + "1" + "}" * 10_000,
}


@pytest.mark.parametrize("form", DEEP)
def test_settings_that_are_nested_too_deeply_are_one_line(form, tmp_path, capsys):
    file = tmp_path / "a.toml"
    file.write_text(DEEP[form])
    assert main(["train", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "must be nested less deeply" in said
    file.with_suffix(".json").write_text("[" * 60_000)
    assert main(["train", str(file.with_suffix(".json"))]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    file.write_text("epochs = 1")
    assert main(["train", str(file), "--set", DEEP[form].replace(" ", "")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_of_settings_that_is_too_large_is_refused_unread(tmp_path, capsys):
    """The parser takes minutes for a key of 100,000 dots."""
    file = tmp_path / "a.toml"
    file.write_text("a" + ".a" * 100_000 + " = 1")
    assert main(["train", str(file)]) == 2
    assert "must be settings, of 65,536 bytes or less, and has 200,005" in capsys.readouterr().err


@pytest.mark.parametrize("depth", [400, 900, 970, 990, 1000, 10_000, 100_000])
@pytest.mark.parametrize("form", ['{"query": "a", "x": %s}', '{"query": "a", "document": "b", "label": %s}', "%s"])
def test_a_line_that_is_nested_too_deeply_is_a_bad_row(depth, form, tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(form % ("[" * depth + "]" * depth) + "\n")
    (row,) = JsonLines(file).rows()
    assert isinstance(row, BadRow)


def test_a_record_that_is_nested_too_deeply_to_be_shown_is_a_bad_row():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    (row,) = rows_of({"query": "a", "document": "b", "label": deep}, 1, Columns())
    assert isinstance(row, BadRow) and row.reason == "must be nested less deeply"
