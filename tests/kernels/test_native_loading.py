"""What is said where the compiled kernels are not there: nothing, a warning, or an error that ends the test session."""

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from paths import TESTS

import backlight

PACKAGE = Path(backlight.__file__).parent
USE = "import backlight; x = backlight.ones(3, requires_grad=True); (x * x).sum().backward(); print(x.grad.tolist())"
INFO = "from backlight.cli.main import main; main(['info'])"
ABSENT = "not built here"


def package_with(folder: Path, native: bytes | None) -> Path:
    """Make a copy of the package, of links, with a compiled module of this content, or none; return its folder."""
    (folder / "backlight" / "kernels").mkdir(parents=True)
    for file in PACKAGE.iterdir():
        if file.name not in ("kernels", "__pycache__"):
            (folder / "backlight" / file.name).symlink_to(file)
    for file in (PACKAGE / "kernels").iterdir():
        if not file.name.startswith(("_native", "__pycache__")):
            (folder / "backlight" / "kernels" / file.name).symlink_to(file)
    if native is not None:
        (folder / "backlight" / "kernels" / f"_native{EXTENSION_SUFFIXES[0]}").write_bytes(native)
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    unset = {"CI", "BACKLIGHT_REQUIRE_NATIVE", "BACKLIGHT_KERNELS", "PYTEST_XDIST_WORKER"}  # a worker imports PyTorch
    return {name: value for name, value in os.environ.items() if name not in unset} | {"PYTHONPATH": str(folder)} | more


def ran(folder: Path, program: str, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, *options, "-c", program]
    return subprocess.run(command, env=environment(folder), cwd=folder, capture_output=True, text=True)


def session(folder: Path, **variables: str) -> subprocess.CompletedProcess:
    """Run a test session with another copy of the package."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q"]
    command += [
        "-o",
        f"pythonpath={folder} {TESTS} {TESTS / 'support'}",
        str(TESTS / "kernels" / "test_native_loading.py"),
    ]
    return subprocess.run(
        command, env=environment(folder, **variables), cwd=TESTS.parent, capture_output=True, text=True
    )


def test_a_module_that_does_not_load_is_named_in_a_warning_and_the_rest_works(tmp_path):
    done = ran(package_with(tmp_path, b"this is no library"), USE)
    assert done.stdout == "[2.0, 2.0, 2.0]\n", done.stderr
    assert done.stderr.count("UserWarning") == 1
    assert "backlight.kernels._native does not load: " in done.stderr
    assert f"_native{EXTENSION_SUFFIXES[0]}" in done.stderr  # the loader's own words


def test_info_says_why_a_module_does_not_load(tmp_path):
    done = ran(package_with(tmp_path, b"this is no library"), INFO, "-W", "ignore")
    assert "NumPy (does not load: " in done.stdout, done.stderr
    assert f"_native{EXTENSION_SUFFIXES[0]}" in done.stdout


def test_an_installation_without_a_compiled_module_is_silent(tmp_path):
    folder = package_with(tmp_path, None)
    done = ran(folder, USE, "-W", "error")
    assert (done.stdout, done.stderr) == ("[2.0, 2.0, 2.0]\n", "")
    assert f"NumPy ({ABSENT}" in ran(folder, INFO).stdout


@pytest.mark.parametrize("content, why", [(b"this is no library", "does not load: "), (None, ABSENT)])
@pytest.mark.parametrize("variables", [{"CI": "true"}, {"BACKLIGHT_REQUIRE_NATIVE": "1"}], ids=lambda one: str(*one))
def test_a_session_that_requires_native_kernels_fails_in_its_first_line_without_them(tmp_path, content, why, variables):
    done = session(package_with(tmp_path, content), **variables)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
    assert len(errors) == 1
    assert errors[0].startswith("ERROR: native kernels are required here (")
    assert why in errors[0]


def test_no_session_runs_beside_a_module_that_does_not_load(tmp_path):
    done = session(package_with(tmp_path, b"this is no library"))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.startswith("ERROR: native kernels: backlight.kernels._native does not load: ")


@pytest.mark.parametrize("variables", [{}, {"CI": "false"}, {"CI": "true", "BACKLIGHT_KERNELS": "numpy"}], ids=str)
def test_other_sessions_run_without_native_kernels(tmp_path, variables):
    done = session(package_with(tmp_path, None), **variables)
    assert done.returncode == 0, done.stderr
