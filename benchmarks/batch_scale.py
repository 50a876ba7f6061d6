"""A thousand workers on a planned batch, simulated: what failures, stragglers, duplicates, a store and merging cost.

    python benchmarks/batch_scale.py
    python benchmarks/batch_scale.py --pairs 100000000 --workers 100 --rows 1024 --rate 30

A discrete simulation, event by event, of the protocol of docs/clusters.md: workers take units from an engine, are slow
or die at random, are started again and load the model again; a unit whose worker died is given to another; what is left
near the end may be done twice; a part is created by one request of a store that answers a bounded number a second. It
counts every unit, and stops with an error if one is lost or created twice. `--check FOLDER` does a job here with the
model in the folder, with one and with two workers, and prints what they took next to their simulation.
"""

import argparse
import heapq
import random
import tempfile
import time
from collections import Counter, deque
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import mean

from batch_engines import write_pairs

from backlight.explain.batch import Settings
from backlight.explain.batch.sharding.engines import engine_named, run_units
from backlight.explain.batch.sharding.model_reference import ModelReference
from backlight.explain.batch.sharding.packed_parts import head_of
from backlight.explain.batch.sharding.plan import plan_batch


@dataclass(frozen=True)
class Cost:
    """What a job costs.

    Args:
        pairs: of the input.
        rows: of a unit.
        workers: processes, a core each.
        rate: pairs a second of one worker.
        start: seconds until a process has imported backlight, checked the model's hash and loaded it.
        overhead: seconds a unit beside the pairs: reading it, three requests or a link, the engine's own.
        spread: standard deviation of the logarithm of a worker's speed.
        slow: the share of workers that are five times slower (a noisy neighbour, a failing disk).
        failures: of one worker in an hour.
        back: seconds until a dead worker's place is filled.
        noticed: seconds until the engine sees that a worker died.
        requests: that the store answers in a second.
        merge: pairs a second that are merged and summed up.
        plan: pairs a second that are planned.
        speculate: whether idle workers do again what others are at.
    """

    pairs: int = 100_000_000
    rows: int = 1024
    workers: int = 1000
    rate: float = 2.4
    start: float = 3.0
    overhead: float = 0.05
    spread: float = 0.1
    slow: float = 0.01
    failures: float = 0.1
    back: float = 60.0
    noticed: float = 30.0
    requests: float = 3000.0
    merge: float = 4_300.0
    plan: float = 115_000.0
    speculate: bool = False


@dataclass
class Found:
    """What the work of a simulated job came to: seconds, and counts of what happened."""

    work: float
    counts: Counter[str]


