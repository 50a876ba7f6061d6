"""How a process finds the others of its job: see NOTE [Rendezvous] in distributed/rendezvous_server.py."""

import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from backlight.distributed import rendezvous_server
from backlight.errors import DistNetworkError, DistStoreError, ValueProblem

MPI_LAUNCHERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # variables in processes that a launcher started


@dataclass(frozen=True)
class Meeting:
    """Where the processes of a job meet, and which of them this is; `file` is where rank 0 writes host and port."""

    rank: int
    world: int
    host: str
    port: int
    file: Path | None = None


def address_of(init_method: str | None, rank: int, world: int) -> Meeting | None:
    """Return where to meet, by the arguments or the environment; None in a process that a launcher of MPI started.

    Raises:
        ValueError: the environment lacks something, or the method is not known.
    """
    method = "env://" if init_method is None else init_method
    url = urlsplit(method)
    asked = {name: values[0] for name, values in parse_qs(url.query).items()}
    if rank < 0 and "rank" in asked:
        rank = int(asked["rank"])
    if world < 0 and "world_size" in asked:
        world = int(asked["world_size"])
    if url.scheme in ("tcp", "file"):
        place = url.port if url.scheme == "tcp" else url.path or None
        if rank < 0 or world < 0 or place is None:
            ends = "port" if url.scheme == "tcp" else "path"
            what = "rank" if rank < 0 else "world size" if world < 0 else ends
            raise ValueProblem(
                f"Error initializing torch.distributed using {url.scheme}:// rendezvous: {what} parameter missing"
            )
        if url.scheme == "file":
            return _checked(Meeting(rank, world, "", 0, Path(url.path)))
        return _checked(Meeting(rank, world, url.hostname or "", url.port))
    if url.scheme != "env":
        raise ValueProblem(
            f"No rendezvous handler for {url.scheme}://: backlight has env://, tcp://host:port and file:///path, "
            f"got {method!r}"
        )
    by_environment = "MASTER_ADDR" in os.environ and (rank >= 0 or "RANK" in os.environ)
    if not by_environment and any(name in os.environ for name in MPI_LAUNCHERS):
        return None
    rank = rank if rank >= 0 else _number("RANK")
    world = world if world >= 0 else _number("WORLD_SIZE")
    if world == 1 and "MASTER_ADDR" not in os.environ:
        return _checked(Meeting(rank, world, "localhost", 0))
    return _checked(Meeting(rank, world, _text("MASTER_ADDR"), _number("MASTER_PORT")))


def _checked(meeting: Meeting) -> Meeting:
    if not 0 <= meeting.rank < meeting.world:
        raise ValueProblem(
            f"rank must be in the interval [0, {meeting.world - 1}] for a world size of {meeting.world}, "
            f"got {meeting.rank}"
        )
    return meeting


def _text(name: str) -> str:
    if name not in os.environ:
        raise ValueProblem(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but "
            "not set; start the script with `backlight torchrun --nproc-per-node 2 script.py`, or with mpiexec"
        )
    return os.environ[name]


def _number(name: str) -> int:
    text = _text(name)
    if not text.isdigit():
        raise ValueProblem(f"environment variable {name} must be a whole number, got {text!r}")
    return int(text)


class Watch:
    """What is known of the other processes: which have ended.

    Attributes:
        lost: of each rank that has ended: which process it was, and when that became known.
    """

    def __init__(self, connection: socket.socket):
        self.lost: dict[int, tuple[str, float]] = {}
        self._connection = connection
        os.register_at_fork(after_in_child=connection.close)  # or a worker would keep it open after this process
        threading.Thread(target=self._read, name="ranks that have ended", daemon=True).start()

    def _read(self) -> None:
        try:
            with self._connection.makefile("r", encoding="utf-8") as lines:
                for line in lines:
                    word, rank, place = line.rstrip("\n").split(" ", 2)
                    if word == "lost":
                        self.lost[int(rank)] = place, time.monotonic()
        except (OSError, ValueError):
            pass  # the process is ending


