"""A picture as text: a tree for the terminal, and Graphviz's language for further processing.

NOTE [The tree]
`↑` goes on with the one input that has inputs of its own, in the same column, so that a deep model stays narrow; other
inputs hang on branches. What several items read stands there once, with its node's number, `#3` (a group's: `#g3`), and
is only named again. Where a branch would leave less than half the width, it goes on further down, at the left. Lines
are cut only if a width is given: who reads a file or a pipe can scroll or wrap.
"""

import os
import sys
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from backlight.lens.pictures.boxes import MODULE, Box, Picture
from backlight.lens.pictures.labels import title_of
from backlight.lens.records.nodes import LEAF, OP
from backlight.lens.replays.replay import NOTHING
from backlight.report.text import printable


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
    wanted = picture.open_at_first() if shown is None else set(shown)
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


GREEN, YELLOW, BOLD, FAINT, PLAIN = "\033[32m", "\033[33m", "\033[1m", "\033[2m", "\033[0m"
NARROWEST, USUAL = 24, 160


def tree(picture: Picture, *, width: int | None = None, color: bool | None = None) -> str:
    """Return a picture as text.

    Args:
        width: the number of columns at which lines are truncated; by default they are not.
        color: whether to use colours; by default if the output is a terminal and NO_COLOR is not set.
    """
    if not picture.boxes:
        return NOTHING
    if color is None:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    writer = Writer(picture, None if width is None else max(NARROWEST, width), color)
    return "\n".join(writer.lines())


class Writer:
    """Writes the items of a picture, each once, with a stack of its own instead of recursion."""

    def __init__(self, picture: Picture, width: int | None, color: bool):
        self.picture, self.width, self.color = picture, width, color
        self.seen: Seen = seen(picture)
        uses: dict[str, int] = dict.fromkeys(self.seen.items, 0)
        for arrows in self.seen.into.values():
            for arrow in arrows:
                uses[arrow.start] += 1
        self.shared = {item for item in self.seen.items if uses[item] > 1}
        results = [item for item in self.seen.items if not uses[item]]
        self.results = sorted(results, key=lambda item: not (item[0] == "n" and picture.part(item).root))
        self.turn = {item: at for at, item in enumerate(self.seen.items)}
        self.written: set[str] = set()
        self.later: set[tuple[str, str]] = set()  # arrows from what the flow leads to anyway

    def lines(self) -> Iterator[str]:
        """Write from each result up."""
        sections = list(self.results)
        for result in sections:
            waiting: list[tuple[str, str, str, Arrow | None]] = [("", "", result, None)] * (result not in self.written)
            while waiting:
                first, rest, item, arrow = waiting.pop()
                known = item in self.written
                narrow = not known and len(rest) > (self.width or USUAL) // 2 and bool(self.seen.into[item])
                later = not known and arrow is not None and (arrow.start, arrow.end) in self.later
                yield self._line(first, item, arrow, " (above)" if known else " (below)" if narrow or later else "")
                if narrow:
                    sections.append(item)
                elif not known and not later:
                    self.written.add(item)
                    waiting += reversed(self._inputs(item, rest))

    def _inputs(self, item: str, rest: str) -> list[tuple[str, str, str, Arrow]]:
        """Return (what stands before its line, before the lines under it, item, arrow) for each input."""
        arrows = self.seen.into[item]
        on = self._flow([one for one in arrows if one.start not in self.written and self.seen.into[one.start]])
        side = [one for one in arrows if one is not on]
        found = []
        for place, one in enumerate(side):
            last = place == len(side) - 1 and on is None
            found.append((rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), one.start, one))
        return [*found, (f"{rest}↑ ", rest, on.start, on)] if on else found

    def _flow(self, arrows: list[Arrow]) -> Arrow | None:
        """Return the one arrow to go on with: if there is only one, or it leads to all the others too."""
        nearest = max(arrows, key=lambda one: self.turn[one.start], default=None)
        others = [one for one in arrows if one is not nearest]
        if any(not self._leads(nearest.start, one.start) for one in others):
            return None
        self.later.update((one.start, one.end) for one in others)
        return nearest

    def _leads(self, item: str, wanted: str) -> bool:
        waiting, seen_already = [item], {item}
        while waiting:
            for arrow in self.seen.into[waiting.pop()]:
                if arrow.start == wanted:
                    return True
                if arrow.start not in seen_already and self.turn[arrow.start] > self.turn[wanted]:
                    seen_already.add(arrow.start)
                    waiting.append(arrow.start)
        return False

    def _line(self, before: str, item: str, arrow: Arrow | None, after: str) -> str:
        name, facts, paint = self._words(item)
        name += f" {_number(item)}" if item in self.shared else ""
        through = f" through {', '.join(arrow.beads)}" if arrow and arrow.beads else ""
        facts = after if after == " (above)" else f"{through}{facts}{after}"
        room = None if self.width is None else self.width - _columns(before)
        name = _cut(name, room)
        facts = _cut(facts, None if room is None else room - _columns(name))
        if not self.color:
            return before + name + facts
        return f"{FAINT}{before}{PLAIN}{paint}{name}{PLAIN}{FAINT}{facts}{PLAIN}"

    def _words(self, item: str) -> tuple[str, str, str]:
        """Return an item's name, what is said of it, and its colour."""
        if item[0] == "g":
            group = self.picture.part(item)
            return f"▣ {group.title}", "".join(f"  {line}" for line in group.lines), BOLD
        box = self.picture.part(item)
        group = self.picture.groups[box.group]
        inside = f"  in {group.title}" if group.kind == MODULE and box.kind != LEAF and not box.module else ""
        facts = "".join(f"  {line}" for line in box.lines) + inside + ("  ◀ root" if box.root else "")
        if box.kind == LEAF:
            return f"● {box.name or box.label}", facts, GREEN
        return title_of(box), facts, (BOLD if box.root else "") + (YELLOW if box.kind == OP else "")


