"""Norms of matrices and their condition numbers."""

import math
from collections.abc import Sequence
from types import NoneType

import numpy as np

from backlight import dtypes
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError
from backlight.ops.dims import normalise_dim
from backlight.ops.linalg.linear_systems import inversion
from backlight.ops.linalg.matrix_checks import check_float, check_matrix, times, zeros
from backlight.ops.linalg.singular_values import linalg_svdvals
from backlight.ops.reduction.extremes import amax, amin
from backlight.ops.reduction.norms import check_not_narrower, vector_norm
from backlight.ops.reduction.reductions import in_dtype

__all__ = ["norm"]

BY_SINGULAR_VALUES = (2, -2, "nuc")


def matrix_norm(
    input: TensorState, ord: float | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype=None
):
    """Return the norm of the matrices that the two dims `dim` make.

    Args:
        ord: "fro", 1 and −1 (largest and smallest sum of a column's sizes), inf and −inf (of a row's), 2 and −2
            (largest and smallest singular value), "nuc" (their sum).
        dtype: compute in this dtype, which must not be narrower.
    """
    name = "linalg.matrix_norm"
    check_matrix(name, input._data)
    if isinstance(dim, int) or len(dim) != 2:
        got = dim if isinstance(dim, int) else " ".join(map(str, dim))
        raise ShapeError(f"{name}: dim must be a 2-tuple. Got {got}")
    rows, columns = [normalise_dim(one, input.ndim) for one in dim]
    if rows == columns:
        raise ShapeError(f"{name}: dims must be different. Got {tuple(dim)}")
    if ord not in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise ShapeError(
            f'{name}: Order {ord} not supported.\n  There are "fro", "nuc", 1, -1, 2, -2, inf and -inf, and vector_norm'
        )
    by_values = ord in BY_SINGULAR_VALUES
    check_float(name, input._data, low_precision=not by_values)
    if dtype is not None:
        check_not_narrower(name, input, dtype)
    if ord == "fro":
        return vector_norm(input, 2, (rows, columns), keepdim, dtype=dtype)
    if by_values:
        return norm_by_singular_values(in_dtype(input, dtype), ord, rows, columns, keepdim)
    if abs(ord) == math.inf:
        rows, columns = columns, rows
    sums = vector_norm(input, 1, rows, True, dtype=dtype)
    if ord > 0 and not sums.shape[columns]:  # the largest of no sums is 0, the smallest is nothing
        return sums.sum((rows, columns), keepdim)
    found = (amax if ord > 0 else amin)(sums, columns, True)
    return found if keepdim else found.squeeze((rows, columns))


def norm_by_singular_values(matrices: TensorState, ord: float | str, rows: int, columns: int, keepdim: bool):
    """Return the largest or smallest singular value, or the sum of all."""
    last = matrices.ndim - 2, matrices.ndim - 1
    if (rows, columns) != last:
        matrices = matrices.movedim((rows, columns), last)
    values = linalg_svdvals(matrices)
    if ord == "nuc":
        found = values.sum(-1)
    elif ord == 2 and not values.shape[-1]:
        found = zeros(tuple(values.shape[:-1]), values)
    else:
        found = (amax if ord > 0 else amin)(values, -1)
    if keepdim:
        for dim in sorted((rows, columns)):
            found = found.unsqueeze(dim)
    return found


def linalg_norm(input, ord=None, dim=None, keepdim=False, *, dtype=None):
    """Return the norm of vectors (one dim, or no `ord`) or of matrices (two dims, or an `ord` that is a word)."""
    if dim is not None and not isinstance(dim, int) and len(dim) not in (1, 2):
        raise ShapeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if ord is None:
        return vector_norm(input, 2, dim, keepdim, dtype=dtype)
    if dim is None and input.ndim not in (1, 2):
        raise ShapeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.ndim}D."
        )
    if isinstance(ord, str):
        return matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if input.ndim == 2 if dim is None else not isinstance(dim, int) and len(dim) == 2:
        return matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, ord, dim, keepdim, dtype=dtype)


def norm(
    input: TensorState,
    p: float | str = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
):
    """Return the p-norm of all elements, or of the vectors over `dim`; "fro" is 2, None too, "nuc" of matrices."""
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise ShapeError(f"linalg.matrix_norm: Order {p} not supported.")
    if not isinstance(p, (str, int, float, np.number, TensorState, NoneType)):
        raise ArgumentError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {type(p).__name__}")
    if dtype is not None and not isinstance(dtype, dtypes.dtype):
        raise ArgumentError(f"linalg_vector_norm(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    if not isinstance(dim, (tuple, list, int, np.integer, str, TensorState, NoneType)):
        kind = type(dim).__name__
        raise ArgumentError(f"linalg_vector_norm(): argument 'dim' (position 3) must be tuple of ints, not {kind}")
    if isinstance(p, str) and p == "nuc":
        return matrix_norm(input, p, tuple(range(input.ndim)) if dim is None else dim, keepdim, dtype=dtype)
    euclidean = p is None or (isinstance(p, str) and p == "fro")
    return vector_norm(input, 2 if euclidean else p, dim, keepdim, dtype=dtype)


@public_function
def linalg_cond(input: TensorState, p: float | str | None = None):
    """Return condition numbers: by how much solving an equation may enlarge an error.

    Shapes: input (…, m, n) -> (…)

    Args:
        p: the norm; None and 2 give the largest singular value over the smallest, −2 the reverse; the others,
            ‖A‖ · ‖A⁻¹‖, need square matrices.
    """
    if input.ndim < 2:
        raise ShapeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p not in (None, 2, -2):
        _check_condition(input, p)
    if not input.numel():
        return zeros(tuple(input.shape[:-2]), input)
    if p is None or p in (2, -2):
        values = linalg_svdvals(input)
        first, last = values[..., :1], values[..., -1:]
        return (last / first if p == -2 else first / last).squeeze(-1)
    # ‖A‖ · ‖A⁻¹‖, infinite for singular matrices
    inverse, info = inversion(input)
    inverse = inverse.masked_fill((info > 0)[..., None, None], math.inf)
    if p == "nuc":
        return matrix_norm(input, p) * matrix_norm(inverse, p)
    return (matrix_norm(input, p) * matrix_norm(inverse, p)).nan_to_num(math.inf, math.inf, -math.inf)


def _check_condition(input: TensorState, p: float | str) -> None:
    known = p in ("fro", "nuc", 1, -1, math.inf, -math.inf)
    square = input.shape[-1] == input.shape[-2] or (not input.numel() and p not in ("fro", "nuc"))
    if not square:
        raise ShapeError(
            f"linalg.cond(ord={p}): A must be batches of square matrices, but they are {times(input)} "
            "matrices\n  For other matrices leave p=None"
        )
    if not known:
        raise ShapeError(f"linalg.cond got an invalid norm type: {p}")
