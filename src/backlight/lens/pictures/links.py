"""Links: what of the wires is drawn in each group, and the layout of each group's inside (NOTE [A picture])."""

from collections.abc import Sequence

from backlight.lens.pictures.boxes import Box, Group, Link, Wire
from backlight.lens.pictures.layout import layout
from backlight.lens.records.nodes import LEAF

STEP, SPREAD = 0.16, 0.76  # between two links that end at one item, and between the outermost, as shares of its width


def link(groups: Sequence[Group], boxes: Sequence[Box], wires: Sequence[Wire]) -> None:
    """Fill in every group's links and ranks. Groups stand after those they are in."""
    Lifting(groups, boxes).lift(wires)
    bend = 0
    entries: dict[int, list[str]] = {group.id: [] for group in groups}
    exits: dict[int, list[str]] = {group.id: [] for group in groups}
    for group in groups:
        ends = [(one.start, one.end) for one in group.links]
        found = layout(group.children, ends, entries=entries[group.id], exits=exits[group.id], first_bend=bend)
        group.ranks = found.rows
        bend += len({name for row in found.rows for name in row if name[0] == "b"})
        for one, bends in zip(group.links, found.bends):
            one.bends = bends
        _attach(group, boxes, entries, exits)


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
            last = self._outwards(up, level, wire.start, outer, number)
            last = self._inwards(down, level, wire.end, outer, number) or last
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

    def _outwards(self, way: list[int], level: int, box: int, outer: Link, wire: int) -> Link:
        """Link a wire's start with the lower border of each group that it leaves, outermost first."""
        link, first = outer, outer
        for depth in range(level + 1, len(way)):
            link.inside_start = link.inside_start or self._port("o")
            link = self._linked(way[depth], _item(way, depth, box), link.inside_start, wire)
        return first

    def _inwards(self, way: list[int], level: int, box: int, outer: Link, wire: int) -> Link:
        """Link the upper border of each group that a wire enters with what comes next; return the innermost link."""
        link = outer
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


def _attach(group: Group, boxes: Sequence[Box], entries: dict, exits: dict) -> None:
    """Spread the ends of links over the items' widths, in the order in which they arrive, and order inner ports so."""
    place = {item: at for row in group.ranks for at, item in enumerate(row)}
    into: dict[str, list[Link]] = {}
    out: dict[str, list[Link]] = {}
    for one in group.links:
        into.setdefault(one.end, []).append(one)
        out.setdefault(one.start, []).append(one)
    for item, links in into.items():
        links.sort(key=lambda one: place[one.bends[-1] if one.bends else one.start])
        flow = [at for at, one in enumerate(links) if not _is_leaf(one.start, boxes)]
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


def _is_leaf(item: str, boxes: Sequence[Box]) -> bool:
    return item[0] == "n" and boxes[int(item[1:])].kind == LEAF
