"""A node at which gradients go wrong, and what is known of what it computed."""

from dataclasses import dataclass

from backlight.dispatch.numerical_hazards import op_name_of
from backlight.lens.answers.ways import GraphPaths
from backlight.lens.records.nodes import Node, Summary


@dataclass(frozen=True)
class Culprit:
    """A node at which gradients go wrong.

    Args:
        node: which one.
        what: what happens there, with its line.
        seen: the values that show it.
        cause: why.
        cure: what to try.
        forward: whether the values of the forward are wrong already.
    """

    node: Node
    what: str
    seen: tuple[str, ...]
    cause: str
    cure: str
    forward: bool = False


def kind_of(node: Node) -> str:
    """Return the op of a node in lower case: `max_pool2d_with_indices` for MaxPool2DWithIndicesBackward0."""
    return op_name_of(node.type)


def inputs_of(paths: GraphPaths, node: Node) -> list[Summary | None]:
    """Return what a node read, as far as it is known: its inputs' outputs."""
    nodes = paths.record.nodes
    return [
        None if edge is None or edge.output >= len(nodes[edge.to].outputs) else nodes[edge.to].outputs[edge.output]
        for edge in node.edges
    ]


def output_of(node: Node) -> Summary | None:
    """Return a node's first output, as far as it is known."""
    kept = next((saved.summary for saved in node.saved if saved.name == "result"), None)
    known = node.outputs[0] if node.outputs else None
    return kept if known is None or known.zeros is None else known


def growth(paths: GraphPaths) -> list[tuple[Node, float]]:
    """Return by how much each node on the way makes the gradient larger, the largest factor first."""
    path, found = paths.path(), []
    for node, following in zip(path, path[1:]):
        before = paths.incoming(node.id)
        after = [
            paths.outgoing(node, place) for place, edge in enumerate(node.edges) if edge and edge.to == following.id
        ]
        norms = [one.norm for one in after if one is not None and one.norm is not None]
        if before is not None and before.norm and norms:
            found.append((node, max(norms) / before.norm))
    return sorted(found, key=lambda pair: -pair[1])
