"""MPI, which carries the bytes between processes: the one file that imports mpi4py.

NOTE [Two phases]
A collective begins with an agreement: each rank sends every other one line that says what it is about to do. Its
arrival is polled, since a late rank may take minutes, and who is missing is known. When all have come and say the
same, the data move in blocking calls, which wait for no program any more: MPI then runs at full speed outside of
Python's lock (7.4 MB in 8 to 13 ms where polled calls took 57 ms, both on two busy cores). Waiting in a blocking call
for a late rank would take a whole core, and could not be given up.
"""

import atexit
import importlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np

from backlight.distributed.rendezvous import Meeting, Watch, connect_ranks
from backlight.errors import DistBackendError, DistError, install_hint

WIDTH = 200  # bytes of the line that says what a rank is about to do
MISMATCH = "Detected mismatch between collectives on ranks."
INSTALL = install_hint("distributed")


class Transport(Protocol):
    """What moves arrays between the processes of a group.

    Attributes:
        rank: which of them this process is.
        size: how many there are.
    """

    rank: int
    size: int

    def agreement(self, what: str, missing: set[int]) -> Iterator[None]:
        """Yield until all ranks have come to the same collective; take those that have from `missing`."""

    def exchange(self, sent: np.ndarray, sizes: Sequence[int], received: np.ndarray, places: Sequence[int]) -> None:
        """Send each rank its part of an array, and put the parts that come one behind the other.

        Args:
            sizes: how many elements each rank gets.
            places: how many elements each rank sends.
        """

    def gather(self, array: np.ndarray, sizes: Sequence[int]) -> None:
        """Fill an array of which each rank has its own part."""

    def broadcast(self, array: np.ndarray, source: int) -> None:
        """Fill an array with that of one rank."""


class Alone:
    """A group of one process: nothing moves."""

    rank, size = 0, 1

    def agreement(self, what: str, missing: set[int]) -> Iterator[None]:
        """Yield nothing: there is no other rank."""
        return iter(())

    def exchange(self, sent: np.ndarray, sizes: Sequence[int], received: np.ndarray, places: Sequence[int]) -> None:
        """Copy."""
        received[:] = sent

    def gather(self, array: np.ndarray, sizes: Sequence[int]) -> None:
        """Do nothing: the array is complete."""

    def broadcast(self, array: np.ndarray, source: int) -> None:
        """Do nothing: the array is the source's."""


class MPITransport:
    """The processes of a communicator of MPI."""

    def __init__(self, mpi: ModuleType, communicator):
        self._mpi = mpi
        self._collectives, self._transfers = communicator.Dup(), communicator.Dup()
        self.rank, self.size = communicator.rank, communicator.size

    def agreement(self, what: str, missing: set[int]) -> Iterator[None]:
        """Yield until all ranks have come to the same collective (see NOTE [Two phases])."""
        byte, others = self._mpi.BYTE, list(missing)
        mine = np.frombuffer(what.encode()[:WIDTH].ljust(WIDTH), np.uint8)
        theirs = {rank: np.empty(WIDTH, np.uint8) for rank in others}
        coming = {rank: self._collectives.Irecv([theirs[rank], byte], rank) for rank in others}
        going = [self._collectives.Isend([mine, byte], rank) for rank in others]
        while missing:
            for rank in [rank for rank in missing if coming[rank].Test()]:
                missing.discard(rank)
            if missing:
                yield
        self._mpi.Request.Waitall(going)
        for rank, line in theirs.items():
            if line.tobytes() != mine.tobytes():
                said = line.tobytes().decode("utf-8", "replace").rstrip()
                raise DistBackendError(
                    f"{MISMATCH} Rank {self.rank} is running collective: {what}, but Rank {rank} is running "
                    f"collective: {said}: all ranks must call the same ones in the same order, on tensors of one size"
                )

    def exchange(self, sent: np.ndarray, sizes: Sequence[int], received: np.ndarray, places: Sequence[int]) -> None:
        """Send each rank its part of an array, and put the parts that come one behind the other."""
        self._collectives.Alltoallv(self._parts(sent, sizes), self._parts(received, places))

    def gather(self, array: np.ndarray, sizes: Sequence[int]) -> None:
        """Fill an array of which each rank has its own part."""
        self._collectives.Allgatherv(self._mpi.IN_PLACE, self._parts(array, sizes))

    def broadcast(self, array: np.ndarray, source: int) -> None:
        """Fill an array with that of one rank."""
        self._collectives.Bcast([as_bytes(array), self._mpi.BYTE], source)

    def send(self, array: np.ndarray, rank: int, tag: int) -> Iterator[None]:
        """Yield until an array has been sent."""
        request = self._transfers.Isend([as_bytes(array), self._mpi.BYTE], rank, tag)
        while not request.Test():
            yield

    def receive(self, array: np.ndarray, rank: int | None, tag: int, source: list[int]) -> Iterator[None]:
        """Yield until an array has been received, from one rank or from any; put the sender's into `source`."""
        mpi = self._mpi
        rank, status = mpi.ANY_SOURCE if rank is None else rank, mpi.Status()
        request = self._transfers.Irecv([as_bytes(array), mpi.BYTE], rank, tag)
        while not request.Test(status):
            yield
        source.append(status.Get_source())
        came = status.Get_count(mpi.BYTE)
        if came != array.nbytes:
            raise DistBackendError(
                f"rank {self.rank} received {came:,} bytes from rank {source[0]} into a tensor of {array.nbytes:,}: "
                "send and recv must have the same size and dtype"
            )

    def part(self, ranks: Sequence[int]) -> "MPITransport | None":
        """Return what connects some of the ranks, which all of them must call; None in the others."""
        if self.rank not in ranks:
            return None
        members = self._collectives.Get_group().Incl(list(ranks))
        return MPITransport(self._mpi, self._collectives.Create_group(members))

    def free(self) -> None:
        """Give the communicators back, once all ranks have come."""
        self._collectives.Barrier()
        self._collectives.Free()
        self._transfers.Free()

    def _parts(self, array: np.ndarray, sizes: Sequence[int]) -> list:
        counts = [size * array.itemsize for size in sizes]
        return [as_bytes(array), counts, [sum(counts[:rank]) for rank in range(self.size)], self._mpi.BYTE]


