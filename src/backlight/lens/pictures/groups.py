"""Groups: which nodes of a graph are shown as one, by module, by source line and by repeated block.

NOTE [Groups]
Every group holds a stretch of the ops in the order in which they ran, with the leaves that these read first. So what
one group hands to another always comes from an earlier stretch, and groups never stand in a circle; a module that is
called at two moments is two groups.
"""

import heapq
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from backlight.lens.pictures.boxes import LINE, MODULE, PART, REPEAT, WHOLE, Wire
from backlight.lens.records.nodes import LEAF, Node, Place, Recorded, users_of

DEEPEST, LONGEST_TITLE = 16, 44


@dataclass(frozen=True)
class PathStep:
    """One step of the path from the root group to an op: a module's name, or a line."""

    kind: str
    key: Hashable
    title: str
    detail: str = ""


def running_order(nodes: Sequence[Node]) -> list[int]:
    """Return the ids so that inputs come before users, and else as they are numbered."""
    missing = [len(node.inputs) for node in nodes]
    users = users_of(nodes)
    ready = [node.id for node in nodes if not missing[node.id]]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for user in users[node]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, user)
    return order


def paths_of(record: Recorded, ops: Sequence[int], by: str, most: int) -> list[list[PathStep]]:
    """Return the way to each op. What itself runs more ops than can be shown is divided by lines."""
    nodes = record.nodes
    if by == "line" or not any(nodes[op].module for op in ops):
        lines = by == "line" or len(ops) > most  # a small graph of no module is drawn as it is
        return [_order(nodes[op]) + (_lines(nodes[op]) if lines else []) for op in ops]
    counts = Counter(nodes[op].module for op in ops)
    found = []
    for node in (nodes[op] for op in ops):
        lines = _lines(node) if counts[node.module] > most else []
        found.append(_order(node) + _modules(node, record.modules) + lines)
    return found


def _order(node: Node) -> list[PathStep]:
    return [] if node.order == 1 else [PathStep(PART, node.order, f"recorded backward, order {node.order}")]


def _modules(node: Node, classes: dict[str, str]) -> list[PathStep]:
    names = node.module.split(".") if node.module else []
    steps = []
    for number in range(1, min(len(names), DEEPEST) + 1):
        path = ".".join(names[:number])
        known = classes.get(path, node.module_type if path == node.module else "")
        steps.append(PathStep(MODULE, path, _title(names[:number], known), known))
    return steps


def _title(names: Sequence[str], kind: str) -> str:
    """Return a module's own name; a number says nothing without what stands before it."""
    if not names[-1].isdigit():
        return names[-1]
    return ".".join(names[-2:]) if len(names) > 1 else f"{kind} {names[-1]}".strip()


def own_name(node: Node) -> str:
    """Return what the module that ran a node is called, and its class if that does not say it."""
    title = _title(node.module.split("."), node.module_type)
    return title if node.module_type in title else f"{title} · {node.module_type}"


def _lines(node: Node) -> list[PathStep]:
    places = [*reversed(node.stack), node.place] if node.place is not None else []
    return [PathStep(LINE, (one.file, one.line, one.function), *_words(one)) for one in places[-DEEPEST:]]


def _words(place: Place) -> tuple[str, str]:
    text = " ".join(place.text.split())
    title = text if len(text) <= LONGEST_TITLE else text[: LONGEST_TITLE - 1] + "…"
    return title or place.where, f"{place.where} in {place.function}" if place.function else place.where


def depth_of(wires: Sequence[Wire]) -> int:
    """Return how many nodes the longest way has."""
    depth: dict[int, int] = {}
    for wire in sorted(wires, key=lambda wire: wire.end):
        depth[wire.end] = max(depth.get(wire.end, 1), depth.get(wire.start, 1) + 1)
    return max(depth.values(), default=0)


def passing(nodes: Sequence[Node], wires: Sequence[Wire], ops: Sequence[int]) -> dict[int, int]:
    """Return for each op how many results of ops before it are read by it or after it."""
    turn = {op: number for number, op in enumerate(ops)}
    last: dict[int, int] = {}
    for wire in wires:
        if nodes[wire.start].kind != LEAF:
            last[wire.start] = max(last.get(wire.start, 0), turn[wire.end])
    change = [0] * (len(ops) + 2)
    for op, end in last.items():
        change[turn[op] + 1] += 1
        change[end + 1] -= 1
    return dict(zip(ops, accumulate(change)))


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


MOST_GIVEN, DEEP = 8, 24
DIGITS = re.compile(r"\d+")
HOLDERS = ("", "ModuleList", "ModuleDict", "Sequential")


