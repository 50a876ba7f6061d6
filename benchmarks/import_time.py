"""How long an import takes, as a whole process, over an empty interpreter: backlight, NumPy, PyTorch, in turn.

    python benchmarks/import_time.py [--rounds 10] [--check]

`--check` exits with 1 if importing backlight takes more than 0.35 s over an empty interpreter.
"""

import argparse
import subprocess
import sys

from measure import interleaved, quartiles, stopwatch

BAR = 0.35
PROGRAMS = {"empty": "pass", "numpy": "import numpy", "backlight": "import backlight", "torch": "import torch"}


def process(program: str):
    """Return a function that runs a program in a new interpreter and returns its time."""

    def once():
        start = stopwatch()
        subprocess.run([sys.executable, "-c", program], check=True)
        return (stopwatch() - start,)

    return once


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    times = interleaved({name: process(text) for name, text in PROGRAMS.items()}, options.rounds, warmup=1)
    empty = quartiles([one for (one,) in times["empty"]])[1]
    over = {}
    for name in PROGRAMS:
        low, middle, high = quartiles([one for (one,) in times[name]])
        over[name] = middle - empty
        print(f"import {name:10} {middle:6.3f} s ({low:.3f}-{high:.3f}), over an empty interpreter {over[name]:6.3f} s")
    if over["backlight"] > BAR:
        print(f"missed: {over['backlight']:.3f} s > {BAR} s")
        return int(options.check)
    return 0


if __name__ == "__main__":
    sys.exit(main())
