"""What a record consists of: nodes, edges, values in short, lines of source, what ran backward (NOTE [A record])."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, Protocol

from backlight.formats.strict_json import AtLeast0, Count, Positive, Whole
from backlight.training.engine_types import AnyNode

LEAF, OP, GIVEN = "leaf", "op", "given"
NotFinite = Literal["nan", "inf", "-inf"]


@dataclass(slots=True)
class Fingerprint:
    """Identifies a tensor's values without storing them (NOTE [A fingerprint] in lens/records/fingerprints.py).

    Args:
        hash: hash of its bytes in logical order; float16 and bfloat16 are hashed as float32.
        sketch: a count sketch: sums of its elements with fixed random signs, from which differences can be estimated.
    """

    hash: str
    sketch: list[float]


@dataclass(slots=True)
class Summary:
    """A summary of a tensor's values.

    Args:
        shape, dtype: the tensor's.
        least, mean, most, norm: over the finite values; None if there are none, or no summary was requested.
        nans, infs, zeros: counts; None if no summary was requested.
        values: all values as nested lists, if they are few; NaN and inf as the strings "nan", "inf", "-inf".
        fingerprint: with `values="hash"`.
    """

    shape: tuple[Count, ...]
    dtype: str
    least: float | None = None
    mean: float | None = None
    most: float | None = None
    norm: AtLeast0 | None = None
    nans: Count | None = None
    infs: Count | None = None
    zeros: Count | None = None
    values: list | float | int | bool | str | None = None
    fingerprint: Fingerprint | None = None

    @property
    def size(self) -> int:
        """How many elements the tensor has."""
        return math.prod(self.shape)

    def nonfinite(self) -> list[str]:
        """Return how many elements are NaN, and how many infinite, in words: `3 NaN`; nothing where none is."""
        return [f"{count} {name}" for count, name in ((self.nans, "NaN"), (self.infs, "inf")) if count]


@dataclass(slots=True)
class Place:
    """A line of the user's source."""

    file: str
    line: Count
    function: str
    text: str

    @property
    def where(self) -> str:
        """The file's name and the line's number: `train.py:12`."""
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return f"{name}:{self.line}"


@dataclass(slots=True)
class Edge:
    """An edge to an input: node `to`, output number `output`.

    Args:
        name: the input's name in the formula, `input`, `other`; "" if unknown.
        formula: the derivative for this input: "grad · other".
    """

    to: Count
    output: Count = 0
    name: str = ""
    formula: str = ""


@dataclass(slots=True)
class SavedTensor:
    """A tensor that a node saves for its derivative.

    Args:
        name: PyTorch's name, without `_saved_`.
        bytes: its size in bytes.
        memory: a number for its memory: saved tensors with the same number share it, so that it counts once.
        of: the node that made it (also a leaf), if that is in the record.
        version: the version counter when it was saved; `written`: when the record was closed.
    """

    name: str
    summary: Summary
    bytes: Count
    memory: Whole
    of: Count | None = None
    version: Count = 0
    written: Count = 0


@dataclass(slots=True)
class Node:
    """An op or a leaf.

    Args:
        id: its index in `Record.nodes`.
        kind: LEAF (it gets a `.grad`), OP, or GIVEN: a node of the engine that is not an op (a cut end, a hook's).
        type: the engine's name, `MulBackward0`, `AccumulateGrad`.
        label: the text to show: `mul`, `×`, a leaf's `w`.
        name: the user's variable (`loss`) or the parameter's dotted name (`layers.0.weight`); None if unknown.
        parameter: whether a leaf is a module's parameter.
        edges: to its inputs, in the engine's order; None for an input that needs no gradient.
        outputs: a summary of each of its outputs; a leaf has one.
        module, module_type: the dotted path of the module that ran it, and that module's class; "", "" outside modules.
        place: the user's source line. `stack`: the user's outer lines, nearest first.
        saved: its saved tensors.
        hooks: names of the user's hooks.
        version: the version counter of its output's memory when it was made.
        root: whether a backward started here, or the capture included it.
        order: 1 for a node of the forward, 2 … for a node of a backward that was itself recorded (create_graph).
        seconds: the time of its op in the forward, if measured.
        grad: a leaf's `.grad` when the record is closed; None without one.
        updated: a leaf's values when the record is closed, if written to since (with `values="hash"`, "full").
        options: the numbers that it keeps, by the same names: `exponent`, `alpha`, `dim` (see `options_of`). In
            JSON those that are not finite are strings.
    """

    id: Count
    kind: Literal["leaf", "op", "given"]
    type: str
    label: str
    name: str | None = None
    parameter: bool = False
    edges: list[Edge | None] = field(default_factory=list)
    outputs: list[Summary] = field(default_factory=list)
    module: str = ""
    module_type: str = ""
    place: Place | None = None
    stack: list[Place] = field(default_factory=list)
    saved: list[SavedTensor] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)
    version: Count = 0
    root: bool = False
    order: Positive = 1
    seconds: AtLeast0 | None = None
    grad: Summary | None = None
    updated: Summary | None = None
    options: dict[str, bool | Whole | float | NotFinite] = field(default_factory=dict)

    @property
    def inputs(self) -> list[int]:
        """The ids of the nodes that it gets its inputs from, one for each of its edges."""
        return [edge.to for edge in self.edges if edge is not None]


