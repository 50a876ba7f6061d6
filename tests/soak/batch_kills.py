"""Kill a batch again and again, damage its files in between, and compare what it ends with with an undisturbed run.

    python tests/soak/batch_kills.py --seconds 60 --seed 1
    python tests/soak/batch_kills.py --seconds 600 --pairs 20000 --rows 500 --disturbances 20

Each round is a job: it is started, and ended by a signal (SIGKILL, SIGINT, SIGTERM) at a random moment; then some of
its files are damaged at random (emptied, cut short, a byte flipped, deleted, replaced by a folder or by another file);
and so on. In the end the job is run to its end. All files must then be those of a run that nothing happened to, byte
for byte.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

POLL = 0.005  # seconds between two looks at how far a job is
LONGEST = 600.0  # seconds that a run may take
HUNG = 1000  # in the place of an exit code
WORDS = "plants make food from sunlight water and air the green leaf of a cell moon pulls tide train coast"
INPUTS = ("jsonl", "beir", "standard input")
FORMATS = ("jsonl", "parquet")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Size:
    """How large the jobs are.

    Args:
        pairs: rows of the input.
        rows: of a part.
        disturbances: most kills of a job.
    """

    pairs: int = 150
    rows: int = 10
    disturbances: int = 8


@dataclass
class Count:
    """What happened so far."""

    rounds: int = 0
    ended: Counter = field(default_factory=Counter)
    damaged: Counter = field(default_factory=Counter)
    named: int = 0

    def __str__(self) -> str:
        ended = ", ".join(f"{count} × {name}" for name, count in sorted(self.ended.items()))
        damaged = ", ".join(f"{count} {name}" for name, count in sorted(self.damaged.items()))
        return f"{self.rounds} jobs; ended by {ended}; files damaged: {damaged}; named by backlight: {self.named}"


# --- the input -----------------------------------------------------------------------------------------------------


def text(rng: random.Random, most: int) -> str:
    """Return some words."""
    return " ".join(rng.choices(WORDS.split(), k=rng.randint(2, most)))


def write_lines(file: Path, records: Sequence) -> Path:
    """Write records as JSON lines, texts as they are."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records))
    return file


def write_input(kind: str, folder: Path, pairs: int, seed: int) -> list[str]:
    """Write an input, one row in twenty of it bad, and return how the command names it."""
    rng = random.Random(seed)
    rows = [{"query": text(rng, 4), "document": text(rng, 20), "label": number % 2} for number in range(pairs)]
    if kind != "beir":
        lines = [row if number % 20 != 7 else "{broken" for number, row in enumerate(rows)]
        file = write_lines(folder / "pairs.jsonl", lines)
        return [str(file)] if kind == "jsonl" else ["-"]
    write_lines(folder / "queries.jsonl", [{"_id": f"q{n}", "text": row["query"]} for n, row in enumerate(rows)])
    write_lines(folder / "corpus.jsonl", [{"_id": f"d{n}", "text": row["document"]} for n, row in enumerate(rows)])
    judged = [f"q{n}\t{'d' if n % 20 != 7 else 'x'}{n}\t{row['label']}" for n, row in enumerate(rows)]
    write_lines(folder / "qrels" / "test.tsv", ["query-id\tcorpus-id\tscore", *judged])
    return [str(folder)]


# --- runs ----------------------------------------------------------------------------------------------------------


