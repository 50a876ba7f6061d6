"""Batching rules of linear algebra and Fourier transforms: the matrices, or the signals, are what stands last."""

from backlight.batching.dim_rules import with_dims
from backlight.batching.table import rule_for


@rule_for(
    """
    cholesky cholesky_inverse cholesky_solve cofactor_slopes cofactors linalg_cholesky_ex linalg_det linalg_inv_ex
    linalg_lu linalg_lu_factor_ex linalg_slogdet linalg_solve_triangular triangular_solve
    """
)
def matrices(call):
    """Put the batch in front of all matrices, and sizes of 1 behind it where one has fewer dims."""
    dims = max(tensor._data.ndim for tensor in call.tensors())
    return call.run(**{param.name: call.front_padded(call[param.name], dims) for param in call.op.arrays})


@rule_for(
    """
    geqrf linalg_eigh linalg_ldl_factor_ex linalg_matrix_exp linalg_matrix_rank linalg_pinv linalg_qr linalg_svd
    """
)
def one_matrix(call):
    """Run as it is: the matrices stand last."""
    return call.run()


@rule_for("linalg_householder_product")
def reflections(call):
    """Put the batch in front of both."""
    return call.run(**{param.name: call.front(call[param.name]) for param in call.op.arrays})


@rule_for("linalg_solve_ex")
def solve(call):
    """The same; a right side of one dim less than the matrices, of their rows, is vectors."""
    left, right = call["A"]._data, call["B"]._data
    if right.ndim == 1 or (right.ndim == left.ndim - 1 and right.shape == left.shape[:-1]):
        return call.run(**{name: call.front(call[name]) for name in ("A", "B")})
    return matrices(call)


@rule_for("lu_unpack", "linalg_lu_solve")
def pivoted(call):
    """The same; pivots have one dim less."""
    places = {"LU_pivots", "pivots"}
    dims = max(call[param.name]._data.ndim + (param.name in places) for param in call.op.arrays)
    fronts = {
        param.name: call.front_padded(call[param.name], dims - (param.name in places)) for param in call.op.arrays
    }
    return call.run(**fronts)


@rule_for("_safe_softmax", "glu")
def with_dim(call):
    """Move the dim up."""
    return with_dims(call)
