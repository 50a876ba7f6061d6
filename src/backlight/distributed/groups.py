"""Process groups under PyTorch's names: made from the environment, left, and which rank this process is."""

import importlib.util
import os
import sys
from collections.abc import Sequence
from datetime import timedelta

from backlight.distributed.mpi import Alone, connect, finish, mpi_is_there
from backlight.distributed.process_group import ProcessGroup, seconds
from backlight.distributed.rendezvous import address_of
from backlight.errors import ArgumentError, DistError, UnsupportedError, ValueProblem

__all__ = [
    "Backend",
    "GroupMember",
    "default_pg_timeout",
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "new_group",
]

NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."
default_pg_timeout = timedelta(minutes=30)
OVER_MPI = {"mpi", "gloo"}
ELSEWHERE = {"nccl", "ucc", "xccl"}


class Backend(str):
    """The name of a backend."""

    __slots__ = ()

    GLOO, NCCL, MPI, UCC, XCCL, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "xccl", "undefined"


class _Default:
    """The group of all processes, once it is made."""

    def __init__(self):
        self.group: ProcessGroup | None = None


_default = _Default()


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 - PyTorch's name
        """The group of all processes; None before `init_process_group`."""
        return _default.group


class GroupMember(metaclass=_World):
    """The group of all processes, and what `new_group` returns in a process that is not in the group."""

    NON_GROUP_MEMBER = -100


class group(metaclass=_World):  # noqa: N801 - PyTorch's name
    """The group of all processes."""


Group = ProcessGroup | int | None  # as it is passed to functions; an int is NON_GROUP_MEMBER


def is_available() -> bool:
    """Tell whether processes can work together: one always can with itself, several with mpi4py."""
    return True


def is_initialized() -> bool:
    """Tell whether there is a process group."""
    return _default.group is not None


def is_mpi_available() -> bool:
    """Tell whether mpi4py and a library of MPI are installed."""
    return importlib.util.find_spec("mpi4py") is not None and mpi_is_there()


def is_gloo_available() -> bool:
    """Tell whether `init_process_group("gloo")` works for several processes: MPI then carries the group."""
    return is_mpi_available()


def is_nccl_available() -> bool:
    """Tell whether there is NCCL: there is not."""
    return False


is_ucc_available = is_xccl_available = is_nccl_available


def is_backend_available(backend: str) -> bool:
    """Tell whether a backend of that name can be used."""
    return backend.lower() in OVER_MPI and is_mpi_available()


