"""What is known about a tensor whose gradient is examined; here, what a record knows of one of its nodes."""

from dataclasses import dataclass, field

from backlight.errors import InputError
from backlight.lens.answers.ways import GraphPaths
from backlight.lens.records.nodes import (
    DETACHES,
    LEAF,
    NO_DERIVATIVE,
    NUMBER,
    OP,
    UNRECORDED,
    Cut,
    Node,
    Place,
    Recorded,
    Summary,
)

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
