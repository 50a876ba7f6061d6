"""Several processes train as one does on the whole batch, and DDP behaves as PyTorch's."""

import os
import re

import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed here: pip install 'backlight[distributed]'")

# isort: split

from many_processes import PYTORCHS, results, run
from paths import ROOT

from backlight.distributed import shared_memory

NETWORKS = ("mlp", "cnn", "transformer", "mlp in many buckets", "mlp over MPI alone")


@pytest.fixture(scope="module", params=(2, 4))
def ours(request, tmp_path_factory):
    """What each of 2 and of 4 processes found on backlight."""
    return results(request.param, "data_parallel.py", tmp_path_factory.mktemp("ours"))


@pytest.mark.parametrize("network", NETWORKS)
def test_processes_train_as_one_with_the_same_global_batch(ours, network):
    for found in ours:
        assert found["equal"][network]["apart"] < 1e-6 < 0.1 < found["equal"][network]["moved"]


@pytest.mark.parametrize("network", NETWORKS)
def test_all_ranks_have_the_same_weights_to_the_bit(ours, network):
    assert all(found["equal"][network]["same bits"] for found in ours)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="memory without a name is Linux's")
def test_gradients_lie_in_memory_that_all_ranks_see_where_there_is_such(ours):
    assert [found["shared"] for found in ours] == [[True, False]] * len(ours)


def test_memory_is_taken_for_another_machines_where_the_token_is_another(tmp_path):
    file = tmp_path / "memory"
    file.write_bytes(b"token".ljust(4096, b"\0"))
    assert shared_memory._opened(f"{file} token", 4096)[:5] == b"token"
    for line in (f"{file} other", f"{tmp_path / 'nothing'} token", ""):
        assert shared_memory._opened(line, 4096) is None


def test_gradients_are_reduced_while_the_backward_goes_on(ours):
    assert [found["overlap"] for found in ours] == [[True]] * len(ours)


def test_ddp_and_its_sampler_do_what_pytorchs_do(ours, tmp_path):
    """Gradients in and after no_sync, unused parameters, buffers, names, errors, indices: all exactly."""
    pytorchs = results(len(ours), "data_parallel.py", tmp_path / "pytorchs", "beside", launcher=PYTORCHS)
    for mine, theirs in zip(ours, pytorchs):
        assert {name: mine[name] for name in theirs} == theirs


def test_parameters_that_differ_between_ranks_are_named_on_all_of_them(ours):
    shapes = (
        "[1]: params[0] in this process with sizes [3, 2] appears not to match sizes of the same param in process 0"
    )
    count = "DDP expects same model across all ranks, but Rank 1 has 1 params, while rank 0 has inconsistent 2 params."
    for found in ours:
        assert found["differ"][0][1].startswith(shapes)
        assert found["differ"][1] == [True, count]


def test_the_example_learns_on_two_processes():
    ended = run(2, ROOT / "examples" / "data_parallel.py")
    assert re.fullmatch(r"2 processes, accuracy (0\.9\d|1\.00)\n", ended.stdout), ended.stderr
