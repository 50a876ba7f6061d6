"""A group of processes: what they do together runs in a thread of its own, in the order in which it was called.

NOTE [The thread of a group]
All calls of MPI for a group are made by one thread, so that a collective goes on while the program computes: a backward
pass hands over the gradients of its last layers and goes on with the first. The thread works on one collective at a
time; sends and receives beside it. It polls, and sleeps for longer the longer nothing happens.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from queue import Empty, SimpleQueue

from backlight.distributed.mpi import Alone, MPITransport
from backlight.distributed.rendezvous import Watch
from backlight.errors import DistBackendError, DistError, ValueProblem

GRACE = 3.0  # seconds that a collective has to end after one of its ranks has: the data may have been sent before
SPIN = 0.0005  # seconds in which the thread polls without sleeping
LONGEST = 0.001  # seconds that it sleeps at most


class Work:
    """What was begun by a call with `async_op=True`, or by `isend` and `irecv`.

    Args:
        name: what it is called in errors.
        steps: yields as long as there is something to wait for.
        missing: ranks of the group that have not come to it.
        collective: whether all ranks take part; else it is a send or a receive.
    """

    def __init__(
        self, group: "ProcessGroup", name: str, steps: Iterator[None], missing: set[int], *, collective: bool = True
    ):
        self.name, self.collective = name, collective
        self._group, self._steps, self._missing = group, steps, missing
        self._ended = threading.Event()
        self._problem: BaseException | None = None
        self._began = time.monotonic()

    def is_completed(self) -> bool:
        """Tell whether it has ended."""
        return self._ended.is_set()

    def is_success(self) -> bool:
        """Tell whether it has ended well."""
        return self.is_completed() and self._problem is None

    def exception(self) -> BaseException | None:
        """Return the error that it ended with; None if there was none."""
        return self._problem

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Wait until it has ended.

        Raises:
            DistBackendError: a rank has ended or does not come, or ranks do not do the same.
        """
        if not self._ended.is_set():
            limit = self._group.timeout if timeout is None else seconds(timeout)
            while not self._ended.wait(0.2):
                self._check(limit)
        if self._problem is not None:
            raise self._problem
        return True

    def _check(self, limit: float) -> None:
        """Raise if a rank that is needed has ended, or time is up."""
        group = self._group
        for number, (place, since) in group.lost().items():
            if time.monotonic() - since > GRACE:
                raise DistBackendError(
                    f"rank {number} ({place}) has ended while rank {group.ranks[group.rank]} waited for {self.name}: "
                    "it was killed, or left earlier than the others; see what it printed last"
                )
        if time.monotonic() - self._began > limit:
            ranks = ", ".join(str(group.ranks[rank]) for rank in sorted(self._missing)) or "some"
            raise DistBackendError(
                f"Timed out waiting {limit * 1000:.0f}ms for {self.name} to complete: rank {group.ranks[group.rank]} "
                f"called it, rank {ranks} did not"
            )

    def advance(self) -> bool:
        """Go on with it; return whether it has ended."""
        try:
            next(self._steps)
            return False
        except StopIteration:
            pass
        except BaseException as problem:  # raised again where the program waits
            self._problem = problem
        self._ended.set()
        return True


def seconds(timeout: timedelta | float) -> float:
    """Return a timeout as a number."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


class ProcessGroup:
    """Processes that compute together.

    Args:
        transport: what moves arrays between them.
        ranks: their numbers among all processes.
        timeout: how long a call waits for the others, in seconds.
        watch: knows which processes have ended; None if the launcher sees to that.
    """

    def __init__(
        self, transport: MPITransport | Alone, ranks: Sequence[int], timeout: float, watch: Watch | None = None
    ):
        self.transport, self.ranks, self.timeout = transport, list(ranks), timeout
        self._watch, self._process = watch, os.getpid()
        self._works: SimpleQueue[Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def rank_of(self, number: int) -> int:
        """Return the rank in this group of a process, by its number among all.

        Raises:
            ValueError: it is not in the group.
        """
        if number not in self.ranks:
            raise ValueProblem(f"Global rank {number} is not part of group {self.ranks}")
        return self.ranks.index(number)

    @property
    def rank(self) -> int:
        """Which of the group this process is."""
        return self.transport.rank

    def size(self) -> int:
        """Return how many processes there are."""
        return self.transport.size

    def name(self) -> str:
        """Return what carries the group's messages."""
        return "mpi"

    def lost(self) -> dict[int, tuple[str, float]]:
        """Return which processes of the group have ended, and since when."""
        lost = {} if self._watch is None else self._watch.lost
        return {number: about for number, about in lost.copy().items() if number in self.ranks}

    def collective(self, what: str, move: Callable[[], None], ends_together: bool = False) -> Work:
        """Begin what all ranks do: agree on what it is, then move the data.

        Args:
            what: the same text on all ranks.
            ends_together: whether it ends when all ranks have moved theirs.
        """
        others = set(range(self.size())) - {self.rank}
        missing = others.copy()

        def steps() -> Iterator[None]:
            yield from self.transport.agreement(what, missing)
            move()
            if ends_together:
                missing.update(others)
                yield from self.transport.agreement(f"end of {what}", missing)

        return self.begin(Work(self, what, steps(), missing))

    def begin(self, work: Work) -> Work:
        """Hand a work to the group's thread; in a group of one process, do it at once."""
        if self.size() == 1:
            work.advance()
            return work
        if os.getpid() != self._process:
            raise DistError("the process group belongs to the process that made it: a forked process must make its own")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="process group", daemon=True)
            self._thread.start()
        self._works.put(work)
        return work

    def close(self) -> None:
        """End the thread; nothing may be going on any more."""
        if self._thread is not None:
            self._works.put(None)
            self._thread.join(1.0)
            self._thread = None

    def _run(self) -> None:
        """Work until the group is closed (see NOTE [The thread of a group])."""
        collectives: deque[Work] = deque()
        transfers: list[Work] = []
        quiet = 0.0
        while True:
            busy = bool(collectives or transfers)
            pause = min(time.monotonic() - quiet - SPIN, LONGEST) if busy else None
            if pause is not None and pause <= 0:
                time.sleep(0)
            try:
                work = self._works.get(pause is None or pause > 0, pause)
                if work is None:
                    return
                (collectives if work.collective else transfers).append(work)
                quiet = time.monotonic()
            except Empty:
                pass
            if collectives and collectives[0].advance():
                collectives.popleft()
                quiet = time.monotonic()
            for one in [one for one in transfers if one.advance()]:
                transfers.remove(one)
                quiet = time.monotonic()
