"""A picture of a record: plumbing folded, groups made, each group laid out, everything said that is written on it."""

import math
from collections.abc import Sequence

from backlight.errors import InputError
from backlight.lens.pictures.boxes import MODULE, REPEAT, Box, Group, Picture, folded, gc_paused, is_plumbing, wires_of
from backlight.lens.pictures.groups import Branch, own_name, running_order, tree_of
from backlight.lens.pictures.labels import describe, describe_group
from backlight.lens.pictures.layout import link
from backlight.lens.pictures.masks import masked
from backlight.lens.pictures.place import place
from backlight.lens.records.nodes import LEAF, Node, Recorded, Step, Summary

WAYS = ("module", "line", "none")
TALLEST, WIDEST = 1150.0, 2200.0  # the first view fits a screen, if it is made smaller


@gc_paused
def picture_of(record: Recorded, *, by: str = "module", most: int = 60, backward: int = -1) -> Picture:
    """Return a record's picture.

    Args:
        by: how nodes are grouped: "module" (by "line" if no module is known), "line", or "none".
        most: the maximum number of boxes and closed groups visible at first, and of parts in a group.
        backward: the number of the backward whose gradients are shown.
    """
    if by not in WAYS:
        raise InputError(f"by must be one of {', '.join(WAYS)}, got {by!r}")
    if most < 2:
        raise InputError(f"most must be at least 2, got {most}")
    backward = _number_of(record, backward)
    beads = folded(record.nodes)
    wires = wires_of(record.nodes, beads)
    ops = [one for one in running_order(record.nodes) if one not in beads and record.nodes[one].kind != LEAF]
    tree = tree_of(record, wires, ops, by=by, most=most)
    boxes = [_box(node) for node in record.nodes]
    for one in masked(record.nodes):
        boxes[one].mask = True
    groups = _groups(tree, boxes)
    if by == "module":
        _name_modules(boxes, groups, record)
    _measure(boxes, record, backward)
    for number, wire in enumerate(wires):
        for bead in wire.beads:
            boxes[bead].wire, boxes[bead].group = number, boxes[wire.end].group
    _add_up(groups, boxes, record)
    link(groups, boxes, wires)
    picture = Picture(record.engine, record.title, by, boxes, wires, groups, backward, record.left_out)
    _open_some(picture, most)
    return picture


def with_open(picture: Picture, paths: Sequence[str]) -> set[int]:
    """Return the groups to show open: those that are at first, these modules, what they are in and what they hold.

    Args:
        paths: dotted paths of modules.
    """
    found = picture.open_at_first()
    for path in paths:
        inside: set[int] = set()
        for group in picture.groups:
            if group.parent in inside or group.path == path or group.path.startswith(f"{path}."):
                inside.add(group.id)
        if not inside:
            known = ", ".join(group.path for group in picture.groups if group.path)
            raise InputError(f"open must name modules that are groups of the picture, got {path!r}; there are: {known}")
        found |= inside
        for outer in list(inside):
            while (outer := picture.groups[outer].parent) is not None:
                found.add(outer)
    return found


def _number_of(record: Recorded, backward: int) -> int | None:
    count = len(record.backwards)
    if not count:
        return None
    if not -count <= backward < count:
        raise InputError(f"backward must be a number from {-count} to {count - 1}, got {backward}")
    return backward % count


def _box(node: Node) -> Box:
    bead, flags = is_plumbing(node) and not (node.root or node.hooks), {"root": node.root, "parameter": node.parameter}
    return Box(node.id, node.kind, node.label or node.type, node.name, bead=bead, seconds=node.seconds, **flags)


def _name_modules(boxes: Sequence[Box], groups: Sequence[Group], record: Recorded) -> None:
    """Say on boxes which module ran them, if no group that they stand in is it."""
    paths: list[frozenset[str]] = []
    for group in groups:
        outer = paths[group.parent] if group.parent is not None else frozenset()
        paths.append(outer | {group.path} if group.kind == MODULE else outer)
    for box, node in zip(boxes, record.nodes):
        if node.kind != LEAF and node.module and not box.bead and node.module not in paths[box.group]:
            box.module = own_name(node)


