"""The main process's side of each worker's connection: start workers, exchange messages, shut them down.

NOTE [Who may die, and when]
Each worker has its own connection and shares no lock: killing a worker, at any moment, blocks no other process. The
main process waits for connections and for the ends of processes at once; a worker waits for its connection and for the
end of the main process. Sending never blocks: messages of the main process are queued until the connection has room,
and they are small (NOTE [How arrays travel]). A forked child that inherits a pool does not use it, and closes its
copies of the connections: so a worker whose connection the main process has closed, or dropped, reads end of file and
stops. That also holds if Ctrl-C arrives while workers are started or shut down.
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

from backlight.data.ipc import STOP, Header, Message, pack, receive, send
from backlight.data.workers import Job, worker_loop
from backlight.errors import ArgumentError, ValueProblem, WorkerError

SHUTDOWN_TIMEOUT = 5.0  # seconds that a worker has to finish its task after STOP
UNPICKLABLE = (AttributeError, TypeError, pickle.PicklingError)


def resolve_context(option: str | BaseContext) -> BaseContext:
    """Return the multiprocessing context for an option.

    Raises:
        ValueError: there is no such start method.
        TypeError: it is neither a name nor a context.
    """
    methods = multiprocessing.get_all_start_methods()
    if isinstance(option, str) and option not in methods:
        raise ValueProblem(
            f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
            f"multiprocessing_context={option!r}"
        )
    context = multiprocessing.get_context(option) if isinstance(option, str) else option
    if not isinstance(context, BaseContext):
        raise ArgumentError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={option}"
        )
    return context


_connections: weakref.WeakSet = weakref.WeakSet()  # the main process's ends


def _close_connections() -> None:
    for connection in list(_connections):
        connection.close()


os.register_at_fork(after_in_child=_close_connections)


class Worker:
    """A worker process and the connection to it."""

    def __init__(self, context: BaseContext, job: Job):
        self._job = job
        self.connection, self._worker_end = context.Pipe()
        _connections.add(self.connection)
        self.process = context.Process(target=worker_loop, args=(job, self._worker_end), daemon=True)
        self._unsent = deque()
        self._room = select.poll()
        self._room.register(self.connection, select.POLLOUT)

    def start(self) -> None:
        """Start the process.

        Raises:
            Exception: the job cannot be sent to a process that is not forked.
        """
        try:
            self.process.start()
        except UNPICKLABLE as problem:
            raise _unpicklable(problem, self._job) from problem
        finally:
            self._worker_end.close()

    def post(self, header: Header, message: Message) -> None:
        """Send a message, now or when the connection has room."""
        self._unsent.append((header, message))
        self.flush()

    def flush(self) -> None:
        """Send queued messages while the connection has room."""
        with contextlib.suppress(OSError):  # it is dead, which `WorkerPool.collect` sees
            while self._unsent and self._room.poll(0):
                send(self.connection, *self._unsent.popleft())

    def stop(self) -> None:
        """Send STOP and close the connection."""
        self._unsent.clear()
        self.post(Header(STOP), pack(None))
        self.connection.close()

    def ended(self, deadline: float) -> None:
        """Wait for the process to end until a deadline, then terminate it."""
        if self.process.pid is None:
            return  # it was not started
        self.process.join(max(0.0, deadline - time.monotonic()))
        for end in (self.process.terminate, self.process.kill):
            if self.process.is_alive():
                end()
                self.process.join(SHUTDOWN_TIMEOUT)
        self.process.close()

    def kill(self) -> None:
        """End the process at once, if it runs."""
        with contextlib.suppress(ValueError):  # it has ended, and is closed
            if self.process.pid is not None:
                self.process.kill()
                self.process.join(SHUTDOWN_TIMEOUT)


class WorkerPool:
    """The workers of one iterator."""

    def __init__(self, context: BaseContext | None, jobs: Iterable[Job]):
        self._received = deque()
        self._workers: list[Worker] = []
        self._finalizer = weakref.finalize(self, _shut_down, self._workers, os.getpid())
        try:
            for job in jobs:
                self._workers.append(Worker(context or multiprocessing.get_context(), job))
                self._workers[-1].start()
        except BaseException:
            self.shutdown()
            raise

    def __len__(self) -> int:
        return len(self._workers)

    def post(self, number: int, header: Header, content: object) -> None:
        """Send a message to one worker."""
        self._workers[number].post(header, pack(content))

    def collect(self, numbers: Iterable[int], timeout: float | None) -> tuple[Header, Message] | None:
        """Return the next answer of any of these workers, or None if there is none in time.

        Raises:
            RuntimeError: one of them has died.
        """
        if not self._received:
            workers = [self._workers[number] for number in numbers]
            for worker in workers:
                worker.flush()
            ready = set(wait([end for one in workers for end in (one.connection, one.process.sentinel)], timeout))
            for worker in workers:
                if worker.connection in ready:
                    with contextlib.suppress(OSError, EOFError):
                        self._received.append(receive(worker.connection))
            if ready and not self._received:
                raise self._death([one for one in workers if {one.connection, one.process.sentinel} & ready])
        return self._received.popleft() if self._received else None

    def _death(self, lost: list[Worker]) -> WorkerError:
        for worker in lost:
            worker.process.join(SHUTDOWN_TIMEOUT)  # its connection may close a moment before it ends
        pids = ", ".join(str(worker.process.pid) for worker in lost)
        ends = ", ".join(sorted({_exit_reason(worker.process.exitcode) for worker in lost}))
        return WorkerError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {ends}")

    def shutdown(self) -> None:
        """Stop all workers, and wait until they have ended."""
        self._received.clear()
        self._finalizer()


def _shut_down(workers: list[Worker], owner: int) -> None:
    """Stop workers, and wait until they have ended; only in the process that started them."""
    try:
        if os.getpid() == owner:
            for worker in workers:
                worker.stop()
            deadline = time.monotonic() + SHUTDOWN_TIMEOUT
            for worker in workers:
                worker.ended(deadline)
    except BaseException:  # an interrupt while it waits: none may stay behind
        for worker in workers:
            worker.kill()
        raise
    finally:
        workers.clear()  # and with them connections that an interrupt left open


def _exit_reason(exitcode: int | None) -> str:
    if exitcode is None:
        return "it closed its line to the main process"
    if exitcode >= 0:
        return f"it ended with exit code {exitcode}"
    memory = ", which is what happens when memory runs out" if exitcode == -signal.SIGKILL else ""
    return f"it was killed by {signal.Signals(-exitcode).name}{memory}"


def _unpicklable(problem: Exception, job: Job) -> Exception:
    """Return an exception of the same class that names the option that cannot be pickled."""
    parts = {"dataset": job.plan.dataset, "collate_fn": job.plan.collate_fn, "worker_init_fn": job.init_fn}
    for name, value in parts.items():
        try:
            ForkingPickler.dumps(value)
        except UNPICKLABLE as found:
            return type(found)(
                f"{found}: {name} cannot be sent to a worker process that is not forked: define it, and its class, at "
                'the top level of a module, or pass multiprocessing_context="fork"'
            )
    return type(problem)(str(problem))
