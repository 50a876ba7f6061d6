"""Timing beside a rival: candidates run in turn in one process, so that a machine whose speed drifts treats them alike.

NOTE [A round]
Each round runs every candidate once: a pause until the threads of the one before are asleep, an untimed call, then as
many timed calls as fill a twentieth of a second. Warm-up rounds do not count, nor do rounds in which other processes
used the CPU (NOTE [Samples that count] in quiet.py). A ratio is taken round by round, and its quartiles are shown.
"""

import math
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import quiet

OURS = "backlight"
RIVAL = "torch"
FLOOR = "the floor"
BURST = 0.05  # seconds of timed calls a round
LONG = 0.2  # seconds from which a call needs no untimed one before it

Work = Callable[[], object]  # does the work once; what it returns is compared between candidates


@dataclass(frozen=True)
class Floor:
    """What no implementation can do without: an amount of arithmetic or of traffic, and how fast this machine is at it.

    Args:
        amount: FLOPs or bytes of one call.
        unit: "FLOP" or "byte".
        probes: functions that make a work of `probe_amount`; the fastest of them is the machine's rate.
        probe_amount: FLOPs or bytes of one call of a probe.
    """

    amount: float
    unit: str
    probes: Mapping[str, Callable[[], Work]]
    probe_amount: float


@dataclass(frozen=True)
class Bar:
    """What a row has to reach: our figure over that of the best of `against`.

    Args:
        of: "time" or "memory", a ratio; "extra", seconds that ours takes more.
    """

    at_most: float
    against: tuple[str, ...] = (RIVAL,)
    of: str = "time"


@dataclass(frozen=True)
class Case:
    """One row of a table: the same work done by each candidate.

    Args:
        candidates: for each name, a function that imports what it needs and returns the work.
        optional: candidates that may fail to be made or to run; the row then says why.
        scale: what is shown, in seconds, over the time of a call.
        tolerance: how far results may be apart, relative to PyTorch's norm; None where they are not compared.
        seconds: no new round begins after this time, if there are five rounds.
        memory: candidates whose peak memory is measured, each in a process of its own.
    """

    name: str
    candidates: Mapping[str, Callable[[], Work]]
    floor: Floor | None = None
    bars: tuple[Bar, ...] = ()
    optional: tuple[str, ...] = ()
    threads: int = quiet.ALL
    unit: str = "ms"
    scale: float = 1.0
    tolerance: float | None = 1e-4
    rounds: int = 15
    seconds: float = 6.0
    memory: tuple[str, ...] = ()


@dataclass
class Samples:
    """Seconds of each candidate, round by round, and what became of the other rounds."""

    times: dict[str, list[float]]
    dropped: int = 0
    noisy: bool = False
    left_out: dict[str, str] = field(default_factory=dict)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile.

    >>> quartiles([4.0, 1.0, 2.0, 3.0, 5.0])
    (2.0, 3.0, 4.0)
    """
    if len(values) == 1:
        return (values[0],) * 3
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Return the quartiles of ours / theirs, round by round."""
    return quartiles([a / b for a, b in zip(ours, theirs)])


def interleaved(
    works: Mapping[str, Work],
    rounds: int,
    *,
    seconds: float = 6.0,
    pause: bool = True,
    long: Collection[str] = (),
) -> Samples:
    """Run each work once a round and return its times (NOTE [A round]).

    Args:
        long: works that are known to take long and have run: no call tells how many make a burst.
    """
    calls = {name: 1 if name in long else _calls_in_burst(work) for name, work in works.items()}
    kept, dropped = [], []
    began = time.perf_counter()
    while len(kept) < rounds and len(kept) + len(dropped) < 2 * rounds:
        if len(kept) >= 5 and time.perf_counter() - began > seconds:
            break
        if len(kept) + len(dropped) >= 2 and time.perf_counter() - began > 3 * seconds:
            break  # a machine so busy gives no better figures later
        start = quiet.now()
        sample = {name: _timed(work, calls[name], pause) for name, work in works.items()}
        (dropped if quiet.others_share(start, quiet.now()) > quiet.BUSY else kept).append(sample)
    noisy = len(kept) < min(3, rounds)
    used = kept + dropped if noisy else kept
    return Samples({name: [sample[name] for sample in used] for name in works}, len(dropped), noisy)


def _calls_in_burst(work: Work) -> int:
    start = time.perf_counter()
    work()
    return max(1, math.floor(BURST / max(time.perf_counter() - start, 1e-7)))


def _timed(work: Work, calls: int, pause: bool) -> float:
    """Return the seconds of a call: the untimed one stands for all if it was long, and warming up is nothing to it."""
    if pause:
        quiet.settle()
        start = time.perf_counter()
        work()
        first = time.perf_counter() - start
        if first > LONG:
            return first
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


def run_case(case: Case, *, quick: bool = False) -> tuple[Samples, float | None]:
    """Measure a case; return its samples, the floor's probes among them, and how far results are apart."""
    works, left_out = _made(case)
    quiet.use_threads(case.threads)
    results, long = {}, []
    for name, work in list(works.items()) if case.tolerance is not None or case.optional else ():
        start = time.perf_counter()
        try:
            results[name] = work()
        except Exception as problem:  # whatever a compiler raises that is not there or does not know this machine
            if name not in case.optional:
                raise
            left_out[name] = _first_line(problem)
            del works[name]
        else:
            if time.perf_counter() - start > 5 * LONG and name not in case.optional:
                long.append(name)
    apart = difference(results, case)
    probes = {f"{FLOOR}: {name}": make() for name, make in (case.floor.probes if case.floor else {}).items()}
    rounds, pause = 2 if quick else case.rounds, not quick and case.threads > 1
    samples = interleaved(works | probes, rounds, seconds=case.seconds, pause=pause, long=long)
    samples.left_out = left_out
    return samples, apart


def _made(case: Case) -> tuple[dict[str, Work], dict[str, str]]:
    works, left_out = {}, {}
    for name, make in case.candidates.items():
        try:
            works[name] = make()
        except ImportError as problem:
            if name not in case.optional:
                raise
            left_out[name] = _first_line(problem)
    return works, left_out


def _first_line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0][:120]}"


def difference(results: Mapping[str, object], case: Case) -> float | None:
    """Return the largest difference of a result from PyTorch's, relative to its norm.

    Raises:
        AssertionError: it is above the case's tolerance: the candidates do not do the same work.
    """
    if case.tolerance is None or RIVAL not in results:
        return None
    expected, worst = _arrays(results[RIVAL]), 0.0
    for name, result in results.items():
        found = _arrays(result)
        if len(found) != len(expected):
            raise AssertionError(f"{case.name}: {name} returned {len(found)} results, {RIVAL} {len(expected)}")
        for one, other in zip(found, expected):
            apart = float(np.linalg.norm(one - other) / max(np.linalg.norm(other), 1e-30))
            if not apart <= case.tolerance:
                raise AssertionError(f"{case.name}: {name} is {apart:.1e} away from {RIVAL}, {case.tolerance} allowed")
            worst = max(worst, apart)
    return worst


def _arrays(result) -> list[np.ndarray]:
    many = result if isinstance(result, (list, tuple)) else [result]
    return [np.asarray(one.detach() if hasattr(one, "detach") else one, np.float64) for one in many]
