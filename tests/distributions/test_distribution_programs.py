"""Programs as users of `torch.distributions` write them print the same under PyTorch and under `backlight run`."""

import contextlib
import io
import runpy

import pytest
from paths import TESTS

from backlight.cli.run import run_script

SCRIPTS = sorted((TESTS / "distributions" / "scripts").glob("*.py"))


def printed(run) -> str:
    """Return what a function prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run()
    return text.getvalue()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_program_prints_under_backlight_what_it_prints_under_pytorch(path):
    codes = []
    ours = printed(lambda: codes.append(run_script(str(path))))
    theirs = printed(lambda: runpy.run_path(str(path), run_name="__main__"))
    assert codes == [0]
    assert ours == theirs
    assert ours


def test_there_is_a_program_for_each_idiom():
    assert len(SCRIPTS) >= 10
