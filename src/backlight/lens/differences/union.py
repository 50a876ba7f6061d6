"""Both graphs of a comparison as one drawing: removed nodes are next to the present ones."""

import dataclasses

from backlight.lens.pictures.boxes import Picture
from backlight.lens.pictures.picture import picture_of
from backlight.lens.records.nodes import Edge, Node
from backlight.lens.records.record import Record

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
        look = (
            "gone" if side == "before" else "added" if number in added else "changed" if number in changed else "same"
        )
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
    titles = found.before.title, found.after.title
    if titles[0] == titles[1]:
        if found.engines:
            titles = found.before.engine, found.after.engine
        else:
            return f"{titles[0]}: before → after".removeprefix(": ")
    return f"{titles[0] or 'before'} → {titles[1] or 'after'}"


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
            needed = [edge.to for edge in sides[side][number].edges if edge is not None]
            keys = [("after", matched[one]) if side == "before" and one in matched else (side, one) for one in needed]
            missing = [key for key in keys if key not in done]
            if missing:
                waiting += missing
            else:
                done.setdefault(waiting.pop())
    return list(done)