@dataclass(slots=True)
class HookChange:
    """A user's hook that replaced a gradient."""

    hook: str
    output: Count
    before: Summary | None
    after: Summary | None


@dataclass(slots=True)
class Step:
    """One node that ran in a backward.

    Args:
        node: its id.
        incoming: the incoming gradient of each of its outputs, after hooks; None without one.
        outgoing: the gradient for each of its edges; empty for a leaf.
        grad_before, grad_after: a leaf's `.grad` (or that of an op whose gradient is retained) before and after; both
            None if nothing was accumulated.
        changes: gradients that hooks changed before it ran.
        freed: bytes of saved tensors that it freed.
        seconds: the time it took, if measured.
    """

    node: Count
    incoming: list[Summary | None]
    outgoing: list[Summary | None] = field(default_factory=list)
    grad_before: Summary | None = None
    grad_after: Summary | None = None
    changes: list[HookChange] = field(default_factory=list)
    freed: Count = 0
    seconds: AtLeast0 | None = None

    @property
    def arrived(self) -> Summary | None:
        """The gradient that arrived, of several outputs the first that one arrived at."""
        return next((one for one in self.incoming if one is not None), None)


@dataclass(slots=True)
class Backward:
    """One backward: its nodes in the order in which they ran."""

    roots: list[Count]
    steps: list[Step] = field(default_factory=list)
    into_grad: bool = True
    keep_graph: bool = False
    create_graph: bool = False
    place: Place | None = None
    problem: str | None = None


@dataclass(slots=True)
class Write:
    """An in-place write: the line, and the node whose output was written to (None: a tensor without a node)."""

    node: Count | None
    op: str
    version: Count
    place: Place | None = None


# Why what an op gave has no graph: `Cut.reason`.
DETACHES, NUMBER, NO_DERIVATIVE, UNRECORDED = "detached", "a number", "not differentiable", "not recorded"


@dataclass(slots=True)
class Cut:
    """A call that returned a value without a graph for an input that has one.

    Args:
        node: the node whose output it read.
        op: `detach`, `item`, `argmax`.
        reason: "detached", "a number" (or an array), "not differentiable", "not recorded" (under no_grad()).
        into: the first node that used its result, or a value computed from it; None if none was recorded.
    """

    node: Count
    op: str
    reason: str
    into: Count | None = None
    place: Place | None = None


SIGN = 2**63


@cache
def _option_names(node_class: type) -> tuple[str, ...]:
    """Return the names of what nodes of a class keep that is no tensor: tensors can also be had unpacked."""
    kept = (name for name in dir(node_class) if name.startswith("_saved_") and "_sym_" not in name)
    freed = getattr(node_class, "freed_slots", ())  # our engine's tensors, which may be gone
    slots = {"_saved_self": "input", "_saved_result": "out"}
    return tuple(
        name
        for name in kept
        if not hasattr(node_class, f"_raw{name}") and slots.get(name, name.removeprefix("_saved_")) not in freed
    )


@cache
def named_options(node_class: type) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a class of nodes that may hold numbers, with what to call them."""
    return tuple((name, name.removeprefix("_saved_")) for name in _option_names(node_class))


def options_of(node: AnyNode) -> dict[str, float]:
    """Return the numbers that a node of an engine keeps, by their names in its formulas."""
    found = {}
    for name in _option_names(node.__class__):
        value = getattr(node, name)
        if isinstance(value, (int, float)):
            # PyTorch shows its numbers, all int64, as unsigned: -100 as 18446744073709551516
            wrapped = value >= SIGN and isinstance(value, int) and not hasattr(node, "freed_slots")
            found[name.removeprefix("_saved_")] = value - 2 * SIGN if wrapped else value
    return {name: value if -SIGN <= value < SIGN else float(value) for name, value in found.items()}


class Recorded(Protocol):
    """What a picture reads of a `Record`, which itself knows how to show itself as a picture."""

    engine: str
    title: str
    nodes: list[Node]
    backwards: list[Backward]
    modules: dict[str, str]
    cuts: list[Cut]
    left_out: int

    def replay(self):
        """Return what happened, step by step."""


def users_of(nodes: Sequence[Node]) -> list[list[int]]:
    """Return for each node the ids of those that have an edge to it."""
    users: list[list[int]] = [[] for _ in nodes]
    for node in nodes:
        for number in node.inputs:
            users[number].append(node.id)
    return users
