"""Layered layout: in which row each item stands, as late as possible, and in which order, with few crossings.

NOTE [Layout]
Rows are counted downwards; what makes a tensor stands above what uses it. An item's row is the last one that is above
all its users, so that a parameter stands next to the flow, just above its use. The first row and the last are kept for
ports. A link over several rows passes through a bend in each; links from one start share theirs. Orders come from a
walk from the results up, then from sweeps that sort each row by the mean place of its neighbours, the best order kept.
Work is bounded: fewer sweeps for more links, and past `MOST_BENDS` the longest links go without bends.

Source: Sugiyama, Tagawa and Toda, Methods for visual understanding of hierarchical system structures (1981).
"""

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MOST_BENDS, MOST_SWEEPS, WORK = 60_000, 16, 150_000


@dataclass(slots=True)
class Layout:
    """Rows of items in order, bends among them, and the bends of each link, by its number."""

    rows: list[list[str]]
    bends: list[list[str]] = field(default_factory=list)


def layout(
    items: Sequence[str],
    links: Sequence[tuple[str, str]],
    *,
    entries: Sequence[str] = (),
    exits: Sequence[str] = (),
    first_bend: int = 0,
) -> Layout:
    """Lay out items.

    Args:
        items: what stands inside, ports apart.
        links: (start, end) of items and ports, without a circle.
        entries, exits: ports of the upper and of the lower border, in their order.
        first_bend: bends are named `b` and a number from here on.
    """
    row_of = _rows(items, links, entries, exits)
    bends, pairs = _bend(links, row_of, first_bend)
    count = max([row_of[item] for item in items], default=0) + 2
    rows: list[list[str]] = [[] for _ in range(count)]
    for item in _from_results_up(list(row_of), pairs):
        rows[row_of[item]].append(item)
    rows[0], rows[-1] = list(entries), list(exits)
    return Layout(_ordered(rows, pairs), bends)


def _rows(items: Sequence[str], links: Sequence[tuple[str, str]], entries, exits) -> dict[str, int]:
    """Return each item's row, as late as possible."""
    users: dict[str, list[str]] = {item: [] for item in (*entries, *items, *exits)}
    makers: dict[str, list[str]] = {item: [] for item in users}
    for start, end in links:
        users[start].append(end)
        makers[end].append(start)
    waiting = {item: len(found) for item, found in users.items()}
    ready = [item for item, number in waiting.items() if not number]
    steps = {item: int(item not in exits) for item in ready}  # from the last row up
    for item in ready:
        for maker in makers[item]:
            steps[maker] = max(steps.get(maker, 1), steps[item] + 1)
            waiting[maker] -= 1
            if not waiting[maker]:
                ready.append(maker)
    last = max([steps[item] for item in items], default=0) + 1
    row_of = {item: last - steps[item] for item in items}
    return row_of | dict.fromkeys(entries, 0) | dict.fromkeys(exits, last)


def _bend(links: Sequence[tuple[str, str]], row_of: dict[str, int], number: int):
    """Return each link's bends, added to `row_of` too, and all pairs of items in neighbouring rows that are linked."""
    shared: dict[tuple[str, int], str] = {}
    bends: list[list[str]] = [[] for _ in links]
    reach = [row_of[end] - row_of[start] for start, end in links]
    routed = set()  # the links that have all the bends they need
    for place in sorted(range(len(links)), key=lambda place: (reach[place], place)):
        start, end = links[place]
        if len(shared) + reach[place] > MOST_BENDS:
            break
        routed.add(place)
        for row in range(row_of[start] + 1, row_of[end]):
            if (start, row) not in shared:
                name = shared[start, row] = f"b{number + len(shared)}"
                row_of[name] = row
            bends[place].append(shared[start, row])
    chains = ([start, *bends[place], end] for place, (start, end) in enumerate(links) if place in routed)
    return bends, list(dict.fromkeys(pair for chain in chains for pair in zip(chain, chain[1:])))


def _from_results_up(items: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return all items in the order of a walk from those without users up, inputs from left to right."""
    above: dict[str, list[str]] = {item: [] for item in items}
    used = set()
    for upper, lower in pairs:
        above.setdefault(upper, [])
        above.setdefault(lower, []).append(upper)
        used.add(upper)
    order, seen = [], set()
    for result in [item for item in above if item not in used]:
        trail = [result]
        while trail:
            item = trail.pop()
            if item not in seen:
                seen.add(item)
                order.append(item)
                trail += reversed(above[item])
    return order


def _ordered(rows: list[list[str]], pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return the rows in an order with fewer crossings; the first and the last stay as they are."""
    above, below = _neighbours(rows, pairs)
    best, fewest = [list(row) for row in rows], crossings(rows, below)
    stale, sweeps = 0, max(2, min(MOST_SWEEPS, WORK // (len(pairs) + 1)))
    for sweep in range(sweeps):
        if not fewest or stale > 3:
            break
        _sort_rows(rows, above if sweep % 2 == 0 else below, down=sweep % 2 == 0)
        found = crossings(rows, below)
        stale += 1
        if found < fewest:
            best, fewest, stale = [list(row) for row in rows], found, 0
    return best


def _neighbours(rows, pairs) -> tuple[Mapping[str, list[str]], Mapping[str, list[str]]]:
    above: dict[str, list[str]] = {item: [] for row in rows for item in row}
    below: dict[str, list[str]] = {item: [] for row in rows for item in row}
    for upper, lower in pairs:
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _sort_rows(rows: list[list[str]], neighbours: Mapping[str, list[str]], *, down: bool) -> None:
    """Sort each inner row by the mean place of the neighbours in the row before it; who has none keeps its place."""
    numbers = range(1, len(rows) - 1)
    for number in numbers if down else reversed(numbers):
        neighbour_row = rows[number - 1 if down else number + 1]
        place = {item: at for at, item in enumerate(neighbour_row)}
        wanted = {}
        for item in rows[number]:
            found = neighbours[item]
            wanted[item] = sum(place[other] for other in found) / len(found) if found else None
        fixed = [(at, item) for at, item in enumerate(rows[number]) if wanted[item] is None]
        row = sorted((item for item in rows[number] if wanted[item] is not None), key=wanted.__getitem__)
        for at, item in fixed:
            row.insert(at, item)
        rows[number] = row


def crossings(rows: Sequence[Sequence[str]], below: Mapping[str, Sequence[str]]) -> int:
    """Return how many pairs of lines between neighbouring rows cross."""
    count = 0
    for row, under in zip(rows, rows[1:]):
        place = {item: at for at, item in enumerate(under)}
        passed: list[int] = []
        for item in row:
            ends = sorted(place[other] for other in below[item])
            count += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return count
