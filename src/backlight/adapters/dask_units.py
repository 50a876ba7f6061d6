"""Units on Dask: the one file that imports distributed."""

import importlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, nullcontext
from itertools import chain, islice
from typing import TypeVar

from backlight.errors import InputError, install_hint

Unit, Outcome = TypeVar("Unit"), TypeVar("Outcome")
SECONDS_TO_CONNECT = 15
HERE = {  # for processes that are started here: idle, they use a quarter of the time of Dask's own settings
    "distributed.deploy.lost-worker-timeout": "24h",  # not 15 s, after which one that loads a model is not replaced
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "2s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.cycle": "10s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.gil.enabled": False,
}
SECONDS_BETWEEN_LOOKS = 5  # whether Dask is still there, while no unit gets done
SECONDS_WITHOUT_WORKERS = 60  # after which processes of this machine do not come back, nor results that do not arrive
AT_ONCE = 2  # units under way for each thread of a worker: one that runs, one that waits


def run_on_dask(
    address: str, workers: int, task: Callable[[Unit], Outcome], units: Iterable[Unit]
) -> Iterator[tuple[Unit, Outcome | Exception]]:
    """Give each unit with what became of it (see NOTE [An engine] in explain/batch/sharding/engines.py).

    The scheduler runs a unit again whose worker died; what a unit returned is released as soon as it is here. When Dask
    has stopped, or none of its processes on this machine comes back, units that are not done are given up.

    Args:
        address: of a scheduler, "host:port".
        workers: how many processes to start on this machine in place of it.

    Raises:
        InputError: distributed is not installed, or the scheduler does not reply.
    """
    try:
        distributed = importlib.import_module("distributed")
    except ImportError as problem:
        raise InputError(f"--on dask:// needs Dask: {install_hint('dask')}") from problem
    settings = importlib.import_module("dask").config.set(HERE) if workers else nullcontext()
    with settings, ExitStack() as stack:
        client = stack.enter_context(_client(distributed, stack, address, workers))
        waiting, under_way = iter(units), {}
        completed = distributed.as_completed(with_results=True, raise_errors=False)

        def begin(count: int) -> None:
            for unit in islice(waiting, count):
                future = client.submit(task, unit, key=f"backlight-{uuid.uuid4().hex}", pure=False)
                under_way[future.key] = unit
                completed.add(future)

        begin(AT_ONCE * max(1, sum(client.nthreads().values())))
        stack.callback(lambda: client.cancel(list(completed.futures)))
        for future, result in _until_dask_ends(client, completed, workers):
            yield under_way.pop(future.key), result[1] if future.status == "error" else result
            future.release()
            begin(1)
        if under_way and client.loop.asyncio_loop.is_closed():
            stack.pop_all()  # nothing can be closed by a loop that has ended
    for unit in chain(under_way.values(), waiting):
        yield unit, RuntimeError("Dask has stopped, or none of its processes is left")


def _until_dask_ends(client, completed, workers: int) -> Iterator[tuple]:
    """Give futures with their results as they arrive; fewer if Dask has stopped, or no process here came back in time.

    Nothing here waits for Dask without a limit: its event loop may end, or the one process that has a result.
    """
    looked = seen = time.monotonic()  # when Dask was looked at, and when it had a worker
    done_since: dict[str, float] = {}  # when a future was first seen that is done, and whose result has not arrived
    while completed.count():
        with completed.thread_condition:
            if not completed.has_ready():
                completed.thread_condition.wait(0.1)
        now = time.monotonic()
        if completed.has_ready():
            yield next(completed)
            looked = seen = time.monotonic()
        elif now - looked > SECONDS_BETWEEN_LOOKS:
            looked = now
            try:
                seen = now if client.nthreads(callback_timeout=SECONDS_TO_CONNECT) or not workers else seen
            except (OSError, RuntimeError, TimeoutError):
                return
            done = [future.key for future in list(completed.futures) if future.done()]
            done_since = {key: done_since.get(key, now) for key in done}
            if now - min([seen, *done_since.values()]) > SECONDS_WITHOUT_WORKERS:
                return


def _client(distributed, stack: ExitStack, address: str, workers: int):
    """Return a client of a scheduler, or of processes on this machine that end with the stack."""
    if workers:
        options = {"n_workers": workers, "threads_per_worker": 1, "scheduler_kwargs": {"dashboard": False}}
        options["dashboard_address"] = "127.0.0.1:0"  # or Dask warns where another one of its servers has port 8787
        try:
            cluster = stack.enter_context(distributed.LocalCluster(processes=True, silence_logs=50, **options))
        except (OSError, RuntimeError, TimeoutError) as problem:
            raise InputError(f"Dask starts no {workers} processes here: {problem}") from problem
        return distributed.Client(cluster)
    try:
        client = distributed.Client(f"tcp://{address}", timeout=SECONDS_TO_CONNECT)
        client.wait_for_workers(1, timeout=SECONDS_TO_CONNECT)
    except (OSError, TimeoutError, ValueError) as problem:
        raise InputError(
            f"no Dask scheduler with a worker replies at {address}: start `dask scheduler` there and `dask worker` on "
            "the machines that do the work, or see that the port is open"
        ) from problem
    return client
