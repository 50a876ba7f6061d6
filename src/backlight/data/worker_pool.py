"""The main process's side of the line to each worker: starting them, talking to them, sending them home.

NOTE [Who may die, and when]
Each worker has a line of its own and shares no lock with anybody: a worker that is killed, at whatever moment, blocks
no other process. The main process waits for lines and for the ends of processes at once; a worker waits for its line
and for the end of the main process. Nobody is blocked in sending: what the main process says is kept until the line has
room, and messages are small (NOTE [How arrays travel]). A forked child that inherits a crew leaves it alone, and closes
its copies of the lines: so a worker whose line the main process has closed, or dropped, reads its end and stops. That
holds where Ctrl-C comes while workers are started or dismissed, too.
"""

import contextlib
import multiprocessing
import os
import pickle
import select
import signal
import time
import weakref
from collections import deque
from collections.abc import Iterable
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from multiprocessing.reduction import ForkingPickler

from backlight.data.ipc import STOP, Label, Parcel, pack, receive, send
from backlight.data.workers import Job, work
from backlight.errors import ArgumentError, ValueProblem, WorkerError

PATIENCE = 5.0  # seconds that a worker has to finish what it does, when told to stop
UNPICKLABLE = (AttributeError, TypeError, pickle.PicklingError)


def context_of(asked: str | BaseContext) -> BaseContext:
    """Return the multiprocessing context that an option stands for.

    Raises:
        ValueError: there is no such start method.
        TypeError: it is neither a name nor a context.
    """
    methods = multiprocessing.get_all_start_methods()
    if isinstance(asked, str) and asked not in methods:
        raise ValueProblem(
            f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
            f"multiprocessing_context={asked!r}"
        )
    context = multiprocessing.get_context(asked) if isinstance(asked, str) else asked
    if not isinstance(context, BaseContext):
        raise ArgumentError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={asked}"
        )
    return context


_lines: weakref.WeakSet = weakref.WeakSet()  # the main process's ends


def _close_lines() -> None:
    for line in list(_lines):
        line.close()


os.register_at_fork(after_in_child=_close_lines)


class Worker:
    """A worker process and the line to it."""

    def __init__(self, context: BaseContext, job: Job):
        self._job = job
        self.line, self._theirs = context.Pipe()
        _lines.add(self.line)
        self.process = context.Process(target=work, args=(job, self._theirs), daemon=True)
        self._unsent = deque()
        self._room = select.poll()
        self._room.register(self.line, select.POLLOUT)

    def start(self) -> None:
        """Start the process.

        Raises:
            Exception: the job cannot be sent to a process that is not forked.
        """
        try:
            self.process.start()
        except UNPICKLABLE as problem:
            raise _not_sent(problem, self._job) from problem
        finally:
            self._theirs.close()

    def post(self, label: Label, parcel: Parcel) -> None:
        """Send a message, now or when the line has room."""
        self._unsent.append((label, parcel))
        self.flush()

    def flush(self) -> None:
        """Send what could not be sent before."""
        with contextlib.suppress(OSError):  # it is dead, which `Crew.collect` sees
            while self._unsent and self._room.poll(0):
                send(self.line, *self._unsent.popleft())

    def stop(self) -> None:
        """Tell the worker to stop, and listen to it no more."""
        self._unsent.clear()
        self.post(Label(STOP), pack(None))
        self.line.close()

    def ended(self, deadline: float) -> None:
        """Wait for the end of the process until a moment, and then end it."""
        if self.process.pid is None:
            return  # it was not started
        self.process.join(max(0.0, deadline - time.monotonic()))
        for end in (self.process.terminate, self.process.kill):
            if self.process.is_alive():
                end()
                self.process.join(PATIENCE)
        self.process.close()


class Crew:
    """The workers of one iterator."""

    def __init__(self, context: BaseContext | None, jobs: Iterable[Job]):
        self._come = deque()
        self._workers: list[Worker] = []
        self._dismiss = weakref.finalize(self, _dismissed, self._workers, os.getpid())
        try:
            for job in jobs:
                self._workers.append(Worker(context or multiprocessing.get_context(), job))
                self._workers[-1].start()
        except BaseException:
            self.dismiss()
            raise

    def __len__(self) -> int:
        return len(self._workers)

    def post(self, number: int, label: Label, content) -> None:
        """Send a message to one worker."""
        self._workers[number].post(label, pack(content))

    def collect(self, numbers: Iterable[int], timeout: float | None) -> tuple[Label, Parcel] | None:
        """Return the next answer of any of these workers, or None if there is none in time.

        Raises:
            RuntimeError: one of them has died.
        """
        if not self._come:
            watched = [self._workers[number] for number in numbers]
            for worker in watched:
                worker.flush()
            ready = set(wait([each for worker in watched for each in (worker.line, worker.process.sentinel)], timeout))
            for worker in watched:
                if worker.line in ready:
                    with contextlib.suppress(OSError, EOFError):
                        self._come.append(receive(worker.line))
            if ready and not self._come:
                raise self._loss([worker for worker in watched if {worker.line, worker.process.sentinel} & ready])
        return self._come.popleft() if self._come else None

    def _loss(self, lost: list[Worker]) -> WorkerError:
        for worker in lost:
            worker.process.join(PATIENCE)  # its line may have closed a moment before it ended
        pids = ", ".join(str(worker.process.pid) for worker in lost)
        ends = ", ".join(sorted({_end_of(worker.process.exitcode) for worker in lost}))
        return WorkerError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {ends}")

    def dismiss(self) -> None:
        """Let all workers stop, and wait until they have."""
        self._come.clear()
        self._dismiss()


def _dismissed(workers: list[Worker], owner: int) -> None:
    """Let workers stop, and wait until they have, in the process that started them."""
    try:
        if os.getpid() == owner:
            for worker in workers:
                worker.stop()
            deadline = time.monotonic() + PATIENCE
            for worker in workers:
                worker.ended(deadline)
    finally:
        workers.clear()  # and with them the lines that an interrupt left open


def _end_of(exitcode: int | None) -> str:
    if exitcode is None:
        return "it closed its line to the main process"
    if exitcode >= 0:
        return f"it ended with exit code {exitcode}"
    memory = ", which is what happens when memory runs out" if exitcode == -signal.SIGKILL else ""
    return f"it was killed by {signal.Signals(-exitcode).name}{memory}"


def _not_sent(problem: Exception, job: Job) -> Exception:
    """Return the exception of a process that could not start, of the same class, with the option it is about."""
    parts = {"dataset": job.recipe.dataset, "collate_fn": job.recipe.collate_fn, "worker_init_fn": job.init_fn}
    for name, value in parts.items():
        try:
            ForkingPickler.dumps(value)
        except UNPICKLABLE as found:
            return type(found)(
                f"{found}: {name} cannot be sent to a worker process that is not forked: define it, and its class, at "
                'the top level of a module, or pass multiprocessing_context="fork"'
            )
    return type(problem)(str(problem))
