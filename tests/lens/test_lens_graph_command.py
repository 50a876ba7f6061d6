"""`backlight graph`: a script's last graph as text, page, picture, DOT and record, on both engines."""

import json

import pytest

from backlight.cli.main import main
from backlight.lens.records.reading import read_record

ENGINES = ("torch", "backlight")
EXPRESSION = """
import sys
import torch

a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0, requires_grad=True)
c = a + b
d = b * 2
e = c * d
e.backward()
"""
LOOP = """
import torch

w = torch.tensor(1.0, requires_grad=True)
for step in range(3):
    w.grad = None
    loss = w * (step + 1)
    loss.backward()
"""


@pytest.fixture
def script(tmp_path):
    """Return a function that writes a script and returns its path."""

    def written(text: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


@pytest.mark.parametrize("engine", ENGINES)
def test_without_outputs_the_tree_is_printed(script, capsys, engine):
    assert main(["graph", script(EXPRESSION), "--engine", engine]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("e") and "30" in lines[0] and "root" in lines[0]
    assert any("a" in line and "grad 6" in line for line in lines)


@pytest.mark.parametrize("engine", ENGINES)
def test_all_outputs_are_written_and_named(script, tmp_path, capsys, engine):
    files = {name: tmp_path / f"out.{name}" for name in ("html", "svg", "dot", "json")}
    options = [text for name, file in files.items() for text in (f"--{name}", str(file))]
    assert main(["graph", script(EXPRESSION), "--engine", engine, *options]) == 0
    said = capsys.readouterr().out
    assert all(str(file) in said for file in files.values())
    assert files["html"].read_text().startswith("<!doctype html>")
    assert files["svg"].read_text().startswith("<svg")
    assert files["dot"].read_text().startswith("digraph")
    assert read_record(files["json"]).engine == engine


def test_a_saved_record_is_drawn_without_its_script(script, tmp_path, capsys):
    saved = tmp_path / "out.json"
    main(["graph", script(EXPRESSION), "--engine", "backlight"])
    first = capsys.readouterr().out
    main(["graph", script(EXPRESSION), "--engine", "backlight", "--json", str(saved)])
    capsys.readouterr()
    assert main(["graph", str(saved)]) == 0
    assert capsys.readouterr().out == first


def test_what_stands_behind_the_dashes_is_the_scripts(script, capsys):
    assert main(["graph", script(EXPRESSION), "--engine", "backlight", "--", "5"]) == 0
    assert "data 70" in capsys.readouterr().out.splitlines()[0]  # (2 + 5) · (5 · 2)


@pytest.mark.parametrize(("backward", "value"), [("-1", 3.0), ("-2", 2.0), ("1", 1.0), ("2", 2.0)])
def test_backward_chooses_a_graph(script, tmp_path, backward, value):
    saved = tmp_path / "out.json"
    given = ["--engine", "backlight", "--backward", backward, "--json", str(saved)]
    assert main(["graph", script(LOOP), *given]) == 0
    (root,) = read_record(saved).roots
    assert root.outputs[0].values == value


@pytest.mark.parametrize("backward", ["0", "4", "-4"])
def test_a_backward_that_did_not_run_is_an_error(script, capsys, backward):
    assert main(["graph", script(LOOP), "--engine", "backlight", "--backward", backward]) == 2
    assert "--backward" in capsys.readouterr().err


@pytest.mark.parametrize("backward", ["2", "0", "-2"])
def test_a_backward_that_a_record_lacks_is_named_as_it_was_given(script, tmp_path, capsys, backward):
    saved = tmp_path / "out.json"
    assert main(["graph", script(EXPRESSION), "--engine", "backlight", "--json", str(saved)]) == 0
    assert main(["graph", str(saved), "--backward", backward]) == 2
    assert capsys.readouterr().err.endswith(f"got {backward}\n")


def test_a_script_that_fails_after_a_backward_still_gives_its_graph(script, tmp_path, capsys):
    saved = tmp_path / "out.json"
    failing = EXPRESSION + "raise ValueError('after it')\n"
    assert main(["graph", script(failing), "--engine", "backlight", "--json", str(saved)]) == 1
    told = capsys.readouterr()
    assert "ValueError: after it" in told.err and str(saved) in told.out
    assert len(json.loads(saved.read_text())["backwards"]) == 1


def test_a_script_that_fails_before_any_graph_gives_its_traceback_only(script, capsys):
    assert main(["graph", script("raise ValueError('before it')"), "--engine", "backlight"]) == 1
    told = capsys.readouterr()
    assert "ValueError: before it" in told.err and told.out == ""


def test_a_script_without_a_graph_is_an_error(script, capsys):
    assert main(["graph", script("x = 1"), "--engine", "backlight"]) == 2
    assert "requires grad" in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_told_before_the_script_runs(script, tmp_path, capsys):
    told = script("print('it ran')")
    assert main(["graph", told, "--html", str(tmp_path / "nowhere" / "out.html")]) == 2
    assert "it ran" not in capsys.readouterr().out
