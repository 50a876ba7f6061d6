"""Interleaved timing: rivals run in turn, so that a machine whose speed drifts treats them alike."""

import os
import time

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def use_one_thread() -> None:
    """Tell BLAS and OpenMP to use one thread; call before NumPy or PyTorch is imported."""
    os.environ.update(ONE_THREAD)


def interleaved(candidates: dict, rounds: int, warmup: int) -> dict:
    """Run each candidate once a round and return its list of results.

    A candidate is a function that runs once and returns its times, in seconds, as a tuple.
    """
    for _ in range(warmup):
        for run in candidates.values():
            run()
    results = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            results[name].append(run())
    return results


def quartiles(values) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile."""
    ordered = sorted(values)
    return tuple(ordered[int(len(ordered) * part)] for part in (0.25, 0.5, 0.75))


def ratio(ours, theirs) -> tuple[float, float, float]:
    """Return the quartiles of ours / theirs, round by round."""
    return quartiles([a / b for a, b in zip(ours, theirs)])


def stopwatch() -> float:
    """Return the time now."""
    return time.perf_counter()
