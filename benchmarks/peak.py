"""Peak memory of one candidate, in a process of its own that imports nothing else."""

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import quiet
from measure import Case

CALLS = 3
STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


def in_child(script: Path, row: str, candidate: str) -> dict[str, float]:
    """Return the peak resident memory of a candidate, and what was resident before its first call, in MiB."""
    command = [sys.executable, str(script), "--peak", row, candidate]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{script.name} --peak {row!r} {candidate} failed: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def print_peak(cases: Sequence[Case], row: str, candidate: str) -> None:
    """Run a candidate a few times and print its memory as JSON; what making it took does not count."""
    case = next(case for case in cases if case.name == row)
    work = case.candidates[candidate]()
    quiet.use_threads(case.threads)
    give_memory_back()
    before = _resident("VmRSS")
    if RESET.exists():
        RESET.write_text("5")  # the high-water mark starts anew
    for _ in range(CALLS):
        work()
    print(json.dumps({"before": round(before, 1), "peak": round(_resident("VmHWM"), 1)}))


def give_memory_back() -> None:
    """Let backlight, where it is the candidate, keep no memory of what was made before."""
    native = sys.modules.get("backlight.kernels.native")
    if native is not None and native.compiled is not None:
        native.compiled.give_memory_back()


def _resident(name: str) -> float:
    """Return a line of /proc/self/status in MiB.

    Not getrusage's maximum where it can be avoided: a child inherits there what its parent held.
    """
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
        return int(line.split()[1]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1 << 20 if sys.platform == "darwin" else 1 << 10)
