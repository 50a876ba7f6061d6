"""What `graph`, `replay`, `doctor` and `diff` refuse before a script runs, and how they show a script's error."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import backlight
from backlight.cli.main import main
from backlight.cli.screens import tracebacks
from backlight.engine.provenance import PACKAGE

ENGINES = pytest.mark.parametrize("engine", ["torch", "backlight"])
LENS_COMMANDS = pytest.mark.parametrize("command", ["graph", "replay", "doctor"])
OURS = str(Path(backlight.__file__).parent)
FAILING = {
    "op": "y = x @ torch.ones(2)",
    "backward": "y = x.exp()\ny.detach().add_(1)\ny.sum().backward()",
    "grad": "y = x.exp()\ny.detach().add_(1)\ntorch.autograd.grad(y.sum(), x)",
    "hook": "x.register_hook(lambda grad: {}['hook'])\n(x * 2).sum().backward()",
    "function": "Own.apply(x).sum().backward()",
    "module": "Net()(x)",
    "step": "torch.optim.SGD([x], lr=0.1).step(lambda: {}['closure'])",
}
DEFINED = """
import torch

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("in the user's backward")

class Net(torch.nn.Module):
    def forward(self, x):
        return x.reshape(5, 5)

x = torch.ones(3, requires_grad=True)
"""


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(text: str, name: str = "script.py") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


def frames(err: str) -> list[tuple[str, str]]:
    """Return (file, function) of each line of a traceback."""
    return re.findall(r'  File "([^"]+)", line \d+, in (\S+)', err)


@ENGINES
@LENS_COMMANDS
@pytest.mark.parametrize("failing", FAILING)
def test_a_scripts_traceback_has_no_frame_of_what_watches(engine, command, failing, written, capsys):
    script = written(DEFINED + FAILING[failing])
    main([command, script, "--engine", engine])
    shown = frames(capsys.readouterr().err)
    assert (script, "<module>") in shown
    watching = ("lens/", "adapters/", "dispatch/dispatcher.py", "dispatch/observed_pass.py", "cli/")
    assert [one for one in shown if one[0].startswith(tuple(f"{OURS}/{part}" for part in watching))] == []
    assert not any(file == "<backlight intercepted>" or name == "handle_torch_function" for file, name in shown)


def test_on_pytorch_a_watched_error_looks_as_it_does_unwatched(written, capsys):
    script = written(DEFINED + FAILING["backward"])
    main(["graph", script, "--engine", "torch"])
    names = [name for _, name in frames(capsys.readouterr().err)]
    assert names == ["<module>", "backward", "backward", "_engine_run_backward"]


def test_a_mistake_of_the_lens_is_said_with_its_place_and_the_program_goes_on(written, capsys, monkeypatch):
    def broken(*args):
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr("backlight.lens.records.recording.Recording.called", broken)
    with pytest.warns(UserWarning, match=r"lens.watch could not go on: ZeroDivisionError: .* in broken \(.*:\d+\)"):
        main(["graph", written(DEFINED + "y = x * 2\nprint('the end')"), "--engine", "torch"])
    assert "the end" in capsys.readouterr().out


def test_a_cause_is_cleaned_too(capsys):
    def dispatch():
        raise KeyError("inner")

    filename = f"{PACKAGE}dispatch/dispatcher.py"  # as if it were the dispatcher's
    dispatch.__code__ = dispatch.__code__.replace(co_filename=filename)
    try:
        try:
            dispatch()
        except KeyError as inner:
            raise ValueError("outer") from inner
    except ValueError as outer:
        tracebacks.show(outer)
    err = capsys.readouterr().err
    assert "KeyError: 'inner'" in err and filename not in err


@pytest.mark.parametrize(
    "argv",
    [
        ["graph", "SCRIPT", "--html", "FOLDER"],
        ["graph", "SCRIPT", "--json", "FOLDER"],
        ["replay", "SCRIPT", "--html", "FOLDER"],
        ["doctor", "SCRIPT", "--sarif", "FOLDER"],
    ],
)
def test_an_output_that_is_a_folder_is_told_before_the_script_runs(argv, written, tmp_path, capsys):
    script = written("print('it ran')")
    given = [{"SCRIPT": script, "FOLDER": str(tmp_path)}.get(word, word) for word in argv]
    assert main(given) == 2
    told = capsys.readouterr()
    assert "must name a file, got the folder" in told.err and told.err.count("\n") == 1
    assert told.out == ""


def test_an_output_in_no_folder_is_told_before_the_script_runs(written, capsys):
    assert main(["replay", written("print('it ran')"), "--html", "/nowhere/out.html"]) == 2
    told = capsys.readouterr()
    assert "a folder that exists" in told.err and told.out == ""


@LENS_COMMANDS
def test_options_are_written_in_full(command, written, capsys):
    assert main([command, "--engin", "backlight", written("print('it ran')")]) == 2
    told = capsys.readouterr()
    assert "unrecognized arguments: --engin" in told.err and told.out == ""


@pytest.mark.parametrize("command", ["doctor", "run"])
@pytest.mark.parametrize(("name", "text"), [("a.json", "{}"), ("notes.md", "# Notes\n\nSome text."), ("a.toml", "a b")])
def test_what_is_no_script_is_refused_in_one_line(command, name, text, written, capsys):
    assert main([command, written(text, name)]) == 2
    err = capsys.readouterr().err
    assert "script must be a Python file" in err and err.count("\n") == 1


def test_a_script_with_a_mistake_is_shown_as_python_shows_it(written, capsys):
    assert main(["doctor", written("x = (")]) == 2
    assert "SyntaxError" in capsys.readouterr().err


def test_a_tree_that_is_piped_is_cut_only_if_a_width_is_asked_for(written, capsys):
    script = written(
        "import torch\n" + f"{'v' * 150} = torch.ones(3, requires_grad=True)\n{'v' * 150}.sum().backward()"
    )
    assert main(["graph", script, "--engine", "backlight"]) == 0
    assert "v" * 150 in capsys.readouterr().out
    assert main(["graph", script, "--engine", "backlight", "--width", "60"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) == 60


@pytest.mark.parametrize("command", ["graph", "replay", "doctor"])
def test_pytorch_that_is_not_installed_is_told_in_one_line_before_the_script_runs(command, written):
    start = "import sys; sys.modules['torch'] = None; from backlight.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", start, command, written("print('ran')"), "--engine", "torch"],
        env={**os.environ, "PYTHONPATH": str(Path(backlight.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = "backlight: the engine `torch` needs PyTorch, which is not installed: pip install torch"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1
