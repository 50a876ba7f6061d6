"""After an interrupted call the session is as before: Ctrl-C, and MemoryError, at each point where they can arrive.

    python tests/soak/interrupts.py --seconds 60 --seed 1
    python tests/soak/interrupts.py --kinds signals --interrupts 500

Kinds: `points` raises KeyboardInterrupt at the k-th point at which Python looks for signals: function entries, jumps
back, the return of a C function; not before any line, since between an entry of `finally` and its first call, say, no
signal can come. `memory` raises MemoryError there. `signals` sends real ones, by a timer, at random moments.
`allocations` lets the k-th allocation of memory fail.
"""

import argparse
import dis
import functools
import gc
import random
import signal
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "support"), str(TESTS.parent / "src")] if str(TESTS) not in sys.path else []

from soak.interrupted_programs import PROGRAMS, SLOW, cut_short, differences, fingerprint, processes, reference  # noqa: E402

try:
    import _testcapi
except ImportError:
    _testcapi = None

KINDS = ("points", "memory", "signals", "allocations")
PATIENCE = 120  # seconds beyond its time after which a child hangs
CHECKED_AFTER = {dis.opmap[name] for name in dis.opmap if name.startswith("CALL") and "INTRINSIC" not in name}
CHECKED_AFTER |= {number for name, number in dis.opmap.items() if "JUMP_BACKWARD" in name and "NO_INTER" not in name}


@functools.cache
def handlers(code) -> list:
    """Return where exceptions of each stretch of a function go."""
    return dis._parse_exception_table(code)


def handler(code, offset: int):
    """Return where an exception of an instruction goes."""
    return next((one.target for one in handlers(code) if one.start <= offset < one.end), None)


class Points:
    """Counts the points at which a signal may be noticed, and raises at one of them.

    An exception raised by a trace function belongs to the next instruction, that of a signal to the one before: points
    where the two go to different handlers are left out.
    """

    def __init__(self, at: int, error: type[BaseException]):
        self.at, self.error = at, error
        self.count = 0
        self.where = None
        self.last: dict = {}  # frame -> the offset of its last instruction, where that may be followed by a look

    def meet(self, frame) -> None:
        """Count a point."""
        self.count += 1
        if self.count == self.at:
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"
            raise self.error

    def __call__(self, frame, event, arg):
        """Trace."""
        if frame.f_code.co_filename == __file__:
            return None
        if event == "call":
            self.last.pop(frame.f_back, None)
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            self.meet(frame)
        elif event == "opcode":
            offset, code = frame.f_lasti, frame.f_code
            before = self.last.pop(frame, None)
            if code.co_code[offset] in CHECKED_AFTER:
                self.last[frame] = offset
            if before is not None and handler(code, before) == handler(code, offset):
                self.meet(frame)
        return self


def run_traced(program, at: int, error) -> Points:
    """Run a program, and raise at one point of it."""
    points = Points(at, error)
    gc.disable()  # what it calls back is no part of the program
    try:
        sys.settrace(points)
        program()
    except error:
        pass
    finally:
        sys.settrace(None)
        gc.enable()
    points.last.clear()
    return points


def run_timed(program, delay: float) -> str | None:
    """Run a program, and send a signal after a time; return where it arrived."""
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            program()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        return "; ".join(f"{one.filename}:{one.lineno}" for one in frames[-4:])
    return None


def run_starved(program, at: int) -> str | None:
    """Run a program whose k-th allocation fails; return where that was."""
    try:
        try:
            _testcapi.set_nomemory(at, at + 1)
            program()
        finally:
            _testcapi.remove_mem_hooks()
    except MemoryError as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        return "; ".join(f"{one.filename}:{one.lineno}" for one in frames[-4:]) or "?"
    return None


def settled(before: dict) -> list[str]:
    """Return what is not as it was before."""
    wrong = cut_short()
    gc.collect()
    return [*wrong, *differences(before, fingerprint()), *reference(), *[f"left running: {one}" for one in processes()]]


def warm_up(program) -> None:
    """Load what is loaded on first use, and build what is built then."""
    for _ in range(3):
        program()
        reference()


