"""Processes find each other however they are started."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed here: pip install 'backlight[distributed]'")

# isort: split

from many_processes import PROGRAMS, PYTORCHS, command, environment, results

PROGRAM = [sys.executable, "-m", "backlight", "run", str(PROGRAMS / "started.py")]


def free_port():
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def totals(folder, count):
    """Return what each rank had as the sum over all."""
    return [json.loads((folder / f"{rank}.json").read_text())["total"] for rank in range(count)]


def test_torchrun_sets_pytorchs_variables(tmp_path, monkeypatch):
    ours = results(2, "started.py", tmp_path / "ours")
    assert ours == results(2, "started.py", tmp_path / "pytorchs", launcher=PYTORCHS)
    assert [one["total"] for one in ours] == [3.0, 3.0]


def test_two_machines_make_one_group(tmp_path):
    port, launchers = free_port(), []
    for machine in "01":
        options = ["--nnodes=2", f"--node-rank={machine}", "--master-port", port]
        words = [word for word in command(2, "started.py", tmp_path, options=options) if word != "--standalone"]
        launchers.append(subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL))
    assert [launcher.wait(60) for launcher in launchers] == [0, 0]
    assert totals(tmp_path, 4) == [15.0] * 4
    assert json.loads((tmp_path / "3.json").read_text())["GROUP_RANK"] == "1"


@pytest.mark.parametrize("scheme", ("tcp", "file"))
def test_processes_that_a_script_spawns_make_a_group(tmp_path, scheme):
    meet = tmp_path / "meet"
    method = f"tcp://127.0.0.1:{free_port()}" if scheme == "tcp" else f"file://{meet}"
    subprocess.run([*PROGRAM, str(tmp_path), method], env=environment(), check=True, timeout=60)
    assert totals(tmp_path, 2) == [3.0, 3.0]
    assert not meet.exists()


def test_mpiexec_starts_a_group(tmp_path):
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    assert mpiexec, "MPICH's package brings mpiexec"
    subprocess.run([mpiexec, "-n", "2", *PROGRAM, str(tmp_path)], env=environment(), check=True, timeout=60)
    assert totals(tmp_path, 2) == [3.0, 3.0]
