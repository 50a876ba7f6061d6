"""Eigenvalues of symmetric matrices: A = V · diag(λ) · Vᵀ."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight import return_types
from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, LinAlgError, ShapeError, UnsupportedError
from backlight.ops.linalg.matrix_checks import check_square, identity, is_differentiated, plain
from backlight.ops.linalg.matrix_products import big_name


def check_symmetric(array: Array, triangle: str) -> None:
    """Raise PyTorch's error for what has no eigenvalues, or a word that names no triangle."""
    check_square("linalg.eigh", array)
    if triangle not in ("L", "U", "l", "u"):
        raise ShapeError(f"Expected UPLO argument to be 'L' or 'U', but got {triangle}")
    if array.dtype.char not in "fd":
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


@op(name="linalg_eigh", outputs=2, returns=return_types.linalg_eigh)
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
        turned = vectors.mT @ grad[1]
        through = 0.5 * (turned - turned.mT) / apart
        inner = through if inner is None else inner + through
    return None if inner is None else vectors @ inner @ vectors.mT


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


def linalg_eig(input: TensorState):
    """Refuse: eigenvalues of matrices that are not symmetric are complex, and backlight has no complex dtypes."""
    raise _complex("eig")


def linalg_eigvals(input: TensorState):
    """Refuse: eigenvalues of matrices that are not symmetric are complex, and backlight has no complex dtypes."""
    raise _complex("eigvals")


def _complex(name: str) -> ArgumentError:
    return ArgumentError(
        f"complex dtypes are not in backlight: linalg.{name} gives complex eigenvalues; for symmetric matrices there "
        "are linalg.eigh and linalg.eigvalsh"
    )
