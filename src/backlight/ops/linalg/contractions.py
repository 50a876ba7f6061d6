"""Products of tensors made of others: outer, inner, tensordot, kron, cross, and chains of matrices."""

import warnings
from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError
from backlight.kernels.memory_order import in_rows
from backlight.ops.dims import normalise_dim, one_or_several
from backlight.ops.elementwise.complex_numbers import conj
from backlight.ops.linalg.matrix_products import big_name, check_vectors, matrix_product
from backlight.ops.number_operands import require_no_bools
from backlight.ops.type_promotion import category

__all__ = ["chain_matmul", "cross", "ger", "inner", "kron", "outer", "tensordot"]


def outer(input: TensorState, vec2: TensorState):
    """Multiply each element of one vector with each of another.

    Shapes: input (n,), vec2 (m,) -> (n, m)
    """
    for name, vector in (("self", input), ("vec2", vec2)):
        if vector._data.ndim != 1:
            raise ShapeError(
                f"outer: Expected 1-D argument {name}, but got {vector._data.ndim}-D; flatten it with .ravel()"
            )
    return input.reshape((-1, 1)) * vec2


def ger(input: TensorState, vec2: TensorState):
    """Multiply each element of one vector with each of another; the old name of `outer`."""
    return outer(input, vec2)


def inner(input: TensorState, other: TensorState):
    """Sum the products over the last dim of both; a 0-d operand multiplies.

    Shapes: input (…, k), other (***, k) -> (…, ***)
    """
    left, right = input._data.shape, other._data.shape
    if not left or not right:
        return input * other
    if left[-1] != right[-1]:
        raise ShapeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(left)} and {list(right)}"
        )
    return tensordot(input, other, ([-1], [-1]))


def tensordot(a: TensorState, b: TensorState, dims: int | Sequence = 2):
    """Sum the products over pairs of dims.

    Args:
        dims: how many dims to pair, the last of `a` with the first of `b`; or two lists of dims.

    Raises:
        RuntimeError: paired dims differ in size, or the lists in length.
    """
    dims_a, dims_b = _paired_dims(a._data.ndim, b._data.ndim, dims)
    if a._data.dtype != b._data.dtype:
        raise ShapeError("both inputs should have same dtype; convert one of them with .to(dtype)")
    for left, right in zip(dims_a, dims_b):
        size_a, size_b = a._data.shape[left], b._data.shape[right]
        if size_a == size_b:
            continue
        if size_a == 1:
            b = b.sum((right,), keepdim=True, dtype=b.dtype)
        elif size_b == 1:
            a = a.sum((left,), keepdim=True, dtype=a.dtype)
        else:
            raise ShapeError(
                f"contracted dimensions need to match, but first has size {size_a} in dim {left - a._data.ndim} and "
                f"second has size {size_b} in dim {right}"
            )
    rest_a = [dim for dim in range(a._data.ndim) if dim not in dims_a]
    rest_b = [dim for dim in range(b._data.ndim) if dim not in dims_b]
    shape = [a._data.shape[dim] for dim in rest_a] + [b._data.shape[dim] for dim in rest_b]
    count = prod(a._data.shape[dim] for dim in dims_a)
    rows = a.permute([*rest_a, *dims_a]).reshape((prod(shape[: len(rest_a)]), count))
    columns = b.permute([*dims_b, *rest_b]).reshape((count, prod(shape[len(rest_a) :])))
    return matrix_product(rows, columns).reshape(shape)


def _paired_dims(left: int, right: int, dims: int | Sequence) -> tuple[list[int], list[int]]:
    """Return the dims of both operands that are summed over, counted from the start."""
    if isinstance(dims, TensorState):
        if not dims._data.size:
            raise ShapeError("a Tensor with 0 elements cannot be converted to Scalar; dims is a number or two lists")
        if dims._data.size > 1 and dims._data.shape[0] != 2:
            raise AssertionError(f"dims tensor must have size 2 in first dimension, got {dims._data.shape[0]}")
        dims = dims._data.tolist() if dims._data.size > 1 else int(dims._data.item())
    if not isinstance(dims, (tuple, list, int)):
        raise ShapeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, "
            f"but got dims={dims}"
        )
    if isinstance(dims, int):
        if dims < 0:
            raise ShapeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(left, right):
            raise ShapeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(left - dims, left)), list(range(dims))
    dims_a, dims_b = map(one_or_several, dims)
    if len(dims_a) != len(dims_b):
        raise ShapeError(
            f"both dimension lists should have same length, got {len(dims_a)} and {len(dims_b)}: the dims are paired"
        )
    return [normalise_dim(dim, left) for dim in dims_a], [normalise_dim(dim, right) for dim in dims_b]


def kron(input: TensorState, other: TensorState):
    """Put `other`, times each element of `input`, side by side (Kronecker product).

    Shapes: input (a, b, …), other (c, d, …) -> (a · c, b · d, …)
    """
    dims = max(input._data.ndim, other._data.ndim)
    left = (1,) * (dims - input._data.ndim) + input._data.shape
    right = (1,) * (dims - other._data.ndim) + other._data.shape
    spread_left = [size for pair in zip(left, (1,) * dims) for size in pair]
    spread_right = [size for pair in zip((1,) * dims, right) for size in pair]
    product = input.reshape(spread_left) * other.reshape(spread_right)
    return product.reshape([a * b for a, b in zip(left, right)])


@public_function
def vecdot(x: TensorState, y: TensorState, *, dim: int = -1):
    """Return the sum of conj(x) · y along `dim`; other dims broadcast."""
    if x._data.dtype != y._data.dtype:
        names = [big_name(one._data.dtype) for one in (x, y)]
        raise ShapeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {names[0]} and y of type "
            f"{names[1]} instead; convert one with .to(…)"
        )
    if category(x._data.dtype) < 2:
        raise ShapeError(
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got "
            f"{from_numpy_dtype(x._data.dtype).old_name}; convert it with .float()"
        )
    if x._data.ndim == y._data.ndim == 1:
        check_vectors(x._data, y._data)
    return (conj(x) * y).sum(dim)


