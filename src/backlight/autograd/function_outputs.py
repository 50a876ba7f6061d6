"""Turn the results of a Function's forward into outputs of its node: fresh tensors, inputs, views, other values."""

from collections.abc import Sequence

from numpy import ndarray

from backlight.dispatch.observation import count_write
from backlight.engine.grad_mode import enable_grad, no_grad
from backlight.engine.node import Edge, Node, Output, node_and_number
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState, storage_of, wrap, writable
from backlight.engine.views import CUSTOM, MULTI, check_view, made_view, remember_view
from backlight.errors import GraphError
from backlight.kernels.memory_order import viewed
from backlight.ops.type_promotion import has_gradient
from backlight.ops.view_history import edge_of_values, rewrite_history


def record_outputs(ctx, node: Node | None, inputs: list, outputs: tuple) -> tuple:
    """Return the outputs of a Function for its caller.

    Args:
        ctx: has the tensors marked as dirty or not differentiable.
        node: the call's node, or None if nothing is recorded.
        inputs: the tensors given to forward.
        outputs: the results of forward.

    Raises:
        RuntimeError: a dirty tensor is a leaf that requires grad, a view of one, or was not returned.
    """
    dirty = _marked(ctx.dirty_tensors, "mark_dirty can only accept variables, but argument")
    constant = _marked(ctx.non_differentiable, "mark_non_differentiable only accepts variable arguments, but got")
    if not dirty <= {id(out) for out in outputs}:
        raise GraphError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    given = {id(tensor) for tensor in inputs}
    if node is not None:
        node.outputs = len(outputs)
        node.output_metas = [(o._data.shape, o._data.dtype) if isinstance(o, TensorState) else None for o in outputs]
    made, differentiable = [], []
    for number, out in enumerate(outputs):
        if isinstance(out, TensorState):
            differs = node is not None and id(out) not in constant and has_gradient(out._data.dtype)
            edge = None if not differs else node if len(outputs) == 1 else Output(node, number)
            out = _recorded(out, edge, id(out) in given, id(out) in dirty)
            differentiable += [out] if differs else []
        made.append(out)
    if len(differentiable) > 1:
        for out in differentiable:
            if out._view is not None:
                out._view = (out._view[0], MULTI)
    return tuple(made)


def _marked(tensors: Sequence, complaint: str) -> set:
    """Return the identities of marked tensors."""
    for place, tensor in enumerate(tensors or ()):
        if not isinstance(tensor, TensorState):
            raise GraphError(f"{complaint} {place}, which is of type {type(tensor).__name__}")
    return {id(tensor) for tensor in tensors or ()}


def _recorded(out: TensorState, edge: Edge | None, is_input: bool, is_dirty: bool):
    """Return one output with its history."""
    if is_dirty:
        count_write(out, "mark_dirty", user_place())
        if edge is not None:
            return _rewritten(out, edge)
    if is_dirty or is_input:
        if edge is None and out._edge is not None:
            return wrap(writable(out), None, storage_of(out))
    if is_dirty:
        return out
    if is_input:
        with no_grad():
            data = writable(out)
            out = made_view(out, viewed(data, data.shape) if data.__class__ is ndarray else data[...], CUSTOM)
    out._edge = edge
    if out._view is not None and edge is not None:
        base = out._view[0]
        out._view = (base, CUSTOM)
        remember_view(base, out)
    return out


def _rewritten(out: TensorState, edge: Edge | None):
    """Give an input that forward changed in place its new history; its gradient was that of the old value."""
    if out.requires_grad and out.is_leaf:
        raise GraphError(
            "a leaf Variable that requires grad has been used in an in-place operation.\n  Change a clone of it, or a "
            "tensor that does not require grad"
        )
    check_view(out)
    before = None
    if out._view is not None and out._edge is not None:
        node = node_and_number(edge)[0]
        before = edge_of_values(out)
        before.sequence, node.sequence = node.sequence, before.sequence  # backward order: the later one first
        node.edges = tuple(before if one is out._edge else one for one in node.edges)
    out._grad = None
    with enable_grad():
        rewrite_history(out, wrap(out._data, edge), before)
    return out
