"""`lens.diff`: what of a graph is different after a change, and both graphs as one picture."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from backlight.errors import InputError
from backlight.lens.differences.comparing import Changed, Comparison, without_outcome
from backlight.lens.differences.difftext import details_of, lines_of
from backlight.lens.differences.divergence import Divergence, divergence
from backlight.lens.differences.divergence_text import as_html, as_plain, sentences_of, table_of
from backlight.lens.differences.matching import match
from backlight.lens.differences.runs import records_of
from backlight.lens.pictures.boxes import Picture, is_plumbing
from backlight.lens.pictures.html import page_of
from backlight.lens.pictures.picture import picture_of
from backlight.lens.pictures.svg import svg
from backlight.lens.pictures.text import dot, tree
from backlight.lens.records.nodes import Edge, Node
from backlight.lens.records.record import Record, written

FORMAT = 1
TOLERANCE = 1e-4  # of a norm, in the comparison of graphs


@dataclass(repr=False)
class Diff:
    """The differences between two records of one program.

    Args:
        before, after: the records.
        pairs: ids of nodes that are in both.
        gone, added: ids of nodes that are in only one.
        changed: nodes that are in both and differ.
        totals: totals of the graphs that differ: (before, after) by name.
        aside: the number of ops that only one of two engines has, with the same result; they are in no list.
        tolerance: the requested tolerance; None: one per dtype.
        backward: the number of the backward whose gradients are compared.
    """

    before: Record
    after: Record
    pairs: list[tuple[int, int]]
    gone: list[int]
    added: list[int]
    changed: list[Changed]
    totals: dict[str, tuple[int, int]] = field(default_factory=dict)
    aside: int = 0
    tolerance: float | None = None
    backward: int = -1

    @cached_property
    def values(self) -> Divergence:
        """Where values diverge, op by op (NOTE [Rounding or a real difference] in lens/differences/divergence.py)."""
        return divergence(self.before, self.after, self.pairs, self.tolerance, self.backward)

    @property
    def fingerprinted(self) -> bool:
        """Whether both records were made to be compared by their values."""
        return all(
            any(one.fingerprint for node in side.nodes for one in node.outputs) for side in (self.before, self.after)
        )

    def verdict(self, *, table: bool = True) -> str:
        """Return where the values diverge, by how much, and whether it is rounding.

        Args:
            table: whether to list the modules with their deviations.
        """
        return "\n".join([*sentences_of(self), *(table_of(self) if table else ())])

    def __repr__(self) -> str:
        return f"<Diff {title_of(self)}: {next(sentences_of(self))}>"

    def _repr_html_(self) -> str:
        return as_html(self) + (f"<details><summary>both graphs</summary>{self.svg()}</details>" if self else "")

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
            "values": as_plain(self),
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


def diff(
    before: Record | Callable,
    after: Record | Callable,
    *,
    tolerance: float | None = None,
    backward: int = -1,
    args: Sequence = (),
    seed: int | None = None,
    values: str = "hash",
) -> Diff:
    """Compare two records, or two functions of one process: how their graphs differ, and where their values diverge.

        lens.diff(lambda: step(model), lambda: step(copy.deepcopy(model).bfloat16()))

    Args:
        before, after: records from `lens.watch`, `lens.capture` or `lens.read_record`; or functions or modules, which
            are called one after the other from the same random state and must not change each other's start state.
        tolerance: the allowed difference of values and gradients, relative to the norm; by default 1e-4 in the
            comparison of graphs, and one per dtype in the comparison of values.
        backward: the number of the backward whose gradients are compared.
        args: the arguments of the functions.
        seed: the seed before each function; by default the current random state.
        values: what is recorded of tensors (see `watch`).

    Raises:
        InputError: an argument is none of these, or a function computed nothing that requires grad.
    """
    if callable(before) and callable(after):
        before, after = records_of((before, after), args, seed, values)
    for name, record in (("before", before), ("after", after)):
        if not isinstance(record, Record):
            raise InputError(
                f"{name} must be a Record, got {type(record).__name__}: lens.watch() makes one; or pass two functions"
            )
    if tolerance is not None and not tolerance >= 0:
        raise InputError(f"tolerance must be 0 or more, got {tolerance!r}")
    pairs = match(before, after)
    comparison = Comparison(before, after, pairs, TOLERANCE if tolerance is None else tolerance, backward)
    matched, still = ({pair[side] for pair in pairs} for side in (0, 1))
    gone = [node.id for node in before.nodes if node.id not in matched]
    added = [node.id for node in after.nodes if node.id not in still]
    totals = {name: (total(before), total(after)) for name, total in _TOTALS.items()}
    found = Diff(before, after, pairs, gone, added, comparison.changed(), totals, 0, tolerance, backward)
    if comparison.engines:
        _leave_aside(found)
    return found


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
    place = node.place and {name: getattr(node.place, name) for name in ("file", "line", "text")}
    return {name: getattr(node, name) for name in ("id", "type", "label", "name", "module")} | {"place": place}


_TOTALS = {
    "nodes": lambda record: len(record.nodes),
    "leaves": lambda record: len(record.leaves),
    "parameter elements": lambda record: sum(
        node.outputs[0].size for node in record.nodes if node.parameter and node.outputs
    ),
    "bytes saved": lambda record: sum(
        {saved.memory: saved.bytes for node in record.nodes for saved in node.saved}.values()
    ),
    "bytes freed": lambda record: sum(step.freed for run in record.backwards for step in run.steps),
    "backwards": lambda record: len(record.backwards),
    "backwards that kept the graph": lambda record: sum(run.keep_graph for run in record.backwards),
    "nodes that ran backward": lambda record: sum(len(run.steps) for run in record.backwards),
    "in-place writes": lambda record: len(record.writes),
    "nodes left out": lambda record: record.left_out,
}
# What the records of two engines can be compared in.
_OF_BOTH_ENGINES = ("leaves", "parameter elements", "backwards", "backwards that kept the graph", "nodes left out")


SIGNS = {"added": "+ ", "gone": "− ", "changed": "~ "}


def union_picture(found, **options) -> tuple[Record, Picture]:
    """Return both records as one, and a picture of it with each box's `look`: "added", "gone", "changed" or "same".

    Args:
        found: a `Diff`.
        options: those of `picture_of`.
    """
    record, looks = union_of(found)
    picture = picture_of(record, **options)
    inside: list[set[str]] = [set() for _ in picture.groups]
    for box, look in zip(picture.boxes, looks):
        box.look = look
        inside[box.group].add(look)
    for group in reversed(picture.groups):
        found_in = inside[group.id]
        group.look = "changed" if len(found_in) > 1 else next(iter(found_in), "same")
        if group.parent is not None:
            inside[group.parent] |= found_in
    return record, picture


def union_of(found) -> tuple[Record, list[str]]:
    """Return a record with the nodes of both, and for each whether it is added, gone, changed or the same."""
    order = _order(found)
    place = {key: number for number, key in enumerate(order)}
    matched = dict(found.pairs)
    sides = {"before": found.before.nodes, "after": found.after.nodes}

    def at(side: str, node: int) -> int:
        if side == "before" and node in matched:
            side, node = "after", matched[node]
        return place[side, node]

    changed = {one.after for one in found.changed}
    added = set(found.added)
    nodes, looks = [], []
    for side, number in order:
        look = "added" if number in added else "changed" if number in changed else "same"
        look = "gone" if side == "before" else look
        nodes.append(_moved(sides[side][number], side, at, SIGNS.get(look, "")))
        looks.append(look)
    backwards = [
        dataclasses.replace(
            run,
            roots=[at("after", root) for root in run.roots],
            steps=[dataclasses.replace(step, node=at("after", step.node)) for step in run.steps],
        )
        for run in found.after.backwards
    ]
    modules = {**found.before.modules, **found.after.modules}
    return Record(found.after.engine, nodes, backwards, title=title_of(found), modules=modules), looks


def title_of(found) -> str:
    """Return what both records are called: "before → after", with their titles if they have any."""
    was, now = found.before.title, found.after.title
    if was == now and found.engines:
        was, now = found.before.engine, found.after.engine
    elif was == now:
        return f"{was}: before → after".removeprefix(": ")
    return f"{was or 'before'} → {now or 'after'}"


def _moved(node: Node, side: str, at, sign: str) -> Node:
    """Return a node at its place in the union, with a sign before its name."""
    edges = [edge and Edge(at(side, edge.to), edge.output, edge.name, edge.formula) for edge in node.edges]
    saved = [dataclasses.replace(one, of=None if one.of is None else at(side, one.of)) for one in node.saved]
    return dataclasses.replace(
        node,
        id=at(side, node.id),
        edges=edges,
        saved=saved,
        name=f"{sign}{node.name}" if node.name and node.label in ("", node.name) else node.name,
        label=f"{sign}{node.label or node.type}",
    )


def _order(found) -> list[tuple[str, int]]:
    """Return all nodes, each after those that it gets its input from: as the forward after the change, if possible."""
    matched = dict(found.pairs)
    before_of = {after: before for before, after in found.pairs}
    wished, gone = [], list(found.gone)
    for node in found.after.nodes:
        while node.id in before_of and gone and gone[0] < before_of[node.id]:
            wished.append(("before", gone.pop(0)))
        wished.append(("after", node.id))
    wished += [("before", one) for one in gone]
    sides = {"before": found.before.nodes, "after": found.after.nodes}
    done: dict[tuple[str, int], None] = {}
    for first in wished:
        waiting = [first]
        while waiting:
            side, number = waiting[-1]
            needed = sides[side][number].inputs
            keys = [("after", matched[one]) if side == "before" and one in matched else (side, one) for one in needed]
            missing = [key for key in keys if key not in done]
            if missing:
                waiting += missing
            else:
                done.setdefault(waiting.pop())
    return list(done)
