"""Differences of records as lines of text, module by module."""

from collections import Counter
from collections.abc import Iterator

from backlight.lens.records.nodes import LEAF, Node

ADDED, GONE, CHANGED = "+", "-", "~"


def lines_of(found) -> Iterator[str]:
    """Yield the lines: what differs of the whole, then nodes by module; each begins with its sign: + − ~ @.

    Args:
        found: a `Diff`.
    """
    if not found:
        yield "no difference"
        return
    for sign, side, record in (("---", 0, found.before), ("+++", 1, found.after)):
        nodes, saved = (found.totals[name][side] for name in ("nodes", "bytes saved"))
        named = record.title or ("before", "after")[side]
        yield f"{sign} {named}: {nodes:,} nodes, {saved:,} bytes saved for backward"
    for name, (before, after) in found.totals.items():
        if before != after:
            yield f"{CHANGED} {name}: {before:,} → {after:,}"
    yield from _counts(found)
    renamed = _renamed(found)
    heading = None
    for mark, node, details in _entries(found):
        module = (node.module or _module_of(node), mark == GONE)
        if module != heading:
            heading = module
            yield f"@@ {_title(found, node, renamed if mark != GONE else {})} @@"
        yield f"{mark} {_name(node)}{_place(node) if mark != CHANGED else ''}"
        yield from (f"{mark}     {detail}" for detail in details)
    lines = _lines(found)
    if lines:
        yield "@@ lines of source @@"
    for (before, after), count in lines.items():
        yield f"{CHANGED} {before} → {after}: {count} node{'s' if count > 1 else ''}"


def _counts(found) -> Iterator[str]:
    """Yield how many nodes differ, and in what."""
    for sign, nodes, word in ((ADDED, found.added, "added"), (GONE, found.gone, "gone")):
        if nodes:
            yield f"{sign} {len(nodes):,} node{'s' if len(nodes) > 1 else ''} {word}"
    kinds = Counter(change.what for one in found.changed for change in one.changes)
    if kinds:
        listed = ", ".join(f"{what} {count:,}" for what, count in kinds.most_common())
        yield f"{CHANGED} {len(found.changed):,} nodes changed: {listed}"


def _entries(found) -> Iterator[tuple[str, Node, list[str]]]:
    """Yield nodes that differ, in the order of the forward; what is gone where it stood."""
    changed = {one.after: one for one in found.changed}
    added, gone = set(found.added), list(found.gone)
    paired = {after: before for before, after in found.pairs}
    for node in found.after.nodes:
        before = paired.get(node.id)
        while before is not None and gone and gone[0] < before:
            yield GONE, found.before.nodes[gone.pop(0)], []
        if node.id in added:
            yield ADDED, node, []
        elif node.id in changed:
            details = [one for one in changed[node.id].changes if one.what != "line"]
            if details:
                yield CHANGED, node, [f"{one.what}: {one.before} → {one.after}" for one in details]
    for one in gone:
        yield GONE, found.before.nodes[one], []


def _lines(found) -> Counter:
    """Return how many nodes each change of a line of source is seen at."""
    changes = (change for one in found.changed for change in one.changes if change.what == "line")
    return Counter((change.before, change.after) for change in changes)


def _module_of(node: Node) -> str:
    return (node.name or "").rpartition(".")[0] if node.kind == LEAF and node.parameter else ""


def _renamed(found) -> dict[str, str]:
    """Return modules that had another path before."""
    names = {}
    for before, after in found.pairs:
        one, other = found.before.nodes[before], found.after.nodes[after]
        was, now = (node.module or _module_of(node) for node in (one, other))
        if was != now:
            names[now] = was
    return names


def _title(found, node: Node, renamed: dict[str, str]) -> str:
    module = node.module or _module_of(node)
    if not module:
        return "outside of modules"
    was = f", before: {renamed[module]}" if module in renamed else ""
    kind = node.module_type or found.after.modules.get(module, found.before.modules.get(module, ""))
    return f"{module} {kind}{was}".replace("  ", " ")


def _name(node: Node) -> str:
    shapes = ", ".join(f"({', '.join(map(str, one.shape))}) {one.dtype}" for one in node.outputs)
    label = node.label or node.type
    named = "" if not node.name or node.name == label else f"{node.name} = " if node.kind != LEAF else f"{node.name} "
    kind = f"leaf {label}" if node.kind == LEAF and not named else "leaf" if node.kind == LEAF else label
    return f"{named}{kind}  {shapes}".rstrip()


def _place(node: Node) -> str:
    return "" if node.place is None else f"  {node.place.file.rpartition('/')[2]}:{node.place.line}"
