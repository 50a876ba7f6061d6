"""Functions that nodes run again in backward, as re-entrant checkpoints do: the graph does not show what they read."""

import inspect
from collections.abc import Callable, Iterator

from backlight.engine.mutation_checks import Transform
from backlight.engine.node import Node
from backlight.engine.tensor_state import TensorState


def function_run_again(node: Node):
    """Return the function that a node runs again in backward, as re-entrant checkpoints do; None for others."""
    return getattr(node.ctx, "run_function", None) if hasattr(node, "ctx") else None


def name_of_function(node: Node) -> str:
    """Return the name of the function that a node runs again."""
    function = function_run_again(node)
    return getattr(function, "__qualname__", type(function).__name__)


def outputs_run_again(node: Node) -> list | None:
    """Run, and record, the function that a node runs again; return its outputs, or None if they cannot be known.

    A function that writes to what it did not create is not run here, as that would change the result of the next run.
    """
    run_again = getattr(node.ctx, "run_again", None)
    if run_again is None:
        return None
    try:
        outs, _ = run_again(node.ctx, Transform(()))
    except Exception:  # an error of the user's function is raised when backward runs it
        return None
    return [one for one in outs if isinstance(one, TensorState) and one._edge is not None and not one.is_leaf]


def held_by(function: Callable) -> Iterator[TensorState]:
    """Yield the tensors that a function refers to: a module's parameters, and the names that its code reads."""
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