def connect_ranks(meeting: Meeting, timeout: float) -> tuple[socket.socket, Watch]:
    """Wait until all ranks have come; return the connection for MPI_Init, and what watches the other processes.

    Raises:
        DistNetworkError: nothing listens there, or the port is taken.
        DistStoreError: a rank did not come in time, or two processes have the same.
    """
    deadline = time.monotonic() + timeout
    if meeting.rank == 0:
        port = _start_server(meeting, timeout)
        if meeting.file is not None:
            _write_place(meeting.file, port)
    if meeting.file is not None:
        meeting = _place_in_file(meeting, deadline)
    connections = [_connected(meeting, deadline) for _ in range(2)]
    for kind, connection in zip(("pmi", "watch"), connections):
        hello = f"hello {kind} {meeting.rank} {meeting.world} {socket.gethostname()} {os.getpid()}\n"
        connection.sendall(hello.encode())
    for connection in connections:
        connection.settimeout(max(deadline - time.monotonic(), 0) + 5)
        line = _line(connection)
        if line != "go":
            raise DistStoreError(f"rank {meeting.rank}: {line.removeprefix('error ')}")
        connection.settimeout(None)
    if meeting.file is not None and meeting.rank == 0:
        meeting.file.unlink(missing_ok=True)  # all have read it
    return connections[0], Watch(connections[1])


def _write_place(file: Path, port: int) -> None:
    """Write where the rendezvous listens, all at once."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(f"{socket.gethostname()} {port}\n", encoding="utf-8")
    part.replace(file)


def _place_in_file(meeting: Meeting, deadline: float) -> Meeting:
    """Wait until rank 0 has written where it listens."""
    while not (found := meeting.file.read_text(encoding="utf-8").split() if meeting.file.exists() else []):
        if time.monotonic() > deadline:
            raise DistStoreError(f"rank {meeting.rank}: rank 0 has not written {meeting.file}; is it there?")
        time.sleep(0.02)
    host, port = found
    return replace(meeting, host="localhost" if host == socket.gethostname() else host, port=int(port))


def _line(connection: socket.socket) -> str:
    """Return one line, and take nothing of what follows."""
    line = b""
    try:
        while not line.endswith(b"\n"):
            arrived = connection.recv(1)
            if not arrived:
                return "the rendezvous has ended: rank 0 has, or it waited for too long"
            line += arrived
    except TimeoutError:
        return "the rendezvous does not reply"
    return line.decode().strip()


def _start_server(meeting: Meeting, timeout: float) -> int:
    """Start the rendezvous as a process, which ends when all ranks have; return its port."""
    local = meeting.host in ("localhost", "127.0.0.1", "::1")
    try:
        listener = socket.create_server((meeting.host if local else "", meeting.port), backlog=2 * meeting.world)
    except OSError as problem:
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {meeting.port}, "
            f"{problem.strerror}: set MASTER_PORT to a free port"
        ) from problem
    with listener:
        number, port = listener.fileno(), listener.getsockname()[1]
        subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                Path(rendezvous_server.__file__),
                str(number),
                str(meeting.world),
                f"{timeout}",
            ],
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the ranks, and by that the server
        )
    return port


def _connected(meeting: Meeting, deadline: float) -> socket.socket:
    while True:
        try:
            connection = socket.create_connection((meeting.host, meeting.port), timeout=5)
            rendezvous_server.keep_alive(connection)
            return connection
        except OSError as problem:
            if time.monotonic() > deadline:
                raise DistNetworkError(
                    f"rank {meeting.rank}: the client socket has timed out trying to connect to ({meeting.host}, "
                    f"{meeting.port}): {problem}; is rank 0 there, and have all the same MASTER_ADDR and MASTER_PORT?"
                ) from problem
            time.sleep(0.05)
