"""Coordinates: ranks and orders become places and routes. The page does the same, in lens/pictures/page.

NOTE [Placing]
Groups are placed from the inside out. In a group, each row settles where its neighbours pull it: every item asks for
the weighted median of the places that would make its links vertical, and the row keeps its order and its gaps at the
least cost, the sum of weight × |wanted − got| (isotonic regression, by pooling blocks that collide). Rows are swept
downwards and upwards a few times. A long link's bends pull at each other most, so that it is straight; a leaf pulls
least, so that it stands next to the flow instead of bending it.

The pass counts ranks downwards. A picture that is drawn from left to right is placed by the same pass, its boxes turned
on their side first and everything turned back in the end; routes stay in the pass's coordinates, and who draws them
turns them. Only an open group differs: its header is above its items, which is before a rank in one case, and beside
all ranks in the other.

The page needs the same pass wherever its reader opens a group, so the same is written in pictures/page/place.js: who
changes one changes the other, and tests/lens/test_lens_place_page.py compares the coordinates that both find.
"""

from bisect import insort
from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate

from backlight.lens.pictures.boxes import Group, Link, Picture, gc_paused
from backlight.lens.records.nodes import LEAF

GAP, BEND_GAP, ROW_GAP, MOST_ROW_GAP, PAD, HEADER, LEAD, SLOPE = 22.0, 12.0, 32.0, 84.0, 16.0, 30.0, 7.0, 0.08
SWEEPS = ("down", "up", "down", "up", "both", "up", "down")
LEAF_PULL, PULL, BEND_PULL, STRAIGHT_PULL = 0.2, 1.0, 2.0, 8.0