def as_bytes(array: np.ndarray) -> np.ndarray:
    """Return the bytes of a contiguous array, of whatever dtype."""
    return array.reshape(-1).view(np.uint8)


def mpi_is_there() -> bool:
    """Tell whether mpi4py and a library of MPI are installed."""
    try:
        _library()
    except DistError:
        return False
    return True


class _World:
    """MPI in this process: it is started once, and used again by a later process group.

    Attributes:
        mpi: mpi4py's module; None before the start.
        meeting: where its processes met; None if a launcher of MPI started them.
        watch: knows which of them have ended.
    """

    def __init__(self):
        self.mpi: ModuleType | None = None
        self.meeting: Meeting | None = None
        self.watch: Watch | None = None


_world = _World()


def connect(meeting: Meeting | None, timeout: float) -> tuple[MPITransport, Watch | None, str]:
    """Return what connects the processes of a job, what watches them, and the name of the library.

    Raises:
        RuntimeError: MPI is not installed, not of the right kind, or was started with other processes.
    """
    mpi = _library()
    if _world.mpi is None:
        _start(mpi, meeting, timeout)
    elif _world.meeting != meeting:
        raise DistError("MPI starts once in a process: a later process group must be of the same ranks and address")
    transport = MPITransport(mpi, mpi.COMM_WORLD)
    return (
        transport,
        _world.watch,
        " ".join(mpi.Get_library_version().replace(",", " ").split()[:3]).replace(" Version:", ""),
    )


def finish() -> None:
    """Let MPI end when the process does, where a launcher of MPI expects it."""
    if _world.mpi is not None and _world.meeting is None:
        atexit.unregister(_world.mpi.Finalize)  # of a group before
        atexit.register(_world.mpi.Finalize)


def _start(mpi: ModuleType, meeting: Meeting | None, timeout: float) -> None:
    """Start MPI, with the processes that meet or with those that its own launcher started."""
    if meeting is not None:
        if "MPICH" not in mpi.Get_library_version() and "Intel" not in mpi.Get_library_version():
            raise DistError(
                f"{mpi.Get_library_version().split(',')[0]} starts by mpirun alone: start the script with mpirun and "
                f"without RANK and WORLD_SIZE, or use MPICH ({INSTALL}), which torchrun's way of starting needs"
            )
        connection, _world.watch = connect_ranks(meeting, timeout)
        given = {"PMI_FD": connection.fileno(), "PMI_RANK": meeting.rank, "PMI_SIZE": meeting.world}
        before = {name: os.environ.get(name) for name in given}
        os.environ.update({name: str(value) for name, value in given.items()})
    if not mpi.Is_initialized():
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
    if meeting is not None:
        connection.detach()  # MPI's from here on
        for name, value in before.items():  # or a program that this one starts would take itself for a rank
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        if mpi.COMM_WORLD.size != meeting.world:
            raise DistError("MPI was started before init_process_group, with other processes: call that first")
    mpi.COMM_WORLD.Barrier()
    _unlink_shared_memory()
    _world.mpi, _world.meeting = mpi, meeting


def _unlink_shared_memory() -> None:
    """Remove the names of MPI's shared memory, which all have opened: it goes when the processes do, killed or not."""
    maps = Path("/proc/self/maps")
    for line in maps.read_text().splitlines() if maps.exists() else ():
        file = line.split(maxsplit=5)[-1]
        if file.startswith("/dev/shm/mpich_shm_") and not file.endswith("(deleted)"):
            Path(file).unlink(missing_ok=True)


def _library() -> ModuleType:
    """Return mpi4py's module, without starting MPI.

    Raises:
        RuntimeError: mpi4py or a library of MPI is not installed.
    """
    try:
        settings = importlib.import_module("mpi4py").rc
        settings.initialize = settings.finalize = False
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as problem:
        raise DistError(
            "Distributed package doesn't have MPI built in: several processes need mpi4py and a library of MPI: "
            + INSTALL
        ) from problem
