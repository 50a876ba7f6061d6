"""`torch.multiprocessing`: Python's `multiprocessing`, with tensors that processes share, and PyTorch's `spawn`.

A script runs under `backlight run`, which a process that starts anew would not know of: so processes are forked, also
where "spawn" or "forkserver" is asked for. A forked process sees what its parent had in memory.
"""

import multiprocessing
import multiprocessing.pool
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import *  # noqa: F403 - PyTorch's module has all names of Python's
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from backlight.errors import UnsupportedError, ValueProblem

__all__ = [
    *multiprocessing.__all__,
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
]

METHODS = ("fork", "spawn", "forkserver")
STRATEGY = (
    "file_descriptor"  # how shared memory reaches other processes: NOTE [Shared memory] in tensor/shared_memory.py
)


class ProcessException(Exception):
    """A process that `spawn` started failed."""

    def __init__(self, msg: str, error_index: int, pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception."""


class ProcessExitedException(ProcessException):
    """A process ended with an exit code, or by a signal."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def get_context(method: str | None = None) -> multiprocessing.context.BaseContext:
    """Return the functions of `multiprocessing` for processes that are forked.

    Raises:
        ValueError: there is no such method.
        NotImplementedError: the system cannot fork.
    """
    if method not in (None, *METHODS):
        raise ValueProblem(f"cannot find context for {method!r}")
    if "fork" not in multiprocessing.get_all_start_methods():
        raise UnsupportedError("torch.multiprocessing forks processes under backlight, which this system cannot")
    return multiprocessing.get_context("fork")


def set_start_method(method: str | None, force: bool = False) -> None:
    """Accept how processes start: they are forked.

    Raises:
        ValueError: there is no such method.
    """
    get_context(method)


def get_start_method(allow_none: bool = False) -> str:
    """Return how processes start: they are forked."""
    return "fork"


def Process(*args, **kwargs) -> BaseProcess:  # noqa: N802 - Python's name
    """Return a process that will be forked: Python's `multiprocessing.Process`."""
    return get_context().Process(*args, **kwargs)


def Pool(*args, **kwargs) -> multiprocessing.pool.Pool:  # noqa: N802 - Python's name
    """Return a pool of forked processes: Python's `multiprocessing.Pool`."""
    return get_context().Pool(*args, **kwargs)


def get_all_sharing_strategies() -> set[str]:
    """Return the ways in which PyTorch's processes share memory."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """Return the way in which processes share memory."""
    return STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept the way in which processes share memory: by descriptors in any case.

    Raises:
        AssertionError: there is no such way.
    """
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"Invalid sharing strategy: {new_strategy!r}")


class ProcessContext:
    """The processes that `spawn(join=False)` started.

    Args:
        processes: they, started.
        results: for each, the end of a pipe through which it sends the text of an exception.
    """

    def __init__(self, processes: list[BaseProcess], results: list[Connection]):
        self.processes = processes
        self.results = results

    def pids(self) -> list[int]:
        """Return the numbers of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process fails or all have ended, and tell whether all have; after a failure, end the others.

        Raises:
            ProcessRaisedException: a process raised an exception.
            ProcessExitedException: a process ended otherwise.
        """
        running = {process.sentinel: number for number, process in enumerate(self.processes) if process.is_alive()}
        for ended in wait(list(running), timeout) if running else ():
            self.processes[running[ended]].join()  # its pipe closes shortly before its exit code can be read
        exit_codes = [process.exitcode for process in self.processes]  # read once: a process may end in between
        failed = [number for number, code in enumerate(exit_codes) if code not in (None, 0)]
        if not failed:
            return None not in exit_codes
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(grace_period)
        self._raise(failed[0])

    def _text_of(self, number: int) -> str | None:
        """Return the text of the exception that a process sent; None if it ended without sending one."""
        try:
            return self.results[number].recv() if self.results[number].poll() else None
        except EOFError:
            return None

    def _raise(self, number: int) -> None:
        process = self.processes[number]
        text = self._text_of(number)
        if text is not None:
            message = f"\n\n-- Process {number} terminated with the following error:\n{text}"
            raise ProcessRaisedException(message, number, process.pid)
        if process.exitcode < 0:
            name = signal.Signals(-process.exitcode).name
            message = f"process {number} terminated with signal {name}"
            raise ProcessExitedException(message, number, process.pid, process.exitcode, name)
        message = f"process {number} terminated with exit code {process.exitcode}"
        raise ProcessExitedException(message, number, process.pid, process.exitcode)


SpawnContext = ProcessContext


def _run(fn: Callable, number: int, args: Sequence, result: Connection) -> None:
    """Call the function in its process; send the text of an exception, and end with exit code 1."""
    try:
        fn(number, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        result.send(traceback.format_exc())
        sys.exit(1)


def start_processes(
    fn: Callable,
    args: Sequence = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(number, *args)` in `nprocs` processes, which are forked.

    Args:
        join: wait until all have ended; else return them.
        daemon: whether they end with this process.

    Raises:
        ProcessRaisedException: one raised an exception.
        ProcessExitedException: one ended otherwise.
    """
    context, processes, results = get_context(start_method), [], []
    for number in range(nprocs):
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, number, args, sending), daemon=daemon)
        process.start()
        sending.close()
        processes.append(process)
        results.append(receiving)
    started = ProcessContext(processes, results)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable,
    args: Sequence = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(number, *args)` in `nprocs` processes: see `start_processes`."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
