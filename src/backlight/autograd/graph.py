"""The graph seen from outside: nodes, edges, what is saved, and versions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.autograd.multi_grad_hooks import register_multi_grad_hook
from backlight.autograd.mutation import allow_mutation_on_saved_tensors
from backlight.autograd.saved_hooks import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from backlight.errors import GraphError
from backlight.graph.node import GradientEdge, Node, node_and_number, public_edge
from backlight.graph.provenance import user_place
from backlight.graph.state import TensorState, edge_of
from backlight.graph.watching import count_write
from backlight.tensor.tensor import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "Saved",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "nodes",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved",
    "saved_tensors_hooks",
]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the edge that receives the gradient of `tensor`, to be used in place of the tensor in `grad`.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    if tensor._edge is None:
        raise GraphError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients; call "
            "requires_grad_() on it first"
        )
    return GradientEdge(*public_edge(edge_of(tensor)), tensor)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Count a write to a tensor's memory that backlight could not see, so that backward notices it."""
    for one in (tensor,) if isinstance(tensor, TensorState) else tensor:
        count_write(one, "increment_version", user_place())


def nodes(tensor: Tensor | Node) -> Iterator[Node]:
    """Go through all nodes that a tensor's gradient would pass, last made first; leaves' accumulators come at the end.

    Example:
        >>> import backlight
        >>> x = backlight.tensor(2.0, requires_grad=True)
        >>> [node.name() for node in nodes((x * 3).exp())]
        ['ExpBackward0', 'MulBackward0', 'torch::autograd::AccumulateGrad']
    """
    first = tensor if isinstance(tensor, Node) else node_and_number(public_edge(edge_of(tensor))[0])[0]
    found, stack = {}, [first]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found[node] = None
            stack += [target for target, _ in node.next_functions]
    ends = [node for node in found if not node.edges]
    yield from sorted((node for node in found if node.edges), key=lambda node: node.sequence, reverse=True)
    yield from ends


@dataclass(frozen=True)
class Saved:
    """One thing that a node keeps for backward.

    Args:
        node: who keeps it.
        name: what PyTorch calls it: `_saved_self`, `_saved_result`, …
        value: the tensor.
        bytes: the size of its memory.
    """

    node: Node
    name: str
    value: Tensor
    bytes: int


def saved(tensor: Tensor | Node) -> list[Saved]:
    """Return the tensors that the nodes behind `tensor` keep for backward, with their sizes; each tensor's memory once.

    Example:
        >>> import backlight
        >>> x = backlight.ones(1000, requires_grad=True)
        >>> [(one.name, one.bytes) for one in saved((x * 3).exp())]
        [('_saved_result', 4000), ('_saved_other', 4)]
    """
    found, seen = [], set()
    for node in nodes(tensor):
        for name in (name for name in dir(type(node)) if name.startswith("_saved_")):
            value = getattr(node, name)
            if isinstance(value, TensorState) and id(value._data) not in seen:
                seen.add(id(value._data))
                found.append(Saved(node, name, value, np.asarray(value._data).nbytes))
    return found
