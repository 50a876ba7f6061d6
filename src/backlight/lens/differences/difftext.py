"""Differences of records as lines of text: what changed first, then in short what follows from it.

Each line begins with its sign: + − ~ @.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from backlight.lens.pictures.boxes import is_plumbing
from backlight.lens.records.nodes import LEAF, Node

ADDED, GONE, CHANGED = "+", "-", "~"
# How many lines the short listing has at most of nodes, of modules, and of lines of source.
MOST_NODES, MOST_MODULES, MOST_LINES = 24, 8, 4
NUMBERED = re.compile(r"^((?:[^.]+\.)*?)(\d+)(?:\..*)?$")  # "layer." and 3 of layer.3.attention.self


def lines_of(found) -> Iterator[str]:
    """Yield the short listing: the totals, the first difference, the causes by module, counts of what follows.

    Args:
        found: a `Diff`.
    """
    yield from _heads(found)
    if not found:
        return
    causes = list(_entries(found, short=True))
    if causes:
        yield _first(*causes[0], found)
    yield from _listed(found, causes, MOST_NODES)
    yield from _consequences(found)
    yield from _source_lines(found, MOST_LINES)


def details_of(found) -> Iterator[str]:
    """Yield the full listing: every node that differs, and all that is different about it."""
    yield from _heads(found)
    if found:
        yield from _listed(found, list(_entries(found, short=False)), None)
        yield from _source_lines(found, None)


def _heads(found) -> Iterator[str]:
    """Yield what the records are, and which totals differ."""
    if found.engines:
        engines = f"{found.before.engine} against {found.after.engine}"
        yield f"two engines, {engines}: compared are ops, leaves, shapes, values and gradients, not what each saves"
    if not found:
        yield "no difference"
        return
    if found.aside:
        yield f"{_many(found.aside)} left aside: the engines split these ops in other ways, with the same outcome"
    for sign, side, record in (("---", 0, found.before), ("+++", 1, found.after)):
        saved = f", {found.totals['bytes saved'][side]:,} bytes saved for backward" if not found.engines else ""
        yield f"{sign} {record.title or ('before', 'after')[side]}: {len(record.nodes):,} nodes{saved}"
    for name, (before, after) in found.totals.items():
        if before != after:
            yield f"{CHANGED} {name}: {before:,} → {after:,}"
    yield from _counts(found)


def _first(mark: str, node: Node, details: Sequence[str], found) -> str:
    """Return a line that says where the records first differ, in the order of the forward."""
    where = f"{name_of(node).split('  ')[0]}{f' in {node.module}' if node.module else ''}"
    place = f" at {place_of(node).strip()}" if place_of(node) else ""
    if mark != CHANGED:
        return f"@@ the graphs differ from here on: {where}{place}: {'added' if mark == ADDED else 'gone'} @@"
    gradients = all(detail.startswith("gradient") for detail in details)
    subject = "the gradients differ, in the backward, " if gradients else "the values differ "
    if any(detail.startswith(("inputs", "shape", "dtype", "root", "hooks")) for detail in details):
        subject = "the graphs differ "
    return f"@@ {subject}from here on: {where}{place}: {details[0]} @@"


def _listed(found, entries: Sequence[tuple[str, Node, list[str]]], most: int | None) -> Iterator[str]:
    """Yield nodes by module; after so many lines only how many more there are, and in which modules."""
    before, after = found.before.nodes, found.after.nodes
    names = ((module_of(before[was]), module_of(after[now])) for was, now in found.pairs)
    renamed = {now: was for was, now in names if was != now}
    modular = any(module_of(node) for _, node, _ in entries)
    heading, written = None, 0
    for number, (mark, node, details) in enumerate(entries):
        if most is not None and written + 1 + len(details) > most:
            yield from _rest(entries[number:])
            return
        title = _title(found, node, renamed if mark != GONE else {})
        if title != heading and modular:
            heading = title
            yield f"@@ {title} @@"
        yield f"{mark} {name_of(node)}{place_of(node) if mark != CHANGED else ''}"
        yield from (f"{mark}     {detail}" for detail in details)
        written += 1 + len(details)


def _rest(entries: Sequence[tuple[str, Node, list[str]]]) -> Iterator[str]:
    marks = Counter(mark for mark, _, _ in entries)
    words = {ADDED: "added", GONE: "gone", CHANGED: "changed"}
    counts = ", ".join(f"{count:,} {words[mark]}" for mark, count in marks.items())
    yield f"@@ and {len(entries):,} more: {counts}; details (--all) list every one @@"
    yield from _by_module(node for _, node, _ in entries)


def _by_module(nodes: Iterable[Node]) -> Iterator[str]:
    """Yield how many nodes there are in each module, in order: many layers as one, of still more modules the first."""
    modules = [module_of(node) for node in nodes]
    counts = Counter(_block(module) for module in modules)
    if len(counts) > MOST_MODULES:
        numbers: dict[str, list[int]] = {}
        for module in modules:
            if found := NUMBERED.match(module):
                numbers.setdefault(found[1], []).append(int(found[2]))
        counts = Counter(_layers(module, numbers) for module in modules)
    for module, count in islice(counts.items(), MOST_MODULES):
        yield f"{CHANGED}     {module or 'outside of modules'}: {_many(count)}"
    left = list(counts.values())[MOST_MODULES:]
    if left:
        yield f"{CHANGED}     {len(left)} more modules: {_many(sum(left))}"


def _block(module: str) -> str:
    """Return a path up to its number, or its first two names: what is in one layer counts together."""
    found = NUMBERED.match(module)
    return f"{found[1]}{found[2]}" if found else ".".join(module.split(".")[:2])


def _layers(module: str, numbers: dict[str, list[int]]) -> str:
    """Return `_block`'s path with the first and the last number that there is: "layer.0–11"."""
    found = NUMBERED.match(module)
    if not found:
        return _block(module)
    first, last = min(numbers[found[1]]), max(numbers[found[1]])
    return f"{found[1]}{first}–{last}" if last > first else f"{found[1]}{first}"


