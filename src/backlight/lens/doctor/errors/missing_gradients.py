"""A loop over parameters that takes each to have a gradient, and meets a None."""

import ast
from collections.abc import Iterator
from typing import Any

from backlight.lens.doctor.corrections.lines import alone, insert
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.flow import Flow
from backlight.lens.doctor.source import Spot
from backlight.lens.finding import Finding

OF_MODELS = ("parameters", "named_parameters", "param_groups", "params")


def in_loop(context: ErrorContext) -> Finding | None:
    """BL110: `for p in model.parameters(): p.grad.clamp_(...)`, where backward has not reached all of them.

    Only where other gradients are there, and nothing was seen that cuts this one off.
    """
    spot = context.spot
    if spot is None or spot.statement is None:
        return None
    for name, loop in _grads_in_loops(spot):
        value = spot.value(ast.Name(name, ast.Load()))
        for flow in context.session.each(Flow):
            if flow.engine.is_tensor(value) and value.is_leaf and value.grad is None and _others(flow):
                leaf = flow.leaf_of(value)
                if leaf is not None and flow.cuts_before(leaf, flow.root_cuts):
                    return None
                seen = f"{name} is {flow.name_of(value)} here: no backward() since its .grad was last None reached it."
                cure = f"Skip parameters whose .grad is None: if {name}.grad is not None."
                return context.found("BL110", seen, cure=cure, corrected=_skipping(spot, name, loop))
    return None


def _others(flow: Flow) -> bool:
    """Return whether some other leaf has a gradient."""
    return any(tensor is not None and tensor.grad is not None for tensor in (one.tensor() for one in flow.leaves))


def _grads_in_loops(spot: Spot) -> Iterator[tuple[str, ast.For | ast.comprehension]]:
    """Give the names of which a statement reads `.grad`, each with the loop over parameters that binds it."""
    for node in ast.walk(spot.statement):
        if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.value, ast.Name):
            for loop in _loops_around(node):
                bound = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
                if node.value.id in bound and any(map(_is_of_model, ast.walk(loop.iter))):
                    yield node.value.id, loop


def _loops_around(node: ast.AST) -> Iterator[Any]:
    while node is not None:
        if isinstance(node, ast.For):
            yield node
        yield from getattr(node, "generators", ())
        node = getattr(node, "parent", None)


def _is_of_model(node: ast.AST) -> bool:
    """Return whether syntax is `model.parameters()`, `optimizer.param_groups` or `group["params"]`."""
    named = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", getattr(node, "value", None))
    return isinstance(named, str) and named in OF_MODELS


def _skipping(spot: Spot, name: str, loop: ast.For | ast.comprehension) -> str | None:
    """Return the line with its condition: `if p.grad is not None: ...`, or at the end of a comprehension."""
    condition = f"if {name}.grad is not None"
    if isinstance(loop, ast.comprehension):
        return spot.edited(insert(loop.iter.end_lineno, loop.iter.end_col_offset, f" {condition}"))
    statement = spot.statement
    simple = isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign)) and statement.lineno == statement.end_lineno
    return f"{condition}: {spot.text(statement)}" if simple and alone(spot, statement) else None
