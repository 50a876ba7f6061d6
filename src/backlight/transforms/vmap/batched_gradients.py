"""Reverse mode for transforms: recorded inputs of a function, and gradients that may be batched.

NOTE [Differentiating inside vmap]
The graph is recorded on the physical tensors below all batches: a function's input is lowered (every open batch becomes
a leading dim) and gets its own node, so that its gradient is kept apart from others for the same tensor; the outputs
are lowered, too, and are the roots of the backward. An element of the batch depends on its own input only, so one
backward pass gives the gradients of all of them. A cotangent may be batched by a vmap that was opened since (jacrev
does so): then backward runs on tensors, and that vmap's rules handle their batches.
"""

from collections.abc import Iterable, Sequence

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
from backlight.ops.type_promotion import has_gradient
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched
from backlight.transforms.vmap.interpreter import VmapLevel, levels_of, open_levels, to_batched, to_physical, unwrapped

Tensors = Sequence[Tensor]
Weights = Sequence[Tensor | None]

NO_GRADIENTS = "only Tensors of floating point dtype can require gradients"


class RecordedInputs:
    """Copies of a function's inputs that record what is computed from them.

    `given` are the tensors to call the function with; the original tensors are not changed.
    """

    def __init__(self, tensors: Tensors):
        self.outside = modes.grad_enabled
        self.levels = open_levels()
        for tensor in tensors:
            if not has_gradient(tensor._data.dtype):
                raise GraphError(f"{NO_GRADIENTS}; an argument is of {tensor.dtype}: convert it with .float() first")
        plain = [to_physical(tensor, self.levels) for tensor in tensors]
        self.linked = [one._edge is not None and self.outside for one in plain]
        self.open = _Scope()
        with enable_grad():
            self.inputs = [_with_own_node(one, linked, self.open) for one, linked in zip(plain, self.linked)]
        self.given = [to_batched(one, self.levels) for one in self.inputs]

    def gradients(
        self,
        outputs: Tensors,
        cotangents: Tensors | None = None,
        *,
        retain_graph: bool,
        create_graph: bool | None = None,
    ) -> list:
        """Return the gradients of outputs, weighted by cotangents, for the inputs: zeros where nothing depends.

        Args:
            outputs: what the function returned.
            cotangents: one for each output; ones by default.
            retain_graph: whether there may be another call.
            create_graph: record the gradients; by default if an outer transform or graph may differentiate them.
        """
        roots = [to_physical(out, self.levels) for out in outputs]
        weights = [None] * len(roots) if cotangents is None else [to_physical(v, self.levels) for v in cotangents]
        pairs = [(root, _ones_like(root) if v is None else v) for root, v in zip(roots, weights)]
        pairs = [(root, v) for root, v in pairs if root._edge is not None]
        if not pairs:
            return [to_batched(wrap(np.zeros_like(writable(one))), self.levels) for one in self.inputs]
        roots, weights = [list(part) for part in zip(*pairs)]
        if create_graph is None:
            create_graph = self.is_linked(roots) or any(v._edge is not None for v in weights)
        found = gradients_for_weights(roots, self.inputs, weights, retain_graph or create_graph, create_graph)
        return [
            to_batched(wrap(np.zeros_like(writable(one))) if grad is None else grad, self.levels)
            for one, grad in zip(self.inputs, found)
        ]

    def is_linked(self, roots: Tensors) -> bool:
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
            elif node.is_leaf_edge:
                scope = getattr(node, "_opened_by", None)
                if scope is None or scope.active:
                    return True
            else:
                stack.extend(node.edges)
        return False

    def close(self) -> None:
        """Note that the function has returned: these inputs are not differentiated for any more."""
        self.open.active = False

    def released(self, value: Tensor) -> Tensor:
        """Return an output for the caller: without history if only these inputs gave it one."""
        return value if self.is_linked([to_physical(value, self.levels)]) else without_history(value)


class _Scope:
    """Whether the function whose inputs were recorded is still running, or its gradients are still computed."""

    __slots__ = ("active",)

    def __init__(self):
        self.active = True


