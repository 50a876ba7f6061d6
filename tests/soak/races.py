"""Writes tensors in one thread while another computes with them: any values may come out, but nothing may crash.

    python tests/soak/races.py --seconds 60 --seed 1
    python tests/soak/races.py --seconds 10 --only index_add,gather --how values

Each case of soak/race_cases.py runs in a child process, where a second thread writes huge numbers into its indices,
masks or counts and right ones again (`values`), gives its tensors other data (`replace`), or resizes them (`resize`).
An exception is allowed. A child that dies of a signal or does not end is a failure.
"""

import argparse
import contextlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from soak.race_cases import CASES, Case

HOWS = ("values", "replace", "resize")
PATIENCE = 60  # seconds that a child may take beyond its time
CALLS = 100_000_000  # more than there is time for


def write_values(tensor, number, right) -> None:
    """Write the number everywhere, then at a few places, then what was there."""
    array = tensor.detach().numpy()
    array[...] = number
    array[...] = right
    array.reshape(-1)[:: max(array.size // 7, 1)] = number
    array[...] = right


def replace(tensor, number, right) -> None:
    """Give the tensor other data: of the same shape, and one element long."""
    kind = type(tensor)
    with contextlib.suppress(Exception):
        tensor.data = tensor.detach().new_full(tensor.shape, number)
    with contextlib.suppress(Exception):
        tensor.data = tensor.detach().new_full((1,), number)
    tensor.data = kind.new_tensor(tensor.detach(), right)


def resize(tensor, number, right) -> None:
    """Make the tensor small, then as large as it was, with what was there."""
    with contextlib.suppress(Exception):
        tensor.detach().resize_((1,))
        tensor.resize_((1,))
    with contextlib.suppress(Exception):
        tensor.resize_(right.shape)
    with contextlib.suppress(Exception):
        tensor.set_(tensor.detach().new_tensor(right))


WRITERS = {"values": write_values, "replace": replace, "resize": resize}


def write(case: Case, how: str, done: threading.Event) -> None:
    """Write the case's tensors until it is done."""
    written = [(tensor, number, tensor.detach().numpy().copy()) for tensor, number in case.written]
    while not done.is_set():
        for tensor, number, right in written:
            WRITERS[how](tensor, number, right)


def play(name: str, how: str, seconds: float, calls: int, seed: int) -> None:
    """Call one case's op while a thread writes its tensors."""
    case, done = CASES[name](np.random.default_rng(seed)), threading.Event()
    sys.setswitchinterval(1e-5)
    writer = threading.Thread(target=write, args=(case, how, done), daemon=True)
    writer.start()
    end = time.monotonic() + seconds
    for _ in range(calls):
        if time.monotonic() > end:
            break
        with contextlib.suppress(Exception):  # an index out of range is refused
            case.call()
    done.set()
    writer.join()


def child(names: Sequence[str], how: str, seconds: float, seed: int, calls: int = CALLS) -> str | None:
    """Play cases in a child process, each for some seconds; return what is wrong, if anything is."""
    command = [sys.executable, __file__, "--child", "--only", ",".join(names), "--how", how, "--seed", str(seed)]
    command += ["--seconds", str(seconds), "--calls", str(calls)]
    limit = seconds * len(names) + PATIENCE
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired as problem:
        return f"{_last(problem.stdout)} ({how}, seed {seed}): did not end in {limit:.0f} s"
    if ended.returncode:
        problem = ended.stderr.strip()[-2000:]
        return f"{_last(ended.stdout)} ({how}, seed {seed}): exit code {ended.returncode}: {problem}"
    return None


def _last(output: str | bytes | None) -> str:
    """Return the last case that a child began."""
    output = output.decode() if isinstance(output, bytes) else output or ""
    return (["nothing"] + output.split())[-1]


def run(seconds: float, seed: int, only: tuple = (), hows: tuple = HOWS) -> list[str]:
    """Play all cases in random order, each for a share of the time; return the failures."""
    plays = [(name, how) for name in only or CASES for how in hows]
    random.Random(seed).shuffle(plays)
    failures, end = [], time.monotonic() + seconds
    for number, (name, how) in enumerate(plays):
        share = max((end - time.monotonic()) / (len(plays) - number), 0.2)
        failure = child([name], how, share, seed)
        if failure:
            failures.append(failure)
            print(failure, flush=True)
        if number % 20 == 19:
            print(f"{number + 1} of {len(plays)} cases, {len(failures)} failures", flush=True)
    return failures


def main() -> int:
    """Read the command line; play."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names of cases, with commas")
    parser.add_argument("--how", default=",".join(HOWS), help=f"of {', '.join(HOWS)}")
    parser.add_argument("--calls", type=int, default=CALLS, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    only = tuple(filter(None, options.only.split(",")))
    if options.child:
        for name in only:
            print(name, flush=True)
            play(name, options.how, options.seconds, options.calls, options.seed)
        return 0
    return 1 if run(options.seconds, options.seed, only, tuple(options.how.split(","))) else 0


if __name__ == "__main__":
    sys.exit(main())
