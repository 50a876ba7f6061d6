"""What goes wrong on one rank ends all, soon, with its name, and leaves no process behind."""

import os
import re
import signal
import subprocess
import time

import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed here: pip install 'backlight[distributed]'")

# isort: split

from many_processes import command, environment, run

SAID = {
    "killed": r"rank 1 \(local_rank 1, process \d+ on \S+\) was killed by SIGKILL; the others were ended",
    "raises": r"ValueError: a mistake of the script(.|\n)*rank 1 .* failed with exit code 1; the others were ended",
    "leaves": r"rank 1 \(process \d+ on \S+\) has ended while rank 0 waited for bucket 0 of gradients",
    "late": r"Timed out waiting 10000ms for bucket 0 of gradients .* rank 0 called it, rank 1 did not",
    "other size": r"Detected mismatch between collectives on ranks. Rank \d is running collective: .* of 7 float32",
}


def left(folder):
    """Return which processes that the ranks noted are still there."""
    noted = [int(word) for file in folder.glob("*.pids") for word in file.read_text().split()]
    return [pid for pid in noted if os.path.exists(f"/proc/{pid}") and " Z " not in _stat(pid)]


def _stat(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read()
    except OSError:
        return " Z "


def gone(folder, seconds=60):
    """Wait until none of the noted processes is there; return whether that is so."""
    deadline = time.monotonic() + seconds
    while left(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left(folder)


@pytest.mark.parametrize("how", SAID)
def test_a_rank_that_fails_ends_all_and_is_named(how, tmp_path):
    ended = run(2, "failing.py", how, tmp_path)  # which does not wait for a rank that sleeps ten minutes
    assert ended.returncode == 1
    assert re.search(SAID[how], ended.stderr), ended.stderr
    assert gone(tmp_path)


def test_a_script_that_ends_well_says_nothing_but_what_carries_its_group(tmp_path):
    ended = run(2, "failing.py", "well", tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert re.fullmatch(r'backlight: "gloo" is not there, MPICH \S+ carries .* in its place\n', ended.stderr)


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT, signal.SIGKILL), ids=lambda number: number.name)
def test_a_launcher_that_is_ended_leaves_no_rank(number, tmp_path):
    launcher = subprocess.Popen(
        command(2, "failing.py", "waits", tmp_path), env=environment(), stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("*.steps"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    launcher.send_signal(number)
    assert launcher.wait(120) == (-number if number == signal.SIGKILL else 128 + number)
    ranks = [int(file.read_text().split()[0]) for file in tmp_path.glob("*.pids")]
    helpers = [int(file.read_text().split()[1]) for file in tmp_path.glob("*.pids")]
    if number == signal.SIGKILL:  # a process of the script's own is not the launcher's to end any more
        for helper in helpers:
            os.kill(helper, signal.SIGKILL)
    assert gone(tmp_path) and len(ranks) == 2


def test_a_rank_that_never_comes_is_named(tmp_path):
    alone = {**environment(), "RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}
    words = command(1, "failing.py", "never", tmp_path)
    ended = subprocess.run([words[0], "-m", "backlight", "run", *words[-3:]], env=alone, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "rank 0: ranks 1, 2 of 3 did not come within 2 s" in ended.stderr


def test_training_that_was_killed_goes_on_to_the_same_bit(tmp_path):
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    killed.mkdir(), undisturbed.mkdir()
    assert run(2, "resuming.py", undisturbed, -1).returncode == 0
    ended = run(2, "resuming.py", killed, 7, options=["--max-restarts=1"])
    assert ended.returncode == 0, ended.stderr
    assert "was killed by SIGKILL; the others were ended; all are started again (1 of 1)" in ended.stderr
    weights = [(folder / f"weights.{rank}").read_bytes() for folder in (killed, undisturbed) for rank in (0, 1)]
    assert len(set(weights)) == 1 and len(weights[0]) == 4 * (5 * 32 + 32 + 32 + 1)
