"""create_graph through ops whose backward runs on arrays only: differentiate their decomposition into other ops."""

from collections.abc import Callable

from backlight.codegen import runtime_support
from backlight.codegen.declaration import ARRAYS, OPTION, Op
from backlight.codegen.op_table import TENSOR_OPS
from backlight.engine import run_backward
from backlight.engine.grad_mode import enable_grad, modes
from backlight.engine.node import Edges, Gradients, Node
from backlight.engine.tensor_state import TensorState, edge_of


def gradients_of_decomposition(op: Op, node: Node, grad: Gradients, edges: Edges):
    """Return the gradients of `op` for the edges wanted, as tensors that are part of the graph.

    Each input goes through `alias` first, so that a tensor given twice has two gradients.
    """
    recorded = modes.grad_enabled  # else the pass runs on tensors for an interpreter only
    with enable_grad():
        arguments, aliases = {}, []
        for param in op.params:
            value = getattr(node, param.name)
            if param.kind == OPTION:
                arguments[param.name] = value
            elif param.kind == ARRAYS:
                value = runtime_support.check_saved_list(node, param.name)
                arguments[param.name] = [_aliased(tensor, aliases) for tensor in value]
            else:
                if value is not None:
                    runtime_support.check_saved(node, param.name)
                arguments[param.name] = _aliased(value, aliases)
        kept = {
            name: runtime_support.constant(getattr(node, name))
            for name in op.residuals
            if name in parameter_names(op.decomposed)
        }
        out = op.decomposed(**arguments, **kept)
    outs = [out] if isinstance(out, TensorState) else list(out)
    roots = [(edge_of(one), g) for one, g in zip(outs, grad if node.outputs > 1 else [grad]) if g is not None]
    wanted = [alias for alias, edge in zip(_differentiable(op, arguments), edges) if edge is not None]
    found = iter(
        run_backward.run(
            [edge for edge, _ in roots],
            [g for _, g in roots],
            retain_graph=True,
            create_graph=recorded,
            inputs=[edge_of(alias) for alias in wanted],
        )
    )
    return tuple(next(found) if edge is not None else None for edge in edges)


def _aliased(tensor: TensorState | None, aliases: list):
    if tensor is None or tensor._edge is None:
        return tensor
    alias = TENSOR_OPS.alias(tensor)
    aliases.append(alias)
    return alias


def _differentiable(op: Op, arguments: dict) -> list:
    """Return the arguments in the order of the node's edges."""
    ruled = {name for rule in op.rules for name in rule.inputs}
    found = []
    for param in op.arrays:
        if param.name in ruled:
            value = arguments[param.name]
            found += list(value) if param.kind == ARRAYS else [value]
    return found


def parameter_names(function: Callable) -> tuple:
    """Return the names of a function's parameters."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
