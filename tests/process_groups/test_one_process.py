"""Without other processes: the errors of a missing group, and a group of one process, which needs no MPI."""

import re

import pytest
import torch
import torch.distributed

import backlight
import backlight.distributed
from backlight import nn
from backlight.distributed import run
from backlight.errors import InputError

PORT = "tcp://127.0.0.1:29871"
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    """Take away what a launcher sets."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def alone():
    """A group of one process."""
    backlight.distributed.init_process_group("gloo", init_method=PORT, rank=0, world_size=1)
    yield
    backlight.distributed.destroy_process_group()


def said(function, t):
    with pytest.raises(Exception) as problem:
        function(t)
    kinds = (ValueError, RuntimeError, TypeError)
    return next(kind for kind in kinds if isinstance(problem.value, kind)), str(problem.value).split(";")[0]


@pytest.mark.parametrize(
    "function",
    (
        lambda t: t.distributed.get_rank(),
        lambda t: t.distributed.get_world_size(),
        lambda t: t.distributed.all_reduce(t.ones(1)),
        lambda t: t.distributed.barrier(),
        lambda t: t.distributed.init_process_group("gloo"),
        lambda t: t.nn.parallel.DistributedDataParallel(t.nn.Linear(1, 1)),
        lambda t: (t.utils.data.distributed if t is torch else t.data).DistributedSampler([1]),
    ),
)
def test_without_a_group_the_error_is_pytorchs(function):
    assert said(function, backlight) == said(function, torch)


@pytest.mark.parametrize(
    ("arguments", "text"),
    (
        ({"backend": "nccl"}, 'Distributed package doesn\'t have NCCL built in: use "mpi", or "gloo", on the CPU'),
        ({"backend": "nope"}, 'Unknown backend type nope: use "mpi", or "gloo", which MPI carries as well'),
        ({"init_method": "smoke:///tmp/x"}, "No rendezvous handler for smoke://"),
        ({"init_method": "file:///tmp/x"}, "using file:// rendezvous: rank parameter missing"),
        ({"init_method": PORT, "world_size": 2}, "using tcp:// rendezvous: rank parameter missing"),
        (
            {"init_method": PORT, "rank": 2, "world_size": 2},
            "rank must be in the interval [0, 1] for a world size of 2",
        ),
        ({"timeout": 3}, "Expected timeout argument to be of type datetime.timedelta"),
        ({"store": object()}, "init_process_group takes no store in backlight"),
    ),
)
def test_a_group_that_cannot_be_made_says_why(arguments, text):
    with pytest.raises((RuntimeError, ValueError, TypeError), match=re.escape(text)):
        backlight.distributed.init_process_group(**arguments)
    assert not backlight.distributed.is_initialized()


def test_a_group_of_one_process_changes_nothing(alone):
    dist, tensor = backlight.distributed, backlight.tensor([1.0, 2.0])
    assert dist.all_reduce(tensor, op=dist.ReduceOp.AVG, async_op=True).wait()
    dist.broadcast(tensor, 0)
    gathered, objects = [backlight.zeros(2)], [None]
    dist.all_gather(gathered, tensor)
    dist.all_gather_object(objects, "x")
    dist.barrier()
    assert (tensor.tolist(), gathered[0].tolist(), objects) == ([1, 2], [1, 2], ["x"])
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "mpi")
    assert dist.group.WORLD is dist.GroupMember.WORLD is not None


def test_ddp_of_one_process_is_its_module(alone):
    backlight.manual_seed(0)
    module = nn.Linear(3, 2)
    nn.parallel.DistributedDataParallel(module)(backlight.ones(1, 3)).sum().backward()
    assert module.weight.grad.tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize(
    ("words", "text"),
    (
        (["--nproc-per-node=0", "x.py"], "--nproc-per-node must be a positive number, got 0"),
        (["--nproc_per_node=gpu", "x.py"], "--nproc-per-node must be a positive number, got gpu"),
        (["--nnodes=1:4", "x.py"], "--nnodes must be one number, got 1:4"),
        (["--nnodes=2", "x.py"], "--node-rank must be 0 to 1 on the 2 machines, got None"),
        (["--nnodes=2", "--node-rank=0", "--max-restarts=1", "x.py"], "--max-restarts must be 0 with several machines"),
        (["--rdzv-endpoint=host:x", "x.py"], "the port of --rdzv-endpoint must be a positive number, got x"),
        (["--nothing", "x.py"], "unrecognized arguments: --nothing"),
        ([], "the following arguments are required: script.py"),
        (["nowhere.py"], "there is no script nowhere.py"),
    ),
)
def test_arguments_that_torchrun_cannot_use_are_one_line(words, text, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if words[-1:] == ["x.py"]:
        (tmp_path / "x.py").touch()
    with pytest.raises(InputError, match=re.escape(text)):
        run.main(words)
