"""Collectives give on all ranks what PyTorch's give with Gloo, and the same bits everywhere."""

import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed here: pip install 'backlight[distributed]'")

# isort: split

from many_processes import PYTORCHS, results

COUNT = 3
OWN_WORDS = {  # errors for which PyTorch's say what its library enforces
    "error_sizes": "output tensor size must be equal to world_size times input tensor size",
    "error_splits": "Tensor's dim 0 does not divide equally across group size",
    "error_rank": "Global rank 99 is not part of group [0, 1, 2]",
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """What each rank found on backlight."""
    return results(COUNT, "collectives.py", tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def pytorchs(tmp_path_factory):
    """What each rank found on PyTorch, with Gloo."""
    return results(COUNT, "collectives.py", tmp_path_factory.mktemp("pytorchs"), launcher=PYTORCHS)


def test_every_collective_gives_on_every_rank_what_pytorchs_gives(ours, pytorchs):
    apart = OWN_WORDS.keys() | {"bits"}
    assert len(ours[0]) > 50
    for rank in range(COUNT):
        for name in pytorchs[rank].keys() - apart:
            assert ours[rank][name] == pytorchs[rank][name], f"rank {rank}: {name}"


def test_arguments_that_do_not_fit_are_refused_before_anything_is_sent(ours):
    assert {name: ours[1][name][1] for name in OWN_WORDS} == OWN_WORDS


def test_all_ranks_get_the_same_bits(ours):
    assert len({found["bits"] for found in ours}) == 1
