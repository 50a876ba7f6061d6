"""The founding documents' code, in words of our own: one script a block, which PyTorch and backlight run alike."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from paths import TESTS
from script_output import said_by

import backlight
from backlight.cli.run import run_script

SCRIPTS = sorted((TESTS / "scripts").glob("seed_*.py"))
BLOCKS = {"002": 7, "003": 13, "004": 18}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_says_under_backlight_what_it_says_under_pytorch(path):
    codes = []
    ours = said_by(lambda: codes.append(run_script(str(path))))
    theirs = said_by(lambda: runpy.run_path(str(path), run_name="__main__"))
    assert codes == [0]
    assert ours == theirs
    assert ours[0], "a script that prints nothing shows nothing"


def test_every_block_of_the_documents_has_its_script():
    found = {number: sum(path.stem.startswith(f"seed_{number}_") for path in SCRIPTS) for number in BLOCKS}
    assert found == BLOCKS


def test_reading_the_gradient_of_a_result_warns_in_the_script_that_shows_it():
    path = TESTS / "scripts" / "seed_002_part2.py"
    _, warned = said_by(lambda: run_script(str(path)))
    assert len(warned) == 1
    assert warned[0].startswith("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.")


def test_the_command_runs_a_script_in_a_process_of_its_own():
    path = TESTS / "scripts" / "seed_002_part4.py"
    command = [sys.executable, "-m", "backlight", "run", path]
    found_here = {**os.environ, "PYTHONPATH": str(Path(backlight.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=found_here)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "slope of the cube of 3: 27.0\nits slope in turn: 18.0\n"