def _measure(boxes: Sequence[Box], record: Recorded, backward: int | None) -> None:
    """Say of each box what it saved and which gradient it got, and write it on them."""
    steps = {} if backward is None else {step.node: step for step in record.backwards[backward].steps}
    latest = backward in (None, len(record.backwards) - 1)
    seen = set()
    for box, node in zip(boxes, record.nodes):
        for saved in node.saved:
            box.bytes += saved.bytes if saved.memory not in seen else 0
            seen.add(saved.memory)
        gradient = _gradient(node, steps.get(node.id), latest)
        if gradient is not None:
            box.gradient, box.nonfinite = gradient.norm, (gradient.nans or 0) + (gradient.infs or 0)
        box.arrived = gradient is not None if backward is not None or gradient is not None else None
        describe(box, node.outputs[0] if node.outputs else None, gradient)


def _gradient(node: Node, step: Step | None, latest: bool) -> Summary | None:
    """Return a leaf's `.grad` after a backward (the latest, or none: at the end), another node's incoming gradient."""
    if node.kind == LEAF and step is not None and step.grad_after is not None:
        return step.grad_after
    if node.kind == LEAF and latest and node.grad is not None:
        return node.grad
    return None if step is None else step.arrived


def _groups(tree: Branch, boxes: Sequence[Box]) -> list[Group]:
    """Return the tree's branches as groups, outer ones first, and tell each box where it stands."""
    groups: list[Group] = []
    waiting: list[tuple[Branch, int | None]] = [(tree, None)]
    for number, (branch, parent) in enumerate(waiting):
        group = Group(number, parent, branch.kind, branch.title, branch.detail, branch.path, branch.times)
        group.shown = number == 0
        for part in branch.parts:
            if isinstance(part, Branch):
                group.children.append(f"g{len(waiting)}")
                waiting.append((part, number))
            else:
                group.children.append(f"n{part}")
                box = boxes[part]
                box.group = number
                if box.kind == LEAF and branch.path:  # a parameter is called as in the module that it stands in
                    box.label = box.label.removeprefix(f"{branch.path}.")
        groups.append(group)
    return groups


def _add_up(groups: Sequence[Group], boxes: Sequence[Box], record: Recorded) -> None:
    """Say of each group what is in it, inner ones first, and write it on them."""
    norms: dict[int, list[float]] = {group.id: [] for group in groups}
    for box in boxes:
        group = groups[box.group]
        group.bytes += box.bytes
        group.nonfinite += box.nonfinite if box.kind == LEAF else 0
        if box.seconds is not None:
            group.seconds = (group.seconds or 0.0) + box.seconds
        if box.kind != LEAF:
            group.ops += 1
            group.largest = _larger(group.largest, box.gradient)
            continue
        group.leaves += 1
        outputs = record.nodes[box.id].outputs
        group.parameters += math.prod(outputs[0].shape) if box.parameter and outputs else 0
        if box.arrived is not None:
            group.reached = (group.reached or 0) + box.arrived
        if box.gradient is not None:
            norms[group.id].append(box.gradient)
    for group in reversed(groups):
        if norms[group.id]:
            group.gradient = math.hypot(*norms[group.id])
        if group.parent is not None:
            _add(group, groups[group.parent])
            norms[group.parent] += norms[group.id]
        describe_group(group)


def _larger(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


def _add(inner: Group, outer: Group) -> None:
    for name in ("ops", "parameters", "bytes", "leaves", "nonfinite"):
        setattr(outer, name, getattr(outer, name) + getattr(inner, name))
    outer.largest = _larger(outer.largest, inner.largest)
    for name in ("seconds", "reached"):
        if getattr(inner, name) is not None:
            setattr(outer, name, (getattr(outer, name) or 0) + getattr(inner, name))


def _open_some(picture: Picture, most: int) -> None:
    """Open groups while what is seen stays within `most` and fits a screen: outer, large ones first, repeats last."""
    groups = picture.groups
    seen = len(groups[0].children)
    waiting = _inner(picture, 0)
    while waiting:
        first = min(range(len(waiting)), key=lambda place: waiting[place].kind == REPEAT)
        group = waiting.pop(first)
        if seen + len(group.children) - 1 > most:
            continue
        group.shown = True
        plan = place(picture)
        if plan.height > TALLEST or plan.width > WIDEST:
            group.shown = False
            continue
        seen += len(group.children) - 1
        waiting += _inner(picture, group.id)


def _inner(picture: Picture, group: int) -> list[Group]:
    """Return the groups in a group, large ones first."""
    found = [picture.part(item) for item in picture.groups[group].children if item[0] == "g"]
    return sorted(found, key=lambda one: -one.ops)
