"""Output that cannot be written, of every command: one line on standard error, exit code 1, and no traceback."""

import contextlib
import io
import os
import subprocess
import sys

import pytest
from batch_inputs import many, write_lines
from pair_files import rows, write_rows
from tiny_bert import write_cross_encoder

from backlight.cli.main import COMMANDS, main

SCRIPT = """
import torch
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
print("the end")
"""
TRAINING = """
epochs = 1
batch_size = 50
[model]
sizes = [8]
[data]
name = "synthetic"
samples = 100
"""


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """What commands are given: a model, a script, records of its graph, a training run, pairs."""
    folder = tmp_path_factory.mktemp("given")
    (folder / "script.py").write_text(SCRIPT)
    (folder / "training.toml").write_text(f'out = "{folder / "run"}"\n{TRAINING}')
    write_lines(folder / "pairs.jsonl", many(20))
    texts = [row["document"] for row in many(60)]
    lists = [{"query": texts[n], "candidates": texts[n + 4 : n + 8], "labels": [0, 0, 1, 0]} for n in range(0, 50, 2)]
    write_lines(folder / "lists.jsonl", lists)
    write_cross_encoder(folder / "model")
    with contextlib.redirect_stdout(io.StringIO()):
        record = ["graph", str(folder / "script.py"), "--engine", "backlight", "--json", str(folder / "graph.json")]
        assert main(record) == 0
    write_rows(folder / "rows.jsonl", rows())
    later = {name: str(folder / name) for name in ("out", "records", "trained", "trained as data")}
    return later | {name: str(folder / name) for name in os.listdir(folder)}


TEXTS = ("plants food", "plants make food", "the air")
CUT = "documents are cut at"  # what `evaluate` says of the model that reads 32 tokens
KEPT = ("--records", "{records}", "--resume")
STUDY = ("{lists.jsonl}", "--model", "{model}", "--methods", "saliency", "--pairs", "5", "--detailed-pairs", "3", *KEPT)
TRAINED = ("train-reranker", "{rows.jsonl}", "--from", "{model}", "--epochs", "0.1", "--resume")
LINES = {
    "rank": ("rank", *TEXTS, "--model", "{model}"),
    "rank as data": ("rank", *TEXTS, "--model", "{model}", "--json"),
    "explain": ("explain", *TEXTS, "--model", "{model}"),
    "explain as data": ("explain", *TEXTS, "--model", "{model}", "--json"),
    "explain, methods": ("explain", "--methods"),
    "compare": ("compare", *TEXTS, "--model", "{model}"),
    "compare as data": ("compare", *TEXTS, "--model", "{model}", "--json"),
    "matrix": ("matrix", *TEXTS[:2], "--model", "{model}"),
    "matrix as data": ("matrix", *TEXTS[:2], "--model", "{model}", "--json"),
    "what-if": ("what-if", *TEXTS[:2], "--remove", "make", "--model", "{model}"),
    "what-if as data": ("what-if", *TEXTS[:2], "--remove", "make", "--model", "{model}", "--json"),
    "evaluate": ("evaluate", *STUDY),
    "evaluate as data": ("evaluate", *STUDY, "--json"),
    "batch": ("batch", "{pairs.jsonl}", "-o", "{out}", "--model", "{model}"),
    "batch as data": ("batch", "{pairs.jsonl}", "-o", "{out}", "--model", "{model}", "--json"),
    "diff": ("diff", "{graph.json}", "{graph.json}"),
    "diff as data": ("diff", "{graph.json}", "{graph.json}", "--json"),
    "run": ("run", "{script.py}"),
    "graph": ("graph", "{graph.json}"),
    "replay": ("replay", "{graph.json}"),
    "replay as data": ("replay", "{graph.json}", "--json"),
    "doctor": ("doctor", "--list"),
    "train-reranker": (*TRAINED, "--out", "{trained}"),
    "train-reranker as data": (*TRAINED, "--out", "{trained as data}", "--json"),
    "train": ("train", "{training.toml}", "--replace"),
    "train, plan": ("train", "{training.toml}", "--dry-run"),
    "torchrun": ("torchrun", "--help"),
    "info": ("info",),
    "help": ("--help",),
    "version": ("--version",),
}


