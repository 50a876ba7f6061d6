"""Tensors and nodes of a graph, of either engine."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from backlight.dispatch.observers import Run

Tensor = Node = Module = Optimizer = Any  # the engines' own classes, which have none in common


def is_computed(tensor: Tensor) -> bool:
    """Return whether a tensor has a graph; not of a view made under no_grad() and written to since: PyTorch refuses."""
    try:
        return tensor.requires_grad and not tensor.is_leaf
    except RuntimeError:
        return False


def is_parameter(tensor: Tensor) -> bool:
    """Return whether a tensor is a leaf that requires grad."""
    try:
        return tensor.requires_grad and tensor.is_leaf
    except RuntimeError:
        return False


def root_nodes(run: Run) -> list:
    """Return the nodes that a backward starts from."""
    return [root[0] for root in run.roots if root is not None]


def nodes_behind(roots: Iterable, until: Callable[[Any], bool] | None = None) -> Iterator:
    """Give each node of a graph once, from its roots backwards, and nothing behind those at which `until` holds."""
    seen, stack = set(), list(roots)
    while stack:
        node = stack.pop()
        if node is None or node in seen or (until is not None and until(node)):
            continue
        seen.add(node)
        yield node
        stack += [inner for inner, _ in node.next_functions]


def sequence_of(node: Node) -> int:
    """Return a node's sequence number: a later node has a greater one."""
    return node._sequence_nr() if hasattr(node, "_sequence_nr") else node.sequence
