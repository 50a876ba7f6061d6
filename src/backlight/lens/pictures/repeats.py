"""Repeated blocks: where in a row of parts the same structure stands several times over."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

LONGEST, ONCE_MORE = 600, 8  # parts of a block; ops of a block that counts as repeated if it comes twice


@dataclass(frozen=True)
class Repeat:
    """Parts from `start` on: a block of `period` parts, `times` over."""

    start: int
    period: int
    times: int

    @property
    def end(self) -> int:
        """The first part after it."""
        return self.start + self.period * self.times


def repeats(kinds: Sequence[Hashable], sizes: Sequence[int], across: Sequence[int] = ()) -> list[Repeat]:
    """Return where blocks repeat, from left to right, none overlapping another.

    Where several fit, the one that covers most; of these the one with the shortest block. Where a block could as well
    begin a few parts later, it begins where the fewest tensors pass from one to the next.

    Args:
        kinds: of each part, equal for parts of the same structure.
        sizes: how many ops each has.
        across: how many tensors pass from what stands before each part to it and what follows.

    >>> repeats("xababab", [1] * 7)
    [Repeat(start=1, period=2, times=3)]
    """
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    row = np.array([numbers[kind] for kind in kinds], dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(sizes)])
    best: dict[int, Repeat] = {}
    for period in range(1, min(len(row) // 2, LONGEST) + 1):
        for start, times, spare in _runs(row, period):
            start = _narrowest(start, period, times, spare, across)
            found = Repeat(start, period, times)
            enough = 3 if before[start + period] - before[start] < ONCE_MORE else 2
            if times >= enough and (start not in best or best[start].end < found.end):
                best[start] = found
    return _apart(sorted(best.values(), key=lambda one: (one.start - one.end, one.period, one.start)))


def _runs(row: np.ndarray, period: int) -> list[tuple[int, int, int]]:
    """Return (start, times, how many parts later it could begin) of what repeats with a period."""
    same = np.concatenate([[False], row[period:] == row[:-period], [False]])
    edges = np.flatnonzero(same[1:] != same[:-1])
    runs = [(start, end - start) for start, end in zip(edges[::2].tolist(), edges[1::2].tolist())]
    return [(start, long // period + 1, long % period) for start, long in runs if long >= period]


def _narrowest(start: int, period: int, times: int, spare: int, across: Sequence[int]) -> int:
    """Return where blocks begin so that the fewest tensors pass between them; of equal places the last."""
    if not spare or not across:
        return start
    starts = range(start, start + spare + 1)
    costs = {first: sum(across[first : first + period * times : period]) for first in starts}
    return min(costs, key=lambda first: (costs[first], -first))


def _apart(found: Sequence[Repeat]) -> list[Repeat]:
    """Take repeats in turn, leaving out those that overlap one already taken."""
    taken: list[Repeat] = []
    for one in found:
        if all(one.end <= other.start or other.end <= one.start for other in taken):
            taken.append(one)
    return sorted(taken, key=lambda one: one.start)
