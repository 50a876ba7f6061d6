"""Functions that nodes run again in backward, as re-entrant checkpoints do: what they read is in no graph before."""

import inspect
from collections.abc import Iterator

from backlight.engine.mutation_checks import Transform
from backlight.engine.node import Node
from backlight.engine.tensor_state import TensorState
from backlight.ops import mutation_checks  # noqa: F401 - it declares what writes do inside transforms


def function_run_again(node: Node):
    """Return the function that a node runs again in backward, as re-entrant checkpoints do; None for others."""
    return getattr(node.ctx, "run_function", None) if hasattr(node, "ctx") else None


def name_of_function(node: Node) -> str:
    """Return what the function that a node runs again is called."""
    function = function_run_again(node)
    return getattr(function, "__qualname__", type(function).__name__)


def outputs_run_again(node: Node) -> list | None:
    """Return the outputs, recorded, of the function that a node runs again; None if that cannot be told beforehand.

    It may write to nothing that it did not make: then the next run would find another world, and it is not run here.
    """
    run_again = getattr(node.ctx, "run_again", None)
    if run_again is None:
        return None
    try:
        outs, _ = run_again(node.ctx, Transform(()))
    except Exception:  # what a user's function raises is told when backward runs it
        return None
    return [one for one in outs if isinstance(one, TensorState) and one._edge is not None and not one.is_leaf]


def held_by(function) -> Iterator[TensorState]:
    """Go through the tensors that a function visibly holds: a module's parameters, those of the names that it reads."""
    holders = [function, getattr(function, "__self__", None)]
    if hasattr(function, "func"):  # a functools.partial
        holders += [function.func, *function.args]
    if hasattr(function, "__code__"):
        names = inspect.getclosurevars(function)
        holders += [*names.nonlocals.values(), *names.globals.values()]
    for one in holders:
        if isinstance(one, TensorState):
            yield one
        elif callable(getattr(one, "parameters", None)):
            yield from one.parameters()
