"""`lens.diff`: what of a graph is different after a change."""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from backlight.errors import InputError
from backlight.lens.differences.difftext import lines_of
from backlight.lens.differences.matching import match
from backlight.lens.differences.union import union_picture
from backlight.lens.pictures.html import page_of
from backlight.lens.pictures.render.svg import svg
from backlight.lens.records.nodes import LEAF, Edge, Node, SavedTensor, Summary
from backlight.lens.records.record import Record

FORMAT = 1


@dataclass(frozen=True)
class Change:
    """One thing about a node that is different.

    Args:
        what: "shape", "dtype", "gradient", "saved", "version", "inputs", "options", "hooks", "order", "root" or "line".
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
    """

    before: int
    after: int
    changes: tuple[Change, ...]


@dataclass
class Diff:
    """What is different between two records of one program.

    Args:
        before, after: the records.
        pairs: ids of nodes that are in both.
        gone, added: ids of nodes that are only in one.
        changed: nodes that are in both and differ.
        totals: what differs of the whole: (before, after) by name.
    """

    before: Record
    after: Record
    pairs: list[tuple[int, int]]
    gone: list[int]
    added: list[int]
    changed: list[Changed]
    totals: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether anything differs."""
        different = any(before != after for before, after in self.totals.values())
        return bool(self.gone or self.added or self.changed or different)

    def __str__(self) -> str:
        return "\n".join(lines_of(self))

    def to_json(self, **options) -> str:
        """Return the differences as JSON: nodes by their ids in their record, with what names them."""
        told = {
            "format": FORMAT,
            "differs": bool(self),
            "gone": [_named(self.before.nodes[one]) for one in self.gone],
            "added": [_named(self.after.nodes[one]) for one in self.added],
            "changed": [{**_named(self.after.nodes[one.after]), **dataclasses.asdict(one)} for one in self.changed],
            "totals": {name: {"before": one, "after": other} for name, (one, other) in self.totals.items()},
        }
        return json.dumps(told, allow_nan=False, **options)

    def svg(self, **options) -> str:
        """Return both graphs as one picture: added green and +, gone red and −, changed amber and ~."""
        return svg(union_picture(self, **options)[1])

    def html(self, path: Path | str | None = None) -> str:
        """Return both graphs as a page, in the colours of `svg`, and write it to a file if one is given."""
        record, picture = union_picture(self)
        page = page_of(record, picture=picture)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _repr_svg_(self) -> str:
        return self.svg()


def diff(before: Record, after: Record, *, tolerance: float = 1e-4, backward: int = -1) -> Diff:
    """Compare two records of a graph, before and after a change.

    Args:
        before, after: what `lens.watch`, `lens.capture` or `lens.read_record` gave.
        tolerance: by how much of its norm a gradient may differ.
        backward: the number of the backward whose gradients are compared.

    Raises:
        InputError: one is no record.
    """
    for name, record in (("before", before), ("after", after)):
        if not isinstance(record, Record):
            raise InputError(f"{name} must be a Record, got {type(record).__name__}: lens.watch() makes one")
    if not tolerance >= 0:
        raise InputError(f"tolerance must be 0 or more, got {tolerance!r}")
    pairs = match(before, after)
    comparison = _Comparison(before, after, pairs, tolerance, backward)
    known, told = {one for one, _ in pairs}, {other for _, other in pairs}
    return Diff(
        before,
        after,
        pairs,
        [node.id for node in before.nodes if node.id not in known],
        [node.id for node in after.nodes if node.id not in told],
        [changed for changed in map(comparison.changed, pairs) if changed.changes],
        {name: (_TOTALS[name](before), _TOTALS[name](after)) for name in _TOTALS},
    )


class _Comparison:
    """Two records whose nodes are matched."""

    def __init__(self, before: Record, after: Record, pairs: Sequence[tuple[int, int]], tolerance: float, number: int):
        self.before, self.after, self.tolerance = before, after, tolerance
        self.matched = dict(pairs)
        self.gradients = [gradients_of(record, number) for record in (before, after)]

    def changed(self, pair: tuple[int, int]) -> Changed:
        """Return what is different about a node."""
        one, other = self.before.nodes[pair[0]], self.after.nodes[pair[1]]
        found = [
            *_of_outputs(one.outputs, other.outputs),
            *self._of_gradients(*pair),
            _change("saved", _saved(one.saved), _saved(other.saved)),
            _change("version", _versions(one), _versions(other)),
            self._of_inputs(one, other),
            _change("options", _listed(one.options), _listed(other.options)),
            _change("hooks", ", ".join(one.hooks) or "none", ", ".join(other.hooks) or "none"),
            _change("root", "yes" if one.root else "no", "yes" if other.root else "no"),
            _change("line", *_lines(one, other)),
        ]
        return Changed(*pair, tuple(change for change in found if change is not None))

    def _of_gradients(self, before: int, after: int) -> list[Change]:
        one, other = self.gradients[0].get(before), self.gradients[1].get(after)
        if alike(one, other, self.tolerance):
            return []
        return [Change("gradient", said(one), said(other))]

    def _of_inputs(self, one: Node, other: Node) -> Change | None:
        """Return which inputs come from elsewhere; None if all are from the same nodes."""
        length = max(len(one.edges), len(other.edges))
        edges = list(zip(_padded(one.edges, length), _padded(other.edges, length)))
        different = [(was, now) for was, now in edges if not self._same(was, now)]
        if not different:
            return None
        texts = [
            ", ".join(_source(edge, record) for edge in side)
            for side, record in zip(zip(*different), (self.before, self.after))
        ]
        return Change("inputs", *texts)

    def _same(self, was: Edge | None, now: Edge | None) -> bool:
        if was is None or now is None:
            return was is now
        return self.matched.get(was.to) == now.to and was.output == now.output


def _padded(edges: list, length: int) -> list:
    return edges + [None] * (length - len(edges))


def _source(edge: Edge | None, record: Record) -> str:
    if edge is None:
        return "no gradient"
    node = record.nodes[edge.to]
    if node.kind == LEAF or not node.module:
        return node.name or node.label or node.type
    return f"{node.label or node.type} in {node.module}"


def gradients_of(record: Record, backward: int) -> dict[int, Summary]:
    """Return the gradient of each node that got one: of a leaf its `.grad`, of an op what arrived."""
    found = {node.id: node.grad for node in record.nodes if node.kind == LEAF and node.grad is not None}
    if not -len(record.backwards) <= backward < len(record.backwards):
        return found
    for step in record.backwards[backward].steps:
        gradient = step.grad_after or next((one for one in step.incoming if one is not None), None)
        if gradient is not None:
            found.setdefault(step.node, gradient)
    return found


def alike(one: Summary | None, other: Summary | None, tolerance: float) -> bool:
    """Tell whether two gradients are the same but for rounding, as far as their summaries can tell."""
    if one is None or other is None:
        return one is other
    if (one.nans or 0, one.infs or 0) != (other.nans or 0, other.infs or 0):
        return False
    if tuple(one.shape) != tuple(other.shape):
        return False
    scale = max(one.norm or 0.0, other.norm or 0.0) * tolerance
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("norm", "least", "most", "mean")]
    return all(a == b or (a is not None and b is not None and abs(a - b) <= scale) for a, b in pairs)


def said(gradient: Summary | None) -> str:
    """Return a gradient in a few words."""
    if gradient is None:
        return "none"
    known = [(name, getattr(gradient, name)) for name in ("norm", "mean")]
    told = [f"{name} {value:.6g}" for name, value in known if value is not None]
    told += [f"{count} {name}" for name, count in (("NaN", gradient.nans), ("inf", gradient.infs)) if count]
    return ", ".join(told) or f"({', '.join(map(str, gradient.shape))}) {gradient.dtype}"


def _change(what: str, before: str, after: str) -> Change | None:
    return None if before == after else Change(what, before, after)


def _of_outputs(before: Sequence[Summary], after: Sequence[Summary]) -> list[Change]:
    """Return changes of shape and dtype."""
    shapes, dtypes = (
        [", ".join(part(output) for output in side) or "unknown" for side in (before, after)]
        for part in (lambda output: f"({', '.join(map(str, output.shape))})", lambda output: output.dtype)
    )
    return [change for change in (_change("shape", *shapes), _change("dtype", *dtypes)) if change is not None]


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


def _listed(options: dict[str, float]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in sorted(options.items())) or "none"


def _lines(one: Node, other: Node) -> tuple[str, str]:
    """Return both lines; a line that only moved is the same."""
    places = [node.place for node in (one, other)]
    if None in places or places[0].text == places[1].text:
        return "", ""
    return tuple(f"{place.text.strip()} ({place.file.rpartition('/')[2]}:{place.line})" for place in places)


def _named(node: Node) -> dict:
    place = node.place and {"file": node.place.file, "line": node.place.line, "text": node.place.text}
    told = {"id": node.id, "type": node.type, "label": node.label, "name": node.name, "module": node.module}
    return {**told, "place": place}


def _bytes(record: Record) -> int:
    return sum({saved.memory: saved.bytes for node in record.nodes for saved in node.saved}.values())


def _parameters(record: Record) -> int:
    return sum(math.prod(node.outputs[0].shape) for node in record.nodes if node.parameter and node.outputs)


_TOTALS = {
    "nodes": lambda record: len(record.nodes),
    "leaves": lambda record: len(record.leaves),
    "parameter elements": _parameters,
    "bytes saved": _bytes,
    "bytes freed": lambda record: sum(step.freed for run in record.backwards for step in run.steps),
    "backwards": lambda record: len(record.backwards),
    "backwards that kept the graph": lambda record: sum(run.keep_graph for run in record.backwards),
    "nodes that ran backward": lambda record: sum(len(run.steps) for run in record.backwards),
    "in-place writes": lambda record: len(record.writes),
    "nodes left out": lambda record: record.left_out,
}