class Simulation:
    """The work of a job, event by event. Times are seconds since the workers were started."""

    def __init__(self, cost: Cost, seed: int = 0):
        self.cost, self.random = cost, random.Random(seed)
        self.units = -(-cost.pairs // cost.rows)
        self.left, self.created = deque(range(self.units)), [False] * self.units
        self.counts: Counter[str] = Counter()
        self.events: list[tuple[float, int, str, int, int]] = []
        self.alive = [0] * cost.workers  # how often each was started: events of an earlier life mean nothing
        self.speed = [self._speed() for _ in range(cost.workers)]
        self.running: dict[int, int] = {}  # unit -> how many workers are at it
        self.at_work: dict[int, int] = {}  # worker -> unit
        self.idle: set[int] = set()
        self.store_free = self.done_at = 0.0

    def _speed(self) -> float:
        slow = 0.2 if self.random.random() < self.cost.slow else 1.0
        return slow * self.random.lognormvariate(0, self.cost.spread)

    def run(self) -> Found:
        """Run until all units are created."""
        for worker in range(self.cost.workers):
            self._begin_life(worker, 0.0)
        missing = self.units
        while missing:
            now, _, what, worker, detail = heapq.heappop(self.events)
            if what == "lost":  # the engine has seen that the worker of a unit is dead
                self._give_back(detail, now)
            elif what == "back":
                self._begin_life(worker, now)
            elif detail >> 32 == self.alive[worker]:  # else it died since
                if what == "dies":
                    self._die(worker, now)
                elif what == "ready":
                    self._take(worker, now)
                elif what == "computed":
                    missing -= self._create(worker, detail & 0xFFFFFFFF, now)
        assert all(self.created) and self.counts["created"] == self.units
        return Found(self.done_at, self.counts)

    def _at(self, when: float, what: str, worker: int, detail: int) -> None:
        self.counts["events"] += 1
        heapq.heappush(self.events, (when, self.counts["events"], what, worker, detail))

    def _life(self, worker: int, unit: int = 0) -> int:
        return self.alive[worker] << 32 | unit

    def _begin_life(self, worker: int, now: float) -> None:
        self.alive[worker] += 1
        self.counts["started"] += 1
        self._at(now + self.cost.start, "ready", worker, self._life(worker))
        if self.cost.failures:
            self._at(now + self.random.expovariate(self.cost.failures / 3600), "dies", worker, self._life(worker))

    def _die(self, worker: int, now: float) -> None:
        self.counts["died"] += 1
        self.idle.discard(worker)
        unit = self.at_work.pop(worker, None)
        self.alive[worker] += 1
        if unit is not None:
            self._at(now + self.cost.noticed, "lost", worker, unit)
        self._at(now + self.cost.back, "back", worker, 0)

    def _give_back(self, unit: int, now: float) -> None:
        self.running[unit] -= 1
        if not self.created[unit] and not self.running[unit]:
            self.counts["recomputed"] += 1
            self.left.append(unit)
            if self.idle:
                self._take(self.idle.pop(), now)

    def _take(self, worker: int, now: float) -> None:
        """Give a worker its next unit."""
        if self.left:
            unit = self.left.popleft()
        elif self.cost.speculate and (others := [one for one, many in self.running.items() if many == 1]):
            unit = others[0]
            self.counts["computed twice"] += 1
        else:
            self.idle.add(worker)
            return
        self.running[unit] = self.running.get(unit, 0) + 1
        self.at_work[worker] = unit
        rows = min(self.cost.rows, self.cost.pairs - unit * self.cost.rows)
        seconds = rows / (self.cost.rate * self.speed[worker]) + self.cost.overhead
        self._at(now + seconds, "computed", worker, self._life(worker, unit))

    def _create(self, worker: int, unit: int, now: float) -> int:
        """Create a part, unless it is there; return how many were created."""
        self.store_free = max(self.store_free, now) + 3 / self.cost.requests
        self.running[unit] -= 1
        if not self.running[unit]:
            del self.running[unit]
        self.at_work.pop(worker, None)
        first = not self.created[unit]
        self.created[unit] = True
        self.counts["created" if first else "dropped"] += 1
        self.done_at = max(self.done_at, self.store_free) if first else self.done_at
        self._take(worker, self.store_free)
        return int(first)


def shown(name: str, cost: Cost, seed: int = 0) -> str:
    """Return a row of the table in docs/scale.md."""
    found = Simulation(cost, seed).run()
    ideal = cost.pairs / cost.rate / cost.workers
    counts = [f"{found.counts[what]:,}" for what in COUNTED]
    row = [name, f"{ideal / 3600:.2f}", f"{found.work / 3600:.2f}", f"{found.work / ideal:.3f}", *counts]
    return f"| {' | '.join(row)} |"


COUNTED = ("died", "recomputed", "computed twice", "dropped")


def check(model: str, pairs: int, rows: int) -> None:
    """Do a job here with one and with two workers, and print the simulation of each with the speed of its units."""
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as work:
            out = Path(work) / "out"
            write_pairs(Path(work) / "pairs.jsonl", pairs)
            began = time.time()
            plan_batch(Path(work) / "pairs.jsonl", out, ModelReference(model), Settings(rows=rows))
            planned = time.time() - began
            began = time.time()
            run_units(engine_named(f"local:{workers}"), out)
            took = time.time() - began
            parts = sorted((out / "units").glob("*.packed"), key=lambda file: file.stat().st_mtime)
            seconds = [head_of(file.read_bytes(), file.name)["by"]["seconds"] for file in parts]
            start = parts[0].stat().st_mtime - began - seconds[0]
            size = sum(file.stat().st_size for file in parts) / pairs
        rate = rows / mean(seconds)
        cost = Cost(pairs, rows, workers, rate, start, 0.01, spread=0.0, slow=0.0, failures=0.0)
        found = Simulation(cost).run()
        print(
            f"{workers} worker{'s' * (workers > 1)}: {rate:.0f} pairs a second each, start {start:.1f} s, "
            f"{size:.0f} bytes a pair, plan {pairs / planned:,.0f} pairs a second",
            f"took {took:.1f} s, simulated {found.work:.1f} s ({found.work / took:.3f})",
            sep="\n",
            flush=True,
        )


def main() -> None:
    """Print the table, or the check."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for field in fields(Cost):
        if field.name != "speculate":
            parser.add_argument(f"--{field.name}", type=type(field.default), default=None)
    parser.add_argument("--check", metavar="FOLDER", help="a model")
    given = parser.parse_args()
    if given.check:
        check(given.check, given.pairs or 4000, given.rows or 200)
        return
    asked = {field.name: value for field in fields(Cost) if (value := getattr(given, field.name, None)) is not None}
    cost = replace(Cost(), **asked)
    heads = ["", "ideal hours", "hours", "ratio", *COUNTED]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    calm = replace(cost, failures=0.0, slow=0.0, spread=0.0)
    print(shown("nothing goes wrong", calm))
    print(shown("workers differ by 10 %, none slow, none dies", replace(calm, spread=cost.spread)))
    print(shown("one in a hundred five times slower", replace(cost, failures=0.0)))
    print(shown(f"and {cost.failures:g} deaths a worker and hour", cost))
    print(shown("the same, idle workers repeat what is under way", replace(cost, speculate=True)))
    print(shown("ten times the deaths", replace(cost, failures=10 * cost.failures, speculate=True)))
    print(shown("units of 128 pairs", replace(cost, rows=128, speculate=True)))
    print(shown("units of 16,384 pairs", replace(cost, rows=16_384, speculate=True)))
    print(shown("start of 60 s", replace(cost, start=60.0, speculate=True)))
    print(shown("a store of 100 requests a second", replace(cost, requests=100.0, speculate=True)))
    plan, merge = (cost.pairs / rate / 3600 for rate in (cost.plan, cost.merge))
    print(f"Planning takes {plan:.2f} hours and merging {merge:.2f}, each on one core.")


if __name__ == "__main__":
    main()
