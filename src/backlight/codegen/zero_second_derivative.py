"""Gradients whose derivative with respect to the inputs is 0, but that are part of the graph all the same.

NOTE [Zero second derivatives]
relu's gradient depends on its input, with a derivative of 0 wherever it has one. Under create_graph such a gradient is
part of the graph, as in PyTorch, so that a second backward gives zeros instead of an error. Ops declare it
(`zero_derivative=("input",)`, or ("out",) if its node saves that and it is elementwise). It is used only under
create_graph, and only where a gradient would have no history.
"""

from collections.abc import Sequence

import numpy as np

from backlight.engine.grad_mode import modes
from backlight.engine.node import Edges, Gradients, Node, new_node
from backlight.engine.tensor_state import TensorState, storage_of, wrap, writable


class ZeroDerivativeBackward0(Node):
    """Gives zeros to the inputs that a gradient was computed from."""

    __slots__ = ("metas",)

    def backward(self, grad: Gradients, edges: Edges, keep: bool):
        """Return zeros for each edge that wants a gradient."""
        return tuple([None if edge is None else np.zeros(*meta) for edge, meta in zip(edges, self.metas)])

    def backward_graph(self, grad: Gradients, edges: Edges):
        """Return zeros as tensors."""
        return tuple([None if zeros is None else wrap(zeros) for zeros in self.backward(grad, edges, True)])


def with_zero_derivative(found: Sequence, edges: Edges, table: Sequence[Sequence[bool]]):
    """Return gradients that belong to the graph: those without history depend on some inputs, with a derivative of 0.

    Args:
        table: for each gradient and each input, whether the gradient depends on it.
    """
    if not modes.grad_enabled or not any(_has_none(one) for one in found):
        return found
    return tuple([_depending(one, found, edges, named) if _has_none(one) else one for one, named in zip(found, table)])


def _has_none(grad: TensorState | None) -> bool:
    """Tell whether a gradient has no history; one of a batch (vmap) is left as it is."""
    return isinstance(grad, TensorState) and grad._edge is None and not hasattr(grad._data, "of_a_batch")


def _depending(grad: TensorState, found: Sequence, edges: Edges, named: Sequence[bool]):
    inputs = [
        (edge, (one._data.shape, one._data.dtype))
        for one, edge, wanted in zip(found, edges, named)
        if wanted and one is not None and edge is not None
    ]
    if not inputs:
        return grad
    edges, metas = zip(*inputs)
    made = wrap(writable(grad), new_node(ZeroDerivativeBackward0, edges, metas=metas), storage_of(grad))
    made._tangents = grad._tangents
    return made
