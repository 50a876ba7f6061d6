"""Checks of the transforms' arguments and results, with PyTorch's messages."""

from collections.abc import Iterable, Sequence

from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ValueProblem
from backlight.transforms.pytrees import tree_leaves

Argnums = int | tuple[int, ...]


def normalised_argnums(argnums: Argnums, count: int) -> tuple[int, ...]:
    """Return the non-negative indices of the arguments to differentiate for.

    Raises:
        RuntimeError: one is no int, is out of range, or is given twice.
    """
    if not isinstance(argnums, (int, tuple)):
        raise GraphError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    found = tuple([_normalised_argnum(one, count) for one in (argnums if isinstance(argnums, tuple) else (argnums,))])
    if not found:
        raise GraphError("argnums must be non-empty")
    if len(set(found)) != len(found):
        raise GraphError(f"argnums elements must be unique, got {found}")
    return found


def _normalised_argnum(argnum: int, count: int) -> int:
    if not isinstance(argnum, int):
        raise GraphError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise GraphError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def select_arguments(args: tuple, argnums: Argnums):
    """Return the arguments to differentiate for: one, or a tuple of them."""
    found = tuple([args[place] for place in normalised_argnums(argnums, len(args))])
    return found if isinstance(argnums, tuple) else found[0]


def replace_arguments(args: tuple, argnums: Argnums, chosen: object) -> tuple:
    """Return the arguments with those to differentiate for replaced."""
    new = dict(zip(normalised_argnums(argnums, len(args)), chosen if isinstance(argnums, tuple) else (chosen,)))
    return tuple([new.get(place, one) for place, one in enumerate(args)])


def require_tensors(leaves: Iterable) -> None:
    """Raise unless all that a function is differentiated for are tensors."""
    for leaf in leaves:
        if not isinstance(leaf, TensorState):
            raise ValueProblem(
                f"Thing passed to transform API must be Tensor, got {type(leaf)}; leave it out of argnums, or make a "
                "tensor of it"
            )


def with_aux(output: object, has_aux: bool, api: str) -> tuple:
    """Return the output and the auxiliary output.

    Raises:
        RuntimeError: has_aux is set, and the output is no pair, or the auxiliary output has other values than tensors.
    """
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise GraphError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for leaf in tree_leaves(output[1]):
        if not isinstance(leaf, TensorState):
            raise GraphError(f"Expected tensors, got unsupported type {type(leaf)}; what comes as aux is tensors only")
    return output


def require_output(leaves: Sequence, api: str) -> None:
    """Raise unless there are outputs, all tensors."""
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise GraphError(f"{api}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, TensorState):
            raise GraphError(f"{api}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}")
