"""Idioms of PyTorch's programs: short scripts that print under `backlight run` what they print under PyTorch."""

import runpy
import sys

import pytest
import torch
from paths import TESTS
from script_output import said_by

import backlight
from backlight.cli.run import run_script

FOLDER = TESTS / "scripts" / "idioms"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.stem != "said")


def theirs(path):
    """Run a script under PyTorch, with its folder in `sys.path`, as Python does."""
    sys.path.insert(0, str(FOLDER))
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(autouse=True)
def default_dtypes_stay():
    """Put back the default dtypes that a script sets."""
    yield
    torch.set_default_dtype(torch.float32)
    backlight.set_default_dtype(backlight.float32)


@pytest.fixture(autouse=True)
def flags_may_be_set(monkeypatch):
    """Allow flags of backends to be set, which PyTorch's own testing modules forbid for the whole process."""
    monkeypatch.setitem(torch.backends.flags_frozen.__globals__, "__allow_nonbracketed_mutation_flag", True)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_under_backlight_what_it_prints_under_pytorch(path):
    codes = []
    ours, _ = said_by(lambda: codes.append(run_script(str(path))))
    expected, _ = said_by(lambda: theirs(path))
    assert ours == expected
    assert codes == [0]
    assert ours, "a script that prints nothing shows nothing"


def test_there_are_scripts_for_each_part():
    parts = {"api", "dispatch", "hooks", "memory", "optim", "save", "silent", "sparse", "tutorial"}
    assert {path.stem.partition("_")[0] for path in SCRIPTS} == parts
    assert len(SCRIPTS) >= 85
