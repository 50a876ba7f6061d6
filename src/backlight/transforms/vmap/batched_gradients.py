"""Reverse mode for transforms: what a function is differentiated for, and gradients where there may be batches.

NOTE [Differentiating inside vmap]
The graph is recorded on what lies below all batches: a function's input is lowered, every open batch in front, and
given a node of its own, so that the gradient for it is not mixed up with another for the same tensor; what the function
returns is lowered, too, and walked from. An element of the batch depends on its own input only, so one walk gives the
gradients of all of them. A cotangent may be batched by a vmap that was opened since (jacrev does so): then the walk
runs on tensors, whose batches that vmap's rules know to handle.
"""

import numpy as np

from backlight.codegen.forward_mode import copy_tangents
from backlight.codegen.op_table import TENSOR_OPS
from backlight.dispatch.dispatcher import interpreting
from backlight.dispatch.interpreters import Interpreter
from backlight.engine.grad_mode import enable_grad, modes
from backlight.engine.mutation_checks import mark_as_alias
from backlight.engine.node import Output
from backlight.engine.run_backward import gradients_of
from backlight.engine.tensor_state import LEAF, edge_of, storage_of, wrap, writable
from backlight.errors import GraphError
from backlight.kernels.state_blocks import block
from backlight.ops.shape.reshaping import unsafe_view
from backlight.ops.type_promotion import is_float
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched
from backlight.transforms.vmap.interpreter import Batching, batchings_of, bottom_of, lowered, open_batchings, raised

NO_GRADIENTS = "only Tensors of floating point dtype can require gradients"


class Recorded:
    """A function's inputs, made so that what is computed from them can be differentiated for them.

    `given` are the tensors to call the function with; what they were made from is not touched.
    """

    def __init__(self, tensors):
        self.outside = modes.grad_enabled
        self.batchings = open_batchings()
        for tensor in tensors:
            if not is_float(tensor._data.dtype):
                raise GraphError(f"{NO_GRADIENTS}; an argument is of {tensor.dtype}: convert it with .float() first")
        plain = [lowered(tensor, self.batchings) for tensor in tensors]
        self.linked = [one._edge is not None and self.outside for one in plain]
        self.open = _Open()
        with enable_grad():
            self.inputs = [_with_own_node(one, linked, self.open) for one, linked in zip(plain, self.linked)]
        self.given = [raised(one, self.batchings) for one in self.inputs]

    def gradients(self, outputs, cotangents=None, *, keep_graph: bool, create_graph: bool | None = None) -> list:
        """Return the gradients of outputs, weighted by cotangents, for the inputs: zeros where nothing depends.

        Args:
            outputs: what the function returned.
            cotangents: one for each output; ones by default.
            keep_graph: whether there may be another call.
            create_graph: record the gradients; by default where somebody outside may want to differentiate them.
        """
        roots = [lowered(out, self.batchings) for out in outputs]
        weights = [None] * len(roots) if cotangents is None else [lowered(v, self.batchings) for v in cotangents]
        pairs = [(root, _ones_like(root) if v is None else v) for root, v in zip(roots, weights)]
        pairs = [(root, v) for root, v in pairs if root._edge is not None]
        if not pairs:
            return [raised(wrap(np.zeros_like(writable(one))), self.batchings) for one in self.inputs]
        roots, weights = [list(part) for part in zip(*pairs)]
        if create_graph is None:
            create_graph = self.is_linked(roots) or any(v._edge is not None for v in weights)
        found = walked(roots, self.inputs, weights, keep_graph or create_graph, create_graph)
        return [
            raised(wrap(np.zeros_like(writable(one))) if grad is None else grad, self.batchings)
            for one, grad in zip(self.inputs, found)
        ]

    def is_linked(self, roots) -> bool:
        """Tell whether what was computed depends on more that requires grad than on these inputs alone."""
        if not self.outside:
            return False
        own = dict(zip([edge_of(one) for one in self.inputs], self.linked))
        stack, seen = [edge_of(root) for root in roots if root._edge is not None], set()
        while stack:
            edge = stack.pop()
            node = edge.node if edge.__class__ is Output else edge
            if node is None or node in seen:
                continue
            seen.add(node)
            if node in own:
                if own[node]:
                    return True
            elif node.is_end:
                opened = getattr(node, "_opened_by", None)
                if opened is None or opened.yet:
                    return True
            else:
                stack.extend(node.edges)
        return False

    def close(self) -> None:
        """Note that the function has returned: nobody else differentiates for these inputs any more."""
        self.open.yet = False

    def released(self, value):
        """Return an output for the world outside: without the history that only these inputs have."""
        return value if self.is_linked([lowered(value, self.batchings)]) else without_history(value)


