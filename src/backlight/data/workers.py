"""The worker's side of loading in parallel: a process that fetches the batches it is asked for, and sends them."""

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

from backlight.data.fetching import Recipe
from backlight.data.ipc import BATCH, BEGIN, END, FAILURE, STOP, Label, Parcel, pack, receive, send
from backlight.data.worker_info import WorkerInfo, become_worker
from backlight.errors import WorkerError
from backlight.kernels.native import compiled
from backlight.tensor.generators import manual_seed

WATCH = 5.0  # seconds between looks at whether the main process is still there
GONE = (BrokenPipeError, ConnectionResetError, EOFError)  # what a line raises whose other side is closed
SET_BLAS_THREADS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is started with."""

    recipe: Recipe
    number: int
    count: int
    base_seed: int
    init_fn: Callable | None


class Failure:
    """The exception that is being handled, in a form that travels to another process."""

    def __init__(self, problem: Exception, number: int):
        self.kind = _travelling(type(problem))
        self.message = (
            f"Caught {type(problem).__name__} in DataLoader worker process {number}.\n"
            f"Original {''.join(traceback.format_exception(problem))}"
        )

    def exception(self) -> Exception:
        """Return the exception as it was, with the worker's traceback in its message.

        It is a RuntimeError if its class cannot be made from a message.
        """
        if self.kind is KeyError:
            return KeyError(_Verbatim(self.message))
        try:
            named = getattr(self.kind, "message", None)
            return self.kind(message=self.message) if named else self.kind(self.message)
        except Exception:
            return WorkerError(self.message)


class _Verbatim(str):
    """A text that KeyError, which shows the repr of its key, shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _travelling(kind: type) -> type:
    """Return a class of exceptions, or its nearest base that the main process can import."""
    for base in kind.__mro__:
        with contextlib.suppress(pickle.PicklingError, AttributeError):
            pickle.dumps(base)
            return base
    return Exception


def work(job: Job, line: Connection) -> None:
    """Answer what comes through a line, until the main process says stop or is gone."""
    _settle(job)
    unfit = _attempt(job, lambda: job.init_fn and job.init_fn(job.number))
    begun = None
    with contextlib.suppress(*GONE):
        for label, parcel in _messages(line):
            if label.kind == BEGIN:
                begun = unfit if isinstance(unfit, Failure) else _attempt(job, job.recipe.fetcher)
            elif begun is not None:
                answer, content = _answer(job, begun, parcel)
                begun = None if answer == END else begun
                send(line, Label(answer, label.epoch, label.task), content)


def _settle(job: Job) -> None:
    """Seed all generators as PyTorch does, and use one thread: there are as many workers as are wanted."""
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the main process, which will say stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _use_one_thread()
    seed = job.base_seed + job.number
    random.seed(seed)
    manual_seed(seed)
    # another one for NumPy, which would draw what `random` does: both have the same generator
    entropy = [job.number, job.base_seed & 0xFFFFFFFF, job.base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(entropy).generate_state(4))
    become_worker(WorkerInfo(job.number, job.count, seed, job.recipe.dataset))


def _use_one_thread() -> None:
    if compiled is not None:
        compiled.set_threads(1)
    matrices = getattr(np.linalg, "_umath_linalg", None)  # linked to the BLAS that NumPy uses
    if matrices is not None:
        library = ctypes.CDLL(matrices.__file__)
        for name in SET_BLAS_THREADS:
            if hasattr(library, name):
                getattr(library, name)(1)


def _attempt(job: Job, call: Callable):
    """Return what a function returns, or the Failure that it ends in."""
    try:
        return call()
    except Exception as problem:
        return Failure(problem, job.number)


def _answer(job: Job, begun: Callable | Failure, parcel: Parcel) -> tuple[str, Parcel]:
    """Return the batch that a task asks for, or what became of it: the kind of the answer and the answer."""
    if isinstance(begun, Failure):
        return FAILURE, pack(begun)
    try:
        return BATCH, pack(begun(parcel.open()))
    except Exception as problem:
        if isinstance(problem, StopIteration) and job.recipe.streams:
            return END, pack(None)
        return FAILURE, pack(Failure(problem, job.number))


def _messages(line: Connection) -> Iterator[tuple[Label, Parcel]]:
    """Yield what the main process sends, and skip what it has given up: the tasks before the last `begin` or `stop`."""
    waiting, parent = deque(), os.getppid()
    while True:
        while line.poll() or not waiting:
            if not _heard(line, parent):
                return
            label, parcel = receive(line)
            if label.kind == STOP:
                return
            if label.kind == BEGIN:
                waiting.clear()
            waiting.append((label, parcel))
        yield waiting.popleft()


def _heard(line: Connection, parent: int) -> bool:
    """Wait for a message; return False if the main process is gone."""
    main = multiprocessing.parent_process().sentinel
    while line not in (ready := wait([line, main], WATCH)):
        if ready or os.getppid() != parent:
            return False
    return True
