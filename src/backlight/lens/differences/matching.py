"""Which node of one record is which of another.

NOTE [Matching]
Nodes are aligned in the order of the forward (NOTE [Alignment] in lens/differences/alignment.py) under keys from
strict to loose: first everything that names a node, then without module paths (a layer put into a `Sequential`
renumbers the others), then without shapes and dtypes, last only what it is and in what kind of module. Each round fills
the gaps that the ones before left, so a change in the middle unmatches nothing else. What then is left on both sides,
with a name or path that occurs once, is matched though its order changed.
"""

from collections import Counter
from collections.abc import Hashable, Sequence

from backlight.lens.differences.alignment import Pair, align, gaps
from backlight.lens.records.nodes import LEAF, Node
from backlight.lens.records.record import Record

DEEP = 2  # how many steps along its inputs a node's surroundings go


def match(before: Record, after: Record) -> list[Pair]:
    """Return pairs of ids of nodes that are the same in both (see NOTE [Matching])."""
    pairs: list[Pair] = []
    engines = before.engine != after.engine
    for left, right in zip(_keys_of(before, engines), _keys_of(after, engines)):
        pairs = _filled(pairs, left, right)
    left, right = _names_of(before, engines), _names_of(after, engines)
    return sorted(pairs + _moved(pairs, left, right))


def _filled(pairs: list[Pair], left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Return pairs and those that fill the gaps between them."""
    found = list(pairs)
    for start, end, from_, to in gaps(pairs, 0, len(left), 0, len(right)):
        found += [(start + a, from_ + b) for a, b in align(left[start:end], right[from_:to])]
    return sorted(found)


def _keys_of(record: Record, engines: bool) -> list[list[Hashable]]:
    """Return keys of all nodes, a list for each round."""
    kinds = [_kind_of(node, record, engines) for node in record.nodes]
    forms = [_form_of(node, engines) for node in record.nodes]
    names = [(node.module, node.name if node.kind == LEAF else None) for node in record.nodes]
    lines = [node.place.text if node.place else "" for node in record.nodes]
    shaped = list(zip(kinds, forms))
    return [
        list(zip(shaped, names, lines, _around(record.nodes, shaped))),
        list(zip(shaped, _around(record.nodes, shaped), lines)),
        list(zip(shaped, lines)),
        list(zip(kinds, names)),
        kinds,
    ]


def _kind_of(node: Node, record: Record, engines: bool) -> Hashable:
    """Return what a node is: its op or what leaf of which kind of module; not where it stands."""
    if node.kind != LEAF:
        op = node.label or node.type if engines else node.type
        return node.kind, op, node.order, node.module_type
    if not node.parameter:
        return node.kind, node.name
    module, _, own = (node.name or "").rpartition(".")
    return node.kind, own, record.modules.get(module, "")


def _form_of(node: Node, engines: bool) -> Hashable:
    """Return shapes and dtypes; of two engines of the first output only, the others can be for the backward."""
    return tuple((tuple(output.shape), output.dtype) for output in node.outputs[: 1 if engines else None])


def _around(nodes: Sequence[Node], keys: Sequence[Hashable]) -> list[int]:
    """Return for each node a number that tells its surroundings: keys of its inputs, and of theirs."""
    found = [hash(key) for key in keys]
    for _ in range(DEEP):
        found = [
            hash((found[node.id], tuple(None if edge is None else found[edge.to] for edge in node.edges)))
            for node in nodes
        ]
    return found


def _names_of(record: Record, engines: bool) -> list[Hashable | None]:
    """Return what can tell a node without its order: None where nothing can."""
    return [
        (_kind_of(node, record, engines), node.name, node.module) if node.name or node.module else None
        for node in record.nodes
    ]


def _moved(pairs: list[Pair], left: Sequence, right: Sequence) -> list[Pair]:
    """Return pairs of those nodes that have none yet and that a name tells."""
    taken, given = {a for a, _ in pairs}, {b for _, b in pairs}
    counts = [Counter(one for one in names if one is not None) for names in (left, right)]
    there = {name: place for place, name in enumerate(right) if place not in given and counts[1][name] == 1}
    return [
        (place, there[name])
        for place, name in enumerate(left)
        if place not in taken and counts[0][name] == 1 and name in there
    ]