def _number(item: str) -> str:
    """Return an item's number: of a node the one that it has in the record, in the replay and on the page."""
    return f"#{item[1:]}" if item[0] == "n" else f"#{item}"


def _columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    shown = (character for character in text if not unicodedata.combining(character))
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in shown)


def _cut(text: str, room: int | None) -> str:
    """Return what of a text fits into so many columns; None: all of it."""
    text = printable(text)
    if room is None or _columns(text) <= room:
        return text
    while text and _columns(text) > room - 1:
        text = text[:-1]
    return f"{text}…" if room > 0 else ""


FILL = {"leaf": "#dcf2d6", "op": "#fdf0c2", "given": "#efeae0"}
STROKE = {"leaf": "#4f9a55", "op": "#c39a1c", "given": "#a49a88"}


def dot(picture: Picture, shown: Collection[int] | None = None) -> str:
    """Return a picture as a digraph: open groups are clusters, closed ones boxes.

    Args:
        shown: ids of the groups that are open; by default those that are at first.
    """
    found = seen(picture, shown)
    lines = [f"digraph {_quoted(picture.title or 'graph')} {{"]
    lines.append('  node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=11];')
    lines.append('  graph [fontname="Helvetica" fontsize=11 labeljust=l]; edge [color="#8a8172" arrowsize=0.6];')
    waiting: list[tuple[str, str]] = [("  ", item) for item in reversed(picture.groups[0].children)]
    while waiting:
        indent, item = waiting.pop()
        if item == "}":
            lines.append(f"{indent}}}")
        elif item[0] == "n":
            lines.append(f"{indent}{_box(picture.part(item))}")
        elif int(item[1:]) in found.opened:
            group = picture.part(item)
            lines.append(f'{indent}subgraph cluster_{group.id} {{ label={_quoted(group.title)}; color="#cfc4ac";')
            waiting.append((indent, "}"))
            waiting += [(f"{indent}  ", part) for part in reversed(group.children)]
        else:
            group = picture.part(item)
            label = _quoted("\n".join([group.title, *group.lines]))
            lines.append(f'{indent}{item} [label={label} peripheries=2 fillcolor="#f6efe0"];')
    for arrow in (arrow for arrows in found.into.values() for arrow in arrows):
        label = f" [label={_quoted(', '.join(arrow.beads))} fontsize=9]" if arrow.beads else ""
        lines.append(f"  {arrow.start} -> {arrow.end}{label};")
    return "\n".join([*lines, "}", ""])


def _box(box: Box) -> str:
    label = _quoted("\n".join([title_of(box), *box.lines]))
    root = ' penwidth=2.5 color="#b3541e"' if box.root else f' color="{STROKE[box.kind]}"'
    style = ' style="filled"' if box.kind != LEAF else ""
    return f'n{box.id} [label={label} fillcolor="{FILL[box.kind]}"{root}{style}];'


def _quoted(text: str) -> str:
    r"""Return a text in quotes as Graphviz reads it; a line break is \n.

    >>> print(_quoted('say "a\\b"'))
    "say \"a\\b\""
    """
    lines = [printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return '"' + "\\n".join(lines) + '"'
