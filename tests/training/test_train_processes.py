"""`backlight train --nproc`: processes share each batch, write one run, and go on with the same bits."""

import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed here: pip install 'backlight[distributed]'")

# isort: split

from many_processes import environment

from backlight.training.checkpoint import load_checkpoint
from backlight.training.run_folder import RunFolder

CONFIG = """
epochs = {epochs}
batch_size = 16
accumulate = 2
record_every = 1
checkpoint_every = 5
[model]
sizes = [16]
dropout = {dropout}
[optimizer]
name = "sgd"
lr = 0.05
[data]
name = "synthetic"
samples = 299
"""


def started(tmp_path, name, *options, dropout=0.0, epochs=3):
    """Start a run in a folder of that name."""
    config = tmp_path / "config.toml"
    config.write_text(CONFIG.format(dropout=dropout, epochs=epochs))
    words = ["-m", "backlight", "train", str(config), "--set", f"out={tmp_path / name}", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *words], env=environment(), text=True, **pipes)


def ended(run):
    """Wait for a run that ends well; return what it printed."""
    out, problem = run.communicate(timeout=120)
    assert run.returncode == 0, problem
    return out


def last_state(tmp_path, name):
    """Return the last checkpoint of a run."""
    return load_checkpoint(RunFolder(tmp_path / name).checkpoint())


def test_two_processes_train_as_one_and_record_the_same(tmp_path):
    alone, together = (ended(started(tmp_path, str(count), "--nproc", str(count))) for count in (1, 2))
    weights = [last_state(tmp_path, str(count))["model"] for count in (1, 2)]
    for name in weights[0]:
        assert np.abs(weights[0][name].numpy() - weights[1][name].numpy()).max() < 1e-6
    losses = [[one["loss"] for one in RunFolder(tmp_path / str(count)).records() if "loss" in one] for count in (1, 2)]
    assert len(losses[0]) == 30
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert together.splitlines()[-1] == alone.splitlines()[-1].replace(str(tmp_path / "1"), str(tmp_path / "2"))


def test_a_run_that_ctrl_c_stopped_goes_on_with_the_same_bits(tmp_path):
    two, settings = ("--nproc", "2"), {"dropout": 0.3, "epochs": 20}  # it must not end before the signal comes
    ended(started(tmp_path, "whole", *two, **settings))
    stopped = started(tmp_path, "stopped", *two, **settings)
    for line in stopped.stdout:
        if line.startswith("step "):
            break
    stopped.send_signal(signal.SIGINT)
    out, problem = stopped.communicate(timeout=60)
    assert (stopped.returncode, problem) == (130, "")
    assert "Stopped after step" in out and out.rstrip().endswith("--nproc 2 --resume")
    ended(started(tmp_path, "stopped", *two, "--resume", **settings))
    states = [last_state(tmp_path, name)["model"] for name in ("whole", "stopped")]
    assert all(states[0][name].numpy().tobytes() == states[1][name].numpy().tobytes() for name in states[0])
