"""Plumbing: nodes that only change how a tensor is seen become beads on the wires between the others."""

import re
from collections.abc import Sequence

from backlight.lens.pictures.boxes import Wire
from backlight.lens.records.nodes import OP, Node, users_of

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
