"""QR factors: A = Q · R."""

from collections.abc import Sequence

from backlight import return_types
from backlight.codegen.complex_ops import adjoint
from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ShapeError, UnsupportedError
from backlight.ops.linalg.matrix_checks import check_float, check_matrix, zeros
from backlight.ops.type_promotion import holds_complex
from backlight.system.user_warnings import warn_once

__all__ = ["geqrf", "qr"]

MODES = ("reduced", "complete", "r")


@op(name="linalg_qr", outputs=2, returns=return_types.linalg_qr, complex="own")
def orthogonal_factor(xp, A: Array, mode: str = "reduced"):
    """The factors Q and R; Q without elements for mode "r"."""
    check_matrix("linalg.qr", A)
    check_float("linalg.qr", A)
    if mode not in MODES:
        raise ShapeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    found = xp.linalg.qr(A, mode)
    return (xp.zeros((0,), A.dtype), found) if mode == "r" else tuple(found)


@orthogonal_factor.derivative("A", formula="[∂Q + Q · copy(R · ∂Rᵀ − ∂Qᵀ · Q)] · R⁻ᵀ, copy: lower triangle to upper")
def orthogonal_factor_input(grad: Sequence[Array | None], out: Sequence[Array], mode: str, ops):
    vectors, upper = out
    rows, columns = vectors.shape[-2] if vectors.ndim > 1 else None, upper.shape[-1]
    check_differentiable(mode, rows, columns)
    count = upper.shape[-2]
    grad_q = zeros(vectors.shape, vectors) if grad[0] is None else grad[0]
    grad_r = zeros(upper.shape, upper) if grad[1] is None else grad[1]
    rest, grad_rest = upper[..., count:], grad_r[..., count:]  # of columns that a wide A has too many
    grad_q = grad_q + vectors @ (rest @ adjoint(grad_rest))
    square = upper[..., :count]
    inner = square @ adjoint(grad_r[..., :count]) - adjoint(grad_q) @ vectors
    inner = mirrored(inner, ops)
    left = ops.linalg_solve_triangular(adjoint(square), grad_q + vectors @ inner, upper=False, left=False)
    return left if columns == count else ops.cat([left, vectors @ grad_rest], -1)


def mirrored(matrices: Array, ops):
    """Return the lower triangle and its mirror above the diagonal; of complex numbers their Hermitian matrix."""
    below = ops.tril(matrices, -1)
    if not holds_complex(matrices):
        return ops.tril(matrices) + below.mT
    return below + adjoint(below) + ops.diag_embed(ops.with_zeros(ops.real(ops.diagonal(matrices, 0, -2, -1))))


def check_differentiable(mode: str, rows: int, columns: int) -> None:
    """Raise PyTorch's error for factors of which the gradient is not defined."""
    if mode == "r":
        raise GraphError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and rows > columns:
        raise GraphError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.\n"
            "  The columns of Q beyond those of A are arbitrary: use mode='reduced'"
        )


@public_function
def linalg_qr(A: TensorState, mode: str = "reduced"):
    """Return (Q, R): orthonormal columns and an upper triangular matrix, with Q · R = A.

    Shapes: A (…, m, n) -> (…, m, k), (…, k, n) with k = min(m, n); "complete": (…, m, m), (…, m, n)
    """
    return orthogonal_factor(A, mode)


@public_function
def qr(input: TensorState, some: bool = True):
    """Return (Q, R) with Q · R = input; the old form of `linalg.qr`."""
    warn_once(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\n"
        "The boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\n"
        "should be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')",
        stacklevel=3,
    )
    return return_types.qr(*orthogonal_factor(input, "reduced" if some else "complete"))


@op(outputs=2, returns=return_types.geqrf)
def geqrf(xp, input: Array):
    """Return (a, tau): R, with below its diagonal the reflectors whose product Q is (see `linalg.householder_product`).

    Shapes: input (…, m, n) -> (…, m, n), (…, min(m, n))
    """
    check_matrix("torch.geqrf", input, "input")
    check_float("torch.geqrf", input)
    packed, tau = xp.linalg.qr(input, "raw")
    return xp.ascontiguousarray(packed.mT), tau


@geqrf.derivative("input", formula="none: PyTorch has none either")
def geqrf_input(grad: Sequence[Array | None]):
    raise UnsupportedError("the derivative for 'geqrf' is not implemented.\n  linalg.qr has one")
