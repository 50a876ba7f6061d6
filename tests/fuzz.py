"""Look for programs on which backlight and PyTorch differ: `python tests/fuzz.py --programs 20000 --seed 7`."""

import argparse
import collections
import time

from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzzing.play import play, programs


def main() -> None:
    """Run random programs until one shows a difference; print it, shrunk, or what the programs were made of."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts, start = collections.Counter(), time.perf_counter()

    @seed(options.seed)
    @settings(
        max_examples=options.programs,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
    )
    @given(programs)
    def agree(program):
        played = play(program)
        counts.update(played.counts)
        assert played.difference is None, played.difference

    agree()
    print(f"{dict(counts)} in {time.perf_counter() - start:.1f} s, seed {options.seed}: no difference")


if __name__ == "__main__":
    main()
