"""Singular values: A = U · diag(S) · Vᵀ."""

from collections.abc import Sequence

import numpy as np

from backlight import return_types
from backlight.codegen.complex_ops import adjoint
from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import LinAlgError, ShapeError
from backlight.ops.linalg.matrix_checks import check_float, check_matrix, identity, is_differentiated, plain, zeros
from backlight.ops.shape.transposing import adjoint as mH
from backlight.ops.type_promotion import holds_complex

__all__ = ["svd"]


def decomposed(xp, input: Array, full_matrices: bool, compute_uv: bool = True):
    """Return NumPy's singular value decomposition, or raise PyTorch's error where it does not converge."""
    if xp.isinf(input).any():
        return around_infinities(xp, input, full_matrices, compute_uv)  # LAPACK's loop may never end
    try:
        found = xp.linalg.svd(input, full_matrices, compute_uv)
        failed = xp.isnan(found[1] if compute_uv else found).any()
    except np.linalg.LinAlgError:
        failed = True
    if failed:
        raise not_converged(input)
    return found


def around_infinities(xp, input: Array, full_matrices: bool, compute_uv: bool):
    """Return NaN for matrices that hold infinities; PyTorch's error for NaN."""
    infinite = xp.isinf(input).any((-2, -1))
    if xp.isnan(input).any():
        raise not_converged(input)
    finite = xp.where(infinite[..., None, None], input.dtype.type(0), input)
    found = decomposed(xp, finite, full_matrices, compute_uv)
    if not compute_uv:
        return xp.where(infinite[..., None], xp.nan, found)
    left, sizes, right = found
    full = infinite[..., None, None]
    return xp.where(full, xp.nan, left), xp.where(infinite[..., None], xp.nan, sizes), xp.where(full, xp.nan, right)


def not_converged(input: Array) -> LinAlgError:
    """Return PyTorch's error for the first matrix of a batch that has no singular values."""
    bad = ~np.isfinite(input).all((-2, -1))
    place = f"(Batch element {int(np.flatnonzero(bad)[0])}): " if input.ndim > 2 and bad.any() else ""
    if bad.any():
        return LinAlgError(
            f"linalg.svd: {place}The algorithm failed to converge because the input matrix contained non-finite values."
        )
    return LinAlgError(
        f"linalg.svd: {place}The algorithm failed to converge because the input matrix is ill-conditioned or has too "
        "many repeated singular values"
    )


@op(name="linalg_svd", outputs=3, returns=return_types.linalg_svd, complex="own")
def decomposition(xp, A: Array, full_matrices: bool = True):
    """The singular vectors and values: U, S, Vᵀ."""
    check_matrix("linalg.svd", A)
    check_float("linalg.svd", A)
    return tuple(decomposed(xp, A, full_matrices))


@decomposition.derivative("A", formula="of S: U · diag(∂S) · Vᵀ; of U and V by s_j² − s_i², see svd_gradient")
def decomposition_input(grad: Sequence[Array | None], out: Sequence[Array], full_matrices: bool, ops):
    left, sizes, right = out
    count = sizes.shape[-1]
    grad_left, grad_sizes, grad_right = grad
    if full_matrices:
        left, right = left[..., :count], right[..., :count, :]
        grad_left = None if grad_left is None else grad_left[..., :count]
        grad_right = None if grad_right is None else grad_right[..., :count, :]
    return svd_gradient(grad_left, grad_sizes, grad_right, left, sizes, right, ops)


def svd_gradient(grad_left, grad_sizes, grad_right, left, sizes, right, ops):
    """Return the gradient of A from those of U, S and Vᵀ, each of which may be missing.

    With E_ij = s_j² − s_i² and skew(X) = X − Xᵀ it is

        U · [(skew(Uᵀ · ∂U) / E) · diag(s) + diag(s) · (skew(Vᵀ · ∂V) / E) + diag(∂S)] · Vᵀ

    plus, for a U with more rows than columns, (I − U · Uᵀ) · ∂U · diag(1 / s) · Vᵀ, and the same for V. Equal singular
    values make E zero: the vectors are not differentiable there.
    """
    inner = None if grad_sizes is None else ops.diag_embed(grad_sizes)
    count = sizes.shape[-1]
    if grad_left is not None or grad_right is not None:
        squares = sizes * sizes
        apart = squares[..., None, :] - squares[..., :, None] + identity(count, sizes)
        if grad_left is not None:
            turned = adjoint(left) @ grad_left
            skew = turned - adjoint(turned)
            inner = added(inner, skew / apart * sizes[..., None, :])
            if grad_right is not None and holds_complex(left):  # a phase that both vectors of a pair share
                inner = inner + ops.diag_embed(ops.diagonal(skew, 0, -2, -1) / (2 * sizes))
        if grad_right is not None:
            turned = right @ adjoint(grad_right)
            inner = added(inner, sizes[..., :, None] * ((turned - adjoint(turned)) / apart))
    if inner is None:
        return None
    if holds_complex(left) and not holds_complex(inner):
        inner = ops.with_zeros(inner)
    found = left @ inner @ right
    if grad_left is not None and left.shape[-2] > count:
        outside = grad_left - left @ (adjoint(left) @ grad_left)
        found = found + (outside / sizes[..., None, :]) @ right
    if grad_right is not None and right.shape[-1] > count:
        outside = grad_right - (grad_right @ adjoint(right)) @ right
        found = found + left @ (outside / sizes[..., :, None])
    return found


def added(total: Array | None, part: Array):
    """Return a sum of which the first part may be missing."""
    return part if total is None else total + part


@public_function
def linalg_svd(A: TensorState, full_matrices: bool = True, *, driver: str | None = None):
    """Return (U, S, Vh): orthonormal columns, singular values from the largest down, orthonormal rows.

    Shapes: A (…, m, n) -> (…, m, m), (…, k), (…, n, n) with k = min(m, n); with full_matrices=False (…, m, k), (…, k),
    (…, k, n)
    """
    if driver is not None:
        raise ShapeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    return decomposition(A, full_matrices)


@public_function
def linalg_svdvals(A: TensorState, *, driver: str | None = None):
    """Return the singular values, from the largest down.

    Shapes: A (…, m, n) -> (…, min(m, n))
    """
    if driver is not None or is_differentiated(A):
        return linalg_svd(A, False, driver=driver).S
    check_matrix("linalg.svd", A._data)
    check_float("linalg.svd", A._data)
    return plain(decomposed(np, A._data, False, False))


@public_function
def svd(input: TensorState, some: bool = True, compute_uv: bool = True):
    """Return (U, S, V) with input = U · diag(S) · Vᵀ; the old form of `linalg.svd`.

    Args:
        some: only the first min(m, n) columns of U and V.
        compute_uv: False leaves zeros in the place of U and V.
    """
    if input.ndim < 2:
        raise ShapeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input.ndim} dimensions instead"
        )
    if compute_uv:
        left, sizes, right = decomposition(input, not some)
        return return_types.svd(left, sizes, mH(right))
    batch, (rows, columns) = input._data.shape[:-2], input._data.shape[-2:]
    nothing = [zeros((*batch, size, size), input) for size in (rows, columns)]
    return return_types.svd(nothing[0], linalg_svdvals(input), nothing[1])
