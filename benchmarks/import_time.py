"""How long an import takes, as a whole process, and how much is installed: backlight, NumPy, PyTorch.

python benchmarks/import_time.py [--quick] [--json FILE] [--check]
"""

import importlib.util
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from measure import OURS, RIVAL, Bar, Case
from packaging.requirements import Requirement
from suite import main

TITLE = "a process that imports one library"
SUITE = "import"
BAR = 0.12  # seconds more than NumPy's import
PROGRAMS = {OURS: "import backlight", RIVAL: "import torch", "numpy": "import numpy", "nothing": "pass"}


def process(program: str):
    """Return a function that runs a program in a new interpreter."""

    def once():
        subprocess.run([sys.executable, "-c", program], check=True)

    return once


def cases(quick: bool = False) -> list[Case]:
    """Return the one row."""
    programs = {name: PROGRAMS[name] for name in (OURS, "numpy")} if quick else PROGRAMS
    return [
        Case(
            "import",
            {name: lambda program=program: process(program) for name, program in programs.items()},
            bars=(Bar(BAR, against=("numpy",), of="extra"),),
            threads=1,
            tolerance=None,
            seconds=30.0,
        )
    ]


def sizes() -> list[dict]:
    """Return a row with the installed size of each library, alone and with all that it requires, in MiB."""
    memory = {}
    for name in (OURS, RIVAL):
        memory[name] = {"peak": own_size(name)}
        memory[f"{name} and what it requires"] = {"peak": sum(map(own_size, required(name)))}
    return [
        {
            "suite": SUITE, "row": "installed size", "threads": 1, "unit": "ms", "seconds": {}, "ratios": {},
            "memory": memory, "rounds": 1, "dropped": 0, "noisy": False, "left_out": {}, "apart": None, "bars": [],
        }
    ]  # fmt: skip


def required(name: str, found: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a distribution and all that it requires here, without its extras."""
    if name in found:
        return found
    found = (*found, name)
    for text in metadata.requires(name) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found = required(requirement.name.lower().replace("_", "-"), found)
    return found


def own_size(name: str) -> float:
    """Return the size of a distribution's files in MiB, without bytecode; of an editable one, of its package."""
    distribution = metadata.distribution(name)
    files = [Path(distribution.locate_file(file)) for file in distribution.files or ()]
    if name == OURS:
        (folder,) = importlib.util.find_spec(name).submodule_search_locations
        files = list(Path(folder).rglob("*"))
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc") / (1 << 20)


if __name__ == "__main__":
    sys.exit(main(SUITE, TITLE, cases, sizes_of=sizes))