@dataclass(slots=True)
class Branch:
    """A group while the tree is being built.

    Args:
        parts: nodes' ids and branches, in the forward's order.
        path: of a module, dotted.
        of_modules: whether what repeats is a module.
        likeness: a number that branches of the same structure share.
    """

    kind: str
    title: str
    detail: str = ""
    path: str = ""
    parts: list["int | Branch"] = field(default_factory=list)
    times: int = 1
    of_modules: bool = False
    size: int = 0
    likeness: Hashable = None


def tree_of(record: Recorded, wires: Sequence[Wire], ops: Sequence[int], *, by: str, most: int) -> Branch:
    """Return the graph as a tree of branches.

    Args:
        ops: ids of the nodes that are no leaves and no beads, in the order in which they ran.
    """
    root = Branch(WHOLE, record.title or "graph")
    leaves = _leaves_by_user(record.nodes, wires, ops)
    if by == "none":
        root.parts = list(ops)
    else:
        _fill(root, ops, paths_of(record, ops, by, most))
        many = len(ops) + len(leaves["placed"]) > most or depth_of(wires) > DEEP
        across = passing(record.nodes, wires, ops)
        kinds = _kinds(record.nodes, wires, ops)
        for branch in _inside_out(root):
            _tidy(branch, leaves)
            only = root.parts[0] if branch is root and len(root.parts) == 1 else None
            if isinstance(only, Branch) and only.kind in (LINE, PART):
                root.parts = only.parts
            if many:
                _gather(branch, record, kinds, across, most)
                _cut(branch, kinds, most)
            _liken(branch, kinds)
    for branch in _inside_out(root):
        _put_leaves(branch, leaves)
    others = [node.id for node in record.nodes if node.kind == LEAF and node.id not in leaves["placed"]]
    root.parts = [*others, *root.parts]
    return root


def _leaves_by_user(nodes: Sequence[Node], wires: Sequence[Wire], ops: Sequence[int]) -> dict:
    """Return the leaves that are drawn next to each op: those that it is the first to use; "placed" holds all of them.

    Where a model's parameters are known, the few other leaves are what it is given: they stand outside of it.
    """
    turn = {op: number for number, op in enumerate(ops)}
    first: dict[int, int] = {}
    given = {node.id for node in nodes if node.kind == LEAF and not node.parameter}
    if len(given) > MOST_GIVEN or not any(node.parameter for node in nodes):
        given = set()
    for wire in wires:
        if nodes[wire.start].kind == LEAF and wire.start not in given:
            first[wire.start] = min(first.get(wire.start, wire.end), wire.end, key=turn.__getitem__)
    leaves: dict = {op: [] for op in ops}
    for wire in wires:
        if first.get(wire.start) == wire.end and wire.start not in leaves[wire.end]:
            leaves[wire.end].append(wire.start)
    return leaves | {"placed": set(first)}


def _fill(root: Branch, ops: Sequence[int], paths: Sequence[Sequence[PathStep]]) -> None:
    """Put ops into branches, a new one wherever the way differs from that of the op before."""
    trail: list[tuple[Hashable, Branch]] = []
    for op, path in zip(ops, paths):
        same = 0
        while same < min(len(trail), len(path)) and trail[same][0] == (path[same].kind, path[same].key):
            same += 1
        del trail[same:]
        for step in path[same:]:
            branch = Branch(step.kind, step.title, step.detail, step.key if step.kind == MODULE else "")
            (trail[-1][1] if trail else root).parts.append(branch)
            trail.append(((step.kind, step.key), branch))
        (trail[-1][1] if trail else root).parts.append(op)


def _inside_out(root: Branch) -> list[Branch]:
    """Return all branches, inner ones first."""
    found = [root]
    for branch in found:
        found += [part for part in branch.parts if isinstance(part, Branch)]
    return found[::-1]


def _tidy(branch: Branch, leaves: dict) -> None:
    """Dissolve branches in it that hold one bare op, or nothing but another branch."""
    parts: list[int | Branch] = []
    for part in branch.parts:
        only = part.parts[0] if isinstance(part, Branch) and len(part.parts) == 1 else None
        if isinstance(only, Branch):
            parts.append(_joined(part, only))
        elif only is not None and not leaves[only]:
            parts.append(only)
        else:
            parts.append(part)
    branch.parts = parts


