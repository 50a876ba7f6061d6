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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from backlight.lens.pictures.boxes import Box, Group, Link, Wire
from backlight.lens.records.nodes import LEAF

Neighbours = Mapping[str, list[str]]  # items of the row above, or below, that each is linked with
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
    above, below = _neighbours(row_of, pairs)
    for item in _from_results_up(above, below):
        rows[row_of[item]].append(item)
    rows[0], rows[-1] = list(entries), list(exits)
    sweeps = max(2, min(MOST_SWEEPS, WORK // (len(pairs) + 1)))
    return Layout(_ordered(rows, above, below, sweeps), bends)


def _rows(
    items: Sequence[str], links: Sequence[tuple[str, str]], entries: Sequence[str], exits: Sequence[str]
) -> dict[str, int]:
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


def _bend(
    links: Sequence[tuple[str, str]], row_of: dict[str, int], number: int
) -> tuple[list[list[str]], list[tuple[str, str]]]:
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


def _neighbours(items: Iterable[str], pairs: Sequence[tuple[str, str]]) -> tuple[Neighbours, Neighbours]:
    above, below = ({item: [] for item in items} for _ in range(2))
    for upper, lower in pairs:
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _from_results_up(above: Neighbours, below: Neighbours) -> dict[str, None]:
    """Return all items in the order of a walk from those without users up, inputs from left to right."""
    order: dict[str, None] = {}
    trail = [item for item in reversed(above) if not below[item]]
    while trail:
        item = trail.pop()
        if item not in order:
            order[item] = None
            trail += reversed(above[item])
    return order


def _ordered(rows: list[list[str]], above: Neighbours, below: Neighbours, sweeps: int) -> list[list[str]]:
    """Return the rows in an order with fewer crossings; the first and the last stay as they are."""
    best, fewest, stale = [list(row) for row in rows], crossings(rows, below), 0
    for sweep in range(sweeps):
        if not fewest or stale > 3:
            break
        _sort_rows(rows, above if sweep % 2 == 0 else below, down=sweep % 2 == 0)
        found = crossings(rows, below)
        stale += 1
        if found < fewest:
            best, fewest, stale = [list(row) for row in rows], found, 0
    return best


def _sort_rows(rows: list[list[str]], neighbours: Neighbours, *, down: bool) -> None:
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


def crossings(rows: Sequence[Sequence[str]], below: Neighbours) -> int:
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


STEP, SPREAD = 0.16, 0.76  # between two links that end at one item, and between the outermost, as shares of its width


def link(groups: Sequence[Group], boxes: Sequence[Box], wires: Sequence[Wire]) -> None:
    """Fill in every group's links and ranks. Groups stand after those they are in."""
    Lifting(groups, boxes).lift(wires)
    bend = 0
    leaves = {f"n{box.id}" for box in boxes if box.kind == LEAF}
    entries, exits = ({group.id: [] for group in groups} for _ in range(2))
    for group in groups:
        ends = [(one.start, one.end) for one in group.links]
        found = layout(group.children, ends, entries=entries[group.id], exits=exits[group.id], first_bend=bend)
        group.ranks = found.rows
        bend += len({name for row in found.rows for name in row if name[0] == "b"})
        for one, bends in zip(group.links, found.bends):
            one.bends = bends
        _attach(group, leaves, entries, exits)


class Lifting:
    """Makes the chain of links of each wire."""

    def __init__(self, groups: Sequence[Group], boxes: Sequence[Box]):
        self.groups, self.boxes, self.ports = groups, boxes, 0
        self.known: dict[tuple[int, str, str], Link] = {}

    def lift(self, wires: Sequence[Wire]) -> None:
        """Make all of them."""
        for number, wire in enumerate(wires):
            up, down = self._way(wire.start), self._way(wire.end)
            level = 0
            while level + 1 < min(len(up), len(down)) and up[level + 1] == down[level + 1]:
                level += 1
            outer = self._linked(up[level], _item(up, level, wire.start), _item(down, level, wire.end), number)
            link = outer
            for depth in range(level + 1, len(up)):
                link.inside_start = link.inside_start or self._port("o")
                link = self._linked(up[depth], _item(up, depth, wire.start), link.inside_start, number)
            last = self._inwards(down, level, wire.end, outer, number)
            for bead in wire.beads:
                if bead not in last.beads:
                    last.beads.append(bead)

    def _way(self, box: int) -> list[int]:
        """Return the groups that a box stands in, outermost first."""
        way, group = [], self.boxes[box].group
        while group is not None:
            way.append(group)
            group = self.groups[group].parent
        return way[::-1]

    def _linked(self, group: int, start: str, end: str, wire: int) -> Link:
        found = self.known.get((group, start, end))
        if found is None:
            found = self.known[group, start, end] = Link(start, end)
            self.groups[group].links.append(found)
        found.wires.append(wire)
        return found

    def _inwards(self, way: list[int], level: int, box: int, link: Link, wire: int) -> Link:
        """Link the upper border of each group that a wire enters with what comes next; return the innermost link."""
        for depth in range(level + 1, len(way)):
            link.inside_end = link.inside_end or self._port("i")
            link = self._linked(way[depth], link.inside_end, _item(way, depth, box), wire)
        return link

    def _port(self, letter: str) -> str:
        self.ports += 1
        return f"{letter}{self.ports - 1}"


def _item(way: list[int], level: int, box: int) -> str:
    """Return what of a group a box stands in, or is: the group below `level` on its way, or its own item."""
    return f"g{way[level + 1]}" if level + 1 < len(way) else f"n{box}"


def _attach(group: Group, leaves: set[str], entries: dict[int, list[str]], exits: dict[int, list[str]]) -> None:
    """Spread the ends of links over the items' widths, in the order in which they arrive, and order inner ports so."""
    place = {item: at for row in group.ranks for at, item in enumerate(row)}
    into: dict[str, list[Link]] = {}
    out: dict[str, list[Link]] = {}
    for one in group.links:
        into.setdefault(one.end, []).append(one)
        out.setdefault(one.start, []).append(one)
    for item, links in into.items():
        links.sort(key=lambda one: place[one.bends[-1] if one.bends else one.start])
        flow = [at for at, one in enumerate(links) if one.start not in leaves]
        middle = flow[0] if len(flow) == 1 else (len(links) - 1) / 2
        step = min(STEP, SPREAD / max(1, len(links) - 1))
        for at, one in enumerate(links):
            one.enters_at = min(max(0.5 + (at - middle) * step, 0.06), 0.94)
        if item[0] == "g":
            entries[int(item[1:])] = [one.inside_end for one in links]
    for item, links in out.items():
        if item[0] != "g":
            continue
        links.sort(key=lambda one: place[one.bends[0] if one.bends else one.end])
        step = min(STEP, SPREAD / max(1, len(links) - 1))
        for at, one in enumerate(links):
            one.leaves_at = 0.5 + (at - (len(links) - 1) / 2) * step
        exits[int(item[1:])] = [one.inside_start for one in links]
