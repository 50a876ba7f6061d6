"""Extremes: max, min, amax, amin, aminmax, argmax, argmin."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight import return_types
from backlight.codegen.declaration import Array, op
from backlight.codegen.op_table import TENSOR_OPS
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, ShapeError
from backlight.ops.dims import flat_places, kept_shape, normalise_dim, reduced_dims, with_numpy_names
from backlight.ops.type_promotion import INT64
from backlight.sizes import Shape

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]

SELECTED = {"outputs": 2, "differentiable": (0,), "residuals": ("indices",)}  # of ops that return (values, indices)


def check_not_empty(name: str, shape: Sequence[int], dim: int) -> None:
    """Raise PyTorch's error for an extreme over a dim of size 0."""
    if shape and shape[dim] == 0:
        raise DimError(
            f"{name}{'' if name == 'aminmax' else '()'}: Expected reduction dim {dim} to have non-zero size.\n"
            f"  A tensor of shape {list(shape)} has no extreme along dim {dim}"
        )


def check_any(name: str, input: Array, kind: type = ShapeError) -> None:
    """Raise PyTorch's error for an extreme of no elements at all."""
    if input.size == 0:
        advice = "" if kind is DimError else " Specify the reduction dim with the 'dim' argument."
        raise kind(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0.{advice}\n"
            f"  A tensor of shape {list(input.shape)} has no extreme"
        )


@op
def tie_weights(xp, input: Array, extreme: Array, dim: tuple | None = None):
    """Return 1/n at the n elements that equal the extreme over `dim`, 0 elsewhere; NaN equals NaN.

    The extreme may have been written to since. Where no element equals it, all is 0 without `dim`, NaN with one.
    """
    if dim is None:
        extreme = extreme.reshape(())
        tied = input == extreme if extreme == extreme else input != input
        return xp.multiply(tied, input.dtype.type(1 / (xp.count_nonzero(tied) or 1)))
    reached = extreme.reshape(kept_shape(input.shape, dim))
    tied = (input == reached) | ((input != input) & (reached != reached))
    return tied / xp.add.reduce(tied, reduced_dims(dim, input.ndim), input.dtype, None, True)


def shared_between_ties(grad: Array, input: Array, out: Array, dim: tuple | None, ops):
    """Return the gradient of an extreme over `dim`: elements that tie for it get equal parts."""
    return grad.reshape(kept_shape(input.shape, dim)) * ops.tie_weights(input, out, () if dim is None else dim)


def tied_tangent(tangent: Array, input: Array, out: Array, dim: tuple | None, keepdim: bool, ops):
    """Return the tangent of an extreme over `dim`: the mean over the elements that tie for it."""
    return ops.sum(tangent * ops.tie_weights(input, out, dim), dim, keepdim)


def tied_tangent_of_all(tangent: Array, input: Array, out: Array, ops):
    """The same for an extreme of all elements."""
    return (tangent * ops.tie_weights(input, out, None)).sum()


def selected_gradient(grad: Array, input_shape: Shape, dim: int, keepdim: bool, indices: Array, ops):
    """Return the gradient of the input of (values, indices) along `dim`."""
    return ops.value_selecting_reduction_backward(grad, indices, input_shape, dim, keepdim)


def ordered_gradient(grad: Array, input_shape: Shape, dim: int, indices: Array, ops):
    """The same where `dim` stays."""
    return ops.value_selecting_reduction_backward(grad, indices, input_shape, dim)


def picked_tangent(tangent: Array, out: Sequence[Array], dim: int, keepdim: bool, ops):
    """Return the tangents of (values, indices): the values' are taken where the values come from."""
    return value_selecting_reduction_backward_grad_output(tangent, out[1], dim, keepdim, ops), None


def ordered_tangent(tangent: Array, out: Sequence[Array], dim: int, ops):
    """The same where `dim` stays."""
    return picked_tangent(tangent, out, dim, True, ops)