def _with_own_node(plain: Tensor, linked: bool, scope: _Scope) -> Tensor:
    """Return an alias of a tensor with its own node; connected to the tensor's graph only if linked."""
    older = plain
    if not linked:
        leaf = wrap(writable(plain), LEAF, storage_of(plain))
        leaf._opened_by = scope
        copy_tangents(plain, leaf, cloned=False)
        plain = leaf
    own = unsafe_view(plain, tuple(plain._data.shape))
    mark_as_alias(own, older)
    return own


def without_history(tensor: Tensor) -> Tensor:
    """Return a tensor over the same memory without history; its tangents stay."""
    if tensor.__class__ is BatchedTensor:
        return batched(without_history(tensor.physical), tensor.level)
    if tensor._edge is None:
        return tensor
    detached = wrap(writable(tensor), None, storage_of(tensor))
    copy_tangents(tensor, detached, cloned=False)
    return detached


def _ones_like(tensor: Tensor) -> Tensor:
    return wrap(np.ones_like(writable(tensor)))


class _BackwardOnTensors(Interpreter):
    """Makes backward run on tensors, for gradients that are batched."""

    __slots__ = ()

    sees_backward = True


@block
def backward_on_tensors(wanted: bool):
    """Run backward on tensors within the block, if wanted."""
    if not wanted:
        yield
        return
    with interpreting(_BackwardOnTensors()):
        yield


def gradients_for_weights(
    outputs: Tensors, inputs: Tensors, weights: Weights, retain_graph: bool, create_graph: bool
) -> tuple:
    """Return the gradients of outputs for inputs, None where there is none; weights may be batched."""
    with backward_on_tensors(any(weight.__class__ is BatchedTensor for weight in weights)):
        return gradients_of(outputs, inputs, weights, retain_graph, create_graph, True, False)


def gradients_of_batch(outputs: Tensors, inputs: Tensors, weights: Weights, *flags: bool) -> tuple:
    """Return the result of `gradients_of` for each of a batch of weights, in one backward pass.

    Args:
        weights: for each output a batch of weights, or None for ones.
        flags: as for `gradients_of`.
    """
    level = VmapLevel(next(weight._data.shape[0] for weight in weights if weight is not None), "error")
    given = [None if weight is None else batched(weight, level) for weight in weights]
    with interpreting(level), backward_on_tensors(True):
        found = gradients_of(outputs, inputs, given, *flags)
    return tuple([None if grad is None else _with_batch(grad, level) for grad in found])


def _with_batch(grad: Tensor, level: VmapLevel) -> Tensor:
    """Return a gradient with the batch as its first dim; one that is the same for all is repeated."""
    if grad.__class__ is BatchedTensor and grad.level is level:
        return grad.physical
    return TENSOR_OPS.clone(grad.unsqueeze(0).expand((level.size, *grad._data.shape)))


def is_batched(tensors: Iterable[Tensor]) -> bool:
    """Tell whether one of the tensors is batched: only then does a backward inside vmap need special handling."""
    return any(tensor.__class__ is BatchedTensor for tensor in tensors)


def gradients_inside_vmap(outputs: Tensors, inputs: Tensors, weights: Weights | None, *flags: bool) -> tuple:
    """Return the result of `gradients_of` for batched outputs, inputs or weights (`autograd.grad` inside vmap)."""
    levels = levels_of([*outputs, *inputs])
    roots = [to_physical(out, levels) for out in outputs]
    leaves = [unwrapped(one, levels) for one in inputs]
    given = [None] * len(roots) if weights is None else weights
    given = [
        (_ones_like(root) if out._data.size == 1 else None) if weight is None else to_physical(weight, levels)
        for out, root, weight in zip(outputs, roots, given)
    ]
    with backward_on_tensors(is_batched(one for one in given if one is not None)):
        found = gradients_of(roots, leaves, given, *flags)
    return tuple([None if grad is None else to_batched(grad, levels) for grad in found])
