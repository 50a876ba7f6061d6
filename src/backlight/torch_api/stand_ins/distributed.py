"""`torch.distributed` in a program of one process: there are no process groups, and none can be made."""

import os
from collections.abc import Callable
from enum import Enum

from backlight.errors import UnsupportedError, ValueProblem

NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."


class ReduceOp(Enum):
    """The ways in which PyTorch's processes put their tensors together."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class ProcessGroup:
    """The type of PyTorch's groups of processes; nothing here is an instance."""


class Backend(str):
    """The name of a backend."""

    __slots__ = ()

    GLOO, NCCL, MPI, UCC = "gloo", "nccl", "mpi", "ucc"


def is_available() -> bool:
    """Tell whether processes can work together: they cannot."""
    return False


def is_initialized() -> bool:
    """Tell whether there is a process group: there is none."""
    return False


is_nccl_available = is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_available


def is_torchelastic_launched() -> bool:
    """Tell whether PyTorch's launcher started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: object = None,
    world_size: int = -1,
    rank: int = -1,
    store: object = None,
    group_name: str = "",
    pg_options: object = None,
    device_id: object = None,
) -> None:
    """Raise: there are no groups of processes.

    Raises:
        NotImplementedError: always.
    """
    raise UnsupportedError(
        "init_process_group is not in backlight, which computes in one process: run the script without a launcher, and "
        "make groups only where torch.distributed.is_available()"
    )


def _needs_a_group(name: str) -> Callable:
    def function(*args, **kwargs):
        raise ValueProblem(NO_GROUP)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raise ValueError, as PyTorch does without a process group."
    return function


NEED_A_GROUP = """
all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier broadcast
broadcast_object_list destroy_process_group gather gather_object get_backend get_process_group_ranks get_rank
get_world_size irecv isend monitored_barrier new_group recv reduce reduce_scatter reduce_scatter_tensor scatter
scatter_object_list send
"""
globals().update({name: _needs_a_group(name) for name in NEED_A_GROUP.split()})
