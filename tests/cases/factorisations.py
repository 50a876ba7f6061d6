"""QR factors, singular values, eigenvalues, pseudoinverses, least squares, norms and functions of matrices.

PyTorch raises in the backward of cond(A, 1) and cond(A, "fro"): it writes into the inverse that its node saved;
and has no derivative of ldl_solve.
"""

from dataclasses import replace

from case import Case, normal

from cases.linalg import LOOSE, WIDE, case, old, regular


def spread(t, x):
    """Return matrices whose singular values differ by more than 1."""
    left, _, right = t.linalg.svd(x, full_matrices=False)
    return (left * t.arange(1, min(x.shape[-2:]) + 1, dtype=x.dtype)) @ right + 0.05 * x


def symmetric(t, x):
    """Return symmetric matrices whose eigenvalues differ."""
    return x + x.mT + t.diag_embed(t.arange(x.shape[-1], dtype=x.dtype) * 8)


def without_signs(found):
    """Return vectors' sizes, which do not depend on the sign that LAPACK gave them."""
    return tuple(one.abs() for one in found)


QR = [
    case("linalg_qr", lambda t, x: t.linalg.qr(x), (2, 4, 3)),
    case("linalg_qr/square", lambda t, x: t.linalg.qr(x, mode="complete"), (3, 3)),
    case("linalg_qr/wide", lambda t, x: t.linalg.qr(x), (2, 3, 5)),
    case("linalg_qr/old", old(lambda t, x: x.qr()), (3, 2)),
    case("linalg_qr/R alone", lambda t, x: t.linalg.qr(x, "r").R, (4, 3), differentiable=False),
    case("linalg_qr/whole Q", lambda t, x: t.linalg.qr(x, "complete"), (4, 3), differentiable=False),
    case("geqrf", lambda t, x: t.geqrf(x), (2, 4, 3), differentiable=False),
    case("linalg_householder_product", lambda t, x, tau: t.linalg.householder_product(x, tau), (2, 4, 3), (2, 3)),
    case("linalg_householder_product/fewer", lambda t, x, tau: t.orgqr(x, tau), (4, 3), (2,)),
    case("ormqr", lambda t, x, tau, c: t.ormqr(x, tau, c), (2, 4, 3), (2, 3), (2, 4, 2)),
    case("ormqr/transposed", lambda t, x, tau, c: x.ormqr(tau, c, transpose=True), (4, 3), (3,), (4, 2)),
    case("ormqr/right", lambda t, x, tau, c: t.ormqr(x, tau, c, False), (4, 3), (3,), (2, 4)),
    case("ormqr/right, transposed", lambda t, x, tau, c: t.ormqr(x, tau, c, False, True), (4, 3), (3,), (2, 4)),
]

VALUES = [
    case("linalg_svd", lambda t, x: without_signs(t.linalg.svd(spread(t, x), full_matrices=False)), (2, 4, 3)),
    case("linalg_svd/wide", lambda t, x: without_signs(t.svd(spread(t, x))), (3, 4)),
    case("linalg_svd/product", lambda t, x: (lambda u, s, v: u @ v)(*t.linalg.svd(regular(t, x))), (3, 3)),
    case("linalg_svd/values", lambda t, x: t.linalg.svdvals(x), (2, 3, 4)),
    case("linalg_svd/old values", lambda t, x: x.svd(compute_uv=False), (4, 3)),
    case("linalg_svd/nuclear norm", lambda t, x: t.linalg.matrix_norm(x, "nuc", dim=(0, 2)), (3, 2, 4)),
    case("linalg_svd/largest", lambda t, x: t.linalg.norm(x, 2), (3, 4)),
    case("linalg_svd/smallest", lambda t, x: t.linalg.matrix_norm(x, -2, keepdim=True), (2, 3, 4)),
    case("linalg_svd/condition", lambda t, x: (t.linalg.cond(x), t.linalg.cond(x, -2)), (2, 3, 4)),
    case("linalg_eigh", lambda t, x: without_signs(t.linalg.eigh(symmetric(t, x))), (2, 3, 3)),
    case("linalg_eigh/upper", lambda t, x: without_signs(t.linalg.eigh(symmetric(t, x), UPLO="U")), (3, 3)),
    case("linalg_eigh/values", lambda t, x: t.linalg.eigvalsh(symmetric(t, x)), (2, 3, 3)),
]

