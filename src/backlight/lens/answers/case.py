"""What is known about a tensor whose gradient is examined: here, what a record knows of one of its nodes."""

from dataclasses import dataclass, field

from backlight.errors import InputError
from backlight.lens.records.nodes import (
    DETACHES,
    LEAF,
    NO_DERIVATIVE,
    NUMBER,
    OP,
    UNRECORDED,
    Backward,
    Cut,
    Edge,
    Node,
    Place,
    Recorded,
    Step,
    Summary,
)


class GraphPaths:
    """A record, and one backward through it, if one ran that matters.

    Args:
        record: the graph.
        node: the id of the examined node.
        backward: the one whose gradients to read.
        roots: where gradients start.
    """

    def __init__(self, record: Recorded, node: int | None, backward: Backward | None, roots: list[int]):
        self.record = record
        self.node = node
        self.backward = backward
        self.roots = roots
        self.steps: dict[int, Step] = {} if backward is None else {step.node: step for step in backward.steps}
        self.reached = self._reached()
        found: dict[int, list[tuple[Node, int, Edge]]] = {}
        for user in (self.record.nodes[number] for number in sorted(self.reached)):
            for place, edge in enumerate(user.edges):
                if edge is not None:
                    found.setdefault(edge.to, []).append((user, place, edge))
        self._users = found

    def _reached(self) -> set[int]:
        found, stack = set(self.roots), list(self.roots)
        while stack:
            for number in self.record.nodes[stack.pop()].inputs:
                if number not in found:
                    found.add(number)
                    stack.append(number)
        return found

    def users(self, node: int) -> list[tuple[Node, int, Edge]]:
        """Return what sends gradients to a node: (user, place of the edge among its edges, edge), if it is reached."""
        return self._users.get(node, [])

    def outgoing(self, user: Node, place: int) -> Summary | None:
        """Return the gradient that a node sent along one edge; None if it sent none, or none was recorded."""
        step = self.steps.get(user.id)
        return None if step is None or place >= len(step.outgoing) else step.outgoing[place]

    def incoming(self, node: int) -> Summary | None:
        """Return the gradient that arrived at a node, the first of its outputs that one arrived at."""
        return self.steps[node].arrived if node in self.steps else None

    def path(self, to: int | None = None) -> list[Node]:
        """Return the nodes from a root to a node, along the largest gradients seen; [] if none leads there."""
        target = self.node if to is None else to
        if target is None or target not in self.reached:
            return []
        found = [target]
        while found[-1] not in self.roots:
            users = [(user, self.outgoing(user, place)) for user, place, _ in self.users(found[-1])]
            if not users:
                return []
            best = max(users, key=lambda pair: -1.0 if pair[1] is None or pair[1].norm is None else pair[1].norm)[0].id
            found.append(best)
        return [self.record.nodes[one] for one in reversed(found)]

    def below(self, node: int) -> set[int]:
        """Return all nodes computed from a node, itself too; a node's inputs have lower numbers than itself."""
        found = {node}
        for one in self.record.nodes:
            if not found.isdisjoint(one.inputs):
                found.add(one.id)
        return found


def described(node: Node, norm: Summary | None = None) -> str:
    """Return a node as one line: `MulBackward0 → h, train.py:12: h = x * w, gradient norm 0.5`."""
    name = f" → {node.name}" if node.name and node.edges else f" {node.name}" if node.name else ""
    kind = node.type if node.edges else "leaf"
    text = f"{kind}{name}"
    if node.place is not None:
        text += f", {at(node.place)}"
    if norm is not None and norm.norm is not None:
        text += f", gradient {magnitude(norm)}"
    return text


def at(place: Place | None) -> str:
    """Return a line as `train.py:12: h = x * w`."""
    if place is None:
        return "a line that was not recorded"
    return f"{place.where}: {place.text}" if place.text else place.where


def all_zero(summary: Summary | None) -> bool:
    """Return whether a tensor is known to be 0 everywhere."""
    return summary is not None and summary.zeros is not None and 0 < summary.size == summary.zeros


def has_non_finite(summary: Summary | None) -> bool:
    """Return whether a tensor is known to have a NaN or an infinity."""
    return summary is not None and bool(summary.nans or summary.infs)


