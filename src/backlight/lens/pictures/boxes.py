"""What a picture consists of: boxes, wires, groups and the links between them; plain data for every renderer.

NOTE [A picture]
A picture is a tree of groups over boxes. An *item* of a group is what stands in it, named by a letter and a number:
`n7` the box of the record's node 7, `g3` group 3, `i5` and `o6` ports on the group's upper and lower border, `b8` a
bend of a long link. Each group says in which rank (row, counted downwards) and in which order its items stand, so that
it can be drawn open or closed without another layout: `lens/pictures/place.py` turns ranks and orders into coordinates,
and the page does the same in its own language.

The forward flows downwards: a link goes from what made a tensor to what uses it. A wire is one edge of the record. What
it crosses on its way from box to box is a chain of links: one in the innermost group that holds both of its ends, and
one in each group within that which holds only one end, from or to a port. A port is where a link of the outer group
goes on inside: `Link.inside_start` and `Link.inside_end`.
"""

import dataclasses
import functools
import gc
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from backlight.lens.records.nodes import OP, Node, users_of


def gc_paused(function: Callable):
    """Let the collector rest while a function runs.

    A picture makes some hundred thousand small objects and leaves no circle of them behind. The collector would walk
    through all that the program holds again and again, which doubles the time if PyTorch is loaded.
    """

    @functools.wraps(function)
    def paused(*args, **kwargs):
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return paused


FORMAT = 1
MODULE, LINE, REPEAT, PART, WHOLE = "module", "line", "repeat", "part", "whole"


@dataclass(slots=True)
class Box:
    """A node as it is drawn.

    Args:
        id: of the node in the record; `item` is "n" and that number.
        kind: LEAF, OP or GIVEN, as in the record.
        label: what it is: "×", "matmul", a leaf's name.
        name: the user's name for its result, if it has one and that is not the label.
        lines: what stands beneath: shape or values, then the gradient; "no gradient yet" where none arrived.
        module: the module that ran it, if that made nothing else and so is no group: "ReLU 1".
        root: whether a backward started here.
        parameter: whether it is a module's.
        bead: whether it is plumbing (a view, a transpose), drawn small.
        wire: the wire on which a bead lies; it is then no item of a group. None: it is an item.
        group: the id of the group that it stands in.
        bytes: what it saved for backward (each memory counted once, where it was first saved).
        seconds: in the forward; None if that was not measured.
        gradient: the norm of its gradient; None if none arrived, or its values were not summarised.
        nonfinite: how many NaN and inf are in its gradient; the norm is over the others.
        mask: whether the infinite values of its output are a mask, which a softmax makes 0 of.
        arrived: whether a gradient did; None if no backward was recorded.
        width, height: of the box.
        look: in a comparison "added", "gone", "changed" or "same"; else "".
    """

    id: int
    kind: str
    label: str
    name: str | None = None
    lines: list[str] = field(default_factory=list)
    module: str = ""
    root: bool = False
    parameter: bool = False
    bead: bool = False
    wire: int | None = None
    group: int = 0
    bytes: int = 0
    seconds: float | None = None
    gradient: float | None = None
    nonfinite: int = 0
    mask: bool = False
    arrived: bool | None = None
    width: float = 0.0
    height: float = 0.0
    look: str = ""


@dataclass(slots=True)
class Wire:
    """One edge of the record, seen forwards: the tensor made by `start` is read by `end`.

    Args:
        start, end: ids of boxes; `beads` lie between them, in the forward's order.
        output: which of the outputs of `start`.
        name, formula: which input of `end`, and its derivative.
    """

    start: int
    end: int
    output: int = 0
    name: str = ""
    formula: str = ""
    beads: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Link:
    """What is drawn inside one group, from item to item, for one wire or several.

    Args:
        start, end: items; `start` stands in a rank above `end`.
        bends: items between them, one in each rank that is passed.
        wires: numbers of the wires that run through it.
        leaves_at, enters_at: where on the width of a closed item it begins and ends, from 0 to 1.
        inside_start, inside_end: if an end is a group: the port inside of it where the link goes on.
        beads: ids of plumbing that lies on it, in the forward's order; only on the last link of a chain.
    """

    start: str
    end: str
    bends: list[str] = field(default_factory=list)
    wires: list[int] = field(default_factory=list)
    leaves_at: float = 0.5
    enters_at: float = 0.5
    inside_start: str | None = None
    inside_end: str | None = None
    beads: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    """Boxes and groups that can be shown as one.

    Args:
        id: its place in `Picture.groups`; group 0 is the full graph and is always open.
        parent: the group that contains it; None for the full graph.
        kind: MODULE, LINE (a source line or a function), REPEAT (the same structure several times over), PART (a
            stretch of too long a row), WHOLE.
        title: "encoder.layer.0", "BertLayer × 12", "attend(), line 12".
        detail: the module's class, the line's place.
        path: a module's dotted path.
        times: how often a repeated block occurs; its children are its occurrences, in order.
        shown: whether it is open at first.
        children: items, in the forward's order.
        ranks: its items, row by row, each row in order from the left.
        links: between them.
        ops: how many nodes are in it, leaves apart.
        parameters: how many numbers its parameters hold, each counted where it stands.
        bytes: what its nodes saved for backward.
        seconds: the time of its nodes; None if that was not measured.
        gradient: the norm of the gradients of the leaves in it, taken as one vector; None if none arrived.
        largest: where it has no leaves, the largest norm of a gradient in it; None if none arrived.
        nonfinite: how many NaN and inf are in these.
        leaves, reached: how many leaves are in it, and how many have got a gradient; None if no backward was recorded.
        lines: what stands beneath the title while it is closed.
        width, height: of its box while it is closed.
        look: as a box's; "changed" if not all in it have the same.
    """

    id: int
    parent: int | None
    kind: str
    title: str
    detail: str = ""
    path: str = ""
    times: int = 1
    shown: bool = False
    children: list[str] = field(default_factory=list)
    ranks: list[list[str]] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    ops: int = 0
    parameters: int = 0
    bytes: int = 0
    seconds: float | None = None
    gradient: float | None = None
    largest: float | None = None
    nonfinite: int = 0
    leaves: int = 0
    reached: int | None = None
    lines: list[str] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    look: str = ""