class Job:
    """A batch in a folder.

    Args:
        command: of it, without the folder.
        out: the folder.
        stdin: what it reads, or None.
    """

    def __init__(self, command: Sequence[str], out: Path, stdin: Path | None):
        self.command, self.out, self.stdin = [*command, "-o", str(out)], out, stdin

    def start(self, log: Path) -> subprocess.Popen:
        """Start the job; what it says goes to a file."""
        with open(self.stdin or os.devnull, "rb") as given, open(log, "wb") as said:
            return subprocess.Popen(self.command, stdin=given, stdout=said, stderr=said, start_new_session=True)

    def finish(self, log: Path) -> tuple[int, float]:
        """Run the job to its end, and return its exit code, and the seconds after it had taken its folder."""
        process = self.start(log)
        self._wait_for_lock(process)
        began = time.monotonic()
        return self._code_of(process), time.monotonic() - began

    def disturb(self, log: Path, sign: signal.Signals, moment: float) -> int:
        """Start the job, send it a signal some time after it has taken its folder, and return its exit code.

        Before that, Python itself is starting, whose answer to Ctrl-C is its own.
        """
        process = self.start(log)
        self._wait_for_lock(process)
        time.sleep(moment)
        process.send_signal(sign)
        return self._code_of(process)

    def _wait_for_lock(self, process: subprocess.Popen) -> None:
        """Wait until the lock file holds the number of the process; a killed one may have left its own."""
        while process.poll() is None and not self._is_held_by(process):
            time.sleep(POLL)

    def _is_held_by(self, process: subprocess.Popen) -> bool:
        try:
            return (self.out / ".lock").read_text() == str(process.pid)
        except FileNotFoundError:
            return False

    def _code_of(self, process: subprocess.Popen) -> int:
        """Return a process's exit code; one that does not end is killed, which no job's code is."""
        try:
            return process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return HUNG


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of all files in a folder, hidden ones too; None for a folder without a file."""
    return {
        str(entry.relative_to(folder)): entry.read_bytes() if entry.is_file() else b"a folder"
        for entry in sorted(folder.rglob("*"))
        if not entry.is_dir() or not any(entry.iterdir())
    }


# --- damage --------------------------------------------------------------------------------------------------------


def emptied(file: Path, rng: random.Random) -> None:
    """Leave nothing of a file's content."""
    os.truncate(file, 0)


def cut_short(file: Path, rng: random.Random) -> None:
    """Leave the beginning of a file."""
    os.truncate(file, rng.randrange(max(1, file.stat().st_size)))


def byte_flipped(file: Path, rng: random.Random) -> None:
    """Change one byte of a file."""
    content = bytearray(file.read_bytes())
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        file.write_bytes(content)


def deleted(file: Path, rng: random.Random) -> None:
    """Remove a file."""
    file.unlink()


def made_a_folder(file: Path, rng: random.Random) -> None:
    """Put an empty folder in a file's place."""
    file.unlink()
    file.mkdir()


def copied(file: Path, rng: random.Random) -> None:
    """Put a copy of a file in the place of another one in its folder."""
    others = [other for other in file.parent.iterdir() if other.is_file()]
    rng.choice(others).write_bytes(file.read_bytes())


DAMAGES = (emptied, cut_short, byte_flipped, deleted, made_a_folder, copied)


def damage_some(folder: Path, rng: random.Random, count: Count) -> list[str]:
    """Damage up to three files of a job, and return what was done; the lock is the running process's own."""
    done = []
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != ".lock"]
        if files:
            file, damage = rng.choice(files), rng.choice(DAMAGES)
            damage(file, rng)
            count.damaged[damage.__name__] += 1
            done.append(f"{file.relative_to(folder)} {damage.__name__}")
    return done


# --- rounds --------------------------------------------------------------------------------------------------------


