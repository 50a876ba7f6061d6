"""The longest common order of two sequences of keys, without comparing each with each.

NOTE [Alignment]
What both begin and end with is matched first. Then keys that occur once in both are anchors, as many of them as stand
in the same order (patience); between anchors it goes on in the same way. A stretch without such keys is short as a
rule and aligned exactly; a long one is walked with a window. So 5,000 nodes take some tens of milliseconds.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence

EXACT = 60_000  # cells of the table by which a stretch is aligned exactly
WINDOW = 100  # how far a longer one is searched for where both go on alike

Pair = tuple[int, int]


def align(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[Pair]:
    """Return places of equal keys, in the order of both.

    >>> align("abcxd", "abyycd")
    [(0, 0), (1, 1), (2, 4), (4, 5)]
    """
    pairs: list[Pair] = []
    waiting = [(0, len(before), 0, len(after))]
    while waiting:
        start, end, from_, to = waiting.pop()
        while start < end and from_ < to and before[start] == after[from_]:
            pairs.append((start, from_))
            start, from_ = start + 1, from_ + 1
        while start < end and from_ < to and before[end - 1] == after[to - 1]:
            end, to = end - 1, to - 1
            pairs.append((end, to))
        if start == end or from_ == to:
            continue
        anchors = _anchors(before, after, start, end, from_, to)
        if anchors:
            pairs += anchors
            waiting += gaps(anchors, start, end, from_, to)
        elif (end - start) * (to - from_) <= EXACT:
            pairs += _exactly(before, after, start, end, from_, to)
        else:
            pairs += _walked(before, after, start, end, from_, to)
    return sorted(pairs)


def gaps(pairs: Sequence[Pair], start: int, end: int, from_: int, to: int) -> list[tuple[int, int, int, int]]:
    """Return the stretches between pairs that are in order, those without a place on one side left out."""
    edges = [(start - 1, from_ - 1), *pairs, (end, to)]
    found = [(a + 1, c, b + 1, d) for (a, b), (c, d) in zip(edges, edges[1:])]
    return [one for one in found if one[0] < one[1] and one[2] < one[3]]


def _anchors(before, after, start: int, end: int, from_: int, to: int) -> list[Pair]:
    """Return pairs of keys that occur once in both stretches, the most that are in the same order."""
    counts = Counter(before[start:end])
    others = Counter(after[from_:to])
    there = {after[place]: place for place in range(from_, to) if others[after[place]] == 1}
    pairs = [
        (place, there[before[place]])
        for place in range(start, end)
        if counts[before[place]] == 1 and before[place] in there
    ]
    return _rising(pairs)


def _rising(pairs: list[Pair]) -> list[Pair]:
    """Return the longest part of pairs, sorted by their first, in which the second rises too."""
    ends: list[int] = []  # the smallest second that a rising part of each length ends with
    tops: list[int] = []  # and which pair that is
    previous: list[int | None] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        previous.append(tops[length - 1] if length else None)
        if length == len(ends):
            ends.append(place)
            tops.append(number)
        else:
            ends[length], tops[length] = place, number
    found, number = [], tops[-1] if tops else None
    while number is not None:
        found.append(pairs[number])
        number = previous[number]
    return found[::-1]


def _exactly(before, after, start: int, end: int, from_: int, to: int) -> list[Pair]:
    """Return the longest common order of two stretches, by the table of all beginnings from the end."""
    rows, columns = end - start, to - from_
    table = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        here, below, key = table[row], table[row + 1], before[start + row]
        for column in range(columns - 1, -1, -1):
            same = key == after[from_ + column]
            here[column] = below[column + 1] + 1 if same else max(below[column], here[column + 1])
    pairs, row, column = [], 0, 0
    while row < rows and column < columns:
        if before[start + row] == after[from_ + column]:
            pairs.append((start + row, from_ + column))
            row, column = row + 1, column + 1
        elif table[row + 1][column] >= table[row][column + 1]:
            row += 1
        else:
            column += 1
    return pairs


def _walked(before, after, start: int, end: int, from_: int, to: int) -> list[Pair]:
    """Return pairs found by walking along both; where they differ, the nearest place at which they go on alike."""
    pairs = []
    while start < end and from_ < to:
        if before[start] == after[from_]:
            pairs.append((start, from_))
            start, from_ = start + 1, from_ + 1
            continue
        skip = next((skip for skip in _skips(before, after, start, end, from_, to)), (1, 1))
        start, from_ = start + skip[0], from_ + skip[1]
    return pairs


def _skips(before, after, start: int, end: int, from_: int, to: int):
    """Yield how much to skip on each side so that both go on alike, small skips first."""
    seen_before: dict[Hashable, int] = {}
    seen_after: dict[Hashable, int] = {}
    for far in range(WINDOW):
        if start + far < end:
            key = before[start + far]
            seen_before.setdefault(key, far)
            if key in seen_after:
                yield far, seen_after[key]
        if from_ + far < to:
            key = after[from_ + far]
            seen_after.setdefault(key, far)
            if key in seen_before:
                yield seen_before[key], far
