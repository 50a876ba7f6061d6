"""`backlight replay`: in a terminal one step at a time, elsewhere a listing, as JSON and as a page."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

import pytest
from hand_made import seed_record
from paths import ROOT
from rich.text import Text

import backlight as bl
from backlight import lens
from backlight.cli.main import main
from backlight.cli.screens.replay import ReplayScreen, fitted

SCRIPT = """import torch
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
c = a + b
d = b * 2
e = c * d
e.backward()
(a * 3).backward()
"""
SOURCE = ROOT / "src"


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "seed.py"
    file.write_text(SCRIPT)
    return str(file)


@pytest.mark.parametrize("engine", ["torch", "backlight"])
def test_without_a_terminal_all_steps_are_printed(script, engine, capsys):
    assert main(["replay", script, "--engine", engine]) == 0
    printed = capsys.readouterr().out
    assert "grad · other = grad · d = 1 · 6 = 6" in printed
    assert "10 + 6 = 16" in printed and "seed.py:6  e = c * d" in printed
    assert "a.grad: 6 → 6 + 3 = 9" in printed


@pytest.mark.parametrize("engine", ["torch", "backlight"])
def test_one_backward_can_be_chosen(script, engine, capsys):
    main(["replay", script, "--engine", engine, "--backward", "2", "--json"])
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [step["kind"] for step in steps] == ["begin", "fire", "grad", "end"]


def test_a_saved_record_is_replayed(tmp_path, capsys):
    seed_record().save(tmp_path / "step.json")
    assert main(["replay", str(tmp_path / "step.json")]) == 0
    assert "b.grad: None → 16" in capsys.readouterr().out


def test_a_page_opens_on_the_replay(script, tmp_path, capsys):
    assert main(["replay", script, "--engine", "backlight", "--html", str(tmp_path / "out.html")]) == 0
    assert '"open":true' in (tmp_path / "out.html").read_text()
    assert "steps in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--backward", "3"], "backward must be one of the 2 that were recorded, got 3"),
        (["--html", "/nowhere/out.html"], "must name a file in a folder that exists, got /nowhere/out.html"),
    ],
)
def test_what_cannot_be_used_is_one_line(script, arguments, said, capsys):
    assert main(["replay", script, "--engine", "backlight", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_script_without_gradients_has_no_step(tmp_path, capsys):
    (tmp_path / "plain.py").write_text("import torch\ntorch.ones(3).sum()\n")
    assert main(["replay", str(tmp_path / "plain.py"), "--engine", "backlight"]) == 2
    assert "nothing was recorded" in capsys.readouterr().err


def test_a_script_that_fails_shows_how_far_it_came(tmp_path, capsys):
    (tmp_path / "fails.py").write_text(SCRIPT + "e.backward()\n")
    assert main(["replay", str(tmp_path / "fails.py"), "--engine", "backlight"]) == 1
    assert "is ended by an error" in capsys.readouterr().out


def screen(step: int = 0) -> ReplayScreen:
    record = seed_record()
    return ReplayScreen(record.replay(), record.nodes, step)


def lines(shown: ReplayScreen, width: int = 80, height: int = 24) -> list[str]:
    return shown.draw(width, height).plain.split("\n")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 12), (200, 60), (30, 8)])
@pytest.mark.parametrize("step", range(12))
def test_a_step_fits_any_window(width, height, step):
    drawn = lines(screen(step), width, height)
    assert len(drawn) == height and all(Text(line).cell_len <= width for line in drawn)


def test_the_node_that_fires_is_marked_and_gradients_are_seen_to_arrive():
    drawn = lines(screen(6))
    assert [line.split()[1] for line in drawn if line.startswith("▶")] == ["e"]
    assert any("d ×" in line and "← 5 arrives" in line for line in drawn)


def test_no_gradient_yet_is_a_dash_and_a_sum_that_grows_says_so():
    drawn = lines(screen(7))
    assert any("a leaf" in line and "grad —" in line for line in drawn)
    assert any("b leaf" in line and "grad 10 + …" in line for line in drawn)


@pytest.mark.parametrize("width", [50, 80])
def test_all_numbers_of_a_step_are_written_on_a_narrow_screen(width):
    x = bl.arange(6.0, requires_grad=True)
    with lens.watch() as watch:
        (bl.tanh(x) * 1234.56789).sum().backward()
    replay = watch.record.replay()
    for step in replay.steps:
        shown = lines(ReplayScreen(replay, watch.record.nodes, step.number), width, 60)
        written = {word for line in shown for word in line.split()}
        assert {word for part in step.parts for line in part.lines for word in line.split()} <= written


def test_a_list_that_does_not_fit_keeps_whole_numbers_and_a_large_tensor_its_norm():
    assert fitted("[1234.6, 0.5000, 2]", 19) == "[1234.6, 0.5000, 2]"
    assert fitted("[1234.6, 0.5000, 2]", 18) == fitted("[1234.6, 0.5000, 2]", 12) == "[1234.6, …]"
    assert fitted("grad (64×128) of norm 0.5312", 18) == "grad ‖·‖ 0.5312"
    assert fitted("1234.6", 3) == "…"


def test_keys_walk():
    shown = screen()
    keys = ["right", "space", "left", "left", "left", "end", "right", "home", "b"]
    for key, number in zip(keys, [1, 2, 1, 0, 0, 11, 11, 0, 5], strict=True):
        assert shown.press(key) and shown.at == number, key
    assert not shown.press("q")


def test_a_search_finds_steps_one_after_another_and_says_if_there_is_none():
    shown = screen()
    for key in ["/", *"AddBackward0", "enter"]:
        shown.press(key)
    assert shown.step.node == 2 and shown.step.kind == "fire"
    shown.press("n")
    assert shown.step.node == 1 and "AddBackward0 of c" in shown.step.text()
    for key in ["/", *"zzz", "backspace", "enter"]:
        shown.press(key)
    assert "'zz' is in no step" in lines(shown)[-1]


def test_a_long_step_scrolls_no_further_than_its_end():
    shown = screen(6)
    for _ in range(50):
        shown.press("pagedown")
    last = lines(shown, height=12)
    assert any("line " in line for line in last)


def test_a_person_walks_through_it_in_a_terminal(tmp_path):
    seed_record().save(tmp_path / "step.json")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(slave)
    command = [sys.executable, "-m", "backlight", "replay", str(tmp_path / "step.json"), "--backward", "1"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    try:
        until(master, "step 6 of 12")
        os.write(master, b"\x1b[C")
        until(master, "1 · 6 = 6")
        os.write(master, b"\x1b[F")
        until(master, "step 12 of 12")
        os.write(master, b"\x1b[D")
        until(master, "step 11 of 12")
        os.write(master, b"q")
        assert process.wait(60) == 0
        assert termios.tcgetattr(slave) == before
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def until(master: int, wanted: str) -> None:
    """Read what a terminal shows until a text is in it."""
    seen, end = b"", time.monotonic() + 120
    while wanted.encode() not in seen:
        assert time.monotonic() < end, f"{wanted!r} was not shown; got {seen[-2000:].decode(errors='replace')}"
        if select.select([master], [], [], 0.5)[0]:
            seen += os.read(master, 65536)


def test_a_script_that_is_no_python_ends_with_its_syntax_error_alone(tmp_path, capsys):
    file = tmp_path / "broken.py"
    file.write_text("def f(:\n    pass\n")
    assert main(["replay", str(file), "--engine", "backlight"]) == 1
    assert capsys.readouterr().err.rstrip().endswith("SyntaxError: invalid syntax")
