"""Look for programs on which backlight and PyTorch differ: `python tests/fuzz.py --programs 20000 --seed 7`."""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))

from fuzzing.play import play_many


def main() -> None:
    """Run random programs until one shows a difference; print it, shrunk, or what the programs were made of."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    counts = play_many(options.programs, options.seed)
    print(f"{dict(counts)} in {time.perf_counter() - start:.1f} s, seed {options.seed}: no difference")


if __name__ == "__main__":
    main()
