"""Units on Spark: the one file that imports pyspark."""

import importlib
import os
import pickle
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from itertools import islice
from typing import TypeVar

from backlight.errors import InputError, install_hint

Unit, Outcome = TypeVar("Unit"), TypeVar("Outcome")
AT_ONCE = 2  # units under way for each core of the cluster: one that runs, one that waits
SECONDS_TO_CONNECT = 15
FAILURES = 8  # of a unit before Spark gives it up; of the processes on this machine, where its default is 1
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # here Java only hands units out: half the time of its own settings


def run_on_spark(
    address: str, workers: int, task: Callable[[Unit], Outcome], units: Iterable[Unit]
) -> Iterator[tuple[Unit, Outcome | Exception]]:
    """Give each unit with what became of it (see NOTE [An engine] in explain/batch/sharding/engines.py).

    Each unit is a job of one task, by `mapInArrow`, which Spark Connect has too. Spark keeps its Python processes, and
    so they keep the model.

    Args:
        address: of a master, "host:port", or of a Connect server, "sc://host:port".
        workers: how many cores of this machine to use in place of it.

    Raises:
        InputError: pyspark is not installed, or there is no cluster.
    """
    try:
        sql = importlib.import_module("pyspark.sql")
        importlib.import_module("pandas"), importlib.import_module("pyarrow")
    except ImportError as problem:
        raise InputError(f"--on spark:// needs Spark and Java: {install_hint('spark')}") from problem
    session = _session(sql, address, workers)

    def do(unit: Unit) -> Outcome:
        work = partial(done_unit, pickle.dumps((task, unit)))  # data would pass through a process of their own
        (row,) = session.range(0, 1, 1, 1).mapInArrow(work, "outcome binary").collect()
        return pickle.loads(row.outcome)

    count = AT_ONCE * (workers or _cores(session))
    pool = ThreadPoolExecutor(count)
    try:
        waiting = iter(units)
        under_way = {pool.submit(do, unit): unit for unit in islice(waiting, count)}
        while under_way:
            ready, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in ready:
                unit = under_way.pop(future)
                yield unit, future.exception() or future.result()
                under_way.update({pool.submit(do, unit): unit for unit in islice(waiting, 1)})
    finally:
        session.stop()
        pool.shutdown(wait=False, cancel_futures=True)


def done_unit(pickled: bytes, batches: Iterable) -> Iterator:
    """Do a unit for the one row of the batches: runs in Spark's Python processes."""
    pyarrow = importlib.import_module("pyarrow")
    for _ in batches:
        task, unit = pickle.loads(pickled)
        outcome = pyarrow.array([pickle.dumps(task(unit))], pyarrow.binary())
        yield pyarrow.RecordBatch.from_pydict({"outcome": outcome})


def _session(sql, address: str, workers: int):
    builder = sql.SparkSession.builder.appName("backlight").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if not workers:
        _check_reachable(address)
    try:
        if workers:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark reads it there, and takes python3 otherwise
            builder = builder.config("spark.driver.extraJavaOptions", JAVA)
            return _quiet(builder.master(f"local[{workers},{FAILURES}]").getOrCreate())
        if address.startswith("sc://"):
            return sql.SparkSession.builder.remote(address).getOrCreate()
        return _quiet(builder.master(f"spark://{address}").getOrCreate())
    except Exception as problem:  # Py4J's, gRPC's and Spark's own have no class in common
        raise InputError(
            f"Spark does not start ({str(problem).strip().splitlines()[0][:200]}): it needs Java 17 or later, and a "
            f"master or Connect server at {address or 'this machine'}"
        ) from problem


def _check_reachable(address: str) -> None:
    """Raise if nothing listens at an address: Spark itself would try for many minutes."""
    host, _, port = address.removeprefix("sc://").partition("/")[0].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT).close()
    except (OSError, ValueError) as problem:
        raise InputError(
            f"no Spark master or Connect server replies at {address} ({problem}): start one there, and give its "
            "HOST:PORT"
        ) from problem


def _quiet(session):
    """Leave it to backlight to say which units failed."""
    session.sparkContext.setLogLevel("OFF")
    return session


def _cores(session) -> int:
    """Return how many tasks a cluster runs at once, where it says so."""
    context = getattr(session, "_sc", None)
    return context.defaultParallelism if context is not None else AT_ONCE
