"""Norms and distances."""

import functools
import math
from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.codegen.runtime_support import sum_to_shape
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import dtype, from_numpy_dtype, real_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError, ValueProblem
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.loss import distances
from backlight.ops.dims import kept_shape, normalise_dim, normalise_dims, reduced_dims
from backlight.ops.number_operands import require_floats
from backlight.ops.reduction.reductions import in_dtype
from backlight.ops.type_promotion import has_gradient, holds_complex, is_float, promote_types

__all__ = ["cdist", "dist", "renorm"]


@op(promote="same", node="MaskedFillBackward0", tangent="symmetric")
def divide_or_zero(xp, input: Array, other: Array):
    """Divide, with 0 where the divisor is 0: the derivative that PyTorch gives to a norm at 0."""
    zero = other == 0
    return rounded(input / (other + zero) * ~zero, input.dtype)


divide_or_zero.derivative("input", formula="grad / other, 0 where other is 0")(
    lambda grad, other, ops: ops.divide_or_zero(grad, other)
)
divide_or_zero.derivative("other", formula="−grad · out / other, 0 where other is 0")(
    lambda grad, other, out, ops: -ops.divide_or_zero(grad * out, other)
)


def length_of(xp, values: Array, ord: float, dims: Sequence[int] | None, keepdim: bool):
    """Return (Σ |x|^ord)^(1/ord) over `dims` and its limits: 0 counts what is not 0, ±inf take an extreme."""
    if values.dtype.kind in "cW":
        values = xp.abs(values)
    if ord == 2:
        return xp.sqrt(xp.add.reduce(values * values, dims, None, None, keepdim))
    if ord == 0:
        return xp.add.reduce(values != 0, dims, values.dtype, None, keepdim)
    sizes = xp.abs(values)
    if ord == math.inf:
        return xp.maximum.reduce(sizes, dims, None, None, keepdim)
    if ord == -math.inf:
        return xp.minimum.reduce(sizes, dims, None, None, keepdim)
    if ord == 1:
        return xp.add.reduce(sizes, dims, None, None, keepdim)
    return xp.add.reduce(sizes**ord, dims, None, None, keepdim) ** (1 / ord)


def gradient_of_length(grad: Array, values: Array, length: Array, ord: float, dim: int | Sequence[int] | None, ops):
    """Return the gradient of a norm, `grad` and `length` having the reduced dims with size 1; 0 where the norm is 0.

    ∂‖x‖/∂x = sign(x) · |x|^(ord − 1) / ‖x‖^(ord − 1)
    """
    if ord == 0:
        return None
    if ord == 2:
        return values * ops.divide_or_zero(grad, length)
    signs = ops.sgn(values) if holds_complex(values) else ops.sign(values)
    if ord == 1:
        return signs * grad
    if abs(ord) == math.inf:
        return signs * grad * ops.tie_weights(abs(values), length, () if dim is None else dim)
    sizes = abs(values) + (values == 0)  # 1 where the sign is 0: a power of 0 may be infinite
    return signs * sizes ** (ord - 1) * ops.divide_or_zero(grad, length ** (ord - 1))


@op(complex="own", layout="rows")
def linalg_vector_norm(xp, input: Array, ord: float = 2, dim: tuple | None = None, keepdim: bool = False):
    """The norm of the elements over `dim`, taken as a vector."""
    dims = reduced_dims(dim, input.ndim)
    check_norm(input, ord, dims)
    return rounded(length_of(xp, widened(input), ord, dims, keepdim), real_dtype(input.dtype))


@linalg_vector_norm.derivative("input", formula="grad · sign(input) · (|input| / out)^(ord − 1); 0 where out is 0")
def linalg_vector_norm_input(grad: Array, input: Array, out: Array, ord: float, dim: tuple | None, ops):
    kept = kept_shape(input.shape, dim)
    return gradient_of_length(grad.reshape(kept), input, out.reshape(kept), ord, dim, ops)


def _check_kinds(input: Array, ord: float) -> None:
    """Raise PyTorch's error for an order that is no number, and for vectors of integers."""
    if isinstance(ord, str):
        raise ArgumentError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str; got {ord!r}")
    if not has_gradient(input.dtype):
        raise ShapeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{from_numpy_dtype(input.dtype).old_name}\n  Convert it first (.float())"
        )