class Rounds:
    """Jobs that are disturbed, one after another.

    Args:
        work: a folder for all of them.
        command: a batch, without its input.
        size: of the jobs.
        seed: of all that is random.
        until: when to begin no other disturbance, by `time.monotonic`.
    """

    def __init__(self, work: Path, command: Sequence[str], size: Size, seed: int, until: float):
        self.work, self.command, self.size, self.until = work, command, size, until
        self.rng, self.count, self.log = random.Random(seed), Count(), work / "log"
        self.whole: dict[tuple[str, str], tuple[dict[str, bytes], float]] = {}

    def play(self) -> list[str]:
        """Disturb one job, run it to its end, and return what is wrong with it."""
        kind, form = self.rng.choice(INPUTS), self.rng.choice(FORMATS)
        expected, pace = self._undisturbed(kind, form)
        self.count.rounds += 1
        job = self._job(kind, form, self.work / f"job-{self.count.rounds}")
        history: list[str] = []
        for _ in range(self.rng.randint(1, self.size.disturbances)):
            if time.monotonic() > self.until:
                break
            history += self._disturb(job, pace)
            if FAILED in history:
                return [f"{kind}, {form}: {history}"]
        code, _ = job.finish(self.log)
        found, said = contents(job.out), self._said()
        wrong = [name for name in sorted({*expected, *found}) if expected.get(name) != found.get(name)]
        if code == 0 and not wrong:
            shutil.rmtree(job.out)
            return []
        return [f"{kind}, {form}: exit code {code}, other files: {wrong[:8]}; after {history}; it said: {said[-800:]}"]

    def _job(self, kind: str, form: str, out: Path) -> Job:
        folder = self.work / kind
        named = write_input(kind, folder, self.size.pairs, 0)
        command = [*self.command, *named, "--rows", str(self.size.rows), "--format", form]
        return Job(command, out, folder / "pairs.jsonl" if kind == "standard input" else None)

    def _undisturbed(self, kind: str, form: str) -> tuple[dict[str, bytes], float]:
        """Return what a job writes that nothing happens to, and how many seconds it takes."""
        if (kind, form) not in self.whole:
            job = self._job(kind, form, self.work / f"whole-{kind}-{form}")
            code, seconds = job.finish(self.log)
            if code:
                raise SystemExit(f"a job that nothing happened to failed: {self.log.read_text()}")
            self.whole[kind, form] = contents(job.out), seconds
        return self.whole[kind, form]

    def _disturb(self, job: Job, pace: float) -> list[str]:
        """End a job by a signal, damage its files, and return what was done."""
        sign = self.rng.choice(SIGNALS)
        moment = self.rng.uniform(0, pace)
        code = job.disturb(self.log, sign, moment)
        self.count.ended[sign.name if code else "itself"] += 1
        said = self._said()
        if code not in (0, *ENDS[sign]) or "Traceback" in said:
            return [f"{sign.name} after {moment:.2f} s: exit code {code}, it said {said[-800:]}", FAILED]
        if sign == signal.SIGINT and (job.out / ".lock").exists():
            return [f"{sign.name} after {moment:.2f} s: the lock file is left", FAILED]
        return [f"{sign.name} after {moment:.2f} s", *damage_some(job.out, self.rng, self.count)]

    def _said(self) -> str:
        """Return what the last run said, and count the damaged files that it named."""
        said = self.log.read_text()
        self.count.named += sum(said.count(repair) for repair in ("computed again", "written anew", "looked up again"))
        return said


FAILED = "FAILED"
ENDS = {signal.SIGKILL: (-9,), signal.SIGTERM: (-15,), signal.SIGINT: (130, -2)}  # -2: Python itself was ending


def run(seconds: float, seed: int, *, size: Size = Size(), options: Sequence[str] = ("--method", "none")) -> list[str]:
    """Disturb jobs for about that long; return a line for each that went wrong.

    Args:
        size: of the jobs.
        options: of `backlight batch`.
    """
    command = [sys.executable, "-m", "backlight", "batch", "--quiet", *options]
    until, failures = time.monotonic() + seconds, []
    with tempfile.TemporaryDirectory() as work:
        rounds = Rounds(Path(work), command, size, seed, until)
        while time.monotonic() < until:
            failed = rounds.play()
            failures += failed
            print("\n".join([*failed, f"{rounds.count}; {len(failures)} failures"]), flush=True)
    return failures


def main() -> None:
    """Play, and exit with 1 on failures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=Size.pairs)
    parser.add_argument("--rows", type=int, default=Size.rows, help="rows a part")
    parser.add_argument("--disturbances", type=int, default=Size.disturbances, help="most kills of a job")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--method", default="none")
    given = parser.parse_args()
    size = Size(given.pairs, given.rows, given.disturbances)
    failures = run(given.seconds, given.seed, size=size, options=("--model", given.model, "--method", given.method))
    print("\n".join(failures) or "no failures")
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
