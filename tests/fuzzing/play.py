"""Programs are run on both engines, and their traces laid beside each other."""

import random
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch

import backlight
from fuzzing import (
    beyond,
    complexes,
    functions,
    gradients,
    hooking,
    looking,
    making,
    memory_orders,
    modes,
    sparse,
    viewing,
    writing,
)
from fuzzing.machine import STEPS, WEIGHTS, Machine, is_stale

FAMILIES = (
    making,
    complexes,
    viewing,
    writing,
    modes,
    gradients,
    hooking,
    functions,
    looking,
    beyond,
    memory_orders,
    sparse,
)  # importing them declares the steps
NAMES = [name for name in STEPS for _ in range(WEIGHTS[name])]
START = [("leaf", 0, 0, 1), ("leaf", 0, 0, 1), ("leaf", 3, 0, 0), ("binary", 1, 0, 2)]  # no program starts from nothing

SHORTEST, LONGEST, NUMBERS = 4, 24, 1000


def play_many(number: int, seed: int = 0) -> Counter:
    """Run random programs until two engines differ, which raises an AssertionError; return what the programs did.

    They are drawn here and not by Hypothesis, which also draws constants that it finds in the modules imported so far:
    so the same programs would not come again.

    Args:
        seed: from which the programs are drawn.
    """
    counts, rng = Counter(), random.Random(seed)
    for _ in range(number):
        program = drawn(rng)
        played = play(program)
        counts.update(played.counts)
        if played.difference is not None:
            least, difference = shrunk(program, played.difference)
            raise AssertionError(f"{difference}\n{least}")
    return counts


def drawn(rng: random.Random) -> tuple:
    """Return a random program: a seed, whether modes watch it, and steps with three numbers each."""
    steps = [
        (rng.choice(NAMES), *(rng.randrange(NUMBERS) for _ in range(3))) for _ in range(rng.randint(SHORTEST, LONGEST))
    ]
    return (rng.randrange(NUMBERS), rng.random() < 0.5), steps


def shrunk(program: tuple, difference: str) -> tuple[tuple, str]:
    """Return a program without the steps that its difference does not need, and the difference that it then has."""
    header, steps = program
    for place in reversed(range(len(steps))):
        fewer = steps[:place] + steps[place + 1 :]
        found = play((header, fewer)).difference
        if found is not None:
            steps, difference = fewer, found
    return (header, steps), difference


@dataclass
class Played:
    """What came of one program: the first difference, or None, and how its steps went."""

    difference: str | None
    counts: Counter
    trace: list


def play(program) -> Played:
    """Run a program on PyTorch and on backlight."""
    (seed, watchful), steps = program
    sides = [Machine(t, seed, watchful) for t in (torch, backlight)]
    theirs, ours = (side.run([*START, *steps]) for side in sides)
    comparison = Comparison(sides[0].exact, sides[0].twice)
    found = comparison.first_difference(theirs, ours)
    counts = sides[0].counts
    counts["stopped"] += comparison.stopped
    return Played(found, counts, theirs)


HOOKS = (
    "hook",
    "multi hook",
    "checkpoint",
    "late hook",
    "nested",
    "node hook",
    "node prehook",
    "post-accumulate",
    "came",
    "modes",
)


LEFT_OUT = (
    "INTERNAL ASSERT FAILED",
    "ZeroTensors are immut",  # in PyTorch's derivative of abs, where a second one is zero
    "Expected isFloatingType(grad.scalar_type()) ||",  # in PyTorch's derivative of where(…, real, complex)
)


def out_of_hand(event: tuple) -> bool:
    """Tell whether PyTorch is at fault, by its own account, or one of LEFT_OUT was refused."""
    return event[0] == "lost" or any(text in words for words in texts_of(event) for text in LEFT_OUT)


def texts_of(event):
    """Yield the strings in an event; to print its arrays as well would take longer than to run the program."""
    for part in event:
        if isinstance(part, str):
            yield part
        elif isinstance(part, tuple | list):
            yield from texts_of(part)


def refusal(trace: list, place: int) -> str:
    """Return what the step of an event was refused for, perhaps after more hooks had been called, or nothing."""
    event = next((event for event in trace[place:] if event[0] not in HOOKS), ("",))
    return event[-1] if event[0] in ("refused", "lost") else ""


@dataclass
class Comparison:
    """How two traces are compared: to rounding of float64, or of float32 where a program has any.

    It stops where PyTorch says that it has a bug; and where the engines go apart, after a backward was recorded, in a
    step that one refuses for one of STALE.
    """

    exact: bool
    twice: bool  # whether a backward was recorded
    stopped: bool = False  # whether the comparison ended before the traces did

    def first_difference(self, theirs: list, ours: list) -> str | None:
        """Return the first place where two traces differ, as text."""
        for place, (one, other) in enumerate(zip(theirs, ours)):
            if out_of_hand(one) or out_of_hand(other):
                self.stopped = True
                return None
            if not self.same(one, other, one[0]):
                if self.twice and any(is_stale(refusal(trace, place)) for trace in (theirs, ours)):
                    self.stopped = True
                    return None
                path, their, mine = self.narrowed(one, other, one[0])
                return (
                    f"event {place}: {one[0]} {one[1]!s:.30} at {path}\n  PyTorch:   {their!r}\n  backlight: {mine!r}"
                )
        if len(theirs) != len(ours):
            return f"PyTorch's trace has {len(theirs)} events, backlight's {len(ours)}"
        return None

    def narrowed(self, one, other, kind: str) -> tuple:
        """Return where in two events the first difference is, and its two sides."""
        path = []
        while isinstance(one, tuple | list) and isinstance(other, tuple | list) and len(one) == len(other):
            at = next(place for place, (a, b) in enumerate(zip(one, other)) if not self.same(a, b, kind))
            path.append(at)
            one, other = one[at], other[at]
        return path, one, other

    def same(self, one, other, kind: str) -> bool:
        """Tell whether two events, or parts of them, are equal; numbers may differ in rounding."""
        if isinstance(one, np.ndarray | float | complex):
            return isinstance(other, type(one)) and self.close(np.asarray(one), np.asarray(other))
        if isinstance(one, tuple | list):
            same_length = isinstance(other, tuple | list) and len(one) == len(other)
            return same_length and all(self.same(a, b, kind) for a, b in zip(one, other))
        if isinstance(one, str) and kind in ("refused", "warned"):
            start = one.partition(" (Triggered internally")[0][:60]
            return isinstance(other, str) and (other.startswith(start) or (is_stale(one) and is_stale(other)))
        return type(one) is type(other) and one == other

    def close(self, one: np.ndarray, other: np.ndarray) -> bool:
        """Tell whether arrays are equal but for rounding."""
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if one.dtype.kind not in "fc":
            return np.array_equal(one, other)
        relative = 1e-9 if self.exact else 2e-4
        finite = np.abs(one[np.isfinite(one)])
        return np.allclose(one, other, relative, relative * max(1.0, finite.max(initial=0.0)), equal_nan=True)
