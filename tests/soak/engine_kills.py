"""Kill the workers of an engine at random moments of a batch, and compare its rows with one machine's undisturbed job.

    python tests/soak/engine_kills.py --on ray://local:2 --pairs 20000 --kills 10 --seed 0
    python tests/soak/engine_kills.py --on local:2 --store --pairs 20000
    python tests/soak/engine_kills.py --seconds 60

Printed are the kills, how many processes wrote parts, and how many rows are lost, doubled or have other bytes; one line
in seven of the input is no pair. With `--store` the job lies in an object store on loopback, which delays, fails,
carries out twice, or does not reply to one request in four. Without `--on`, small jobs run on the engines that are
installed here, one after another.
"""

import argparse
import importlib.util
import json
import logging
import os
import random
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from batch_units import Case, command_of, kill, make_case, merged, processes_below

from backlight.errors import InputError
from backlight.explain.batch.running import BatchProgress
from backlight.explain.batch.sharding.engines import engine_named, run_units
from backlight.explain.batch.sharding.packed_parts import head_of, packed_file, units_done
from backlight.explain.batch.sharding.plan import read_plan
from backlight.explain.batch.sharding.stores import store_of

WORKERS = {"local": "spawn_main", "dask": "spawn_main", "ray": "ray::Doer", "spark": "pyspark.daemon"}
LIBRARIES = {"local": "backlight", "dask": "distributed", "ray": "ray", "spark": "pyspark"}
LAST = 5  # units after the last kill, so that it meets a job under way, whatever of it is on its way here
CALLS = 10  # after which a person would give an engine up
DISTURBED = 0.25  # of the requests to the object store


class Killer:
    """Ends workers by SIGKILL at random moments, spread over a job: a random time after random units were done.

    Args:
        command: what a worker's command line contains; workers are descendants of this process.
        out: of the planned job.
        kills: how many, after the first unit, and before the last `LAST` ones.
        pause: the longest time between a unit and the kill that follows it.
        seed: of all that is random.
        say: called with a line for each kill.
    """

    def __init__(
        self,
        command: str,
        out: Path | str,
        kills: int,
        pause: float = 1.0,
        seed: int = 0,
        say: Callable[[str], None] = lambda line: None,
    ):
        self.killed: list[int] = []
        self._command, self._say, self._random = command, say, random.Random(seed)
        plan = read_plan(out)
        after = sorted(self._random.sample(range(1, plan.units - LAST), kills))
        self._due = deque((unit * plan.settings.rows, self._random.uniform(0, pause)) for unit in after)
        self._thread, self._pending, self._rows = ThreadPoolExecutor(1), deque[Future](), -1
        self._began = time.monotonic()

    def watch(self, progress: BatchProgress) -> None:
        """Begin the kill that is due, after the one before it. An engine calls this with its progress."""
        if progress.rows <= self._rows:
            return  # an engine that is begun again, and may have no worker yet
        self._rows = progress.rows
        self.wait()
        if self._due and progress.rows >= self._due[0][0]:
            _, pause = self._due.popleft()
            self._pending.append(self._thread.submit(self._kill_one, pause))

    def wait(self) -> None:
        """Return once the kill that was begun is done."""
        while self._pending:
            self._pending.popleft().result()

    def _kill_one(self, pause: float) -> None:
        time.sleep(pause)
        found = [one for one in processes_below(os.getpid()) if self._command in command_of(one)]
        workers = [one for one in found if not set(processes_below(one)) & set(found)]  # not Spark's, which begins them
        if not workers or not kill(chosen := self._random.choice(workers)):
            self._due.appendleft((0, 0.0))  # all are dead just now: after the next unit
            return
        self.killed.append(chosen)
        self._say(f"{time.monotonic() - self._began:7.1f} s, after {self._rows:,} rows: killed process {chosen}")


def done_while_killed(engine: str, out: Path | str, killer: Killer) -> int:
    """Do all units on an engine while its workers are killed; return how many calls it took.

    An engine that has given up a unit, whose workers died too often, is begun again, as a person would.
    """
    for call in range(1, CALLS + 1):
        try:
            run_units(engine_named(engine), out, watch=killer.watch)
            killer.wait()
            return call
        except InputError as problem:
            if "gave it up" not in str(problem) or "the same command resumes" not in str(problem):
                raise
    raise AssertionError(f"{CALLS} calls were not enough")


def rows_of(files: Mapping[str, bytes]) -> dict[int, list[bytes]]:
    """Return the rows of a merged job, good and bad ones, by their line in the input."""
    found: dict[int, list[bytes]] = {}
    for name, content in files.items():
        if name.startswith(("parts/", "bad/")):
            for row in content.splitlines():
                found.setdefault(json.loads(row)["line"], []).append(row)
    return found