@dataclass(slots=True)
class Spot:
    """Where an item is: its left upper corner and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(slots=True)
class Route:
    """How a link runs: a point where it begins, then pairs of points between which it bends, then one where it ends.

    Args:
        group: in which it is drawn.
        head: whether it ends here, at a box or a closed group, and does not go on inside an open one.
    """

    group: int
    link: Link
    points: list[tuple[float, float]]
    head: bool


@dataclass(slots=True)
class Plan:
    """Where everything is that can be seen.

    Args:
        spots: of boxes, closed and open groups, ports and bends.
        opened: ids of the groups that are drawn open, outer ones first.
        sideways: whether ranks run from left to right; the points of routes are then (y, x).
    """

    width: float
    height: float
    spots: dict[str, Spot]
    routes: list[Route]
    opened: list[int]
    sideways: bool = False


@gc_paused
def place(picture: Picture, shown: Collection[int] | None = None, *, sideways: bool = False) -> Plan:
    """Return where everything is.

    Args:
        shown: the groups that are open; by default those that are open at first.
        sideways: whether ranks run from left to right instead of downwards.
    """
    wanted = picture.open_at_first() if shown is None else set(shown)
    opened = _opened(picture, wanted)
    insides: dict[str, Inside] = {}
    for number in reversed(opened):
        insides[f"g{number}"] = Inside(picture, picture.groups[number], insides, sideways)
    root = insides["g0"]
    spots, routes, corners = {"g0": Spot(0.0, 0.0, root.width, root.height)}, [], {0: (0.0, 0.0)}
    for number in opened:
        inside, (left, top) = insides[f"g{number}"], corners[number]
        for item, spot in inside.spots().items():
            spots[item] = Spot(left + spot.x, top + spot.y, spot.width, spot.height)
            if item in insides:
                corners[int(item[1:])] = (left + spot.x, top + spot.y)
        for link in inside.group.links:
            points = [(left + x, top + y) for x, y in inside.route(link)]
            head = link.end[0] in "ng" and link.end not in insides
            routes.append(Route(number, link, points, head))
    if sideways:
        spots = {item: Spot(spot.y, spot.x, spot.height, spot.width) for item, spot in spots.items()}
        return Plan(root.height, root.width, spots, routes, opened, sideways)
    return Plan(root.width, root.height, spots, routes, opened)


def _opened(picture: Picture, wanted: set[int]) -> list[int]:
    """Return the groups to draw open: wanted, and so are all that they stand in."""
    found = {0}
    for group in picture.groups[1:]:
        if group.id in wanted and group.parent in found:
            found.add(group.id)
    return sorted(found)


class Inside:
    """A group's inside: sizes first, then x, row by row, then y."""

    def __init__(self, picture: Picture, group: Group, insides: dict[str, "Inside"], sideways: bool):
        self.group, self.insides, self.sideways = group, insides, sideways
        self.rows = group.ranks
        self.row_of = {item: row for row, items in enumerate(self.rows) for item in items}
        self.size = {item: _size(picture, item, insides, sideways) for item in self.row_of}
        self.x: dict[str, float] = {}
        self._pulls(picture)
        for row in self.rows:
            self._pack(row)
        for way in SWEEPS:
            self._sweep(way)
        self._frame()
        self._stack()

    def _pulls(self, picture: Picture) -> None:
        """Note who pulls at whom: for each item (neighbour, place on the neighbour − place on the item, weight).

        Links from one box share their bends, so that a pair may come twice; a link without the bends that it would
        need (there were too many) does not pull.
        """
        self.above: dict[str, list] = {item: [] for item in self.row_of}
        self.below: dict[str, list] = {item: [] for item in self.row_of}
        leaves = {item for item in self.row_of if item[0] == "n" and picture.part(item).kind == LEAF}
        seen = set()
        for link in self.group.links:
            chain = [link.start, *link.bends, link.end]
            for upper, lower in zip(chain, chain[1:]):
                if self.row_of[lower] - self.row_of[upper] != 1 or (upper, lower) in seen:
                    continue
                seen.add((upper, lower))
                bends = (upper[0] == "b") + (lower[0] == "b")
                weight = LEAF_PULL if upper in leaves else (PULL, BEND_PULL, STRAIGHT_PULL)[bends]
                shift = self.leaving(link, upper) - self.entering(link, lower)
                self.above[lower].append((upper, shift, weight))
                self.below[upper].append((lower, -shift, weight))

    def leaving(self, link: Link, item: str) -> float:
        """Return where a link leaves an item, from its left."""
        return self._attached(item, link.leaves_at, link.inside_start) if item == link.start else 0.0

    def entering(self, link: Link, item: str) -> float:
        """Return where a link enters an item, from its left."""
        return self._attached(item, link.enters_at, link.inside_end) if item == link.end else 0.0

    def _attached(self, item: str, share: float, port: str | None) -> float:
        return self.insides[item].x[port] if item in self.insides else self.size[item][0] * share

    def _pack(self, row: list[str]) -> None:
        """Put a row's items side by side, its middle at 0."""
        steps = self._steps(row)
        end = steps[-1] + self.size[row[-1]][0] if row else 0.0
        for item, step in zip(row, steps):
            self.x[item] = step - end / 2

    def _steps(self, row: list[str]) -> list[float]:
        """Return how far each item's left is from that of the first where they stand side by side."""
        widths = (self.size[item][0] + _gap(item, after) for item, after in zip(row, row[1:]))
        return list(accumulate(widths, initial=0.0))

    def _sweep(self, way: str) -> None:
        for row in self.rows if way != "up" else reversed(self.rows):
            wanted = []
            for item in row:
                pulls = (self.above[item] if way != "up" else []) + (self.below[item] if way != "down" else [])
                wanted.append(_median([(self.x[other] + shift, weight) for other, shift, weight in pulls]))
            self._settle(row, wanted)

    def _settle(self, row: list[str], wanted: list[tuple[float, float] | None]) -> None:
        """Move a row's items as near to what they ask for as their order and gaps allow."""
        steps = self._steps(row)
        blocks: list[tuple[float, list[tuple[float, float]], int]] = []  # (place, what its items ask for, how many)
        for number, item in enumerate(row):
            place, weight = wanted[number] or (self.x[item], 0.01)
            place -= steps[number]
            members, count = [(place, weight)], 1
            while blocks and blocks[-1][0] > place:
                _, others, more = blocks.pop()
                members, count = _merged(others, members), count + more
                place = _median(members)[0]
            blocks.append((place, members, count))
        number = 0
        for place, _, count in blocks:
            for item in row[number : number + count]:
                self.x[item] = place + steps[number]
                number += 1

    def _frame(self) -> None:
        """Move everything so that the group's left border is 0, and find its width."""
        left = min((self.x[item] for item in self.x), default=0.0)
        right = max((self.x[item] + self.size[item][0] for item in self.x), default=0.0)
        inner = self.group.parent is not None
        before, after = (HEADER + BEND_GAP if self.sideways else PAD, PAD) if inner else (0.0, 0.0)
        self.width = max(right - left + before + after, self.group.width if inner and not self.sideways else 0.0)
        move = before + (self.width - (right - left) - before - after) / 2 - left
        for item in self.x:
            self.x[item] += move

    def _stack(self) -> None:
        """Find each row's top and height; rows stand further apart where links run far across."""
        across = [0.0] * (len(self.rows) + 1)
        for upper, pulls in self.below.items():
            for lower, shift, _ in pulls:
                row = self.row_of[upper]
                across[row] = max(across[row], abs(self.x[upper] - self.x[lower] - shift))
        heights = [max((self.size[item][1] for item in row), default=0.0) for row in self.rows]
        inner = self.group.parent is not None
        self.top, y = [], (PAD if self.sideways else HEADER) if inner else 0.0
        for number, height in enumerate(heights):
            port = number in (0, len(self.rows) - 1)
            if 1 < number < len(self.rows) - 1:
                y += min(ROW_GAP + SLOPE * across[number - 1], MOST_ROW_GAP)
            elif inner and number:
                y += min(SLOPE * across[number - 1], MOST_ROW_GAP - ROW_GAP)
            self.top.append(0.0 if number == 0 else y)
            y += 0.0 if port else height
        self.heights = heights
        self.height = max(y + (PAD if inner else 0.0), self.group.width if inner and self.sideways else 0.0)
        if self.top:
            self.top[-1] = self.height

    def spots(self) -> dict[str, Spot]:
        """Return where each item is in the group; in the middle of its row's height."""
        found = {}
        for row, items in enumerate(self.rows):
            for item in items:
                width, height = self.size[item]
                height = self.heights[row] if item[0] == "b" else height
                found[item] = Spot(self.x[item], self.top[row] + (self.heights[row] - height) / 2, width, height)
        return found

    def route(self, link: Link) -> list[tuple[float, float]]:
        """Return a link's points: straight down to the end of a row, a curve across the gap, straight down again."""
        points: list[tuple[float, float]] = []
        chain = [link.start, *link.bends, link.end]
        for upper, lower in zip(chain, chain[1:]):
            x, row = self.x[upper] + self.leaving(link, upper), self.row_of[upper]
            if not points:
                points.append((x, self._top_of(upper) + self.size[upper][1]))
            points.append((x, self.top[row] + self.heights[row]))
            lead = LEAD if lower[0] in "ng" else 0.0
            points.append((self.x[lower] + self.entering(link, lower), self.top[self.row_of[lower]] - lead))
        points.append((points[-1][0], self._top_of(link.end)))
        return points

    def _top_of(self, item: str) -> float:
        row = self.row_of[item]
        return self.top[row] + (self.heights[row] - self.size[item][1]) / 2


def _size(picture: Picture, item: str, insides: dict[str, Inside], sideways: bool) -> tuple[float, float]:
    if item in insides:
        return insides[item].width, insides[item].height
    if item[0] not in "gn":
        return 0.0, 0.0
    part = picture.part(item)
    return (part.height, part.width) if sideways else (part.width, part.height)


def _gap(item: str, after: str) -> float:
    return GAP if item[0] in "ng" and after[0] in "ng" else BEND_GAP


def _median(pulls: list[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the weighted median and the sum of weights; between two that weigh the same, the middle."""
    if not pulls:
        return None
    pulls = sorted(pulls)
    total = sum(weight for _, weight in pulls)
    passed = 0.0
    for number, (place, weight) in enumerate(pulls):
        passed += weight
        if passed > total / 2 + 1e-9:
            return place, total
        if passed >= total / 2 - 1e-9:
            return (place + pulls[number + 1][0]) / 2, total
    return pulls[-1][0], total


def _merged(some: list[tuple[float, float]], others: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(others) == 1:
        insort(some, others[0])
        return some
    return sorted(some + others)