def test_every_command_is_tried():
    assert set(COMMANDS) <= {line[0] for line in LINES.values()}


def line_of(name: str, given: dict[str, str]) -> list[str]:
    return [given[word[1:-1]] if word.startswith("{") else word for word in LINES[name]]


def full_disk():
    return open("/dev/full", "w")


def closed_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    return open(writing, "w")


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize(
    ("stream", "reason"), [(full_disk, "No space left on device"), (closed_pipe, "its reader closed it")]
)
def test_output_that_cannot_be_written_is_said_in_one_line(name, stream, reason, given, monkeypatch, capsys):
    with stream() as out:
        monkeypatch.setattr("sys.stdout", out)
        assert main(line_of(name, given)) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("backlight") and CUT not in line] == [
        f"backlight: not all of the output could be written: {reason}"
    ]
    assert not any("Traceback" in line for line in said)


@pytest.mark.parametrize("name", ["explain", "rank as data", "info", "help"])
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("ends", ["> /dev/full", "| head -c 1 > /dev/null"])
def test_no_noise_follows_when_python_ends(name, buffered, ends, given, tmp_path):
    """With `head` the output may fit into the pipe before it closes: then nothing is wrong, and nothing is said."""
    code = tmp_path / "code"
    words = " ".join(f"'{word}'" for word in [sys.executable, "-m", "backlight", *line_of(name, given)])
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    environment |= {} if buffered else {"PYTHONUNBUFFERED": "1"}
    shell = ["bash", "-c", f"({words}; echo $? > {code}) {ends}"]
    found = subprocess.run(shell, capture_output=True, text=True, env=environment, timeout=120)
    said, ended = found.stderr.splitlines(), int(code.read_text())
    if ends == "> /dev/full":
        assert ended == 1 and len(said) == 1
    assert ended in (0, 1) and len(said) == (ended == 1), found.stderr
    assert all(line.startswith("backlight: not all of the output could be written") for line in said)


PAGES = {
    "explain": ("--html", "--svg"),
    "compare": ("--html", "--svg"),
    "matrix": ("--html", "--svg"),
    "rank": ("--html",),
}


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, some in PAGES.items() for option in some])
def test_a_page_that_cannot_be_written_is_said_in_one_line(name, option, given, capsys):
    assert main([*line_of(name, given), option, "/dev/full"]) == 2
    assert capsys.readouterr().err == "backlight: cannot write /dev/full: No space left on device\n"


@pytest.mark.parametrize(
    "line",
    [
        ("graph", "{graph.json}", "--html", "/dev/full"),
        ("graph", "{graph.json}", "--svg", "/dev/full"),
        ("graph", "{graph.json}", "--dot", "/dev/full"),
        ("graph", "{graph.json}", "--json", "/dev/full"),
        ("replay", "{graph.json}", "--html", "/dev/full"),
        ("diff", "{graph.json}", "{graph.json}", "--html", "/dev/full"),
        ("diff", "{graph.json}", "{graph.json}", "--svg", "/dev/full"),
        ("doctor", "{script.py}", "--engine", "backlight", "--sarif", "/dev/full"),
        ("train", "{training.toml}", "--set", "out=/dev/full"),
        ("batch", "{pairs.jsonl}", "-o", "/dev/full", "--model", "{model}"),
        ("evaluate", *STUDY, "--html", "/dev/full"),
        ("evaluate", *STUDY, "--records", "/dev/full"),
    ],
    ids=lambda line: " ".join(line),
)
def test_a_file_that_cannot_be_written_is_said_in_one_line(line, given, capsys):
    assert main([given[word[1:-1]] if word.startswith("{") else word for word in line]) == 2
    said = [
        line for line in capsys.readouterr().err.splitlines() if not line.endswith("% measured") and CUT not in line
    ]
    assert len(said) == 1 and said[0].startswith("backlight: ")