def _many(count: int) -> str:
    return f"{count:,} node{'s' if count > 1 else ''}"


def _consequences(found) -> Iterator[str]:
    """Yield how many nodes differ only since others do, the roots' values, and where they are."""
    follows = [one for one in found.changed if not one.cause and any(change.what != "line" for change in one.changes)]
    if not follows:
        return
    yield "@@ what follows from it @@"
    kinds = Counter(change.what for one in follows for change in one.changes if change.what != "line")
    listed = ", ".join(f"{what} of {count:,}" for what, count in kinds.most_common())
    yield f"{CHANGED} {_many(len(follows))}: {listed}"
    nodes = found.after.nodes
    for node, change in ((nodes[one.after], change) for one in follows for change in one.changes):
        if node.root and change.what == "value":
            yield f"{CHANGED} {name_of(node).split('  ')[0]}: {change.what} {change.before} → {change.after}"
    if any(module_of(nodes[one.after]) for one in follows):
        yield from _by_module(nodes[one.after] for one in follows)


def _counts(found) -> Iterator[str]:
    for sign, nodes, word in ((ADDED, found.added, "added"), (GONE, found.gone, "gone")):
        if nodes:
            yield f"{sign} {_many(len(nodes))} {word}"
    kinds = Counter(change.what for one in found.changed for change in one.changes)
    if kinds:
        listed = ", ".join(f"{what} {count:,}" for what, count in kinds.most_common())
        yield f"{CHANGED} {_many(len(found.changed))} changed: {listed}"


def _entries(found, *, short: bool) -> Iterator[tuple[str, Node, list[str]]]:
    """Yield nodes that differ, in the order of the forward; what is gone where it stood.

    Args:
        short: only causes, and no views: these never stand alone.
    """
    changed = {one.after: one for one in found.changed if one.cause or not short}
    added, gone = set(found.added), list(found.gone)
    paired = {after: before for before, after in found.pairs}
    sides = found.before.nodes, found.after.nodes

    def entry(mark: str, node: Node):
        return [] if short and is_plumbing(node) else [(mark, node, [])]

    for node in sides[1]:
        before = paired.get(node.id)
        while before is not None and gone and gone[0] < before:
            yield from entry(GONE, sides[0][gone.pop(0)])
        if node.id in added:
            yield from entry(ADDED, node)
        elif node.id in changed:
            details = [one for one in changed[node.id].changes if one.what != "line"]
            if details and not (short and is_plumbing(node) and len(changed) > 1):
                yield CHANGED, node, [_detail(one) for one in details]
    for one in gone:
        yield from entry(GONE, sides[0][one])


def _detail(change) -> str:
    """Return a change in words: of one constant "other 1 → 2"."""
    name, _, before = change.before.partition(" ")
    if change.what == "constant" and ", " not in change.before and change.after.startswith(f"{name} "):
        return f"constant {name} {before} → {change.after.removeprefix(f'{name} ')}"
    return f"{change.what}: {change.before} → {change.after}"


def _source_lines(found, most: int | None) -> Iterator[str]:
    """Yield each change of a line of source, and at how many nodes it is seen."""
    changes = (change for one in found.changed for change in one.changes if change.what == "line")
    lines = Counter((change.before, change.after) for change in changes)
    if lines:
        yield "@@ lines of source @@"
    for (before, after), count in islice(lines.items(), most):
        yield f"{CHANGED} {before} → {after}: {_many(count)}"
    if most is not None and len(lines) > most:
        yield f"{CHANGED} and {len(lines) - most:,} more"


def module_of(node: Node) -> str:
    """Return the path of the module that a node is in; of a parameter, of the one that it belongs to."""
    return node.module or ((node.name or "").rpartition(".")[0] if node.kind == LEAF and node.parameter else "")


def _title(found, node: Node, renamed: dict[str, str]) -> str:
    module = module_of(node)
    if not module:
        return "outside of modules"
    was = f", before: {renamed[module]}" if module in renamed else ""
    kind = node.module_type or found.after.modules.get(module, found.before.modules.get(module, ""))
    return f"{module} {kind}{was}".replace("  ", " ")


def name_of(node: Node) -> str:
    shapes = ", ".join(f"({', '.join(map(str, one.shape))}) {one.dtype}" for one in node.outputs)
    label = node.label or node.type
    named = "" if not node.name or node.name == label else f"{node.name} = " if node.kind != LEAF else f"{node.name} "
    kind = f"leaf {label}" if node.kind == LEAF and not named else "leaf" if node.kind == LEAF else label
    return f"{named}{kind}  {shapes}".rstrip()


def place_of(node: Node) -> str:
    return "" if node.place is None else f"  {node.place.where}"