@op(node="ScatterBackward0", tangent="linear")
def value_selecting_reduction_backward(
    xp, grad_output: Array, indices: Array, size: tuple, dim: int, keepdim: bool = True
):
    """Put each gradient where its value came from along `dim`, and 0 elsewhere."""
    if not size:
        return grad_output
    out = xp.zeros(size, grad_output.dtype)
    places = flat_places(indices, size, normalise_dim(dim, len(size)))
    out.reshape(-1)[places] = grad_output.reshape(places.shape)
    return out


@value_selecting_reduction_backward.derivative("grad_output", formula="grad, taken where the values came from")
def value_selecting_reduction_backward_grad_output(grad: Array, indices: Array, dim: int, keepdim: bool, ops):
    if keepdim or grad.ndim == 0:
        return ops.gather(grad, dim, indices)
    kept = kept_shape(grad.shape, dim)
    return ops.gather(grad, dim, indices.reshape(kept)).reshape(indices.shape)


@op(node="MaxBackward1")
def max_all(xp, input: Array):
    """The largest element."""
    check_any("max", input)
    return xp.maximum.reduce(input, None)


max_all.tangent("input")(tied_tangent_of_all)
max_all.derivative("input", formula="grad, shared equally by the elements that are the largest")(
    lambda grad, input, out, ops: grad * ops.tie_weights(input, out, None)
)


@op(node="MinBackward1")
def min_all(xp, input: Array):
    """The smallest element."""
    check_any("min", input)
    return xp.minimum.reduce(input, None)


min_all.tangent("input")(tied_tangent_of_all)
min_all.derivative("input", formula="grad, shared equally by the elements that are the smallest")(
    lambda grad, input, out, ops: grad * ops.tie_weights(input, out, None)
)


def extreme_along(name: str, extreme: Callable, find: Callable, input: Array, dim: int, keepdim: bool):
    """Return (values, indices) of an extreme along one dim: the first among equals, NaN before all."""
    dim = normalise_dim(dim, input.ndim)
    check_not_empty(name, input.shape, dim)
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    return extreme.reduce(input, dim, None, None, keepdim), find(input, dim, keepdims=keepdim)


@op(node="MaxBackward0", **SELECTED, returns=return_types.max, layout="rows")
def max_dim(xp, input: Array, dim: int, keepdim: bool = False):
    """The largest elements along `dim`, and where they are."""
    values, indices = extreme_along("max", xp.maximum, xp.argmax, input, dim, keepdim)
    return (values, indices), xp.array(indices)


max_dim.derivative("input", formula="grad at the largest element along dim, 0 elsewhere")(selected_gradient)
max_dim.tangent("input")(picked_tangent)


@op(node="MinBackward0", **SELECTED, returns=return_types.min, layout="rows")
def min_dim(xp, input: Array, dim: int, keepdim: bool = False):
    """The smallest elements along `dim`, and where they are."""
    values, indices = extreme_along("min", xp.minimum, xp.argmin, input, dim, keepdim)
    return (values, indices), xp.array(indices)


min_dim.derivative("input", formula="grad at the smallest element along dim, 0 elsewhere")(selected_gradient)
min_dim.tangent("input")(picked_tangent)


@with_numpy_names
def max(
    input: TensorState, dim: TensorState | int | None = None, keepdim: bool = False, *, other: TensorState | None = None
):
    """Return the largest element; with `dim`, (values, indices) along it; with a tensor, the elementwise maximum."""
    if dim is None and other is None:
        return max_all(input)
    if other is None and not isinstance(dim, TensorState):
        return max_dim(input, dim, keepdim)
    return TENSOR_OPS.maximum(input, dim if other is None else other)


@with_numpy_names
def min(
    input: TensorState, dim: TensorState | int | None = None, keepdim: bool = False, *, other: TensorState | None = None
):
    """Return the smallest element; with `dim`, (values, indices) along it; with a tensor, the elementwise minimum."""
    if dim is None and other is None:
        return min_all(input)
    if other is None and not isinstance(dim, TensorState):
        return min_dim(input, dim, keepdim)
    return TENSOR_OPS.minimum(input, dim if other is None else other)


