"""Units on Ray: the one file that imports ray."""

import importlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from backlight.errors import InputError, install_hint

Unit, Outcome = TypeVar("Unit"), TypeVar("Outcome")
AT_ONCE = 2  # units under way for each actor: one that runs, one that waits


class Doer:
    """An actor: one process, which has the model from its first unit on."""

    def __init__(self, task: Callable[[Unit], Outcome]):
        self._task = task

    def compute(self, unit: Unit) -> Outcome:
        """Compute a unit."""
        return self._task(unit)


def run_on_ray(
    address: str, workers: int, task: Callable[[Unit], Outcome], units: Iterable[Unit]
) -> Iterator[tuple[Unit, Outcome | Exception]]:
    """Give each unit with what became of it (see NOTE [An engine] in explain/batch/sharding/engines.py).

    There is an actor for each core; one whose process dies is started again, and does its units again.

    Args:
        address: of a cluster's client port, "host:port".
        workers: how many actors to start on this machine in place of it.

    Raises:
        InputError: ray is not installed, or the cluster does not reply.
    """
    try:
        ray = importlib.import_module("ray")
    except ImportError as problem:
        raise InputError(f"--on ray:// needs Ray: {install_hint('ray')}") from problem
    _connect(ray, address, workers)
    try:
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = list(units)[::-1]
        made = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(Doer)
        actors = [made.remote(task) for _ in range(min(count, len(waiting)))]
        under_way = {}

        def begin(actor) -> None:
            if waiting:
                unit = waiting.pop()
                under_way[actor.compute.remote(unit)] = actor, unit

        for actor in islice(actors * AT_ONCE, len(waiting)):
            begin(actor)
        while under_way:
            (ready, *_), _ = ray.wait(list(under_way), num_returns=1)
            actor, unit = under_way.pop(ready)
            try:
                yield unit, ray.get(ready)
            except ray.exceptions.RayError as problem:
                yield unit, problem
            begin(actor)
    finally:
        ray.shutdown()


def _connect(ray, address: str, workers: int) -> None:
    """Connect to a cluster, or start one on this machine."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if workers:
        ray.init(num_cpus=workers, include_dashboard=False, **quiet)
        return
    try:
        ray.init(f"ray://{address}", **quiet)
    except (ConnectionError, TimeoutError, RuntimeError) as problem:
        raise InputError(
            f"no Ray cluster replies at {address}: start it with `ray start --head`, and give the port of its client "
            "server (10001 by default)"
        ) from problem
