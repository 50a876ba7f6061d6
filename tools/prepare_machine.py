"""Install what a Python package cannot bring: `python tools/prepare_machine.py venv compiler browser`.

What is missing is installed with apt-get if that is there and the user is root; otherwise one line for each says what
to install and what happens without it. It runs before the virtual environment exists, so it uses the standard library
alone, and it never fails: what cannot be installed shows up where it is needed, under the name printed here.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@dataclass(frozen=True)
class Requirement:
    """Something that the machine must have.

    Args:
        what: its name, as a sentence begins.
        present: whether it is there.
        packages: the Debian packages that bring it.
        without: what happens if it is missing.
    """

    what: str
    present: Callable[[], bool]
    packages: tuple[str, ...]
    without: str


def has_venv() -> bool:
    """Return whether `python -m venv` can make an environment with pip."""
    return importlib.util.find_spec("ensurepip") is not None


def has_compiler() -> bool:
    """Return whether a C compiler and Python's headers are there."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    return compiler is not None and Path(sysconfig.get_path("include"), "Python.h").is_file()


def has_browser() -> bool:
    """Return whether a Chromium is on the path."""
    return any(map(shutil.which, BROWSERS))


REQUIREMENTS = {
    "venv": Requirement(
        "Python's venv module with pip", has_venv, ("python3-venv",), "no environment can be made: nothing runs"
    ),
    "compiler": Requirement(
        "A C compiler with Python's headers",
        has_compiler,
        ("gcc", "libc6-dev", "python3-dev"),
        "backlight runs on NumPy alone, slower, and the tests of the native kernels are left out",
    ),
    "browser": Requirement(
        "Chromium",
        has_browser,
        ("chromium", "fonts-liberation"),
        "one test fails for all tests of pages, which are left out",
    ),
}


def install(packages: list[str]) -> None:
    """Install Debian packages, if this user can."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    print(f"Installing {', '.join(packages)} with apt-get ...", flush=True)
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        subprocess.run(["apt-get", "-qq", *command], **quiet)


def main() -> None:
    """Install what is missing of the named requirements, or say what to install."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=REQUIREMENTS)
    missing = [REQUIREMENTS[name] for name in parser.parse_args().names if not REQUIREMENTS[name].present()]
    if not missing:
        return
    install([package for one in missing for package in one.packages])
    importlib.invalidate_caches()
    for one in missing:
        if not one.present():
            packages = " ".join(one.packages)
            print(f"{one.what} is missing: install {packages}. Without it {one.without}.", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
