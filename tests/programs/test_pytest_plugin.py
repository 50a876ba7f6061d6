"""`pytest --doctor`: findings become warnings, with `=strict` failures; without the option it costs nothing."""

import tomllib

import pytest
from paths import ROOT

FORGETS = """
import pytest
import backlight as torch
from backlight import nn

def train():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        model(torch.ones(3, 2)).square().mean().backward()
        optimizer.step()

def test_that_trains():
    train()
"""
LINE = 9  # of backward()


@pytest.fixture
def plugged(pytester, monkeypatch):
    """Return a function that runs pytest with the plugin, in a process of its own, on a file of tests."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others' plugins take longer to import than ours to run

    def run(text: str, *argv: str):
        pytester.makepyfile(test_them=text)
        return pytester.runpytest_subprocess("-p", "pytest_backlight", *argv)

    return run


def test_findings_are_warnings_at_their_lines(plugged):
    done = plugged(FORGETS, "--doctor")
    done.assert_outcomes(passed=1, warnings=1)
    done.stdout.fnmatch_lines(["doctor: each test runs under it; what it finds is a warning"])
    done.stdout.fnmatch_lines([f"*test_them.py:{LINE}: DoctorWarning: BL703 warning:*", "*backward()*"])


def test_strict_makes_them_failures(plugged):
    done = plugged(FORGETS, "--doctor=strict")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["BL703 warning:*", f"*test_them.py:{LINE}*", "*likely cause:*"])


def test_the_option_takes_no_word_that_follows(plugged):
    plugged(FORGETS, "--doctor", "test_them.py").assert_outcomes(passed=1, warnings=1)
    assert "nonsense" in plugged(FORGETS, "--doctor=nonsense").stderr.str()


def test_warnings_that_are_errors_fail_the_test(plugged):
    plugged(FORGETS, "--doctor", "-W", "error::pytest_backlight.DoctorWarning").assert_outcomes(failed=1)


def test_a_marked_test_is_left_alone_and_a_healthy_one_passes(plugged):
    marked = FORGETS.replace("def test_that", "@pytest.mark.no_doctor\ndef test_that")
    marked += "\ndef test_healthy():\n    (torch.ones(3, requires_grad=True) * 2).sum().backward()\n"
    plugged(marked, "--doctor=strict", "--strict-markers").assert_outcomes(passed=2)
    plugged(marked, "--strict-markers").assert_outcomes(passed=2)


def test_a_failing_test_fails_as_without_and_shows_cause_and_cure(plugged):
    fails = "import backlight as torch\ndef test_it():\n    (torch.ones(3, requires_grad=True) * 2).backward()\n"
    done = plugged(fails, "--doctor=strict")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*GraphError: grad can be implicitly created only for scalar outputs*", "*BL201 error*"])


def test_errors_that_a_test_expects_and_skips_and_xfails_stay_what_they_are(plugged):
    text = """
import pytest
import backlight as torch

def test_raises():
    with pytest.raises(RuntimeError):
        (torch.ones(3, requires_grad=True) * 2).backward()

def test_skips():
    pytest.skip("not now")

@pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
def test_xfails():
    1 / 0
"""
    plugged(text, "--doctor=strict").assert_outcomes(passed=1, skipped=1, xfailed=1)


def test_without_the_option_nothing_of_backlight_is_imported(plugged):
    text = "import sys\n\ndef test_it():\n    assert not {'backlight', 'numpy', 'torch'} & set(sys.modules)\n"
    plugged(text).assert_outcomes(passed=1)
    plugged(text, "--doctor").assert_outcomes(failed=1)


def test_the_plugin_is_registered_under_its_modules_name():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"pytest_backlight": "pytest_backlight"}
