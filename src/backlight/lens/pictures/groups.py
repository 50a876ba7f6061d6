"""Groups: which nodes of a graph are shown as one, by module, by source line and by repeated block.

NOTE [Groups]
Every group holds a stretch of the ops in the order in which they ran, with the leaves that these read first. So what
one group hands to another always comes from an earlier stretch, and groups never stand in a circle; a module that is
called at two moments is two groups.
"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from backlight.lens.pictures.boxes import LINE, MODULE, PART, REPEAT, WHOLE, Wire
from backlight.lens.pictures.paths import Step, depth_of, passing, paths_of
from backlight.lens.pictures.repeats import repeats
from backlight.lens.records.nodes import LEAF, Node, Recorded

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
            if branch is root and len(root.parts) == 1 and isinstance(root.parts[0], Branch):
                _unwrap(root)
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


def _fill(root: Branch, ops: Sequence[int], paths: Sequence[Sequence[Step]]) -> None:
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


def _unwrap(root: Branch) -> None:
    """Do without a line or a stretch that all ops are in."""
    if root.parts[0].kind in (LINE, PART):
        root.parts = root.parts[0].parts


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
            group.parts.append(_stretch(title, block, kinds, most) if one.period > 1 else block[0])
        _cut(group, kinds, most)
        _liken(group, kinds)
        branch.parts[one.start : one.end] = [group]


def _stretch(title: str, parts: list["int | Branch"], kinds: dict, most: int) -> Branch:
    branch = Branch(PART, title, parts=parts)
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
        titles = [f"{start + 1}–{min(start + length, count)} of {count}" for start in starts]
        parts = [branch.parts[start : start + length] for start in starts]
        branch.parts = [_stretch(title, some, kinds, most) for title, some in zip(titles, parts)]


def _liken(branch: Branch, kinds: dict) -> None:
    """Give a branch its size and what those of the same structure share: class, name without numbers, parts."""
    branch.size = _size(branch.parts)
    parts = tuple(part.likeness if isinstance(part, Branch) else kinds[part] for part in branch.parts)
    name = (branch.detail, DIGITS.sub("", branch.title)) if branch.kind == MODULE else ()
    branch.likeness = hash((branch.kind, name, branch.times, parts))


def _size(parts: Sequence["int | Branch"]) -> int:
    return sum(part.size if isinstance(part, Branch) else 1 for part in parts)


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