PSEUDO = [
    case("linalg_pinv", lambda t, x: t.linalg.pinv(x), (2, 4, 2)),
    case("linalg_pinv/wide", lambda t, x: x.pinverse(), (2, 4)),
    case("linalg_pinv/rank 2", lambda t, x, y: t.linalg.pinv(x @ y, rtol=1e-5), (4, 2), (2, 3)),
    case("linalg_pinv/symmetric", lambda t, x: t.linalg.pinv(symmetric(t, x), hermitian=True), (3, 3)),
    case("linalg_matrix_rank", lambda t, x: t.linalg.matrix_rank(x @ x.mT, rtol=1e-5), (2, 4, 2), differentiable=False),
    case("linalg_lstsq", lambda t, x, b: t.linalg.lstsq(x, b), (2, 4, 2), (2, 4, 3)),
    case("linalg_lstsq/what is left", lambda t, x, b: t.linalg.lstsq(x, b, driver="gelsd"), (4, 2), (4, 3)),
    case("linalg_lstsq/full rank", lambda t, x, b: t.linalg.lstsq(x, b, driver="gels")[:2], (5, 2), (5, 1)),
    case("linalg_lstsq/wide", lambda t, x, b: t.linalg.lstsq(x, b).solution, (2, 4), (2, 3)),
    case("linalg_lstsq/vectors", lambda t, x, b: t.linalg.lstsq(x, b, driver="gelss").solution, (2, 4, 2), (2, 4)),
]

FUNCTIONS = [
    case("linalg_matrix_exp", lambda t, x: t.linalg.matrix_exp(x), (2, 3, 3)),
    case("linalg_matrix_exp/large norm", lambda t, x: t.matrix_exp(2 * x - 6 * t.eye(3, dtype=x.dtype)), (3, 3)),
    case("linalg_inv_ex/power −3", lambda t, x: t.linalg.matrix_power(regular(t, x), -3), (3, 3)),
    case("mm/power 5", lambda t, x: t.matrix_power(x, 5), (3, 3)),
    case("clone/power 0", lambda t, x: x.matrix_power(0), (2, 3, 3)),
    case("clone/power 1", lambda t, x: x.matrix_power(1), (3, 3)),
    case("linalg_inv_ex/tensorinv", lambda t, x: t.linalg.tensorinv(x.reshape(2, 3, 6)), (6, 6)),
    case("linalg_solve_ex/tensorsolve", lambda t, x, b: t.linalg.tensorsolve(x.reshape(2, 3, 6), b), (6, 6), (2, 3)),
    case("linalg_solve_ex/dims", lambda t, x, b: t.linalg.tensorsolve(x.reshape(6, 2, 3), b, (0,)), (6, 6), (2, 3)),
    case("cat/vander", lambda t, x: t.linalg.vander(x, N=4), (2, 3)),
    case("diagonal/linalg", lambda t, x: t.linalg.diagonal(x, offset=1), (2, 3, 4)),
    case("linalg_inv_ex/condition 1", lambda t, x: t.linalg.cond(regular(t, x), 1), (2, 3, 3), grad_parity=False),
    case("linalg_inv_ex/condition fro", lambda t, x: t.linalg.cond(regular(t, x), "fro"), (3, 3), grad_parity=False),
    case("linalg_inv_ex/condition nuc", lambda t, x: t.linalg.cond(regular(t, x), "nuc"), (3, 3)),
]

SYMMETRIC = [
    case("linalg_ldl_factor_ex", lambda t, x: t.linalg.ldl_factor_ex(x + x.mT), (2, 5, 5), differentiable=False),
    Case(
        "linalg_ldl_solve",
        lambda t, x, b: t.linalg.ldl_solve(*t.linalg.ldl_factor(x + x.mT), b),
        [replace(normal(2, 4, 4), differentiable=False), normal(2, 4, 3)],
        dtypes=WIDE,
        tolerance=LOOSE,
        grad_parity=False,
    ),
]

CASES = [*SYMMETRIC, *QR, *VALUES, *PSEUDO, *FUNCTIONS]
