"""A record of a graph: plain data, of either engine, that can be drawn, replayed, compared and kept as JSON.

NOTE [A record]
Nodes are numbered in the order in which the forward made them; an edge points from a node to one that it gets its
input from (and hands a gradient to). A leaf is one node, its AccumulateGrad included. Tensors that need no gradient are
no nodes: what an op read of them is in its `saved`. Nothing in a record refers to a live tensor. An absent value is
None and never 0: `gradient is None` says that none arrived.
"""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from backlight.formats.strict_json import Count
from backlight.lens.answers.answer import Answer
from backlight.lens.answers.answering import answer_to
from backlight.lens.answers.case import case_in
from backlight.lens.pictures.boxes import Picture
from backlight.lens.pictures.html import page_of
from backlight.lens.pictures.picture import picture_of, with_open
from backlight.lens.pictures.place import place
from backlight.lens.pictures.svg import svg
from backlight.lens.pictures.text import dot, tree
from backlight.lens.records.nodes import LEAF, Backward, Cut, Node, Place, Summary, Write
from backlight.lens.replays.replay import Replay
from backlight.lens.replays.replaying import replay_of

__all__ = ["FORMAT", "Place", "Record"]
FORMAT = 1


@dataclass(slots=True, repr=False)
class Record:
    """A recorded graph and its backward passes (see NOTE [A record]).

    Args:
        engine: "backlight" or "torch".
        versions: the engine's version: {"torch": "2.13.0"}.
        nodes: in the order in which they were made.
        backwards: in the order in which they began.
        writes: the recorded in-place writes.
        left_out: the number of nodes beyond the limit, which were not recorded.
        unread: the number of tensors whose values could not be read, by reason: {"batched by vmap": 3}. Their shapes
            are recorded.
        problem: an internal error of the lens that ended the recording; later nodes are missing.
        title: the script's name, or the user's title.
        cuts: calls whose results left the graph, each line once.
        modules: the class of each module that ran, by its dotted path, "" for the outermost: {"layer.0": "Linear"}.
    """

    engine: Literal["backlight", "torch"]
    nodes: list[Node] = field(default_factory=list)
    backwards: list[Backward] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    left_out: Count = 0
    unread: dict[str, Count] = field(default_factory=dict)
    problem: str | None = None
    title: str = ""
    modules: dict[str, str] = field(default_factory=dict)
    cuts: list[Cut] = field(default_factory=list)

    def __repr__(self) -> str:
        counts = f"{len(self.nodes):,} nodes, {len(self.leaves):,} leaves, {len(self.backwards):,} backwards"
        roots = ", ".join(node.name or node.label for node in self.roots) or "none"
        return f"<Record of {self.title or 'a graph'} on {self.engine}: {counts}; roots: {roots}{self._missing()}>"

    def _missing(self) -> str:
        said = [f"; {count:,} tensors unread, {why}" for why, count in self.unread.items()]
        return "".join([*said, f"; {self.problem}" if self.problem else ""])

    @property
    def roots(self) -> list[Node]:
        """The nodes that a backward started from, or that were captured."""
        return [node for node in self.nodes if node.root]

    @property
    def leaves(self) -> list[Node]:
        """The nodes that get a `.grad`."""
        return [node for node in self.nodes if node.kind == LEAF]

    def gradient(self, node: int, backward: int = -1) -> Summary | None:
        """Return the gradient that arrived at a node's first output in one backward: None if none did."""
        if not self.backwards:
            return None
        steps = (step for step in self.backwards[backward].steps if step.node == node)
        return next((step.incoming[0] for step in steps if step.incoming), None)

    def replay(self) -> Replay:
        """Return what happened, step by step, forward and backward (NOTE [A replay] in lens/replays/replay.py)."""
        return replay_of(self.nodes, self.backwards, self.cuts, title=self.title, engine=self.engine)

    def to_json(self, **options) -> str:
        """Return the record as JSON; NaN and infinities in it are strings."""
        plain = {"format": FORMAT, **dataclasses.asdict(self)}
        for node in plain["nodes"]:
            node["options"] = {
                name: value if math.isfinite(value) else str(value) for name, value in node["options"].items()
            }
        return json.dumps(plain, allow_nan=False, **options)

    def save(self, path: Path | str) -> None:
        """Write the record to a file."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    # --- shown as pictures, with `by`, `most` and `backward` as `picture_of` has them --------------------------------

    def picture(self, *, by: str = "module", most: int = 60, backward: int = -1) -> Picture:
        """Return the picture that all renderers draw: groups, boxes, links, rows; `to_json()` gives it as JSON."""
        return picture_of(self, by=by, most=most, backward=backward)

    def tree(
        self,
        *,
        by: str = "module",
        most: int = 60,
        backward: int = -1,
        width: int | None = None,
        color: bool | None = None,
    ) -> str:
        """Return the graph as text, from the root up.

        Args:
            width: columns, at which lines are cut; by default they are not.
            color: by default if the output is a terminal and NO_COLOR is not set.
        """
        return tree(self.picture(by=by, most=most, backward=backward), width=width, color=color)

    def svg(
        self,
        path: Path | str | None = None,
        *,
        by: str = "module",
        most: int = 60,
        backward: int = -1,
        open: Sequence[str] = (),
        sideways: bool = False,
    ) -> str:
        """Return the graph as SVG, and write it to a file if a path is given.

        Args:
            open: dotted paths of modules to show with all that they hold; the others as at first.
            sideways: whether the graph runs from left to right instead of downwards.
        """
        picture = self.picture(by=by, most=most, backward=backward)
        return written(svg(picture, place(picture, with_open(picture, open), sideways=sideways)), path)

    def dot(
        self,
        path: Path | str | None = None,
        *,
        by: str = "module",
        most: int = 60,
        backward: int = -1,
        open: Sequence[str] = (),
    ) -> str:
        """Return the graph for Graphviz, and write it to a file if a path is given; `open` as in `svg`."""
        picture = self.picture(by=by, most=most, backward=backward)
        return written(dot(picture, with_open(picture, open)), path)

    def html(
        self,
        path: Path | str | None = None,
        *,
        by: str = "module",
        backward: int = -1,
        replay: bool = False,
    ) -> str:
        """Return the graph as a self-contained HTML page, and write it to a file if a path is given.

        Args:
            replay: whether the page opens on the replay.
        """
        return written(page_of(self, by=by, backward=backward, replay=replay), path)

    def why(self, name_or_id: str | int) -> Answer:
        """Explain why the gradient of a tensor is None, 0, NaN or huge, or what it is made of (see `lens.why`).

        Args:
            name_or_id: a variable's or parameter's name, or a node's number.
        """
        return answer_to(case_in(self, name_or_id))

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        """Show the graph in a notebook."""
        picture = self.picture()
        return {"image/svg+xml": svg(picture), "text/plain": tree(picture, width=100, color=False)}


def written(text: str, path: Path | str | None) -> str:
    """Return text, and also write it to a file if a path is given."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
