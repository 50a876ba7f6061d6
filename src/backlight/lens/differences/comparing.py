"""What is different about a node that is in two records.

NOTE [What changed and what followed]
A change is a cause, or it follows from one. A node whose options, constants, inputs or hooks changed is a cause, and so
is one whose values changed though those of all its inputs are the same. A node follows if it differs in shape, dtype,
values or what it saves, and one of its inputs does too; and if it differs in its gradient only. Where nothing but
gradients differ, the one that arrived first in the backward is the cause.

Records of two engines are compared by what means the same on both: labels of ops, leaves, shapes, values, gradients,
and inputs, views between them left out. What each saves and keeps as options is its own affair.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from backlight.lens.differences.deviation import deviation, numbers
from backlight.lens.pictures.boxes import is_plumbing
from backlight.lens.records.nodes import LEAF, Edge, Node, SavedTensor, Summary, users_of
from backlight.lens.records.record import Record

FIGURES = ("norm", "least", "most", "mean")


def alike(one: Summary, other: Summary, tolerance: float, *, reshaped: bool = False) -> bool:
    """Return whether two tensors are the same up to rounding, according to their summaries.

    They are compared element by element if both are kept in full, else by fingerprints if both have one.
    Statistics known for only one are not compared.

    Args:
        tolerance: the allowed difference of each statistic, relative to the norm.
        reshaped: whether another shape of as many elements, in another order, may be the same.
    """
    formed = tuple(one.shape) == tuple(other.shape)
    if not formed and not (reshaped and one.size == other.size):
        return False
    if one.nans is None or other.nans is None:
        return True
    if (one.nans, one.infs or 0) != (other.nans, other.infs or 0):
        return False
    reach = max(one.norm or 0.0, other.norm or 0.0) * tolerance
    if formed and one.values is not None and other.values is not None:
        return all(_near(*pair, reach) for pair in zip(numbers(one.values), numbers(other.values)))
    if formed and one.fingerprint is not None and other.fingerprint is not None:
        apart = deviation(one, other)
        return apart.exact or apart.relative <= tolerance
    return all(_near(getattr(one, name), getattr(other, name), reach) for name in FIGURES)


def same_gradient(one: Summary | None, other: Summary | None, tolerance: float, *, reshaped: bool = False) -> bool:
    """Return whether two gradients are the same up to rounding; a gradient never equals a missing one."""
    return one is other if one is None or other is None else alike(one, other, tolerance, reshaped=reshaped)


def _near(one: float | str | None, other: float | str | None, reach: float) -> bool:
    numbers = not any(isinstance(value, (str, type(None))) for value in (one, other))
    return one == other or (numbers and abs(one - other) <= reach)


def described(summary: Summary | None) -> str:
    """Return a tensor in a few words: its number if it has only one."""
    if summary is None:
        return "none"
    if summary.values is not None and not isinstance(summary.values, list):
        return single(summary)
    known = [(name, getattr(summary, name)) for name in ("norm", "mean")]
    parts = [f"{name} {value:.6g}" for name, value in known if value is not None]
    return ", ".join(parts + summary.nonfinite()) or f"({', '.join(map(str, summary.shape))}) {summary.dtype}"


def single(summary: Summary) -> str:
    """Return all of a tensor if it is small, else what `described` says."""
    elements = None if summary.values is None else list(numbers(summary.values))
    if elements is None or len(elements) > 6:
        return f"({described(summary)})"
    texts = [value if isinstance(value, str) else f"{value:.6g}" for value in elements]
    return f"[{', '.join(texts)}]" if isinstance(summary.values, list) else texts[0]


FOLLOWING = {"shape", "dtype", "value", "saved", "version", "gradient", "line"}
# How what an op itself computed and keeps is called: it is no constant that was given to it.
PRODUCED = ("result", "out", "indices", "logsumexp", "total_weight", "save", "rng", "philox", "debug", "reserve")


@dataclass(frozen=True)
class Change:
    """One thing about a node that is different.

    Args:
        what: "constant", "options", "inputs", "shape", "dtype", "value", "gradient", "saved", "version", "hooks",
            "root" or "line".
        before, after: in words; what there was none of is "none".
    """

    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Changed:
    """A node that is in both records, and what is different about it.

    Args:
        before, after: its ids.
        cause: False if it only follows from another change (see NOTE [What changed and what followed]).
    """

    before: int
    after: int
    changes: tuple[Change, ...]
    cause: bool = True


class Comparison:
    """Two records whose nodes are matched."""

    def __init__(self, before: Record, after: Record, pairs: Sequence[tuple[int, int]], tolerance: float, number: int):
        self.before, self.after, self.tolerance = before, after, tolerance
        self.pairs, self.matched = pairs, dict(pairs)
        self.engines = before.engine != after.engine
        self.gradients = [gradients_of(record, number) for record in (before, after)]
        self.first_gradient = self._first_gradient(number)

    def changed(self) -> list[Changed]:
        """Return the nodes that differ, in the order of the forward after the change."""
        found: list[Changed] = []
        # nodes after the change that are new, or whose forward differs
        moved = set(range(len(self.after.nodes))) - {after for _, after in self.pairs}
        for before, after in sorted(self.pairs, key=lambda pair: pair[1]):
            one, other = self.before.nodes[before], self.after.nodes[after]
            changes = tuple(change for change in self._changes(one, other) if change is not None)
            if not changes:
                continue
            forward = any(change.what not in ("gradient", "line") for change in changes)
            reads = not moved.isdisjoint(other.inputs)
            found.append(Changed(before, after, changes, self._is_cause(one, other, changes, forward, reads)))
            if forward:
                moved.add(after)
        # changes of which one is a cause: where only gradients differ, that which arrived first
        if bool(moved) or self.first_gradient is None or any(one.cause for one in found):
            return found
        first = self.first_gradient
        return [Changed(one.before, one.after, one.changes, one.after == first) for one in found]

    def _is_cause(self, one: Node, other: Node, changes: Sequence[Change], forward: bool, reads: bool) -> bool:
        if any(change.what not in FOLLOWING | {"constant"} for change in changes):
            return True
        given = [saved for saved, _ in _differing(one, other, self.tolerance) if not saved.name.startswith(PRODUCED)]
        return (bool(given) and any(change.what == "constant" for change in changes)) or (forward and not reads)

    def _first_gradient(self, number: int) -> int | None:
        """Return the node whose gradient differs first in the backward."""
        runs = self.after.backwards
        if not -len(runs) <= number < len(runs):
            return None
        before_of = {after: before for before, after in self.pairs}
        fired = (step.node for step in runs[number].steps if step.node in before_of)
        return next((node for node in fired if not self._same_gradient(before_of[node], node)), None)

    def _changes(self, one: Node, other: Node) -> Iterator[Change | None]:
        yield self._of_constants(one, other)
        yield self._of_options(one, other)
        yield self._of_inputs(one, other)
        yield from self._of_outputs(one, other)
        if not self._same_gradient(one.id, other.id):
            yield Change("gradient", *(described(side.get(id)) for side, id in zip(self.gradients, (one.id, other.id))))
        if not self.engines:
            yield _change("saved", _saved(one.saved), _saved(other.saved))
            yield _change("version", _versions(one), _versions(other))
            yield _change("line", *_lines(one, other))
        yield _change("hooks", ", ".join(one.hooks) or "none", ", ".join(other.hooks) or "none")
        yield _change("root", "yes" if one.root else "no", "yes" if other.root else "no")

    def _same_gradient(self, before: int, after: int) -> bool:
        one, other = self.gradients[0].get(before), self.gradients[1].get(after)
        return same_gradient(one, other, self.tolerance, reshaped=self.engines)

    def _of_constants(self, one: Node, other: Node) -> Change | None:
        """Return which tensors without a gradient, that both keep by one name, have other values."""
        different = _differing(one, other, self.tolerance)
        if not different:
            return None
        texts = [", ".join(f"{pair[0].name} {single(pair[side].summary)}" for pair in different) for side in (0, 1)]
        return _change("constant", *texts)

    def _of_options(self, one: Node, other: Node) -> Change | None:
        options = [one.options, other.options]
        if self.engines:
            shared = one.options.keys() & other.options.keys()
            options = [{name: side[name] for name in shared} for side in options]
        texts = [", ".join(f"{name}={value:g}" for name, value in sorted(side.items())) for side in options]
        return _change("options", texts[0] or "none", texts[1] or "none")

    def _of_outputs(self, one: Node, other: Node) -> list[Change]:
        before, after = one.outputs, other.outputs
        if self.engines:  # one may have outputs that are only for its backward
            before, after = before[:1], after[:1]
        shapes, dtypes = (
            [", ".join(part(output) for output in side) or "unknown" for side in (before, after)]
            for part in (lambda output: f"({', '.join(map(str, output.shape))})", lambda output: output.dtype)
        )
        sizes = [[output.size for output in side] for side in (before, after)]
        reshaped = self.engines and sizes[0] == sizes[1]  # each engine has its own views
        changes = [None if reshaped else _change("shape", *shapes), _change("dtype", *dtypes)]
        formed = reshaped or shapes[0] == shapes[1]
        if formed and not all(alike(*pair, self.tolerance, reshaped=reshaped) for pair in zip(before, after)):
            changes.append(Change("value", *(", ".join(map(described, side)) for side in (before, after))))
        return [change for change in changes if change is not None]

    def _of_inputs(self, one: Node, other: Node) -> Change | None:
        """Return which inputs come from elsewhere; None if all are from the same nodes."""
        if self.engines:
            return self._of_sources(one, other)
        different = [pair for pair in zip_longest(one.edges, other.edges) if not self._same(*pair)]
        if not different:
            return None
        texts = [
            ", ".join("no gradient" if edge is None else _named(record.nodes[edge.to]) for edge in side)
            for side, record in zip(zip(*different), (self.before, self.after))
        ]
        return Change("inputs", *texts)

    def _of_sources(self, one: Node, other: Node) -> Change | None:
        """Return other sources than before, in any order: matched nodes, what only one engine has between left out."""
        was = _sources(one, self.before, self.matched.keys())
        now = _sources(other, self.after, set(self.matched.values()))
        if {self.matched.get(source, -1) for source in was} == set(now):
            return None
        texts = [
            ", ".join(_named(record.nodes[source]) for source in side) or "no gradient"
            for side, record in ((was, self.before), (now, self.after))
        ]
        return Change("inputs", *texts)

    def _same(self, was: Edge | None, now: Edge | None) -> bool:
        if was is None or now is None:
            return was is now
        return self.matched.get(was.to) == now.to and was.output == now.output


def gradients_of(record: Record, backward: int) -> dict[int, Summary]:
    """Return the gradient of each node that got one: of a leaf its `.grad`, of an op what arrived."""
    found = {node.id: node.grad for node in record.nodes if node.kind == LEAF and node.grad is not None}
    if not -len(record.backwards) <= backward < len(record.backwards):
        return found
    for step in record.backwards[backward].steps:
        gradient = step.grad_after or step.arrived
        if gradient is not None:
            found.setdefault(step.node, gradient)
    return found


def _differing(one: Node, other: Node, tolerance: float) -> list[tuple[SavedTensor, SavedTensor]]:
    """Return constants that both keep by one name, with other values."""
    there = {saved.name: saved for saved in other.saved if saved.of is None}
    both = [(saved, there[saved.name]) for saved in one.saved if saved.of is None and saved.name in there]
    return [pair for pair in both if not alike(pair[0].summary, pair[1].summary, tolerance)]


def _sources(node: Node, record: Record, matched: Collection[int]) -> list[int]:
    """Return the matched nodes that a node reads, each once; views, and ops that are not matched, are seen through."""
    found: dict[int, None] = {}
    waiting = [node]
    while waiting:
        for edge in waiting.pop().edges:
            source = None if edge is None else record.nodes[edge.to]
            if source is None:
                continue
            if source.kind != LEAF and (is_plumbing(source) or source.id not in matched):
                waiting.append(source)
            else:
                found.setdefault(source.id)
    return sorted(found)


def without_outcome(record: Record, unmatched: Collection[int], different: Collection[int]) -> set[int]:
    """Return unmatched ops after which all is the same: another engine splits its ops in other ways.

    Args:
        different: nodes of the record that are changed.
    """
    users = users_of(record.nodes)
    same: set[int] = set()
    for number in sorted(unmatched, reverse=True):
        node = record.nodes[number]
        read_alike = all(one not in different and (one not in unmatched or one in same) for one in users[number])
        known = any(output.nans is not None for user in users[number] for output in record.nodes[user].outputs)
        if node.kind != LEAF and not node.root and users[number] and read_alike and (known or is_plumbing(node)):
            same.add(number)
    return same


def _named(node: Node) -> str:
    if node.kind == LEAF or not node.module:
        return node.name or node.label or node.type
    return f"{node.label or node.type} in {node.module}"


def _change(what: str, before: str, after: str) -> Change | None:
    return None if before == after else Change(what, before, after)


def _saved(saved: Sequence[SavedTensor]) -> str:
    if not saved:
        return "nothing"
    return f"{sum(one.bytes for one in saved):,} bytes: {', '.join(sorted(one.name for one in saved))}"


def _versions(node: Node) -> str:
    """Return how often its output, and what it saved, had been written to."""
    written = [
        f"{one.name} written {one.written - one.version}× since" for one in node.saved if one.written > one.version
    ]
    return ", ".join([f"version {node.version}", *sorted(written)])


def _lines(one: Node, other: Node) -> tuple[str, str]:
    """Return both lines; a line that only moved is the same."""
    places = [node.place for node in (one, other)]
    if None in places or places[0].text == places[1].text:
        return "", ""
    return tuple(f"{place.text.strip()} ({place.where})" for place in places)
