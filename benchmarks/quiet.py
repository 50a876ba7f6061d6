"""Whether the machine is ours: threads set alike for all rivals, and the CPU time that other processes take.

NOTE [Samples that count]
Other processes on the same cores slow down whoever runs beside them. Before and after each round the machine's CPU time
(/proc/stat) is compared with this process's and its children's; a round in which others used more than 15 % of a core
is dropped whole, so that pairs stay pairs. Where there is no /proc every round counts.
"""

import importlib
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass

# OpenBLAS's threads spin for a fiftieth of a second after a call, on a core that the next candidate needs.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")

from threadpoolctl import threadpool_limits

BUSY = 0.15  # of one core, used by others: above it a round is dropped
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
ALL = min(2, CORES)  # threads of the rows that are not about one thread
_TICK = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01


def use_threads(count: int) -> None:
    """Give BLAS, PyTorch and backlight's kernels this many threads, as far as they are loaded."""
    threadpool_limits(limits=count, user_api="blas")
    for name in ("backlight", "torch"):
        set_threads = getattr(sys.modules.get(name), "set_num_threads", None)
        if set_threads is not None:
            set_threads(count)
    compiled = getattr(sys.modules.get("backlight.kernels.native"), "compiled", None)
    if compiled is not None:
        compiled.set_threads(count)


def library(name: str):
    """Import a rival when it is needed: a child that measures memory must hold no other."""
    return importlib.import_module(name)


@dataclass(frozen=True)
class Moment:
    """CPU seconds used so far by the machine and by us, at one time."""

    time: float
    machine: float
    ours: float


def now() -> Moment:
    """Return the CPU time used until now."""
    return Moment(time.perf_counter(), _machine(), _ours())


def others_share(start: Moment, end: Moment) -> float:
    """Return how much of one core other processes used between two moments.

    The machine's time is counted in ticks: one and a half of them are forgiven.
    """
    used = (end.machine - start.machine) - (end.ours - start.ours) - 1.5 * _TICK
    return max(0.0, used) / max(end.time - start.time, 1e-9)


def wait_for_idle(limit: float) -> float:
    """Wait until others leave the machine alone for half a second, `limit` seconds at most; return what they use."""
    began = time.perf_counter()
    while True:
        start = now()
        time.sleep(0.5)
        share = others_share(start, now())
        if share <= BUSY or time.perf_counter() - began > limit:
            return share


def settle(limit: float = 0.05) -> None:
    """Sleep until the threads of the last rival have stopped spinning: they would take a core from the next one."""
    began = time.perf_counter()
    while time.perf_counter() - began < limit:
        used = time.process_time()
        time.sleep(0.002)
        if time.process_time() - used < 0.0004:
            return


def _machine() -> float:
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _idle, _wait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    except OSError:
        return 0.0
    return (user + nice + system + irq + softirq + steal) * _TICK


def _ours() -> float:
    """Return the CPU time of this process, of children that have ended and of workers that are alive."""
    times = os.times()
    workers = sum(_of_process(worker.pid) for worker in multiprocessing.active_children())
    return time.process_time() + times.children_user + times.children_system + workers


def _of_process(number: int | None) -> float:
    try:
        with open(f"/proc/{number}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * _TICK
