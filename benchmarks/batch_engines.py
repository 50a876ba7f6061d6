"""What an engine adds to a batch: the same pairs by the plain command, by processes, and by Dask, Ray and Spark.

    python benchmarks/batch_engines.py --pairs 20000 --model FOLDER --on local:2 dask://local:2 ray://local:2

Each way runs in processes of its own, after the plain command, on the same cores. Printed are the seconds, the CPU
seconds of all its processes (read from /proc five times a second), the ratio of both to the plain command's, the most
memory of one process, and whether the parts are byte for byte the plain command's. On a machine that does other things
too, the ratio of CPU seconds says more. `--processes` prints what each process used, an engine's own too.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from batch_memory import WORDS


def write_pairs(file: Path, count: int) -> None:
    """Write pairs of three and of up to thirty words, with labels."""
    rng = random.Random(0)
    with open(file, "w") as out:
        for number in range(count):
            query, document = rng.choices(WORDS, k=3), rng.choices(WORDS, k=rng.randint(1, 30))
            pair = {"query": " ".join(query), "document": " ".join(document), "label": number % 2}
            out.write(json.dumps(pair) + "\n")


class Watch:
    """Adds up what all processes used that have a mark in their environment: those of an engine are not our children.

    Attributes:
        most: MiB of the largest process.
        seconds_of: CPU seconds of each process.
        command_of: the command line of each, its beginning.
    """

    def __init__(self, mark: str):
        self._mark, self.most = f"{MARK}={mark}".encode(), 0.0
        self.seconds_of, self.command_of = dict[str, float](), dict[str, str]()

    def look(self) -> None:
        """Take down what each process used until now."""
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                if folder.name not in self.seconds_of and self._mark not in (folder / "environ").read_bytes():
                    continue
                self.command_of[folder.name] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:120]
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            self.seconds_of[folder.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            self.most = max(self.most, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20))

    @property
    def seconds(self) -> float:
        """CPU seconds of all processes."""
        return sum(self.seconds_of.values())


MARK = "BACKLIGHT_BENCHMARK"


def run(command: list[str]) -> tuple[float, Watch]:
    """Run a command; return its seconds, and what its processes used."""
    mark = uuid.uuid4().hex
    watch, began = Watch(mark), time.perf_counter()
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, MARK: mark})
    while running.poll() is None:
        watch.look()
        time.sleep(0.2)
    if running.returncode:
        raise SystemExit(f"{command} ended with {running.returncode}")
    return time.perf_counter() - began, watch


def parts_of(folder: Path) -> dict[str, bytes]:
    """Return the parts and bad rows of a job."""
    return {file.name: file.read_bytes() for some in ("parts", "bad") for file in sorted((folder / some).glob("*"))}


def main() -> None:
    """Measure each way."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=500, help="of a unit")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--method", default="leave-one-out")
    parser.add_argument("--on", nargs="+", default=["local:2", "dask://local:2"])
    parser.add_argument("--processes", action="store_true", help="print what each process used")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "pairs.jsonl"
        write_pairs(file, given.pairs)
        common = [sys.executable, "-m", "backlight", "batch", str(file), "--model", given.model, "--quiet"]
        common += ["--rows", str(given.rows), "--method", given.method, "-o"]
        plain, expected = None, None
        for way in ["", *given.on]:
            out = Path(work) / (way.replace(":", "-").replace("/", "") or "plain")
            seconds, watch = run([*common, str(out), *(["--on", way] if way else [])])
            cpu = watch.seconds
            plain, expected = plain or (seconds, cpu), expected or parts_of(out)
            same = "the same parts" if parts_of(out) == expected else "OTHER PARTS"
            print(
                f"{way or 'plain command':16} {seconds:7.1f} s ({seconds / plain[0]:.2f})  CPU {cpu:7.1f} s "
                f"({cpu / plain[1]:.2f})  largest process {watch.most:5.0f} MiB  {same}",
                flush=True,
            )
            if given.processes:
                for process in sorted(watch.seconds_of, key=watch.seconds_of.__getitem__, reverse=True):
                    print(f"    {watch.seconds_of[process]:7.2f} s  {watch.command_of[process]}", flush=True)


if __name__ == "__main__":
    main()
