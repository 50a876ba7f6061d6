"""Which node of one record is which of another.

NOTE [Matching]
Nodes are aligned in the order of the forward (NOTE [Alignment]) under keys from strict to loose: first everything that
names a node, then without module paths (a layer put into a `Sequential` renumbers the others), then without shapes and
dtypes, last only what it is and in what kind of module. Each round fills the gaps that the ones before left, so a
change in the middle unmatches nothing else. What then is left on both sides, with a name or path that occurs once, is
matched though its order changed. Of two engines, parameters are matched by their names before all else: which of a
layer's is met first depends on the engine.

NOTE [Alignment]
The longest common order of two sequences of keys, without comparing each with each. What both begin and end with is
matched first. Then keys that occur once in both are anchors, as many of them as stand in the same order (patience);
between anchors it goes on in the same way. A stretch without such keys is short as a rule and aligned exactly; a long
one is walked with a window. So 5,000 nodes take some tens of milliseconds.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence

from backlight.lens.records.nodes import LEAF, Node
from backlight.lens.records.record import Record

Pair = tuple[int, int]
Keys = Sequence[Hashable]
DEEP = 2  # how many steps along its inputs a node's surroundings go


def match(before: Record, after: Record) -> list[Pair]:
    """Return pairs of ids of nodes that are the same in both (see NOTE [Matching])."""
    pairs: list[Pair] = []
    engines = before.engine != after.engine
    named = _parameters_alike(before, after) if engines else []
    places = [_others(record, [pair[side] for pair in named]) for side, record in enumerate((before, after))]
    for keys in zip(_keys_of(before, engines), _keys_of(after, engines)):
        left, right = ([own[place] for place in kept] for own, kept in zip(keys, places))
        found = list(pairs)
        for start, end, from_, to in gaps(pairs, 0, len(left), 0, len(right)):
            found += [(start + a, from_ + b) for a, b in align(left[start:end], right[from_:to])]
        pairs = sorted(found)
    pairs = named + [(places[0][a], places[1][b]) for a, b in pairs]
    left, right = _names_of(before, engines), _names_of(after, engines)
    return sorted(pairs + _moved(pairs, left, right))


def _parameters_alike(before: Record, after: Record) -> list[Pair]:
    """Return pairs of parameters of one name and shape that both records have once."""
    found = [
        {(node.name, tuple(node.outputs[0].shape)): node.id for node in record.nodes if node.parameter and node.outputs}
        for record in (before, after)
    ]
    counts = [Counter(node.name for node in record.nodes if node.parameter) for record in (before, after)]
    return [
        (number, found[1][key])
        for key, number in found[0].items()
        if key in found[1] and counts[0][key[0]] == counts[1][key[0]] == 1
    ]


def _others(record: Record, taken: Sequence[int]) -> list[int]:
    """Return the places of the nodes that are not taken."""
    given = set(taken)
    return [place for place in range(len(record.nodes)) if place not in given]


def _keys_of(record: Record, engines: bool) -> list[list[Hashable]]:
    """Return keys of all nodes, a list for each round."""
    kinds = [_kind_of(node, record, engines) for node in record.nodes]
    compared = slice(1 if engines else None)  # of two engines the first output: the others can be for the backward
    forms = [tuple((tuple(out.shape), out.dtype) for out in node.outputs[compared]) for node in record.nodes]
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


def _around(nodes: Sequence[Node], keys: Sequence[Hashable]) -> list[int]:
    """Return for each node a number that tells its surroundings: keys of its inputs, and of theirs."""
    found = [hash(key) for key in keys]
    for _ in range(DEEP):
        inputs = [tuple(edge and found[edge.to] for edge in node.edges) for node in nodes]
        found = list(map(hash, zip(found, inputs)))
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


EXACT = 60_000  # cells of the table by which a stretch is aligned exactly
WINDOW = 100  # how far a longer one is searched for where both go on alike


def align(before: Keys, after: Keys) -> list[Pair]:
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
            pairs += _matched_along(before, after, start, end, from_, to)
    return sorted(pairs)


def gaps(pairs: Sequence[Pair], start: int, end: int, from_: int, to: int) -> list[tuple[int, int, int, int]]:
    """Return the stretches between pairs that are in order, those without a place on one side left out."""
    edges = [(start - 1, from_ - 1), *pairs, (end, to)]
    found = [(a + 1, c, b + 1, d) for (a, b), (c, d) in zip(edges, edges[1:])]
    return [one for one in found if one[0] < one[1] and one[2] < one[3]]


def _anchors(before: Keys, after: Keys, start: int, end: int, from_: int, to: int) -> list[Pair]:
    """Return pairs of keys that occur once in both stretches, the most that are in the same order."""
    counts = Counter(before[start:end])
    others = Counter(after[from_:to])
    there = {after[place]: place for place in range(from_, to) if others[after[place]] == 1}
    once = (place for place in range(start, end) if counts[before[place]] == 1 and before[place] in there)
    return _rising([(place, there[before[place]]) for place in once])


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


def _exactly(before: Keys, after: Keys, start: int, end: int, from_: int, to: int) -> list[Pair]:
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


def _matched_along(before: Keys, after: Keys, start: int, end: int, from_: int, to: int) -> list[Pair]:
    """Return pairs found by walking along both; where they differ, the nearest place at which they go on alike."""
    pairs = []
    while start < end and from_ < to:
        if before[start] == after[from_]:
            pairs.append((start, from_))
            start, from_ = start + 1, from_ + 1
            continue
        skip = next(_skips(before, after, start, end, from_, to), (1, 1))
        start, from_ = start + skip[0], from_ + skip[1]
    return pairs


def _skips(before: Keys, after: Keys, start: int, end: int, from_: int, to: int):
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
