"""Parallel loading, worker process: fetch the batch of each task and send it."""

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import random
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

import numpy as np

from backlight.data.fetching import FetchPlan
from backlight.data.ipc import BATCH, BEGIN, END, FAILURE, STOP, Header, Message, pack, receive, send
from backlight.data.worker_info import WorkerInfo, become_worker
from backlight.errors import WorkerError
from backlight.kernels.native import compiled
from backlight.tensor.generators import manual_seed

PARENT_CHECK = 5.0  # seconds between checks that the main process is alive
GONE = (BrokenPipeError, ConnectionResetError, EOFError)  # raised by a connection whose other end is closed
SET_BLAS_THREADS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")


@dataclass(frozen=True, slots=True)
class Job:
    """The arguments of a worker process."""

    plan: FetchPlan
    number: int
    count: int
    base_seed: int
    init_fn: Callable | None


class Failure:
    """The exception that is being handled, in a picklable form."""

    def __init__(self, problem: Exception, number: int):
        self.kind = _picklable_base(type(problem))
        self.message = (
            f"Caught {type(problem).__name__} in DataLoader worker process {number}.\n"
            f"Original {''.join(traceback.format_exception(problem))}"
        )

    def exception(self) -> Exception:
        """Return the exception as it was, with the worker's traceback in its message.

        It is a RuntimeError if its class cannot be made from a message.
        """
        if self.kind is KeyError:
            return KeyError(_VerbatimText(self.message))
        try:
            named = getattr(self.kind, "message", None)
            return self.kind(message=self.message) if named else self.kind(self.message)
        except Exception:
            return WorkerError(self.message)


class _VerbatimText(str):
    """A text whose repr is the text itself: KeyError shows the repr of its key."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _picklable_base(kind: type) -> type:
    """Return an exception class, or its nearest base that the main process can import."""
    for base in kind.__mro__:
        with contextlib.suppress(pickle.PicklingError, AttributeError):
            pickle.dumps(base)
            return base
    return Exception


def worker_loop(job: Job, connection: Connection) -> None:
    """Answer the messages of a connection until STOP, or until the main process is gone."""
    _set_up_process(job)
    unfit = _attempt(job, lambda: job.init_fn and job.init_fn(job.number))
    fetch = None
    with contextlib.suppress(*GONE):
        for header, message in _messages(connection):
            if header.kind == BEGIN:
                fetch = unfit if isinstance(unfit, Failure) else _attempt(job, job.plan.fetcher)
            elif fetch is not None:
                answer, content = _answer(job, fetch, message)
                fetch = None if answer == END else fetch
                send(connection, Header(answer, header.epoch, header.task), content)


def _set_up_process(job: Job) -> None:
    """Seed all generators as PyTorch does, and use one thread: parallelism comes from the number of workers."""
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the main process, which then sends STOP
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if compiled is not None:
        compiled.set_threads(1)
    matrices = getattr(np.linalg, "_umath_linalg", None)  # linked to the BLAS that NumPy uses
    if matrices is not None:
        library = ctypes.CDLL(matrices.__file__)
        for name in SET_BLAS_THREADS:
            if hasattr(library, name):
                getattr(library, name)(1)
    seed = job.base_seed + job.number
    random.seed(seed)
    manual_seed(seed)
    # another seed for NumPy: it has the same generator as `random` and would draw the same numbers
    entropy = [job.number, job.base_seed & 0xFFFFFFFF, job.base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(entropy).generate_state(4))
    become_worker(WorkerInfo(job.number, job.count, seed, job.plan.dataset))


def _attempt(job: Job, call: Callable):
    """Return the result of a function, or a Failure if it raises."""
    try:
        return call()
    except Exception as problem:
        return Failure(problem, job.number)


def _answer(job: Job, fetch: Callable | Failure, message: Message) -> tuple[str, Message]:
    """Return the kind of the answer to a task, and the answer: a batch, a failure or the end of the dataset."""
    if isinstance(fetch, Failure):
        return FAILURE, pack(fetch)
    try:
        return BATCH, pack(fetch(message.open()))
    except Exception as problem:
        if isinstance(problem, StopIteration) and job.plan.streams:
            return END, pack(None)
        return FAILURE, pack(Failure(problem, job.number))


def _messages(connection: Connection) -> Iterator[tuple[Header, Message]]:
    """Yield the messages of the main process, except obsolete ones: tasks before the last BEGIN or STOP."""
    waiting, parent = deque(), os.getppid()
    while True:
        while connection.poll() or not waiting:
            if not _wait_for_message(connection, parent):
                return
            header, message = receive(connection)
            if header.kind == STOP:
                return
            if header.kind == BEGIN:
                waiting.clear()
            waiting.append((header, message))
        yield waiting.popleft()


def _wait_for_message(connection: Connection, parent: int) -> bool:
    """Wait for a message; False if the main process is gone."""
    main = multiprocessing.parent_process().sentinel
    while connection not in (ready := wait([connection, main], PARENT_CHECK)):
        if ready or os.getppid() != parent:
            return False
    return True
