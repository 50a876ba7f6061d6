"""Notebooks run cell after cell in their own folder; findings name cell and line; IPython's lines are left out."""

import json

import pytest

from backlight.cli.main import main
from backlight.cli.programs.notebook import code_cells

TRAINS = """
import torch
from torch import nn
%matplotlib inline
!pip install something \\
    else
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
FORGETS = """
for step in range(4):
    loss = model(torch.ones(3, 2)).square().mean()
    loss.backward()
    optimizer.step()
display("loss", round(loss.item() * 0))
"""


def notebook(*cells: str, **metadata) -> str:
    written = [{"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": []} for cell in cells]
    written.insert(1, {"cell_type": "markdown", "source": "# text"})
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": written})


def python_of(text: str) -> tuple[str, tuple[str, ...]]:
    cells = code_cells(notebook(text).encode(), "n.ipynb")
    return (cells[0].text.removesuffix("\n"), cells[0].skipped) if cells else ("", ())


@pytest.mark.parametrize("engine", ["torch", "backlight"])
def test_a_finding_names_cell_and_line(engine, written, capsys):
    path = written("train.ipynb", notebook(TRAINS, FORGETS))
    assert main(["doctor", "--engine", engine, path]) == 1
    out, err = capsys.readouterr()
    assert out == "loss 0\n"
    assert f"{path} cell 2:4" in err and "loss.backward()" in err
    assert "skipped IPython syntax: %matplotlib inline (train.ipynb cell 1)" in err
    assert "!pip install something" in err


def test_cells_share_names_and_the_folder_of_the_notebook(written, capsys, tmp_path):
    written("data.txt", "7")
    path = written(
        "sub/../n.ipynb",
        notebook("import pathlib; value = int(pathlib.Path('data.txt').read_text())", "print(value, __name__)"),
    )
    assert main(["run", path]) == 0
    assert capsys.readouterr().out == "7 __main__\n"


def test_a_failing_cell_shows_its_line_and_ends_the_run(written, capsys):
    path = written("n.ipynb", notebook("x = 1", "def f():\n    return 1 / 0\nf()", "print('not reached')"))
    assert main(["run", path]) == 1
    out, err = capsys.readouterr()
    assert out == "" and f'File "{path} cell 2", line 2, in f\n    return 1 / 0\n' in err
    assert "programs/" not in err and "run.py" not in err


def test_a_cell_that_is_no_python_fails_when_its_turn_comes(written, capsys):
    path = written("n.ipynb", notebook("print('ran')", "x = ("))
    assert main(["doctor", "--engine", "backlight", path]) == 2
    out, err = capsys.readouterr()
    assert out == "ran\n" and "cell 2" in err and "SyntaxError: '(' was never closed" in err


def test_the_graph_of_a_notebook_is_drawn(written, capsys):
    path = written(
        "n.ipynb", notebook("import torch\nx = torch.ones(3, requires_grad=True)", "x.exp().sum().backward()")
    )
    assert main(["graph", "--engine", "backlight", path]) == 0
    assert "exp  data" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "python", "skipped"),
    [
        ("x = 1\n%timeit f(x)\ny = 2", "x = 1\npass\ny = 2", ("%timeit f(x)",)),
        ("if x:\n    !ls\ny = 2", "if x:\n    pass\ny = 2", ("!ls",)),
        ("!a \\\n  b\ny = 2", "pass\n\ny = 2", ("!a \\", "b")),
        ("files = !ls\nx = %env HOME", "pass\npass", ("files = !ls", "x = %env HOME")),
        ("torch.nn?\n?torch\nf??", "pass\npass\npass", ("torch.nn?", "?torch", "f??")),
        ("%time train()", "train()", ()),
        ("%%time\ntrain()", "\ntrain()", ()),
        ("%%doctor --notes\ntrain()", "\ntrain()", ("%%doctor --notes",)),
        ("%%bash\nls", "", ("%%bash",)),
        ("x = (5\n%3)\n", "x = (5\n%3)", ()),
        ('s = """\n%d\n!x\n"""', 's = """\n%d\n!x\n"""', ()),
        ("x = 5 \\\n% 3", "x = 5 \\\n% 3", ()),
        ("a = b != c\nx %= 2", "a = b != c\nx %= 2", ()),
    ],
)
def test_lines_of_ipython_are_left_out_and_no_others(text, python, skipped):
    assert python_of(text) == (python, skipped)


def test_notebooks_of_the_older_format_are_read():
    cell = {"cell_type": "code", "input": ["x = 1\n", "y = 2"]}
    (found,) = code_cells(json.dumps({"nbformat": 3, "worksheets": [{"cells": [cell]}]}).encode(), "n.ipynb")
    assert found.text == "x = 1\ny = 2\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no JSON", "must be a Jupyter notebook"),
        ("[]", "must be a Jupyter notebook"),
        ('{"cells": 3}', "must be a Jupyter notebook"),
        (notebook("x <- 1", kernelspec={"language": "R"}), "must be a notebook of Python, got one of R"),
    ],
)
def test_what_is_no_notebook_of_python_is_one_line_and_2(text, said, written, capsys):
    assert main(["doctor", "--engine", "backlight", written("n.ipynb", text)]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
