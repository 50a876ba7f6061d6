"""Whose option a word is; --steps; folded frames."""

import json

import pytest

from backlight.cli.main import main

SHOWS = "import sys\nprint(sys.argv[1:])\n"
LOOP = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
try:
    for step in range(1000):
        print("step", step)
        optimizer.zero_grad()
        try:
            model(torch.ones(3, 2)).square().mean().backward()
            optimizer.step()
        except Exception:
            print("caught")
finally:
    print("cleaned up")
"""
ENGINES = pytest.mark.parametrize("engine", ["torch", "backlight"])


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (["SCRIPT", "--epochs", "2"], ["--epochs", "2"]),
        (["SCRIPT", "data", "--json", "--notes"], ["data", "--json", "--notes"]),
        (["SCRIPT", "--epochs", "2", "--", "x"], ["--epochs", "2", "--", "x"]),
        (["SCRIPT", "--", "--notes", "--", "x"], ["--notes", "--", "x"]),
        (["--", "SCRIPT", "--notes", "--", "x"], ["--notes", "--", "x"]),
        (["SCRIPT", "--help"], ["--help"]),
        (["SCRIPT", "-m", "x"], ["-m", "x"]),
        (["SCRIPT", "--steps", "100"], ["--steps", "100"]),
        (["SCRIPT", "--steps=100", "--notes"], ["--steps=100", "--notes"]),
        (["SCRIPT", "--notes", "--epochs", "2"], ["--epochs", "2"]),
        (["SCRIPT", "--notes", "--", "--notes"], ["--notes"]),
        (["--notes", "SCRIPT"], []),
        (["SCRIPT"], []),
    ],
)
def test_what_follows_the_script_is_the_scripts(words, seen, written, capsys):
    script = written("script.py", SHOWS)
    argv = [script if word == "SCRIPT" else word for word in words]
    assert main(["doctor", "--engine", "backlight", *argv]) == 0
    assert capsys.readouterr().out == f"{seen}\n"


def test_an_option_that_the_script_names_is_the_scripts(written, capsys):
    script = written("script.py", SHOWS + "if '--json' in sys.argv: print('as JSON')")
    assert main(["doctor", "--engine", "backlight", script, "--json"]) == 0
    assert capsys.readouterr().out == "['--json']\nas JSON\n"
    assert main(["doctor", "--engine", "backlight", "--json", script]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["findings"] == []


@pytest.mark.parametrize("command", ["graph", "replay"])
def test_a_record_has_no_arguments(command, written, capsys):
    assert main([command, written("record.json", "{}"), "--epochs"]) == 2
    assert "unrecognized arguments: --epochs" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "graph", "replay", "doctor"])
def test_a_command_without_a_program_says_what_to_name(command, capsys):
    assert main([command]) == 2
    assert "or a module after -m" in capsys.readouterr().err
    assert main([command, "-m"]) == 2
    assert "-m must name a module" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "graph", "replay", "doctor"])
def test_help_names_the_program_and_its_arguments(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    out = capsys.readouterr().out
    assert "-m module [its arguments]" in out and "script.py" in out


# --- --steps ----------------------------------------------------------------------------------------------------------


SEEN = "1 optimizer with 4 parameters, 1 module"


@ENGINES
def test_steps_end_the_program_cleanly_after_so_many(engine, written, capsys):
    assert main(["doctor", "--engine", engine, "--steps", "3", written("script.py", LOOP)]) == 0
    out, err = capsys.readouterr()
    assert out == "step 0\nstep 1\nstep 2\ncleaned up\n"
    assert err == f"\ndoctor: no findings in 3 steps: 3 backwards, {SEEN}\ndoctor: stopped after 3 optimizer steps\n"


def test_a_program_that_makes_fewer_steps_ends_by_itself(written, capsys):
    script = written("script.py", LOOP.replace("1000", "2"))
    assert main(["doctor", "--engine", "backlight", "--steps", "3", script]) == 0
    assert capsys.readouterr().err == f"\ndoctor: no findings in 2 steps: 2 backwards, {SEEN}\n"


@ENGINES
def test_what_was_found_until_then_is_reported(engine, written, capsys):
    script = written("script.py", LOOP.replace("optimizer.zero_grad()", "pass"))
    assert main(["doctor", "--engine", engine, "--steps", "5", script]) == 1
    assert "BL703" in capsys.readouterr().err


def test_steps_must_be_at_least_1(written, capsys):
    assert main(["doctor", "--steps", "0", written("script.py", LOOP)]) == 2
    assert "steps must be at least 1, got 0" in capsys.readouterr().err


# --- tracebacks -------------------------------------------------------------------------------------------------------

DEEP = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 1))
    def forward(self, x):
        return self.layers(x)

@torch.no_grad()
def run():
    return Net()(torch.ones(1, 2))
run()
"""


@ENGINES
def test_frames_that_say_nothing_of_the_program_are_folded(engine, written, capsys, monkeypatch):
    script = written("script.py", DEEP)
    assert main(["doctor", "--engine", engine, script]) == 1
    err = capsys.readouterr().err
    assert f"of {engine} folded" in err and f'File "{script}", line 10, in forward' in err
    assert "_call_impl" not in err and "decorate_context" not in err
    lines = err.count("\n")
    monkeypatch.setenv("BACKLIGHT_TRACEBACK", "full")
    main(["doctor", "--engine", engine, script])
    full = capsys.readouterr().err
    assert "folded" not in full and full.count("\n") > lines + 5


def test_an_exception_of_the_program_alone_is_printed_as_python_prints_it(written, python, capsys):
    text = "def f(n):\n    if n: f(n - 1)\n    else: raise KeyError('x') from ValueError('y')\nf(9)\n"
    script = written("script.py", text)
    main(["run", script])
    assert capsys.readouterr().err == python(script).stderr
