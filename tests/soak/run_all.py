"""Run every soak program of this folder for its share of the time: `python tests/soak/run_all.py --seconds 300`.

The programs look for what tests of single cases cannot: crashes, hangs, leaks, lost rows and lost state under hostile
arguments, threads, forks, interrupts and kills. docs/guarantees.md says what each one holds.
"""

import argparse
import collections
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

FOLDER = Path(__file__).parent
GRACE = 300  # seconds beyond its share after which a program itself counts as hanging
LAST_LINES, LINE_LENGTH = 12, 400  # of a program that failed: repeated at the end, where a log that was cut shows them


def played(program: Path, seconds: float, seed: int) -> list[str]:
    """Run one program and print what it prints; return nothing if it found nothing, else its last lines."""
    command = [sys.executable, "-u", str(program), "--seconds", f"{seconds:.0f}", "--seed", str(seed)]
    start, last = time.monotonic(), collections.deque(maxlen=LAST_LINES)
    # In a group of its own, so that a process which it left behind with its output still open ends with it.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", process_group=0
    ) as process:
        limit = threading.Timer(seconds + GRACE, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                last.append(line.rstrip()[:LINE_LENGTH])
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            limit.cancel()
    took = time.monotonic() - start
    if took >= seconds + GRACE:
        last.append(f"no end after {took:.0f} s")
    outcome = f"FAILED ({process.returncode})" if process.returncode else "good"
    print(f"{program.stem}: {outcome}, {took:.0f} s, seed {seed}", flush=True)
    return [f"{program.stem}: {outcome}", *last] if process.returncode else []


def main() -> int:
    """Run all programs, or those named, and return 1 if one of them found something."""
    programs = {file.stem: file for file in sorted(FOLDER.glob("*.py")) if "\ndef run(seconds" in file.read_text()}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300, help="for all programs together")
    parser.add_argument("--seed", type=int, default=0, help="another seed plays other cases")
    parser.add_argument("names", nargs="*", choices=[[], *programs], help="which programs (default: all)")
    options = parser.parse_args()
    names = options.names or list(programs)
    results = [played(programs[name], options.seconds / len(names), options.seed) for name in names]
    failures = list(filter(None, results))
    print(f"{len(results) - len(failures)} passed, {len(failures)} failed")
    print(*("\n  ".join(lines) for lines in failures), sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
