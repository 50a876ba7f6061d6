"""Run every soak program of this folder for its share of the time: `python tests/soak/run_all.py --seconds 300`.

The programs look for what tests of single cases cannot: crashes, hangs, leaks, lost rows and lost state under hostile
arguments, threads, forks, interrupts and kills. docs/guarantees.md says what each one holds.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
GRACE = 300  # seconds beyond its share after which a program itself counts as hanging


def played(program: Path, seconds: float, seed: int) -> bool:
    """Run one program, print what it prints, and return whether it found nothing."""
    command = [sys.executable, str(program), "--seconds", f"{seconds:.0f}", "--seed", str(seed)]
    start = time.monotonic()
    try:
        code = subprocess.run(command, timeout=seconds + GRACE).returncode
    except subprocess.TimeoutExpired:
        code = f"no end after {seconds + GRACE:.0f} s"
    took = time.monotonic() - start
    print(f"{program.stem}: {'good' if code == 0 else f'FAILED ({code})'}, {took:.0f} s, seed {seed}", flush=True)
    return code == 0


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
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
