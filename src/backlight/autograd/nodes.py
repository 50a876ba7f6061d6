"""The nodes behind a tensor, and their lines."""

import os
from collections.abc import Iterator

from backlight.dispatch.observers import Line, line_at
from backlight.engine.node import Node, node_and_number, public_edge
from backlight.engine.tensor_state import TensorState, edge_of
from backlight.errors import ArgumentError
from backlight.tensor.tensor import Tensor


def nodes(tensor: Tensor | Node) -> Iterator[Node]:
    """Yield all nodes that a tensor's gradient passes through, newest first; the leaves' accumulators come last.

    Example:
        >>> import backlight
        >>> x = backlight.tensor(2.0, requires_grad=True)
        >>> [node.name() for node in nodes((x * 3).exp())]
        ['ExpBackward0', 'MulBackward0', 'torch::autograd::AccumulateGrad']

    Raises:
        TypeError: it is neither a tensor nor a node.
    """
    if not isinstance(tensor, (TensorState, Node)):
        raise ArgumentError(f"nodes() must be given a tensor or a node, got {type(tensor).__name__}")
    return _behind(tensor)


def _behind(tensor: Tensor | Node) -> Iterator[Node]:
    found, stack = {}, [first_node(tensor)]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found[node] = None
            stack += [target for target, _ in node.next_functions]
    ends = [node for node in found if not node.edges]
    yield from sorted((node for node in found if node.edges), key=lambda node: node.sequence, reverse=True)
    yield from ends


def first_node(tensor: Tensor | Node) -> Node | None:
    """Return the node that receives the gradient of a tensor, None if it has none."""
    return tensor if isinstance(tensor, Node) else node_and_number(public_edge(edge_of(tensor))[0])[0]


def place_of(node: Node) -> Line | None:
    """Return the user's line that made a node; None for a leaf's."""
    return line_at(node.code, node.lasti)


def short(place: Line | None) -> str:
    """Return a line as `train.py:12: h = x * w`; "" for none."""
    if place is None:
        return ""
    return f"{os.path.basename(place.file)}:{place.line}" + (f": {place.text}" if place.text else "")