def failures(program, kind: str, seconds: float, seed: int, most: int, counted: list) -> list[str]:
    """Interrupt a program many times, at random; return what was lost, once it is. `counted` gets each place."""
    chance, end = random.Random(f"{seed} {kind} {program.__name__}"), time.monotonic() + seconds
    warm_up(program)
    began = time.perf_counter()
    program()
    took = time.perf_counter() - began
    error = MemoryError if kind == "memory" else KeyboardInterrupt
    total = run_traced(program, -1, error).count if kind in ("points", "memory") else int(took * 4e6) + 200
    order = chance.sample(range(1, total + 1), total)
    gc.collect()
    gc.freeze()  # so that each later collection looks at what the interrupted calls left only
    before = fingerprint()
    while len(counted) < most and time.monotonic() < end and order:
        if kind == "signals":
            where = run_timed(program, chance.uniform(2e-6, took * 1.2))
        elif kind == "allocations":
            where = run_starved(program, order.pop())
        else:
            where = run_traced(program, order.pop(), error).where
        if where is None:
            continue
        counted.append(where)
        lost = settled(before)
        if lost:
            return [f"{program.__name__}, {kind}, at {where}: {'; '.join(lost)[:600]}"]
    return []


def child(names: str, kind: str, seconds: float, seed: int, most: int) -> int:
    """Interrupt programs in this process, until one has lost state; print what was lost, and how many interrupts."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    warnings.simplefilter("ignore")  # here, since Python's own catch_warnings can lose its end
    total, found = 0, []
    for name in names.split(","):
        counted: list[str] = []
        found += failures(PROGRAMS[name], kind, seconds, seed, most, counted)
        total += len(counted)
        if found:
            break
    for one in found:
        print("LOST", one.replace("\n", " "))
    print("COUNT", total, flush=True)
    return 0


def in_child(name: str, kind: str, seconds: float, seed: int, most: int) -> tuple[int, list[str]]:
    """Interrupt a program in processes of its own until its time is over; return how many interrupts, and failures."""
    total, found, end = 0, [], time.monotonic() + seconds
    while total < most and len(found) < 5 and (left := end - time.monotonic()) > 0:
        options = ["--child", name, "--kinds", kind, "--seconds", f"{left:.1f}", "--seed", str(seed)]
        command = [sys.executable, __file__, *options, "--interrupts", str(most - total)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left + PATIENCE)
        except subprocess.TimeoutExpired:
            return total, [*found, f"{name}, {kind}: hangs"]
        lines = done.stdout.splitlines()
        found += [line[5:] for line in lines if line.startswith("LOST")]
        total += sum(int(line.split()[1]) for line in lines if line.startswith("COUNT"))
        if done.returncode:
            return total, [*found, f"{name}, {kind}: ended with {done.returncode}: {done.stderr[-600:]}"]
        if not any(line.startswith("LOST") for line in lines):
            break
        seed += 1
    return total, found


def run(seconds: float, seed: int, kinds=("points", "signals"), most: int = 10**9, names=None) -> list[str]:
    """Interrupt all programs; return a line for each loss of state."""
    found = []
    work = [(kind, name) for kind in kinds for name in names or PROGRAMS]
    work = [(kind, name) for kind, name in work if kind == "signals" or PROGRAMS[name] not in SLOW]
    for kind, name in work:
        count, lost = in_child(name, kind, seconds / len(work), seed, most)
        print(f"{kind:12} {name:26} {count:6} interrupts, {len(lost)} lost", flush=True)
        found += lost
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="points,signals", help=", ".join(KINDS))
    parser.add_argument("--interrupts", type=int, default=10**9, help="at most so many of each kind and program")
    parser.add_argument("--programs", default="", help="names, separated by commas; all of them by default")
    parser.add_argument("--child", default="")
    given = parser.parse_args()
    if given.child:
        sys.exit(child(given.child, given.kinds, given.seconds, given.seed, given.interrupts))
    names = [name for name in given.programs.split(",") if name] or None
    lost = run(given.seconds, given.seed, given.kinds.split(","), given.interrupts, names)
    print("\n".join(lost))
    sys.exit(1 if lost else 0)