def is_torchelastic_launched() -> bool:
    """Tell whether torchrun, or backlight's, started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: object = None,
    group_name: str = "",
    pg_options: object = None,
    device_id: object = None,
) -> None:
    """Make the group of all processes of a job, and wait until all have come.

    Where they meet is said by `init_method` ("env://", which reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, or
    "tcp://host:port", or "file:///path", a file that does not exist yet); a process that mpiexec started needs neither.

    Args:
        backend: "mpi" or None; "gloo" is carried by MPI as well, and a line on stderr says so.
        timeout: how long a call waits for other processes, 30 minutes by default.
        world_size: how many processes there are; by default the environment says.
        rank: which of them this is; by default the environment says.
        store: not there; `init_method` says where processes meet.
        group_name: ignored.
        pg_options: ignored.
        device_id: ignored.

    Raises:
        ValueError: there is a group already, or the environment does not say where to meet.
        RuntimeError: the backend is not there, or a process did not come.
    """
    if _default.group is not None:
        raise ValueProblem("trying to initialize the default process group twice!")
    if store is not None:
        raise UnsupportedError("init_process_group takes no store in backlight: use init_method, or the environment")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise ArgumentError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    chosen = _backend(backend)
    meeting, limit = address_of(init_method, rank, world_size), seconds(timeout or default_pg_timeout)
    if meeting is not None and meeting.world == 1:
        _default.group = ProcessGroup(Alone(), [0], limit)
        return
    transport, watch, library = connect(meeting, limit)
    _default.group = ProcessGroup(transport, range(transport.size), limit, watch)
    if chosen == "gloo" and transport.rank == 0:
        print(f'backlight: "gloo" is not there, {library} carries the process group in its place', file=sys.stderr)


def _backend(name: str | None) -> str:
    """Return the backend for the CPU that is meant.

    Raises:
        RuntimeError: backlight lacks it.
        ValueError: there is none of that name.
    """
    if name is None:
        return "mpi"
    chosen = str(name).lower()
    if ":" in chosen:
        chosen = dict(part.partition(":")[::2] for part in chosen.split(",")).get("cpu", chosen)
    if chosen in ELSEWHERE:
        raise DistError(
            f'Distributed package doesn\'t have {chosen.upper()} built in: use "mpi", or "gloo", on the CPU'
        )
    if chosen not in OVER_MPI:
        raise ValueProblem(f'Unknown backend type {name}: use "mpi", or "gloo", which MPI carries as well')
    return chosen


def group_of(group: Group) -> ProcessGroup:
    """Return a group, by default that of all processes.

    Raises:
        ValueError: there is none, or this process is not in it.
    """
    found = _default.group if group is None else group
    if found is None:
        raise ValueProblem(NO_GROUP)
    if not isinstance(found, ProcessGroup):
        raise ValueProblem("Invalid process group specified: this process is not part of it")
    return found


def destroy_process_group(group: Group = None) -> None:
    """Leave a group, by default that of all processes, once all have come to leave it."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    found = group_of(group)
    if found is _default.group:
        _default.group = None
    if found.size() > 1:
        found.collective("destroy_process_group", found.transport.free).wait()
        found.close()
        if _default.group is None:
            finish()


def get_rank(group: Group = None) -> int:
    """Return which process of a group this is; -1 if it is not in it."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else group_of(group).rank


def get_world_size(group: Group = None) -> int:
    """Return how many processes a group has; -1 if this process is not in it."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else group_of(group).size()


def get_backend(group: Group = None) -> Backend:
    """Return the name of what carries a group: "mpi", whatever was requested."""
    return Backend(group_of(group).name())


def get_process_group_ranks(group: Group = None) -> list[int]:
    """Return the numbers of a group's processes among all."""
    return list(group_of(group).ranks)


def get_group_rank(group: Group, global_rank: int) -> int:
    """Return the rank in a group of a process, by its number among all."""
    return group_of(group).rank_of(global_rank)


def get_global_rank(group: Group, group_rank: int) -> int:
    """Return the number among all processes of a rank of a group."""
    ranks = group_of(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueProblem(f"Group rank {group_rank} is not part of group {ranks}")
    return ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return which process of this machine this is, as the launcher says in LOCAL_RANK."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise DistError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow None to be returned."
        )
    return fallback_rank


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: object = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
) -> ProcessGroup | int:
    """Make a group of some of the processes. All processes must call this, in the same order.

    Args:
        ranks: their numbers, by default all.
        timeout: how long a call waits for other processes; by default as in the group of all.
        backend: as for `init_process_group`.
        pg_options: ignored.
        use_local_synchronization: ignored: all processes make the group.
        group_desc: ignored.

    Returns:
        The group; `GroupMember.NON_GROUP_MEMBER` in a process that is not in it.
    """
    everyone = group_of(None)
    _backend(backend)
    chosen = everyone.ranks if ranks is None else sorted(ranks)
    if len(set(chosen)) != len(chosen) or not set(chosen) <= set(everyone.ranks):
        raise ValueProblem(
            f"the new group's ranks must be different ones from 0 to {everyone.size() - 1}, got {list(ranks or ())}"
        )
    limit = everyone.timeout if timeout is None else seconds(timeout)
    if everyone.size() == 1:
        return ProcessGroup(Alone(), chosen, limit)
    made: list = []
    everyone.collective(f"new_group {chosen}", lambda: made.append(everyone.transport.part(chosen))).wait()
    return GroupMember.NON_GROUP_MEMBER if made[0] is None else ProcessGroup(made[0], chosen, limit, everyone._watch)
