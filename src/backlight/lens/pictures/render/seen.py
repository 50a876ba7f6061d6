"""What of a picture can be seen while some groups are closed, as a plain graph: for renderers without coordinates."""

from collections.abc import Collection
from dataclasses import dataclass, field

from backlight.lens.pictures.boxes import Picture


@dataclass(slots=True)
class Arrow:
    """From one item that is seen to another, for one wire or several; `beads` are the labels of what lies between."""

    start: str
    end: str
    wires: list[int] = field(default_factory=list)
    beads: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Seen:
    """The items that are seen, in the forward's order, and arrows between them.

    Args:
        opened: the groups that are open, outer ones first.
        into: the arrows that end at each item, in the order of its inputs.
    """

    items: list[str]
    opened: list[int]
    into: dict[str, list[Arrow]]


def seen(picture: Picture, shown: Collection[int] | None = None) -> Seen:
    """Return what is seen if the groups `shown` are open; by default those that are at first."""
    wanted = {group.id for group in picture.groups if group.shown} if shown is None else set(shown)
    opened, stands_for = {0}, {}
    for group in picture.groups[1:]:
        if group.parent in opened and group.id in wanted:
            opened.add(group.id)
        elif group.parent in opened:
            stands_for[group.id] = f"g{group.id}"
        else:
            stands_for[group.id] = stands_for[group.parent]
    item_of = [stands_for.get(box.group, f"n{box.id}") for box in picture.boxes]
    items = [item for item in _in_order(picture, opened) if item[0] == "n" or int(item[1:]) not in opened]
    into: dict[str, list[Arrow]] = {item: [] for item in items}
    known: dict[tuple[str, str], Arrow] = {}
    for number, wire in enumerate(picture.wires):
        ends = item_of[wire.start], item_of[wire.end]
        if ends[0] == ends[1]:
            continue
        if ends not in known:
            known[ends] = Arrow(*ends)
            into[ends[1]].append(known[ends])
        known[ends].wires.append(number)
        if ends[1] == f"n{wire.end}":
            known[ends].beads += [picture.boxes[bead].label for bead in wire.beads]
    return Seen(items, sorted(opened), into)


def _in_order(picture: Picture, opened: set[int]) -> list[str]:
    """Return all items of the groups that are open, each open group before what stands in it."""
    found, waiting = [], list(reversed(picture.groups[0].children))
    while waiting:
        item = waiting.pop()
        found.append(item)
        if item[0] == "g" and int(item[1:]) in opened:
            waiting += reversed(picture.groups[int(item[1:])].children)
    return found
