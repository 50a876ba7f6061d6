"""Eigenvalues: of symmetric matrices A = V · diag(λ) · Vᵀ (of Hermitian ones Vᴴ), of others A = V · diag(λ) · V⁻¹."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight import return_types
from backlight.codegen.complex_ops import adjoint, conjugate
from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import complex_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import LinAlgError, ShapeError, UnsupportedError
from backlight.ops.linalg.matrix_checks import check_float, check_square, identity, is_differentiated, plain
from backlight.ops.linalg.matrix_products import big_name
from backlight.ops.type_promotion import holds_complex


def check_symmetric(array: Array, triangle: str) -> None:
    """Raise PyTorch's error for what has no eigenvalues, or a word that names no triangle."""
    check_square("linalg.eigh", array)
    if triangle not in ("L", "U", "l", "u"):
        raise ShapeError(f"Expected UPLO argument to be 'L' or 'U', but got {triangle}")
    if array.dtype.char not in "fdFD":
        raise UnsupportedError(
            f"\"linalg_eigh_cpu\" not implemented for '{big_name(array.dtype)}'; convert it first (.float())"
        )


def or_not_converged(function: Callable, *given):
    """Call one of NumPy's functions; PyTorch's error where it does not converge."""
    try:
        return function(*given)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            "repeated eigenvalues"
        ) from None


@op(name="linalg_eigh", outputs=2, returns=return_types.linalg_eigh, complex="own")
def symmetric_eigen(xp, input: Array, UPLO: str = "L"):
    """The eigenvalues and eigenvectors of symmetric matrices."""
    check_symmetric(input, UPLO)
    return tuple(or_not_converged(xp.linalg.eigh, input, UPLO.upper()))


@symmetric_eigen.derivative("input", formula="V · [(Vᵀ · ∂V − ∂Vᵀ · V) / 2E + diag(∂λ)] · Vᵀ, with E_ij = λ_j − λ_i")
def symmetric_eigen_input(grad: Sequence[Array | None], out: Sequence[Array], ops):
    values, vectors = out
    inner = None if grad[0] is None else ops.diag_embed(grad[0])
    if grad[1] is not None:
        itself = identity(values.shape[-1], values)
        apart = values[..., None, :] - values[..., :, None] + itself
        turned = adjoint(vectors) @ grad[1]
        through = 0.5 * (turned - adjoint(turned)) / apart
        inner = through if inner is None else inner + through
    if inner is None:
        return None
    if holds_complex(vectors) and not holds_complex(inner):
        inner = ops.with_zeros(inner)
    return vectors @ inner @ adjoint(vectors)


@public_function
def linalg_eigh(input: TensorState, UPLO: str = "L"):
    """Return (eigenvalues, eigenvectors) of symmetric matrices, from the smallest eigenvalue up.

    The gradient of the vectors divides by the gaps between eigenvalues, and depends on a choice of sign that is not
    the input's: only what does not depend on that choice should be differentiated.

    Shapes: input (…, n, n) -> (…, n), (…, n, n)

    Args:
        UPLO: which triangle is read, "L" or "U".
    """
    return symmetric_eigen(input, UPLO)


@public_function
def linalg_eigvalsh(input: TensorState, UPLO: str = "L"):
    """Return the eigenvalues of symmetric matrices, from the smallest up.

    Shapes: input (…, n, n) -> (…, n)
    """
    if is_differentiated(input):
        return symmetric_eigen(input, UPLO).eigenvalues
    check_symmetric(input._data, UPLO)
    return plain(or_not_converged(np.linalg.eigvalsh, input._data, UPLO.upper()))


@op(name="linalg_eig", outputs=2, returns=return_types.linalg_eig, complex="own")
def eigen(xp, input: Array):
    """The eigenvalues and eigenvectors of square matrices, complex numbers."""
    kind = complex_dtype(input.dtype)
    return tuple(one.astype(kind, copy=False) for one in _eigen(xp.linalg.eig, input))


def _eigen(function: Callable, input: Array):
    """Call NumPy's `eig` or `eigvals`; PyTorch's errors for what has no eigenvalues."""
    check_square("linalg.eig", input)
    check_float("linalg.eig", input)
    if not np.isfinite(input).all():
        raise ShapeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return function(input)


@eigen.derivative("input", formula="V⁻ᴴ · [diag(∂λ) + (Vᴴ · ∂V − Vᴴ · V · Re diag(Vᴴ · ∂V)) / conj(E)] · Vᴴ")
def eigen_input(grad: Sequence[Array | None], input_dtype: np.dtype, out: Sequence[Array], ops):
    values, vectors = out
    turned = adjoint(vectors)
    inner = None if grad[0] is None else ops.diag_embed(grad[0])
    if grad[1] is not None:
        both = turned @ grad[1]
        share = ops.with_zeros(ops.real(ops.diagonal(both, 0, -2, -1)))
        both = both - (turned @ vectors) * share[..., None, :]
        apart = conjugate(values[..., None, :] - values[..., :, None]) + identity(values.shape[-1], values)
        inner = both / apart if inner is None else inner + both / apart
    if inner is None:
        return None
    found = ops.linalg_solve_ex(turned, inner @ turned)[0]
    return found if np.dtype(getattr(input_dtype, "numpy", input_dtype)).kind in "cW" else ops.real(found)


@public_function
def linalg_eig(input: TensorState):
    """Return (eigenvalues, eigenvectors) of square matrices, complex numbers in no order that is promised.

    The vectors have length 1 and a phase that is not the input's: only what does not depend on that phase should be
    differentiated.

    Shapes: input (…, n, n) -> (…, n), (…, n, n)
    """
    return eigen(input)


@public_function
def linalg_eigvals(input: TensorState):
    """Return the eigenvalues of square matrices, complex numbers in no order that is promised.

    Shapes: input (…, n, n) -> (…, n)
    """
    if is_differentiated(input):
        return eigen(input).eigenvalues
    kind = complex_dtype(input._data.dtype)
    return plain(_eigen(np.linalg.eigvals, input._data).astype(kind, copy=False))