def extreme_over(name: str, extreme: Callable, input: Array, dim: int | Sequence[int] | None, keepdim: bool):
    """Return the extreme over one dim, several or all."""
    dims = reduced_dims(dim, input.ndim)
    if len(dims) == input.ndim and input.ndim != 1:
        check_any(name, input)
    for one in dims:
        check_not_empty(name, input.shape, one)
    return extreme.reduce(input, dims, None, None, keepdim)


@op(name="amax", layout="rows")
def amax_dims(xp, input: Array, dim: tuple | None = None, keepdim: bool = False):
    """Return the largest elements, of all or over `dim` (an int or several); those that tie share the gradient."""
    return extreme_over("amax", xp.maximum, input, dim, keepdim)


amax_dims.tangent("input")(tied_tangent)
amax_dims.derivative("input", formula="grad, shared equally by the elements that are the largest over dim")(
    shared_between_ties
)


@op(name="amin", layout="rows")
def amin_dims(xp, input: Array, dim: tuple | None = None, keepdim: bool = False):
    """Return the smallest elements, of all or over `dim` (an int or several); those that tie share the gradient."""
    return extreme_over("amin", xp.minimum, input, dim, keepdim)


amin_dims.tangent("input")(tied_tangent)
amin_dims.derivative("input", formula="grad, shared equally by the elements that are the smallest over dim")(
    shared_between_ties
)


amax = with_numpy_names(amax_dims)
amin = with_numpy_names(amin_dims)


@op(name="aminmax", outputs=2, returns=return_types.aminmax, layout="rows")
def both_extremes(xp, input: Array, *, dim: int | None = None, keepdim: bool = False):
    """Return the smallest and the largest elements, of all or along one dim, as (min, max)."""
    if dim is None and input.size == 0:
        raise ShapeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.\n"
            f"  A tensor of shape {list(input.shape)} has no extreme"
        )
    if dim is not None:
        check_not_empty("aminmax", input.shape, normalise_dim(dim, input.ndim))
    dims = reduced_dims(dim, input.ndim)
    return xp.minimum.reduce(input, dims, None, None, keepdim), xp.maximum.reduce(input, dims, None, None, keepdim)


@both_extremes.derivative("input", formula="grads of min and max, each shared equally by the elements that tie for it")
def both_extremes_input(grad: Sequence[Array | None], input: Array, out: Sequence[Array], dim: int | None, ops):
    parts = [shared_between_ties(g, input, end, dim, ops) for g, end in zip(grad, out) if g is not None]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


aminmax = with_numpy_names(both_extremes)


def _refuse_bools(name: str, input: Array) -> None:
    if input.dtype.kind == "b":
        raise ShapeError(f"{name}(): does not support bool input; convert it with .long()")


def place_of(name: str, find: Callable, input: Array, dim: int | None, keepdim: bool):
    """Return where an extreme is, counted row by row without `dim`: the first among equals, NaN before all."""
    if dim is None:
        check_any(name, input, DimError)
        return np.asarray(find(input), INT64).reshape((1,) * input.ndim if keepdim else ())
    dim = normalise_dim(dim, input.ndim)
    check_not_empty(name, input.shape, dim)
    return find(input, dim, keepdims=keepdim) if input.ndim else np.zeros((), INT64)


@op(name="argmax", layout="rows")
def place_of_max(xp, input: Array, dim: int | None = None, keepdim: bool = False):
    """Return where the largest element is, of all (counted row by row) or along `dim`: the first among equals."""
    _refuse_bools("argmax", input)
    return place_of("argmax", xp.argmax, input, dim, keepdim)


@op(name="argmin", layout="rows")
def place_of_min(xp, input: Array, dim: int | None = None, keepdim: bool = False):
    """Return where the smallest element is, of all (counted row by row) or along `dim`: the first among equals."""
    _refuse_bools("argmin", input)
    return place_of("argmin", xp.argmin, input, dim, keepdim)


argmax = with_numpy_names(place_of_max)
argmin = with_numpy_names(place_of_min)
