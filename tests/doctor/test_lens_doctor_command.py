"""`backlight doctor` runs a script on either engine and reports what it found: text, JSON, SARIF, exit code."""

import json
import sys

import pytest

from backlight.cli.main import main

WRONG = """\
import sys

import torch

print("arguments", sys.argv[1:])
x = torch.ones(3, requires_grad=True)
y = x * 2
y.backward()
"""
RIGHT = WRONG.replace("y.backward()", "y.sum().backward()")
ENGINES = ("torch", "backlight")


@pytest.fixture
def script(tmp_path):
    def write(source: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(source)
        return str(path)

    return write


@pytest.mark.parametrize("engine", ENGINES)
def test_a_finding_names_line_cause_and_corrected_line(script, engine, capsys):
    path = script(WRONG)
    assert main(["doctor", path, "--engine", engine]) == 1
    out, err = capsys.readouterr()
    assert out == "arguments []\n"
    for part in (
        "BL201 error",
        f"{path}:8",
        "y.backward()",
        "its shape is [3]",
        "likely cause:",
        "+ y.sum().backward()",
    ):
        assert part in err
    assert err.index("\ndoctor: 1 finding in 0 backwards\n") < err.index("Traceback (most recent call last)")
    assert "\033" not in err


@pytest.mark.parametrize("engine", ENGINES)
def test_a_healthy_script_ends_with_0_and_sees_its_own_arguments(script, engine, capsys):
    assert main(["doctor", script(RIGHT), "--engine", engine, "--", "--epochs", "2"]) == 0
    out, err = capsys.readouterr()
    assert out == "arguments ['--epochs', '2']\n" and err == "\ndoctor: no findings in 1 backward\n"


def test_json_is_the_last_line_of_stdout(script, capsys):
    assert main(["doctor", script(WRONG), "--json", "--engine", "backlight"]) == 1
    out, err = capsys.readouterr()
    first, last = out.splitlines()
    (found,) = json.loads(last)["findings"]
    assert first == "arguments []" and "BL201" not in err
    assert (found["rule"], found["place"]["line"], found["corrected"]) == ("BL201", 8, "y.sum().backward()")


@pytest.mark.parametrize("engine", ENGINES)
def test_sarif_has_what_the_standard_requires(script, engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, log = script(WRONG), tmp_path / "doctor.sarif"
    assert main(["doctor", path, "--engine", engine, "--verify", "--sarif", str(log)]) == 1
    found = json.loads(log.read_text())
    (run,) = found["runs"]
    driver, (result,) = run["tool"]["driver"], run["results"]
    assert found["version"] == "2.1.0" and driver["name"] == "backlight doctor"
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "BL201"
    assert result["level"] in ("none", "note", "warning", "error") and result["message"]["text"]
    where = result["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "script.py" and where["region"]["startLine"] == 8
    (change,) = result["fixes"][0]["artifactChanges"]
    assert WRONG.splitlines()[7][slice(*columns(change["replacements"][0]["deletedRegion"]))] == "y.backward()"
    assert change["replacements"][0]["insertedContent"]["text"] == "y.sum().backward()"


def columns(region: dict) -> tuple[int, int]:
    return region["startColumn"] - 1, region["endColumn"] - 1


def test_the_corrected_script_is_healthy(script, tmp_path, capsys):
    log = tmp_path / "doctor.sarif"
    main(["doctor", script(WRONG), "--engine", "backlight", "--verify", "--sarif", str(log)])
    assert "verified: the corrected script has no findings" in capsys.readouterr().err
    result = json.loads(log.read_text())["runs"][0]["results"][0]
    replacement = result["fixes"][0]["artifactChanges"][0]["replacements"][0]
    lines = WRONG.splitlines()
    lines[replacement["deletedRegion"]["startLine"] - 1] = replacement["insertedContent"]["text"]
    assert main(["doctor", script("\n".join(lines)), "--engine", "backlight"]) == 0


def test_a_correction_that_was_not_run_is_no_fix(script, tmp_path):
    log = tmp_path / "doctor.sarif"
    main(["doctor", script(WRONG), "--engine", "backlight", "--sarif", str(log)])
    assert "fixes" not in json.loads(log.read_text())["runs"][0]["results"][0]


def test_a_correction_that_leaves_a_mistake_is_not_verified(script, capsys):
    wrong = WRONG + "raise ValueError('not of gradients')\n"
    main(["doctor", script(wrong), "--engine", "backlight", "--verify"])
    err = capsys.readouterr().err
    assert "+ y.sum().backward()" in err and "verified:" not in err


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_corrections_of_several_lines_are_verified_together(script, capsys):
    wrong = WRONG.replace("y.backward()", "scale = float(y.sum())\ny.backward()")
    main(["doctor", script(wrong), "--engine", "torch", "--verify"])
    assert capsys.readouterr().err.count("verified: the corrected script has no findings") == 2


def test_an_exception_that_is_no_matter_of_gradients_is_no_finding(script, capsys):
    assert main(["doctor", script("import torch\n1 / 0\n"), "--engine", "backlight"]) == 2
    err = capsys.readouterr().err
    assert "ZeroDivisionError" in err and "no findings in 0 backwards, but the script ended with exit code 1" in err


@pytest.mark.parametrize("extra", [(), ("--json",)], ids=["text", "json"])
def test_a_script_that_is_no_python_ends_with_its_syntax_error_and_2(script, extra, capsys):
    assert main(["doctor", script("def f(:\n    pass\n"), "--engine", "backlight", *extra]) == 2
    out, err = capsys.readouterr()
    assert "SyntaxError: invalid syntax" in err and "Traceback" not in err
    assert out.startswith('{"findings": [], "coverage": {"steps": 0') if extra else out == ""


@pytest.mark.parametrize(
    "argv, said",
    [
        (["doctor"], "a script (--explain and --list need none), or a module after -m, must be given"),
        (["doctor", "missing.py"], "can't open file"),
        (["doctor", "--explain", "BL999"], "rule must be an id such as BL301"),
        (["doctor", "script.py", "--engine", "jax"], "invalid choice"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(argv, said, capsys):
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_a_rule_is_explained_and_all_are_listed(capsys):
    assert main(["doctor", "--explain", "in-place-on-leaf"]) == 0
    assert capsys.readouterr().out.startswith("BL301 in-place-on-leaf (error)")
    assert main(["doctor", "--list"]) == 0
    assert "BL703  warning forgotten-zero-grad" in capsys.readouterr().out


def test_colours_are_for_terminals_and_can_be_refused(script, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    main(["doctor", script(WRONG), "--engine", "backlight"])
    assert "\033[1;31mBL201 error" in capsys.readouterr().err
    monkeypatch.setenv("NO_COLOR", "1")
    main(["doctor", script(WRONG), "--engine", "backlight"])
    assert "\033" not in capsys.readouterr().err
