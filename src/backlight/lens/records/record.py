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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from backlight.formats.strict_json import Count
from backlight.lens.records.faces import Faces
from backlight.lens.records.nodes import (
    GIVEN,
    LEAF,
    OP,
    Backward,
    Cut,
    Edge,
    HookChange,
    Node,
    Place,
    SavedTensor,
    Step,
    Summary,
    Write,
    users_of,
)
from backlight.lens.replays.replay import Replay
from backlight.lens.replays.replaying import replay_of

__all__ = [
    "FORMAT",
    "GIVEN",
    "LEAF",
    "OP",
    "Backward",
    "Cut",
    "Edge",
    "HookChange",
    "Node",
    "Place",
    "Record",
    "SavedTensor",
    "Step",
    "Summary",
    "Write",
    "users_of",
]

FORMAT = 1


@dataclass(slots=True, repr=False)
class Record(Faces):
    """A graph and what ran through it (see NOTE [A record]).

    Args:
        engine: "backlight" or "torch".
        versions: the engine's: {"torch": "2.13.0"}.
        nodes: in the order in which they were made.
        backwards: in the order in which they began.
        writes: in-place writes that were seen.
        left_out: nodes that were not recorded since the limit was reached.
        unread: of how many tensors the values could not be read, and why: {"batched by vmap": 3}. Shapes are there.
        problem: the mistake of the lens's own that ended the recording; what came after it is missing.
        title: a script's name, or what the user calls it.
        cuts: where what was computed left the graph, each line once.
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
        """Describe what is not there."""
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
