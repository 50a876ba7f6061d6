"""Singular values of matrices of low rank, from products with a few random vectors.

Source: Halko, Martinsson and Tropp, Finding structure with randomness: probabilistic algorithms for constructing
approximate matrix decompositions, 2009, arXiv:0909.4061, algorithms 4.4 and 5.1.
"""

from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ValueProblem
from backlight.ops.linalg.qr import linalg_qr
from backlight.ops.linalg.singular_values import linalg_svd
from backlight.tensor.random_factories import randn

MOST_STEPS = 10_000  # a million would run for hours

__all__ = ["pca_lowrank", "svd_lowrank"]


def svd_lowrank(A: TensorState, q: int | None = 6, niter: int | None = 2, M: TensorState | None = None):  # noqa: N803 - PyTorch's names
    """Return (U, S, V) such that U · diag(S) · Vᵀ is close to A − M, with q singular values.

    Shapes: A (…, m, n) -> (…, m, q), (…, q), (…, n, q)

    Args:
        q: slightly more than A's rank.
        niter: how often to multiply with A and Aᵀ; more is more accurate.
        M: is subtracted from A first, for example the mean; broadcasts to A's shape.
    """
    q = 6 if q is None else q
    rest = A if M is None else A - M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    rest = rest.mT if wide else rest
    basis = approximate_basis(rest, q, 2 if niter is None else niter)
    left, sizes, right = linalg_svd(basis.mT @ rest, False)
    left, right = basis @ left, right.mT
    return (right, sizes, left) if wide else (left, sizes, right)


def approximate_basis(matrices: TensorState, q: int, niter: int):
    """Return q orthonormal columns Q such that Q · Qᵀ · A is close to A."""
    basis = linalg_qr(matrices @ randn(matrices.shape[-1], q, dtype=matrices.dtype)).Q
    if niter > MOST_STEPS:
        raise GraphError(f"niter must be at most {MOST_STEPS}, got {niter}; after a few steps the basis hardly changes")
    for _ in range(niter):
        basis = linalg_qr(matrices.mT @ basis).Q
        basis = linalg_qr(matrices @ basis).Q
    return basis


def pca_lowrank(A: TensorState, q: int | None = None, center: bool = True, niter: int = 2):  # noqa: N803 - PyTorch's name
    """Return (U, S, V): the columns of V are the principal directions of the rows of A.

    Shapes: A (…, m, n) -> (…, m, q), (…, q), (…, n, q)

    Args:
        q: how many directions; None is min(6, m, n).
        center: subtract the mean of the rows first.
        niter: how often to multiply with A and Aᵀ.

    Raises:
        ValueError: `q` or `niter` is negative, or `q` more than there are rows or columns.
    """
    rows, columns = A.shape[-2:]
    if q is None:
        q = min(6, rows, columns)
    elif not 0 <= q <= min(rows, columns):
        raise ValueProblem(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(rows, columns)}")
    if niter < 0:
        raise ValueProblem(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean((-2,), True) if center else A, q, niter)
