"""Units on processes of this machine: each has the model once, and one that is killed is replaced."""

import multiprocessing
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait

from backlight.explain.batch.sharding.unit_worker import Outcome
from backlight.explain.batch.sharding.units import Unit

SECONDS_TO_END = 10
DEATHS = 5  # of processes at the same unit, after which the unit is given up


def run_on_processes(
    address: str, workers: int, task: Callable[[Unit], Outcome], units: Iterable[Unit]
) -> Iterator[tuple[Unit, Outcome | Exception]]:
    """Give each unit with what became of it (see NOTE [An engine] in explain/batch/sharding/engines.py)."""
    left, deaths = deque(units), Counter[int]()
    processes = [_Process(task) for _ in range(min(workers, len(left)))]
    try:
        for process in processes:
            process.begin(left.popleft())
        while processes:
            ready = wait([process.connection for process in processes])
            for place, process in enumerate(processes):
                if process.connection not in ready:
                    continue
                unit, outcome = process.unit, process.result()
                if outcome is not None:
                    yield unit, outcome
                else:
                    processes[place] = process = _Process(task)
                    deaths[unit.number] += 1
                    if deaths[unit.number] < DEATHS:
                        left.append(unit)
                    else:
                        yield unit, RuntimeError(f"{DEATHS} processes died at it")
                process.begin(left.popleft() if left else None)
            processes = [process for process in processes if process.unit is not None]
    finally:
        for process in processes:
            process.end()


class _Process:
    """A process with one end of a pipe, and the unit that it does."""

    def __init__(self, task: Callable[[Unit], Outcome]):
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.unit: Unit | None = None
        self._process = context.Process(target=_serve, args=(other, task), daemon=True)
        with _interrupts_blocked():
            self._process.start()
        other.close()

    def begin(self, unit: Unit | None) -> None:
        """Send a unit to do, or end the process."""
        self.unit = unit
        if unit is None:
            self.end()
            return
        try:
            self.connection.send(unit)
        except BrokenPipeError:
            return  # it died: `result` says so

    def result(self) -> Outcome | None:
        """Return what became of the unit; None if the process died."""
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.end()
            return None

    def end(self) -> None:
        """End the process, which may be at a unit."""
        self.connection.close()
        if self.unit is None:
            self._process.join(SECONDS_TO_END)
        self._process.kill()
        self._process.join()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let a process that is started inside get no Ctrl-C before it ignores them: it inherits what is blocked."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, task: Callable[[Unit], Outcome]) -> None:
    """Do the units that come through a pipe until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that began this one
    while True:
        try:
            unit = connection.recv()
        except EOFError:
            return
        connection.send(task(unit))
