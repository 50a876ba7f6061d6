"""Jacobians and Hessians as transforms: `jacrev` row by row, `jacfwd` column by column, all rows or columns at once."""

from collections.abc import Callable, Iterator, Sequence

from backlight.codegen.forward_mode import level
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ValueProblem
from backlight.func.arguments import Argnums, select_arguments
from backlight.func.forward import jvp_at_level
from backlight.func.reverse import recorded_vjp, wraps_function
from backlight.ops.shape.joining import cat
from backlight.tensor.tensor import Tensor
from backlight.transforms.forward_jacobian import unit_rows
from backlight.transforms.pytrees import Spec, tree_flatten, tree_leaves, tree_map, tree_unflatten
from backlight.transforms.vmap.api import vmap
from backlight.transforms.vmap.batched_jvp import directions


def jacrev(func: Callable, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Callable:
    """Return a function that computes the Jacobian of `func` in reverse mode, one row for each element of the output.

    Shapes: output (o…), argument (i…) -> (o…, i…); nested outputs and arguments give nested Jacobians

    Args:
        argnums: for which arguments; a tuple gives a tuple.
        has_aux: `func` returns (output, aux), and the new function (Jacobian, aux).
        chunk_size: how many rows to compute at once; all of them by default.

    >>> import backlight as torch
    >>> jacrev(lambda x: x ** 2)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_chunk_size("jacrev", chunk_size)

    @wraps_function(func)
    def jacobian(*args):
        output, backward, aux = recorded_vjp(func, args, argnums, has_aux)
        outputs, out_spec = tree_flatten(output)
        inputs, in_spec = tree_flatten(select_arguments(args, argnums))
        _require_real("jacrev", inputs, "inputs", "flattened input idx")
        _require_real("jacrev", outputs, "outputs", "flattened output idx")
        parts = [tree_leaves(_vjps(backward, rows)) for rows in _unit_chunks(outputs, out_spec, chunk_size)]
        found = _by_output(_joined(parts), outputs, inputs)
        jacobians = tree_unflatten([tree_unflatten(row, in_spec) for row in found], out_spec)
        return (jacobians, aux) if has_aux else jacobians

    return jacobian


def _unit_chunks(tensors: Sequence[Tensor], spec: Spec, chunk_size: int | None) -> Iterator:
    """Yield the rows of the identity over all elements of the tensors, in chunks with the structure of the tensors."""
    total = sum(one._data.size for one in tensors)
    step = chunk_size or total or 1
    for start in range(0, total, step):
        yield tree_unflatten(unit_rows(tensors, start, min(start + step, total)), spec)


def _joined(parts: list[list[Tensor]]) -> list[Tensor]:
    """Concatenate the chunks of each tensor."""
    return [pieces[0] if len(pieces) == 1 else cat(list(pieces)) for pieces in zip(*parts)]


def _vjps(backward: Callable, rows: object):
    """Return the gradients for each row; a single one needs no vmap."""
    leaves, spec = tree_flatten(rows)
    if leaves[0]._data.shape[0] != 1:
        return vmap(backward)(rows)
    return tree_map(lambda one: one.unsqueeze(0), backward(tree_unflatten([one.squeeze(0) for one in leaves], spec)))


def _by_output(stacked: Sequence[Tensor], outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list:
    """Return, for each output, its rows in the shape (output…, input…), one tensor for each input."""
    found, start = [], 0
    for out in outputs:
        size, shape = out._data.size, tuple(out._data.shape)
        found.append(
            [rows.narrow(0, start, size).reshape((*shape, *one._data.shape)) for rows, one in zip(stacked, inputs)]
        )
        start += size
    return found


def jacfwd(
    func: Callable,
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable:
    """Return a function that computes the Jacobian of `func` in forward mode, one column for each argument's element.

    It suits functions with few inputs. One call of `func` gives all columns, and its values are computed
    once. The arguments are those of `jacrev`; `randomness` is that of `vmap`.
    """
    _check_chunk_size("jacfwd", chunk_size)

    @wraps_function(func)
    def jacobian(*args):
        inputs, in_spec = tree_flatten(select_arguments(args, argnums))
        _require_real("jacfwd", inputs, "inputs", "flattened input idx")
        push = _columns if randomness != "different" else _columns_apart
        parts = []
        for rows in _unit_chunks(inputs, in_spec, chunk_size):
            moved, out_spec, aux = push(func, args, rows, argnums, has_aux, randomness)
            parts.append(moved)
        jacobians = tree_unflatten(
            [tree_unflatten(_by_input(one, inputs), in_spec) for one in _joined(parts)], out_spec
        )
        return (jacobians, aux) if has_aux else jacobians

    return jacobian


def _columns(func: Callable, args: tuple, rows: object, argnums: Argnums, has_aux: bool, randomness: str) -> tuple:
    """Return the tangents of the outputs, one in each row, their structure, and aux; values are computed once."""
    leaves, spec = tree_flatten(rows)
    with directions(leaves[0]._data.shape[0], randomness) as level:
        given = tree_unflatten([level.direction(one) for one in leaves], spec)
        _, moved, aux = jvp_at_level(level, func, args, given, argnums, False, has_aux)
        outputs, out_spec = tree_flatten(moved)
        return [level.columns(one) for one in outputs], out_spec, aux


def _columns_apart(
    func: Callable, args: tuple, rows: object, argnums: Argnums, has_aux: bool, randomness: str
) -> tuple:
    """The same where each column draws its own random numbers, so that values differ."""

    def column(direction: object):
        with level() as own:
            _, moved, aux = jvp_at_level(own, func, args, direction, argnums, False, has_aux)
        return moved, aux

    moved, aux = vmap(column, out_dims=(0, 0 if has_aux else None), randomness=randomness)(rows)
    outputs, out_spec = tree_flatten(moved)
    return outputs, out_spec, tree_map(lambda one: one[0], aux) if has_aux else None


def _require_real(name: str, tensors: Sequence[Tensor], what: str, place: str) -> None:
    """Raise PyTorch's error for complex tensors, whose Jacobian would be two."""
    for number, one in enumerate(tensors):
        if isinstance(one, TensorState) and one._data.dtype.kind in "cW":
            raise GraphError(f"{name}: Expected all {what} to be real but received complex tensor at {place}: {number}")


def _check_chunk_size(name: str, chunk_size: int | None) -> None:
    if not (chunk_size is None or chunk_size > 0):
        raise ValueProblem(f"{name}: `chunk_size` should be greater than 0.")


def _by_input(columns: Tensor, inputs: Sequence[Tensor]) -> list:
    """Return the columns that belong to each input in the shape (output…, input…)."""
    found, start, shape = [], 0, tuple(columns._data.shape[1:])
    for one in inputs:
        part = columns.narrow(0, start, one._data.size)
        found.append(part.movedim(0, -1).reshape((*shape, *one._data.shape)))
        start += one._data.size
    return found


def hessian(func: Callable, argnums: Argnums = 0) -> Callable:
    """Return a function that computes the second derivatives of `func`: jacfwd of jacrev.

    Shapes: output (), argument (i…) -> (i…, i…)
    """
    return jacfwd(jacrev(func, argnums), argnums)
