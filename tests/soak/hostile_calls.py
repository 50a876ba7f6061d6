"""Calls every public name with hostile arguments, in processes that may die, and compares with PyTorch.

    python tests/soak/hostile_calls.py --seconds 60 --seed 1        failures end it with exit code 1
    python tests/soak/hostile_calls.py --calls 30000 --seed 1       so many calls, however long they take
    python tests/soak/hostile_calls.py --only nn.functional.pad     names that contain this
    python tests/soak/hostile_calls.py --seed 1 --show 1234         the call of that number, and both outcomes
    python tests/soak/hostile_calls.py --silent FILE                write where values differ or PyTorch refuses

What counts as a failure is said in NOTE [Verdicts] in tests/hostile/verdicts.py.
"""

import argparse
import collections
import json
import os
import random
import select
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "support"), str(TESTS.parent / "src")]

from hostile.arguments import mutated  # noqa: E402 - found below the path just added
from hostile.call import Call, their_name  # noqa: E402
from hostile.names import public_names, resolve  # noqa: E402
from hostile.samples import samples  # noqa: E402
from hostile.verdicts import Verdict, verdict  # noqa: E402

LIMIT = 20.0  # seconds that a call may compute: of the processor's time, so that a loaded machine changes no verdict
IDLE_LIMIT = 60.0  # seconds that it may wait without computing
START_LIMIT = 300.0  # seconds that the imports may compute
LOOKS = 0.5  # seconds between two looks at a process that has not answered yet
ALLOWED_PLACES = 5  # where internal errors may come from in one run: they are printed, and fail the run beyond that
FAILURES = ("crash", "hang")
SILENT = ("accepted", "differs")


def usage(pid: int) -> tuple[float, bool]:
    """Return how many seconds all threads of a process have computed, and whether it runs or waits for a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), fields[0] in "RZX"


class Waiting:
    """How long a process has computed and how long it was idle since it was asked."""

    def __init__(self, computed: float, now: float):
        self.before, self.computed, self.looked, self.idle = computed, computed, now, 0.0

    def problem(self, limit: float, computed: float, runs: bool, now: float) -> str | None:
        """Note another look at the process, and return in what way it takes too long; None while it does not.

        Args:
            limit: seconds that it may compute.
            computed: seconds that it has computed in its life.
            runs: whether it runs now, or waits for a processor only.
            now: the time of the look.
        """
        if not runs and computed - self.computed < 0.1 * (now - self.looked):
            self.idle += min(now - self.looked, 2 * LOOKS)  # this process may itself have had to wait for a processor
        self.computed, self.looked = computed, now
        if computed - self.before > limit:
            return f"more than {limit:g} s of the processor's time"
        return f"more than {IDLE_LIMIT:g} s without computing" if self.idle > IDLE_LIMIT else None


class Worker:
    """A process that makes calls of one package; started again when it has died."""

    def __init__(self, package: str):
        self.package, self.process = package, None
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the play

    def start(self) -> None:
        """Start the process and wait until it has imported all it needs."""
        self.computed_before = 0.0
        path = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
        self.process = subprocess.Popen(
            [sys.executable, str(TESTS / "hostile" / "worker.py"), self.package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            bufsize=0,
        )
        self.buffer = b""
        if self.answer(START_LIMIT) != "ready":
            raise RuntimeError(f"the worker for {self.package} did not start: {self.last_words()}")

    def ask(self, call: Call) -> None:
        """Send a call."""
        if self.process is None:
            self.errors.truncate(0)
            self.start()
        self.computed_before = usage(self.process.pid)[0]
        self.process.stdin.write(call.message())

    def answer(self, limit: float = LIMIT):
        """Return the outcome: of a process that died, computes for too long or waits for too long as well."""
        waiting = Waiting(self.computed_before, time.monotonic())
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], LOOKS)
            if not ready:
                problem = waiting.problem(limit, *usage(self.process.pid), time.monotonic())
                if problem is None:
                    continue
                self.stop()
                return {"hang": problem}
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                code = self.process.wait()
                self.stop()
                return {"crash": f"exit status {code}; {self.last_words()}"}
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def last_words(self) -> str:
        """Return the end of what the process wrote to its standard error."""
        self.errors.seek(0)
        return self.errors.read()[-600:].decode(errors="replace")

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


class Play:
    """Calls one after the other, and what was found."""

    def __init__(self, seed: int, only: str = ""):
        self.seed, self.names = seed, [name for name in public_names() if only in name]
        self.ours, self.theirs = Worker("backlight"), Worker("torch")
        self.counts: collections.Counter = collections.Counter()
        self.found: dict[tuple[str, str], list[tuple[int, str, str]]] = {}

    def call(self, number: int) -> Call:
        """Return the call of a number: of this seed always the same."""
        draw = random.Random(zlib.crc32(f"{self.seed} {number}".encode()))
        return mutated(draw.choice(samples(draw.choice(self.names))), draw)

    def outcomes(self, call: Call) -> tuple[dict, dict | None]:
        """Make a call in both packages."""
        known = call.target.startswith(".") or resolve(sys.modules["torch"], their_name(call.target)) is not None
        self.ours.ask(call)
        if known:
            self.theirs.ask(call)
        return self.ours.answer(), self.theirs.answer() if known else None

    def play(self, number: int) -> Verdict:
        """Make the call of a number and note what it says."""
        call = self.call(number)
        found = verdict(call.target, *self.outcomes(call))
        self.counts[found.kind] += 1
        self.found.setdefault((found.kind, found.group), []).append((number, str(call)[:300], found.detail))
        return found

    def lines(self, kinds) -> list[str]:
        """Return a line for each group of these kinds, the most frequent first."""
        groups = sorted((item for item in self.found.items() if item[0][0] in kinds), key=lambda item: -len(item[1]))
        return [
            f"{kind} {group} ({len(cases)} calls), e.g. {cases[0][0]}: {cases[0][1]} -> {cases[0][2]}"
            for (kind, group), cases in groups
        ]

    def close(self) -> None:
        """End the processes."""
        for worker in (self.ours, self.theirs):
            worker.stop()
            worker.errors.close()


def run(seconds: float, seed: int, calls: int | None = None, only: str = "", silent: str = "") -> list[str]:
    """Play for about so long, or so many calls; return a line for each group of failures."""
    play, start, number, told = Play(seed, only), time.monotonic(), 0, time.monotonic()
    print(f"hostile calls: {len(play.names)} names, seed {seed}", flush=True)
    try:
        while number < calls if calls is not None else time.monotonic() - start < seconds:
            play.play(number)
            number += 1
            if time.monotonic() - told > 10:
                told = time.monotonic()
                print(f"{number} calls in {told - start:.0f} s: {dict(play.counts)}", flush=True)
    finally:
        play.close()
    print(f"{number} calls in {time.monotonic() - start:.0f} s: {dict(play.counts)}")
    if silent:
        Path(silent).write_text("\n".join(play.lines(SILENT)) + "\n")
    internal = play.lines(("internal",))
    print(*internal, sep="\n", flush=True)
    return play.lines(FAILURES) + (internal if len(internal) > ALLOWED_PLACES else [])


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", type=int, nargs="*")
    parser.add_argument("--silent", default="")
    options = parser.parse_args()
    if options.show:
        play = Play(options.seed, options.only)
        for number in options.show:
            print(play.call(number), *play.outcomes(play.call(number)), sep="\n  ")
        play.close()
        return
    failures = run(options.seconds, options.seed, options.calls, options.only, options.silent)
    print(*failures, sep="\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
