"""Programs on several processes, of backlight or of PyTorch, and what they wrote."""

import json
import os
import subprocess
import sys
from pathlib import Path

import backlight

PROGRAMS = Path(__file__).parent.parent / "process_groups" / "programs"
SOURCE = str(Path(backlight.__file__).parent.parent)
OURS, PYTORCHS = "backlight.distributed.run", "torch.distributed.run"


def command(count, program, *arguments, launcher=OURS, options=()):
    """Return the command that runs a program of tests/process_groups on several processes."""
    script = [str(PROGRAMS / program), *map(str, arguments)]
    return [sys.executable, "-m", launcher, "--standalone", f"--nproc-per-node={count}", *options, *script]


def environment():
    """Return an environment in which processes find this backlight, and no warning of PyTorch's launcher."""
    return {**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def run(count, program, *arguments, launcher=OURS, options=(), timeout=120):
    """Run a program to its end."""
    return subprocess.run(
        command(count, program, *arguments, launcher=launcher, options=options),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def results(count, program, folder, *arguments, launcher=OURS):
    """Run a program that writes RANK.json into a folder; return what each rank wrote."""
    folder.mkdir(exist_ok=True)
    ended = run(count, program, folder, *arguments, launcher=launcher)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(count)]