def cross(input: TensorState, other: TensorState, dim: int | None = None):
    """Return the vector product of vectors of three numbers, along `dim`.

    Raises:
        RuntimeError: `dim` has not size 3.
    """
    if dim is None:
        warnings.warn(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
            "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross "
            "in a future release.",
            UserWarning,
            stacklevel=2,
        )
        sizes = [i for i, size in enumerate(input._data.shape) if size == 3]
        if not sizes:
            raise ShapeError(f"no dimension of size 3 in input; its shape is {list(input._data.shape)}")
        dim = sizes[0]
    return vector_product(input, other, dim)


def linalg_cross(input: TensorState, other: TensorState, *, dim: int = -1):
    """Return the vector product of vectors of three numbers, along `dim`; other dims broadcast."""
    return vector_product(input, other, dim)


def _one_kind(first: np.dtype, second: np.dtype) -> str | None:
    if first == second:
        return None
    return f"expected scalar type {big_name(first)} but found {big_name(second)}; convert one with .to(…)"


@op(
    name="linalg_cross",
    promote="same",
    tangent="multilinear",
    dtype_error=_one_kind,
    complex="holomorphic",
    layout="rows",
)
def vector_product(xp, input: Array, other: Array, dim: int = -1):
    """The vector product along `dim`; other dims broadcast."""
    dims = max(input.ndim, other.ndim)
    given, dim = dim, normalise_dim(dim, dims) - dims
    if input.ndim != other.ndim:
        raise ShapeError(
            "linalg.cross: inputs must have the same number of dimensions.; the shapes are "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    require_no_bools("cross", input)
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise ShapeError(
            f"linalg.cross: inputs dimension {given} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    return in_rows(xp.cross(input, other, axis=dim).astype(input.dtype, copy=False))


vector_product.derivative("input", formula="other × grad")(
    lambda grad, other, dim, ops: ops.linalg_cross(other, grad, dim)
)
vector_product.derivative("other", formula="grad × input")(
    lambda grad, input, dim, ops: ops.linalg_cross(grad, input, dim)
)


def chain_matmul(*matrices):
    """Multiply a chain of matrices in the order that costs the least; the old name of `linalg.multi_dot`."""
    warnings.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters.",
        UserWarning,
        stacklevel=2,
    )
    if not matrices:
        raise ShapeError("chain_matmul(): Expected one or more matrices")
    for matrix in matrices:
        if matrix._data.ndim != 2:
            raise ShapeError(f"chain_matmul(): Tensor dimension is {matrix._data.ndim}, expected 2 instead.")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)


def multi_dot(tensors: Sequence[TensorState]):
    """Multiply a chain of matrices in the order that costs the least; the first and last may be vectors.

    Raises:
        RuntimeError: there are fewer than two, or neighbours do not fit.
    """
    if isinstance(tensors, TensorState):
        raise ArgumentError("linalg_multi_dot(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    tensors = list(tensors)
    if len(tensors) < 2:
        raise ShapeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    shape = []
    if tensors[0]._data.ndim == 1:
        tensors[0] = tensors[0].reshape((1, -1))
    else:
        shape += tensors[0]._data.shape[:1]
    if tensors[-1]._data.ndim == 1:
        tensors[-1] = tensors[-1].reshape((-1, 1))
    else:
        shape += tensors[-1]._data.shape[-1:]
    _check_chain(tensors)
    sizes = [tensor._data.shape[0] for tensor in tensors] + [tensors[-1]._data.shape[1]]
    return _multiplied(tensors, _best_splits(sizes), 0, len(tensors) - 1).reshape(shape)


def _check_chain(tensors: Sequence[TensorState]) -> None:
    last = len(tensors) - 1
    for place, tensor in enumerate(tensors):
        if tensor._data.ndim != 2:
            which = {0: "the first tensor", last: "the last tensor"}.get(place, f"tensor {place}")
            allowed = "1D or 2D" if place in (0, last) else "2D"
            raise ShapeError(f"multi_dot(): {which} must be {allowed} but got {tensor._data.ndim}D")
    for place, (a, b) in enumerate(pairwise(tensors)):
        if a._data.dtype != b._data.dtype:
            names = [from_numpy_dtype(one._data.dtype).old_name for one in (a, b)]
            raise ShapeError(f"multi_dot(): all tensors must have be the same dtype, got {names[0]} and {names[1]}")
        if a._data.shape[1] != b._data.shape[0]:
            raise ShapeError(
                f"multi_dot(): tensors {place} and {place + 1} with shapes {list(a._data.shape)} and "
                f"{list(b._data.shape)} cannot be multiplied"
            )


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return where to split each stretch of a chain; matrix i is (sizes[i], sizes[i + 1]) (dynamic programming)."""
    count = len(sizes) - 1
    widths = np.array(sizes, np.float64)
    cost, splits = np.zeros((count, count)), {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            between = widths[first] * widths[first + 1 : last + 1] * widths[last + 1]
            total = cost[first, first:last] + cost[first + 1 : last + 1, last] + between
            best = int(np.argmin(total))
            cost[first, last], splits[first, last] = total[best], first + best
    return splits


def _multiplied(tensors: Sequence[TensorState], splits: dict, first: int, last: int):
    if first == last:
        return tensors[first]
    at = splits[first, last]
    return matrix_product(_multiplied(tensors, splits, first, at), _multiplied(tensors, splits, at + 1, last))