def magnitude(summary: Summary) -> str:
    """Return how large a gradient is: `0`, `norm 0.5`, `NaN`."""
    if summary.nans or summary.infs:
        return f"{' and '.join(summary.nonfinite())} of {summary.size}"
    if all_zero(summary):
        return "0 everywhere"
    return "not read" if summary.norm is None else f"norm {summary.norm:.4g}"


UNNAMED = "this tensor"
RANK = (UNRECORDED, DETACHES, NO_DERIVATIVE, NUMBER)  # numbers and indices are often only printed


@dataclass
class Loss:
    """What is known of the loss: whether it has a graph, and what cut it off if it was watched."""

    name: str
    requires_grad: bool
    is_leaf: bool
    freed: bool
    cut: Cut | None = None


@dataclass
class Case:
    """The facts.

    Args:
        name: what to call the tensor.
        grad: its `.grad`; None without one.
        made: which op made it, if one did, and on which line.
        paths: the graph around it, as far as it is known.
        node: its node in that graph.
        cut: the call that made it without a graph, if that was watched.
        cuts: calls that read it, or what was computed from it, and left the graph.
        again: the way from the loss, where it leads through a function that backward runs again (a checkpoint).
        cut_text: where the path from the loss was cut, as our engine's tensors show it; "" if unknown.
    """

    name: str
    requires_grad: bool
    is_leaf: bool
    retains_grad: bool
    parameter: bool
    floats: bool
    dtype: str
    grad: Summary | None
    made: str = ""
    place: Place | None = None
    paths: GraphPaths | None = None
    node: Node | None = None
    loss: Loss | None = None
    cut: Cut | None = None
    cuts: list[Cut] = field(default_factory=list)
    cut_text: str = ""
    again: tuple[str, ...] = ()

    @property
    def grads(self) -> str:
        """What to call its gradient."""
        return "this tensor's .grad" if self.name == UNNAMED else f"{self.name}.grad"


def locate(case: Case, record: Recorded, node: int | None, roots: list[int] | None) -> None:
    """Find the tensor in a record: which backward concerns it, how it is reached, where it is cut off."""
    fits = [one for one in record.backwards if roots is None or set(roots) & set(one.roots)]
    matching = [one for one in fits if any(step.node == node for step in one.steps)]
    backward = (matching or fits or [None])[-1]
    if roots is None:
        roots = [one.id for one in record.nodes if one.root] if backward is None else backward.roots
    case.paths = GraphPaths(record, node, backward, roots)
    if node is not None:
        case.node = record.nodes[node]
        below = case.paths.below(node)
        cuts = [cut for cut in record.cuts if cut.node in below]
        case.cuts = sorted(cuts, key=lambda cut: (cut.into not in case.paths.reached, RANK.index(cut.reason)))
        if case.name == UNNAMED and case.node.name:
            case.name = case.node.name


def named_node(record: Recorded, name: str | int) -> Node:
    """Return the node of a record by its number, or by the name of a variable or parameter: the latest of that name.

    Raises:
        InputError: there is none.
    """
    if isinstance(name, int):
        if 0 <= name < len(record.nodes):
            return record.nodes[name]
        raise InputError(f"name_or_id must be a node's number below {len(record.nodes)}, got {name}")
    names = [node for node in record.nodes if node.name == name or (node.name and name.endswith(f".{node.name}"))]
    if not names:
        known = ", ".join(dict.fromkeys(node.name for node in record.nodes if node.name))
        raise InputError(f"name_or_id must be a name in the record, got {name!r}: it has {known or 'no names'}")
    return max(names, key=lambda node: (node.name == name, node.id))


def case_in(record: Recorded, name: str | int) -> Case:
    """Gather what a record knows of one of its nodes."""
    node = named_node(record, name)
    out = node.outputs[0] if node.outputs else None
    case = Case(
        name=node.name or f"{node.label} (node {node.id})",
        requires_grad=True,
        is_leaf=node.kind == LEAF,
        retains_grad=False,
        parameter=node.parameter,
        floats=True,
        dtype="" if out is None else out.dtype,
        grad=node.grad if node.kind == LEAF else None,
        made=node.type if node.kind == OP else "",
        place=node.place,
    )
    locate(case, record, node.id, None)
    if not case.is_leaf:
        step = case.paths.steps.get(node.id)
        case.retains_grad = step is not None and step.grad_after is not None
        case.grad = case.paths.incoming(node.id)
    return case