class _Open:
    """Whether the function whose inputs were recorded is still running, or its gradients are still computed."""

    __slots__ = ("yet",)

    def __init__(self):
        self.yet = True


def _with_own_node(plain, linked: bool, opened: _Open):
    """Return a tensor over the same memory that a node of its own made, part of the graph only where it is linked."""
    older = plain
    if not linked:
        leaf = wrap(writable(plain), LEAF, storage_of(plain))
        leaf._opened_by = opened
        copy_tangents(plain, leaf, cloned=False)
        plain = leaf
    own = unsafe_view(plain, tuple(plain._data.shape))
    mark_as_alias(own, older)
    return own


def without_history(tensor):
    """Return a tensor over the same memory without history; its tangents stay."""
    if tensor.__class__ is BatchedTensor:
        return batched(without_history(tensor.physical), tensor.batching)
    if tensor._edge is None:
        return tensor
    twin = wrap(writable(tensor), None, storage_of(tensor))
    copy_tangents(tensor, twin, cloned=False)
    return twin


def _ones_like(tensor):
    return wrap(np.ones_like(writable(tensor)))


class _SeesBackward(Interpreter):
    """Lets a backward run on tensors, for gradients that are batched."""

    __slots__ = ()

    sees_backward = True


@block
def on_tensors(wanted: bool):
    """Let backward run its rules on tensors within the block, if that is wanted."""
    if not wanted:
        yield
        return
    with interpreting(_SeesBackward()):
        yield


def walked(outputs, inputs, weights, keep_graph: bool, create_graph: bool) -> tuple:
    """Return the gradients of outputs for inputs, None where there is none; weights may be batched."""
    with on_tensors(any(weight.__class__ is BatchedTensor for weight in weights)):
        return gradients_of(outputs, inputs, weights, keep_graph, create_graph, True, False)


def gradients_of_batch(outputs, inputs, weights, retain_graph, create_graph, allow_unused, materialize_grads) -> tuple:
    """Return what `gradients_of` does for each of a batch of weights, in one walk.

    Args:
        weights: for each output a batch of weights, or None for ones.
    """
    batching = Batching(next(weight._data.shape[0] for weight in weights if weight is not None), "error")
    given = [None if weight is None else batched(weight, batching) for weight in weights]
    with interpreting(batching), on_tensors(True):
        found = gradients_of(outputs, inputs, given, retain_graph, create_graph, allow_unused, materialize_grads)
    return tuple([None if grad is None else _with_batch(grad, batching) for grad in found])


def _with_batch(grad, batching):
    """Return a gradient with the batch as its first dim; one that is the same for all is repeated."""
    if grad.__class__ is BatchedTensor and grad.batching is batching:
        return grad.physical
    return TENSOR_OPS.clone(grad.unsqueeze(0).expand((batching.size, *grad._data.shape)))


def is_batched(tensors) -> bool:
    """Tell whether one of the tensors is batched: only then does a backward inside vmap need more than usual."""
    return any(tensor.__class__ is BatchedTensor for tensor in tensors)


def gradients_inside(outputs, inputs, weights, retain_graph, create_graph, allow_unused, materialize_grads) -> tuple:
    """Return what `gradients_of` does where outputs, inputs or weights are batched (`autograd.grad` inside vmap)."""
    batchings = batchings_of([*outputs, *inputs])
    roots = [lowered(out, batchings) for out in outputs]
    leaves = [bottom_of(one, batchings) for one in inputs]
    given = [None] * len(roots) if weights is None else weights
    given = [
        (_ones_like(root) if out._data.size == 1 else None) if weight is None else lowered(weight, batchings)
        for out, root, weight in zip(outputs, roots, given)
    ]
    with on_tensors(is_batched(one for one in given if one is not None)):
        found = gradients_of(roots, leaves, given, retain_graph, create_graph, allow_unused, materialize_grads)
    return tuple([None if grad is None else raised(grad, batchings) for grad in found])