def check_norm(input: Array, ord: float, dims: Sequence[int]) -> None:
    """Raise PyTorch's error for a norm that does not exist."""
    _check_kinds(input, ord)
    if input.size == 0 and (ord < 0 or ord == math.inf) and (not dims or 0 in [input.shape[dim] for dim in dims]):
        all_dims = len(dims) == input.ndim
        where = (
            "an empty tensor because the"
            if all_dims
            else f"the dimension {dims[0]}because this dimension is empty and the"
        )
        raise ShapeError(
            f"linalg.vector_norm cannot compute the {ord} norm on {where} operation does not have an identity"
        )


def vector_norm(
    input: TensorState, ord: float = 2, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype=None
):
    """Return the norm of all elements, or of the vectors over `dim` (an int or several).

    Args:
        ord: any number; inf and −inf take the largest and smallest size, 0 counts what is not 0.
        dtype: compute in this dtype, which must not be narrower.
    """
    if dtype is not None:
        _check_kinds(input._data, ord)
        check_not_narrower("linalg.vector_norm", input, dtype)
    return linalg_vector_norm(in_dtype(input, dtype), ord, dim, keepdim)


def check_not_narrower(name: str, x: TensorState, dtype: dtype) -> None:
    """Raise PyTorch's error for a norm to be computed in a dtype that does not hold the input."""
    if not has_gradient(dtype.numpy):
        raise ShapeError(f"{name}: dtype should be floating point or complex, but got {dtype.old_name}")
    if (x._data.dtype.kind in "cW") != dtype.is_complex:
        kinds = ("real for real", "complex for complex")[x._data.dtype.kind in "cW"]
        raise ShapeError(f"{name}: dtype should be {kinds} inputs, but got {dtype.old_name}")
    if promote_types(x._data.dtype, dtype.numpy) != dtype.numpy:
        raise ShapeError(
            f"{name}: the dtype of the input ({x.dtype.old_name}) should be convertible without narrowing "
            f"to the specified dtype ({dtype.old_name})"
        )


def _refuse_distances(*kinds):
    kind = functools.reduce(promote_types, kinds)
    if kind.kind == "b":
        return (
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if not has_gradient(kind):
        name = from_numpy_dtype(kind).old_name
        return f"norm(): input dtype should be either floating point or complex. Got {name} instead."
    return None


@op(promote="same", dtype_error=_refuse_distances, complex="own", layout="rows")
def dist(xp, input: Array, other: Array, p: float = 2):
    """Return the p-norm of input − other."""
    return rounded(length_of(xp, widened(input - other), p, None, False), real_dtype(input.dtype))


@dist.derivative("input", formula="the slope of the p-norm at input − other")
def dist_input(grad: Array, input: Array, other: Array, out: Array, p: float, ops):
    found = gradient_of_length(grad, input - other, out, p, None, ops)
    return None if found is None else ops.sum_to_size(found, tuple(input.shape))


@dist.derivative("other", formula="minus the slope of the p-norm at input − other")
def dist_other(grad: Array, input: Array, other: Array, out: Array, p: float, ops):
    found = gradient_of_length(-grad, input - other, out, p, None, ops)
    return None if found is None else ops.sum_to_size(found, tuple(other.shape))


@op(name="cdist", zero_derivative=("x1", "x2"), layout="rows")
def pairwise(xp, x1: Array, x2: Array, p: float = 2):
    """The p-norms of the differences between each row of x1 and each row of x2."""
    return length_of(xp, x1[..., :, None, :] - x2[..., None, :, :], p, -1, False)


@pairwise.derivative("x1", "x2", formula="the slope of the p-norm at x1_i − x2_j, summed over the others")
def pairwise_inputs(grad: Array, x1: Array, x2: Array, out: Array, p: float, needs: tuple[bool, ...], ops):
    differences = x1[..., :, None, :] - x2[..., None, :, :]
    gradients = gradient_of_length(grad[..., None], differences, out[..., None], p, -1, ops)
    if gradients is None:
        gradients = ops.kept(differences, abs(differences) < 0)
    return (
        ops.sum_to_size(gradients.sum(-2), tuple(x1.shape)) if needs[0] else None,
        -ops.sum_to_size(gradients.sum(-3), tuple(x2.shape)) if needs[1] else None,
    )


@op(name="_cdist_forward", node="CdistBackward0", zero_derivative=("x1", "x2"), layout="rows")
def pairwise_near(xp, x1: Array, x2: Array, p: float):
    """The same for p = 1 and p = 2 in float32 or float64: without an array of all differences."""
    first, second = _batched(x1, x2)
    found = distances.distances(first, xp.ascontiguousarray(second.swapaxes(1, 2)), p)
    return found.reshape((*xp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), *found.shape[1:]))


