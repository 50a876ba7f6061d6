"""Other orders of the dims: transpose, permute and their relatives. All are views."""

from collections.abc import Sequence

from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.ops.dims import normalise_dim, normalise_dims, one_or_several
from backlight.ops.elementwise.complex_numbers import conj
from backlight.sizes import spread_sizes
from backlight.system.user_warnings import warn_outside

__all__ = ["adjoint", "moveaxis", "movedim", "permute", "swapaxes", "swapdims", "t", "transpose"]


@op(view=True, complex="linear")
def transpose(xp, input: Array, dim0: int, dim1: int):
    """Swap two dims."""
    try:
        return input.swapaxes(dim0, dim1)
    except (ValueError, TypeError, OverflowError):
        normalise_dim(dim0, input.ndim)
        normalise_dim(dim1, input.ndim)
        return input[...]


transpose.derivative("input", formula="grad with the same dims swapped")(
    lambda grad, dim0, dim1: grad.swapaxes(dim0, dim1) if grad.ndim else grad
)


@op(view=True, complex="linear")
def t(xp, input: Array):
    """Swap the dims of a matrix; leave fewer dims as they are."""
    if input.ndim > 2:
        raise ShapeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D; use transpose(dim0, dim1) or .mT"
        )
    return input.transpose()


t.derivative("input", formula="gradᵀ")(lambda grad, ops: ops.t(grad))


@op(name="permute", view=True, complex="linear")
def permuted(xp, input: Array, dims: tuple):
    """The dims in another order."""
    try:
        return input.transpose(dims)
    except (ValueError, TypeError, OverflowError):
        _check_permutation(dims, input.ndim)
        raise


permuted.derivative("input", formula="grad with the dims in their former order")(
    lambda grad, dims, ops: ops.permute(grad, inverse_order(dims))
)


def permute(input: TensorState, *order, dims: Sequence | None = None):
    """Put the dims in another order."""
    return permuted(input, spread_sizes(order, dims, "permute", "dims"))


def inverse_order(dims: Sequence[int]) -> tuple:
    """Return the order that undoes a permutation."""
    count = len(dims)
    places = [0] * count
    for place, dim in enumerate(dims):
        places[dim] = place
    return tuple(places)


def _check_permutation(dims: Sequence[int], ndim: int) -> None:
    if len(dims) != ndim:
        raise ShapeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    if len({normalise_dim(dim, ndim) for dim in dims}) != len(dims):
        raise ShapeError(f"permute(): duplicate dims are not allowed; got {tuple(dims)}: name each dim once")


def swapaxes(input: TensorState, axis0: int, axis1: int):
    """Swap two dims; another name of `transpose`."""
    return transpose(input, axis0, axis1)


def swapdims(input: TensorState, dim0: int, dim1: int):
    """Swap two dims; another name of `transpose`."""
    return transpose(input, dim0, dim1)


def movedim(input: TensorState, source: int | Sequence[int], destination: int | Sequence[int]):
    """Move dims to other places, leaving the order of the rest.

    Raises:
        RuntimeError: there are not as many sources as destinations, or one is named twice.
    """
    sources, destinations = one_or_several(source), one_or_several(destination)
    if len(sources) != len(destinations):
        raise ShapeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(sources)} dims) should contain the same number of dims as destination ({list(destinations)} dims)"
        )
    ndim = input._data.ndim
    if ndim == 0:
        normalise_dims(sources, 0), normalise_dims(destinations, 0)
        return permuted(input, ())
    where = _distinct("source", sources, ndim)
    to = _distinct("destination", destinations, ndim)
    order = [dim for dim in range(ndim) if dim not in where]
    for place, dim in sorted(zip(to, where)):
        order.insert(place, dim)
    return permuted(input, tuple(order))


def _distinct(what: str, dims: Sequence[int], ndim: int) -> list[int]:
    found = [normalise_dim(dim, ndim) for dim in dims]
    if len(set(found)) != len(found):
        raise ShapeError(f"movedim: repeated dim in `{what}` ({list(dims)})")
    return found


def moveaxis(input: TensorState, source: int | Sequence[int], destination: int | Sequence[int]):
    """Move dims to other places; another name of `movedim`."""
    return movedim(input, source, destination)


def reversed_dims(input: TensorState):
    """Return `input.T`: all dims in reverse order."""
    ndim = input._data.ndim
    if ndim not in (0, 2):
        warn_outside(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return permuted(input, tuple(range(ndim - 1, -1, -1)))


def _same(input: TensorState, warning: str):
    """Return a 0-d tensor as a view of itself, with PyTorch's warning that this is going away."""
    warn_outside(warning)
    return transpose(input, 0, 0)


def matrix_transpose(input: TensorState):
    """Return `input.mT`: the last two dims swapped."""
    ndim = input._data.ndim
    if ndim == 0:
        return _same(input, "Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.")
    if ndim < 2:
        raise ShapeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
    return transpose(input, -2, -1)


def hermitian_transpose(input: TensorState):
    """Return `input.H`: the conjugate transpose of a matrix."""
    ndim = input._data.ndim
    if ndim == 0:
        return _same(input, "Tensor.H is deprecated on 0-D tensors. Consider using x.conj().")
    if ndim != 2:
        raise ShapeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor. For "
            "batches of matrices, consider using tensor.mH"
        )
    return conj(transpose(input, 0, 1))


def adjoint(input: TensorState):
    """Return the conjugate transpose of each matrix: for real numbers the transpose."""
    if input._data.ndim == 1:
        raise ShapeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return conj(transpose(input, -2, -1) if input._data.ndim else input)
