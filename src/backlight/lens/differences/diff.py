"""`lens.diff`: what of a graph is different after a change."""

import dataclasses
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

from backlight.errors import InputError
from backlight.lens.differences.comparing import Changed, Comparison, without_outcome
from backlight.lens.differences.difftext import details_of, lines_of
from backlight.lens.differences.matching import match
from backlight.lens.differences.union import union_picture
from backlight.lens.pictures.html import page_of
from backlight.lens.pictures.plumbing import is_plumbing
from backlight.lens.pictures.render.dot import dot
from backlight.lens.pictures.render.svg import svg
from backlight.lens.pictures.render.tree import tree
from backlight.lens.records.faces import written
from backlight.lens.records.nodes import Node
from backlight.lens.records.record import Record

FORMAT = 1


@dataclass
class Diff:
    """What is different between two records of one program.

    Args:
        before, after: the records.
        pairs: ids of nodes that are in both.
        gone, added: ids of nodes that are only in one.
        changed: nodes that are in both and differ.
        totals: totals of the graphs that differ: (before, after) by name.
        aside: how many ops only one of two engines has, though what they lead to is the same; in no list.
    """

    before: Record
    after: Record
    pairs: list[tuple[int, int]]
    gone: list[int]
    added: list[int]
    changed: list[Changed]
    totals: dict[str, tuple[int, int]] = field(default_factory=dict)
    aside: int = 0

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        different = any(before != after for before, after in self.totals.values())
        return bool(self.gone or self.added or self.changed or different)

    def __str__(self) -> str:
        return self.text()

    @property
    def engines(self) -> bool:
        """Whether the records are of two engines, so that only what means the same on both is compared."""
        return self.before.engine != self.after.engine

    def text(self, *, details: bool = False) -> str:
        """Return the differences as text: what changed first, and in short what follows from it.

        Args:
            details: whether to list every node that differs, and all that is different about it.
        """
        return "\n".join(details_of(self) if details else lines_of(self))

    def to_json(self, **options) -> str:
        """Return the differences as JSON: nodes by their ids in their record, with what names them."""
        fields = {
            "format": FORMAT,
            "differs": bool(self),
            "gone": [_named(self.before.nodes[one]) for one in self.gone],
            "added": [_named(self.after.nodes[one]) for one in self.added],
            "changed": [{**_named(self.after.nodes[one.after]), **dataclasses.asdict(one)} for one in self.changed],
            "totals": {name: {"before": one, "after": other} for name, (one, other) in self.totals.items()},
        }
        return json.dumps(fields, allow_nan=False, **options)

    def svg(self, path: Path | str | None = None, **options) -> str:
        """Return both graphs as one picture: added green and +, gone red and −, changed amber and ~.

        Args:
            path: a file to write it to, too.
            options: `by`, `most`, `backward`, as `record.svg` has them.
        """
        return written(svg(union_picture(self, **options)[1]), path)

    def dot(self, path: Path | str | None = None, **options) -> str:
        """Return both graphs as one for Graphviz, and write it to a file if a path is given; options as in `svg`."""
        return written(dot(union_picture(self, **options)[1]), path)

    def tree(self, *, width: int | None = None, color: bool | None = None, **options) -> str:
        """Return both graphs as one, as text, with + − ~ before names; `width` and `color` as in `record.tree`."""
        return tree(union_picture(self, **options)[1], width=width, color=color)

    def html(self, path: Path | str | None = None, **options) -> str:
        """Return both graphs as a page, in the colours of `svg`, and write it to a file if a path is given."""
        record, picture = union_picture(self, **options)
        return written(page_of(record, picture=picture), path)

    def _repr_svg_(self) -> str:
        return self.svg()


def diff(before: Record, after: Record, *, tolerance: float = 1e-4, backward: int = -1) -> Diff:
    """Compare two records of a graph, before and after a change.

    Args:
        before, after: what `lens.watch`, `lens.capture` or `lens.read_record` gave.
        tolerance: by how much of its norm a tensor's values, and a gradient's, may differ.
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
    comparison = Comparison(before, after, pairs, tolerance, backward)
    changed = comparison.changed()
    found = Diff(
        before,
        after,
        pairs,
        _unmatched(before, {one for one, _ in pairs}),
        _unmatched(after, {other for _, other in pairs}),
        changed,
        {name: (_TOTALS[name](before), _TOTALS[name](after)) for name in _TOTALS},
    )
    if comparison.engines:
        _leave_aside(found)
    return found


def _unmatched(record: Record, matched: set[int]) -> list[int]:
    return [node.id for node in record.nodes if node.id not in matched]


def _leave_aside(found: Diff) -> None:
    """Take away what differs between two engines though all comes to the same."""
    found.totals = {name: found.totals[name] for name in _OF_BOTH_ENGINES}
    sides = (found.before, found.gone, "before"), (found.after, found.added, "after")
    for record, unmatched, side in sides:
        views = {one for one in unmatched if is_plumbing(record.nodes[one])}
        same = without_outcome(record, set(unmatched), {getattr(one, side) for one in found.changed})
        found.aside += len(same - views)
        unmatched[:] = [one for one in unmatched if one not in same | views]


def _named(node: Node) -> dict:
    place = node.place and {"file": node.place.file, "line": node.place.line, "text": node.place.text}
    fields = {"id": node.id, "type": node.type, "label": node.label, "name": node.name, "module": node.module}
    return {**fields, "place": place}


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
# What the records of two engines can be compared in.
_OF_BOTH_ENGINES = ("leaves", "parameter elements", "backwards", "backwards that kept the graph", "nodes left out")