@pairwise_near.derivative("x1", "x2", formula="the slope of the p-norm at x1_i − x2_j, summed over the others")
def pairwise_near_inputs(grad: Array, x1: Array, x2: Array, out: Array, p: float, needs: tuple[bool, ...], xp):
    first, second = _batched(x1, x2)
    grad, out = (xp.ascontiguousarray(each).reshape((len(first), *each.shape[-2:])) for each in (grad, out))
    gradients = distances.distance_gradients(grad, first, second, out, p)
    batch = xp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return tuple(
        sum_to_shape(each.reshape((*batch, *x.shape[-2:])), x.shape) if needed else None
        for each, x, needed in zip(gradients, (x1, x2), needs)
    )


pairwise_near.decomposition(lambda x1, x2, p: pairwise(x1, x2, p))


def _batched(x1: Array, x2: Array):
    """Return both with one batch dim, the same."""
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    count = math.prod(batch)
    return tuple(
        np.ascontiguousarray(np.broadcast_to(x, (*batch, *x.shape[-2:]))).reshape((count, *x.shape[-2:]))
        for x in (x1, x2)
    )


CDIST_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@public_function
def cdist(x1: TensorState, x2: TensorState, p: float = 2.0, compute_mode: str | None = None):
    """Return the p-norm distance between each row of `x1` and each row of `x2`.

    Shapes: x1 (..., n, d), x2 (..., m, d) -> (..., n, m)
    """
    if compute_mode not in (None, *CDIST_MODES):
        raise ValueProblem(f"{compute_mode} is not a valid value for compute_mode: there are {', '.join(CDIST_MODES)}")
    for name, points in (("X1", x1), ("X2", x2)):
        if not is_float(points._data.dtype):
            old = from_numpy_dtype(points._data.dtype).old_name
            raise ShapeError(f"cdist only supports floating-point dtypes, {name} got: {old}; convert it with .float()")
        if points.ndim < 2:
            raise ShapeError(f"cdist only supports at least 2D tensors, {name} got: {points.ndim}D")
    if not isinstance(p, (int, float, np.number, TensorState)):
        raise ArgumentError(f"cdist(): argument 'p' (position 3) must be float, not {type(p).__name__}")
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise ShapeError(f"cdist only supports non-negative p values, got {p}")
    if x1.shape[-1] == 0:
        p = 0.0  # between points of no coordinates all distances are 0; a maximum of nothing would be none
    if x1.dtype != x2.dtype:
        names = [from_numpy_dtype(one._data.dtype).old_name for one in (x1, x2)]
        raise ShapeError(f"expected scalar type {names[0]} but found {names[1]}; convert one of them")
    require_floats("cdist", x1, halves=False)
    if p in (1, 2) and x1._data.dtype.char in "fd":
        return pairwise_near(x1, x2, float(p))
    return pairwise(x1, x2, p)


@op(layout="rows")
def renorm(xp, input: Array, p: float, dim: int, maxnorm: float):
    """Scale down each slice along `dim` whose p-norm exceeds `maxnorm`, to that norm."""
    others = other_dims(input, p, dim, maxnorm)
    check_norm(input, p, others)
    norms = length_of(xp, widened(input), p, others, True)
    return rounded(input * xp.where(norms > maxnorm, maxnorm / (norms + 1e-7), norms.dtype.type(1)), input.dtype)


@renorm.derivative("input", formula="grad · factor + (Σ grad · input) · ∂factor/∂norm · ∂norm/∂input")
def renorm_input(grad: Array, input: Array, p: float, dim: int, maxnorm: float, ops):
    others = other_dims(input, p, dim, maxnorm)
    norms = ops.linalg_vector_norm(input, p, others, True)
    over, factors = norms > maxnorm, maxnorm / (norms + 1e-7)
    direct = grad * (factors * over + (norms <= maxnorm))
    found = -ops.sum(grad * input, others, True) * factors / (norms + 1e-7) * over
    through = gradient_of_length(found, input, norms, p, others, ops)
    return direct if through is None else direct + through


def other_dims(input: Array, p: float, dim: int, maxnorm: float) -> tuple:
    """Return all dims but `dim`, or raise PyTorch's error for arguments that renorm cannot take."""
    if p <= 0:
        raise ShapeError("renorm: non-positive-norm not supported")
    if input.ndim < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if maxnorm < 0:
        raise ShapeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    kept = normalise_dim(dim, input.ndim)
    return normalise_dims([other for other in range(input.ndim) if other != kept], input.ndim)
