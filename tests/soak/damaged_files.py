"""Files that were damaged at random: each is refused in one line, or can be used without an internal error.

    python tests/soak/damaged_files.py --seconds 60 --seed 1 [--kind records --kind models …]

A child process plays one kind with a bound on its memory; one that crashes, hangs or takes too much is a failure.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from damage import play_records
from damage_models import play_models
from damage_runs import play_data, play_flows, play_runs, play_settings

MEMORY = 3 << 30  # bytes a child may have
SLOW = 20.0  # seconds a case may take
KINDS: dict[str, Callable[[random.Random, Path], tuple[str, bool]]] = {
    "records": play_records,
    "models": play_models,
    "flows": play_flows,
    "runs": play_runs,
    "data": play_data,
    "settings": play_settings,
}


def run(seconds: float, seed: int, kinds: list[str] | None = None) -> list[str]:
    """Play for about so long; return a line for each failure."""
    kinds = kinds or list(KINDS)
    failures = []
    for kind in kinds:
        failures += _played(kind, seconds / len(kinds), seed)
    return failures


def _played(kind: str, seconds: float, seed: int) -> list[str]:
    command = [sys.executable, __file__, "--child", kind, "--seconds", str(seconds), "--seed", str(seed)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120)
    except subprocess.TimeoutExpired:
        return [f"{kind}, seed {seed}: hangs"]
    lines = ended.stdout.splitlines()
    print("\n".join(line for line in lines if not line.startswith("FAILED ")), flush=True)
    failures = [line.removeprefix("FAILED ") for line in lines if line.startswith("FAILED ")]
    if ended.returncode:
        failures.append(f"{kind}, seed {seed}: ended with {ended.returncode}: {ended.stderr.strip()[-300:]}")
    return failures


def _child(kind: str, seconds: float, seed: int) -> None:
    """Play one kind in this process."""
    warnings.simplefilter("ignore")
    _bound_memory()
    counts, known = Counter(), set()
    end, case = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end or case < 5:
            begun = time.monotonic()
            trouble, accepted = KINDS[kind](random.Random(f"{kind} {seed} {case}"), Path(folder))
            if not trouble and time.monotonic() - begun > SLOW:
                trouble = f"took {time.monotonic() - begun:.0f} s"
            counts["accepted" if accepted else "refused"] += 1
            if trouble and trouble not in known:
                known.add(trouble)
                print(f"FAILED {kind}, seed {seed}, case {case}: {trouble}", flush=True)
            case += 1
    print(f"{kind}: {case} files, {counts['refused']} refused, {counts['accepted']} usable, {len(known)} failures")


def _bound_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows has none
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main() -> int:
    """Run it from the command line; return 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this one")
    parser.add_argument("--child", choices=KINDS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _child(given.child, given.seconds, given.seed)
        return 0
    failures = run(given.seconds, given.seed, given.kind)
    print("\n".join(failures) or "nothing failed")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