def difference(expected: Mapping[str, bytes], files: Mapping[str, bytes]) -> dict[str, int]:
    """Return how many rows are lost, doubled, or have other bytes, and how many files differ."""
    wanted, found = rows_of(expected), rows_of(files)
    both = wanted.keys() & found.keys()
    return {
        "lost": len(wanted.keys() - found.keys()),
        "doubled": sum(len(rows) - len(wanted.get(line, ())) for line, rows in found.items() if line not in both)
        + sum(len(found[line]) - 1 for line in both),
        "with other bytes": sum(found[line][0] != wanted[line][0] for line in both),
        "files that differ": sum(expected.get(name) != files.get(name) for name in {*expected, *files}),
    }


def disturbed_store(stack: ExitStack, seed: int):
    """Return an object store that is disturbed, and that clients find until the stack is closed."""
    store = importlib.import_module("object_store_server").Store(share=DISTURBED, seed=seed)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # moto's, which prints each request
    stack.callback(store.close)
    stack.enter_context(patch.dict(os.environ, store.environment))
    return store


def play(
    case: Case,
    engine: str,
    folder: Path,
    *,
    kills: int = 10,
    pause: float = 1.0,
    seed: int = 0,
    stored: bool = False,
) -> dict[str, int]:
    """Do a job on an engine while its workers are killed, print what happened, and return what is wrong: zeros.

    Args:
        engine: one with processes on this machine.
        folder: for the job.
        kills, pause, seed: see `Killer`.
        stored: whether the job lies in an object store that is disturbed.
    """
    with ExitStack() as stack:
        store = disturbed_store(stack, seed) if stored else None
        out = case.plan(f"{store.url}/job" if store else folder / "job")
        plan, began = read_plan(out), time.monotonic()
        print(f"{engine}, {plan.rows:,} rows in {plan.units:,} units, {kills} kills, seed {seed}", flush=True)
        killer = Killer(WORKERS[engine_named(engine).name], out, kills, pause, seed, say=partial(print, flush=True))
        calls = done_while_killed(engine, out, killer)
        parts, by = store_of(out), Counter[str]()
        for name in map(packed_file, units_done(parts)):  # beside them lie files that killed workers had begun
            by[head_of(parts.read(name), name)["by"]["worker"]] += 1
        lost = sum(count for worker, count in by.items() if int(worker.rpartition(":")[2]) in killer.killed)
        print(f"  {time.monotonic() - began:.1f} s, {calls} calls; {len(by)} processes wrote parts, of which ", end="")
        print(f"{len(killer.killed)} were killed, after {lost} parts")
        if store:
            print(f"  requests {dict(store.proxy.requests)}, disturbed {dict(store.proxy.disturbed)}")
        found = difference(case.whole, merged(out, folder / "merged" if stored else None))
        found["kills left out"] = kills - len(killer.killed)
    print("  rows " + ", ".join(f"{count} {what}" for what, count in found.items()), flush=True)
    return found


def run(seconds: float, seed: int) -> list[str]:
    """Play small jobs for about that long, on the engines that are installed; return a line for each that fails."""
    ends, failures = time.monotonic() + seconds, []
    engines = [f"{name}://local:2" for name in WORKERS if importlib.util.find_spec(LIBRARIES[name])]
    ways = [(engine.removeprefix("local://"), False) for engine in engines]
    if importlib.util.find_spec("moto") and importlib.util.find_spec("obstore"):
        ways.append(("local:2", True))
    with tempfile.TemporaryDirectory() as work:
        case = make_case(Path(work) / "case", 200, 10)
        while time.monotonic() < ends:
            for engine, stored in ways:
                folder = Path(tempfile.mkdtemp(dir=work))
                found = play(case, engine, folder, seed=seed, stored=stored)
                if any(found.values()):
                    failures.append(f"{engine}, seed {seed}: {found}")
                if time.monotonic() > ends:
                    break
            seed += 1
    return failures


def main() -> None:
    """Play, and exit with 1 on failures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--on", help="an engine with processes on this machine, such as ray://local:2")
    parser.add_argument("--store", action="store_true", help="let the job lie in an object store that is disturbed")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=100, help="of a unit")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--model", help="a folder, or builtin; by default a random one of two layers")
    parser.add_argument("--seconds", type=float, default=60, help="without --on")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.on is None:
        failures = run(given.seconds, given.seed)
        print("\n".join(failures) or "no failures")
        raise SystemExit(bool(failures))
    with tempfile.TemporaryDirectory() as work:
        began, rows = time.monotonic(), -(-given.pairs * 7 // 6)
        case = make_case(Path(work) / "case", rows, given.rows, model=given.model)
        took = time.monotonic() - began
        print(f"{given.pairs:,} pairs and {rows - given.pairs:,} lines that are none, on one machine: {took:.1f} s")
        pause = 2 * took * given.rows / rows  # of two units on one machine
        chosen = {"kills": given.kills, "pause": pause, "seed": given.seed, "stored": given.store}
        found = play(case, given.on, Path(work), **chosen)
    raise SystemExit(any(found.values()))


if __name__ == "__main__":
    main()