def _joined(outer: Branch, inner: Branch) -> Branch:
    """Return the inner branch under a title that tells of both."""
    if outer.kind == inner.kind == MODULE:
        inner.title = inner.path.removeprefix(outer.path.removesuffix(outer.title))
        inner.detail = outer.detail if inner.detail in HOLDERS else inner.detail
    elif inner.kind == REPEAT and not inner.of_modules:
        name = outer.detail if outer.kind == MODULE else outer.title  # a loop over a line, a module called in a loop
        inner.title, inner.detail, inner.path = f"{name or outer.title} × {inner.times}", outer.detail, outer.path
    elif inner.kind == REPEAT and outer.kind == MODULE:
        inner.detail = inner.detail or outer.path
    elif inner.kind == PART or (outer.kind == MODULE and inner.kind == LINE):
        inner.kind, inner.title, inner.detail, inner.path = outer.kind, outer.title, outer.detail, outer.path
    return inner


def _first(part: "int | Branch") -> int:
    while isinstance(part, Branch):
        part = part.parts[0]
    return part


def _gather(branch: Branch, record: Recorded, kinds: dict, across: dict[int, int], most: int) -> None:
    """Put what repeats in a branch into a group of its own."""
    alike = [part.likeness if isinstance(part, Branch) else kinds[part] for part in branch.parts]
    sizes = [part.size if isinstance(part, Branch) else 1 for part in branch.parts]
    found = repeats(alike, sizes, [across[_first(part)] for part in branch.parts])
    for one in reversed(found):
        parts = branch.parts[one.start : one.end]
        blocks = [parts[start : start + one.period] for start in range(0, len(parts), one.period)]
        name, detail = _name_of(blocks, record)
        group = Branch(REPEAT, f"{name} × {one.times}", detail, times=one.times)
        group.of_modules = one.period == 1 and isinstance(parts[0], Branch) and parts[0].kind == MODULE
        for number, block in enumerate(blocks, 1):
            title = f"{number} of {one.times}"
            stretch = Branch(PART, title, parts=block)
            group.parts.append(_finished(stretch, kinds, most) if one.period > 1 else block[0])
        branch.parts[one.start : one.end] = [_finished(group, kinds, most)]


def _finished(branch: Branch, kinds: dict, most: int) -> Branch:
    _cut(branch, kinds, most)
    _liken(branch, kinds)
    return branch


def _name_of(blocks: list[list["int | Branch"]], record: Recorded) -> tuple[str, str]:
    """Return what a repeated block is called, and which ones are meant."""
    first, last = blocks[0][0], blocks[-1][0]
    if len(blocks[0]) == 1 and isinstance(first, Branch) and isinstance(last, Branch):
        if first.kind == MODULE:
            return first.detail or first.title, f"{first.path} … {last.path}"
        return first.title, first.detail
    if len(blocks[0]) == 1 and isinstance(first, int):
        return record.nodes[first].label, ""
    names = [part.title if isinstance(part, Branch) else record.nodes[part].label for part in blocks[0]]
    return (", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]}"), ""


def _cut(branch: Branch, kinds: dict, most: int) -> None:
    """Divide a branch with too many parts into stretches, as often as it takes."""
    while len(branch.parts) > most:
        count = len(branch.parts)
        length = max(2, min(most, round(count**0.5)))
        starts = range(0, count, length)
        titles = (f"{start + 1}–{min(start + length, count)} of {count}" for start in starts)
        parts = (branch.parts[start : start + length] for start in starts)
        stretches = [Branch(PART, title, parts=some) for title, some in zip(titles, parts)]
        branch.parts = [_finished(one, kinds, most) for one in stretches]


def _liken(branch: Branch, kinds: dict) -> None:
    """Give a branch its size and what those of the same structure share: class, name without numbers, parts."""
    branch.size = sum(part.size if isinstance(part, Branch) else 1 for part in branch.parts)
    parts = tuple(part.likeness if isinstance(part, Branch) else kinds[part] for part in branch.parts)
    name = (branch.detail, DIGITS.sub("", branch.title)) if branch.kind == MODULE else ()
    branch.likeness = hash((branch.kind, name, branch.times, parts))


def _put_leaves(branch: Branch, leaves: dict) -> None:
    """Put each leaf before the op that is the first to use it."""
    parts: list[int | Branch] = []
    for part in branch.parts:
        if not isinstance(part, Branch):
            parts += leaves[part]
        parts.append(part)
    branch.parts = parts


def _kinds(nodes: Sequence[Node], wires: Sequence[Wire], ops: Sequence[int]) -> dict[int, Hashable]:
    """Return what ops of the same kind share: the type, and the shapes of the parameters that they read."""
    shapes: dict[int, list[tuple[int, ...]]] = {op: [] for op in ops}
    for wire in wires:
        leaf = nodes[wire.start]
        if leaf.parameter and leaf.outputs:
            shapes[wire.end].append(tuple(leaf.outputs[0].shape))
    return {op: (nodes[op].type, *shapes[op]) for op in ops}
