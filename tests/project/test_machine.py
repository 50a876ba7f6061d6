"""What the tests need of the machine is there, and what is missing is named with its cure."""

import subprocess
import sys
from pathlib import Path

from browser import MISSING, chromium_path
from paths import ROOT

PREPARE = ROOT / "tools" / "prepare_machine.py"


def prepared(*names: str, path: Path) -> subprocess.CompletedProcess:
    """Run the preparation with nothing but a folder on the path."""
    command = [sys.executable, str(PREPARE), *names]
    return subprocess.run(command, env={"PATH": str(path)}, capture_output=True, text=True, timeout=60)


def test_chromium_is_installed():
    assert chromium_path() is not None, MISSING


def test_what_is_missing_is_named_with_its_cure(tmp_path):
    done = prepared("venv", "compiler", "browser", path=tmp_path)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert [line.split(" is missing")[0] for line in lines] == ["A C compiler with Python's headers", "Chromium"]
    assert "install gcc libc6-dev python3-dev. Without it backlight runs on NumPy alone" in lines[0]
    assert "install chromium fonts-liberation. Without it one test fails" in lines[1]


def test_nothing_is_said_where_nothing_is_missing(tmp_path):
    (tmp_path / "chromium").symlink_to(sys.executable)
    done = prepared("venv", "browser", path=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
