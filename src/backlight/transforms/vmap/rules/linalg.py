"""Batching rules of linear algebra and Fourier transforms: the matrices, or the signals, are the last dims."""

from backlight.ops.linalg.linear_systems import is_vector
from backlight.transforms.vmap.op_call import Call
from backlight.transforms.vmap.rule_table import rule_for


@rule_for(
    """
    cholesky cholesky_inverse cholesky_solve cofactor_slopes cofactors geqrf linalg_cholesky_ex linalg_det linalg_eigh
    linalg_inv_ex linalg_ldl_factor_ex linalg_lu linalg_lu_factor_ex linalg_matrix_exp linalg_slogdet
    linalg_solve_triangular linalg_svd permutation_matrix triangular_solve
    """
)
def matrices(call: Call):
    """Put the batch in front of all matrices, with dims of size 1 after it where one has fewer dims."""
    dims = max(tensor._data.ndim for tensor in call.tensors())
    return call.run(**{param.name: call.front_padded(call[param.name], dims) for param in call.op.arrays})


@rule_for("linalg_solve_ex")
def solve(call: Call):
    """The same; a right side with one dim less than the matrices is a batch of vectors."""
    shape = call["A"]._data.shape[:-1]
    if not is_vector(call["A"]._data.shape, call["B"]._data.shape):
        return matrices(call)
    right = call.front_padded(call["B"], len(shape)).expand((call.size, *shape))
    return call.run(A=call.front(call["A"]), B=right)


@rule_for("linalg_pinv linalg_matrix_rank")
def up_to_tolerances(call: Call):
    """The same; tolerances have two dims less."""
    dims = call["input"]._data.ndim
    bounds = {name: call.front_padded(call[name], dims - 2) for name in ("atol", "rtol")}
    return call.run(input=call.front(call["input"]), **bounds)


@rule_for("linalg_householder_product ormqr")
def of_equal_dims(call: Call):
    """Put the batch in front of all: matrices and vectors have the same leading dims."""
    return call.run(**all_in_front(call))


@rule_for("linalg_lstsq linalg_qr")
def with_empty_results(call: Call):
    """The same; an empty result has no batch yet."""
    return with_batch_in_all(call, call.run_below(**all_in_front(call)))


def all_in_front(call: Call) -> dict:
    """Return all arrays with the batch in front."""
    return {param.name: call.front(call[param.name]) for param in call.op.arrays}


def with_batch_in_all(call: Call, found: tuple):
    """Return several results as batched tensors, those of shape (0,) too."""
    return call.wrapped(type(found)(*(one.expand((call.size, 0)) if one._data.shape == (0,) else one for one in found)))


@rule_for("lu_unpack", "linalg_ldl_solve", "linalg_lu_solve")
def pivoted(call: Call):
    """The same; pivots have one dim less. What lu_unpack does not unpack is of shape (0,)."""
    places = {"LU_pivots", "pivots"}
    dims = max(call[param.name]._data.ndim + (param.name in places) for param in call.op.arrays)
    found = call.run_below(
        **{param.name: call.front_padded(call[param.name], dims - (param.name in places)) for param in call.op.arrays}
    )
    return with_batch_in_all(call, found) if call.op.outputs > 1 else call.wrapped(found)