@dataclass(slots=True)
class Picture:
    """A graph, ready to be drawn (see NOTE [A picture]).

    Args:
        boxes: one for each node of the record, in its order.
        groups: parents before their children.
        backward: the number of the backward whose gradients are shown; None if there was none.
    """

    engine: str
    title: str
    by: str
    boxes: list[Box]
    wires: list[Wire]
    groups: list[Group]
    backward: int | None = None
    left_out: int = 0

    def part(self, item: str) -> Box | Group:
        """Return the box or the group that an item is."""
        return (self.groups if item[0] == "g" else self.boxes)[int(item[1:])]

    def open_at_first(self) -> set[int]:
        """Return the ids of the groups that are shown open at first."""
        return {group.id for group in self.groups if group.shown}

    def as_dict(self) -> dict:
        """Return it as dicts and lists."""
        return {
            "format": FORMAT,
            **{name: getattr(self, name) for name in ("engine", "title", "by", "backward", "left_out")},
            "boxes": list(map(_plain, self.boxes)),
            "wires": list(map(_plain, self.wires)),
            "groups": [{**_plain(group), "links": list(map(_plain, group.links))} for group in self.groups],
        }

    def to_json(self, **options) -> str:
        """Return it as JSON; what has no value is null."""
        return json.dumps(self.as_dict(), allow_nan=False, **options)


def _plain(part: "Box | Wire | Link | Group") -> dict:
    """Return a part's fields as they are: `dataclasses.asdict` copies deeply, which takes seconds here."""
    return {name: getattr(part, name) for name in FIELDS[type(part)]}


FIELDS = {kind: [one.name for one in dataclasses.fields(kind)] for kind in (Box, Wire, Link, Group)}


VIEWS = (
    "Alias AsStrided BroadcastTo Clone Contiguous Expand Flatten MH MT Movedim Permute Reshape ReshapeAlias Squeeze "
    "SwapAxes SwapDims T Transpose Unflatten UnsafeView Unsqueeze View ViewAs"
)
PLUMBING = frozenset(VIEWS.split())
NUMBERED = re.compile(r"Backward\d*$")


def is_plumbing(node: Node) -> bool:
    """Return whether a node moves no number and computes none: a view, a transpose, a copy."""
    return node.kind == OP and NUMBERED.sub("", node.type) in PLUMBING


def folded(nodes: Sequence[Node]) -> set[int]:
    """Return the plumbing that lies on a wire: one input, one user, and nothing that a reader would look for."""
    users = users_of(nodes)
    plain = (node for node in nodes if is_plumbing(node) and not (node.root or node.hooks))
    return {node.id for node in plain if len(node.inputs) == len(users[node.id]) == 1}


def wires_of(nodes: Sequence[Node], beads: set[int]) -> list[Wire]:
    """Return the edges between nodes that are no beads, each with the beads on its way."""
    wires = []
    for node in nodes:
        if node.id in beads:
            continue
        for edge in node.edges:
            if edge is None:
                continue
            wire = Wire(edge.to, node.id, edge.output, edge.name, edge.formula)
            while wire.start in beads:
                wire.beads.insert(0, wire.start)
                above = next(one for one in nodes[wire.start].edges if one is not None)
                wire.start, wire.output = above.to, above.output
            wires.append(wire)
    return wires
