"""Batching rules of linear algebra: the matrices are the last dims, and products have the batch in front of them."""

from math import prod

from backlight.ops.linalg.einsum import contraction
from backlight.ops.linalg.linear_systems import is_vector
from backlight.ops.linalg.matrix_products import matmul
from backlight.transforms.vmap.op_call import BatchedCall, rule_for


@rule_for(
    """
    cholesky cholesky_inverse cholesky_solve cofactor_derivative cofactors geqrf linalg_cholesky_ex linalg_det
    linalg_eigh linalg_inv_ex linalg_ldl_factor_ex linalg_lu linalg_lu_factor_ex linalg_matrix_exp linalg_slogdet
    linalg_solve_triangular linalg_svd permutation_matrix triangular_solve
    """
)
def matrices(call: BatchedCall):
    """Put the batch in front of all matrices, with dims of size 1 after it where one has fewer dims."""
    dims = max(tensor._data.ndim for tensor in call.tensors())
    return call.run(**{param.name: call.front_padded(call[param.name], dims) for param in call.op.arrays})


@rule_for("linalg_solve_ex")
def solve(call: BatchedCall):
    """The same; a right side with one dim less than the matrices is a batch of vectors."""
    shape = call["A"]._data.shape[:-1]
    if not is_vector(call["A"]._data.shape, call["B"]._data.shape):
        return matrices(call)
    right = call.front_padded(call["B"], len(shape)).expand((call.size, *shape))
    return call.run(A=call.front(call["A"]), B=right)


@rule_for("linalg_pinv linalg_matrix_rank")
def up_to_tolerances(call: BatchedCall):
    """The same; tolerances have two dims less."""
    dims = call["input"]._data.ndim
    bounds = {name: call.front_padded(call[name], dims - 2) for name in ("atol", "rtol")}
    return call.run(input=call.front(call["input"]), **bounds)


@rule_for("linalg_householder_product ormqr")
def of_equal_dims(call: BatchedCall):
    """Put the batch in front of all: matrices and vectors have the same leading dims."""
    return call.run(**all_in_front(call))


@rule_for("linalg_lstsq linalg_qr")
def with_empty_results(call: BatchedCall):
    """The same; an empty result has no batch yet."""
    return with_batch_in_all(call, call.run_below(**all_in_front(call)))


def all_in_front(call: BatchedCall) -> dict:
    """Return all arrays with the batch in front."""
    return {param.name: call.front(call[param.name]) for param in call.op.arrays}


def with_batch_in_all(call: BatchedCall, found: tuple):
    """Return several results as batched tensors, those of shape (0,) too."""
    return call.wrapped(type(found)(*(one.expand((call.size, 0)) if one._data.shape == (0,) else one for one in found)))


@rule_for("lu_unpack", "linalg_ldl_solve", "linalg_lu_solve")
def pivoted(call: BatchedCall):
    """The same; pivots have one dim less. What lu_unpack does not unpack is of shape (0,)."""
    places = {"LU_pivots", "pivots"}
    dims = max(call[param.name]._data.ndim + (param.name in places) for param in call.op.arrays)
    found = call.run_below(
        **{param.name: call.front_padded(call[param.name], dims - (param.name in places)) for param in call.op.arrays}
    )
    return with_batch_in_all(call, found) if call.op.outputs > 1 else call.wrapped(found)


@rule_for("mm")
def mm(call: BatchedCall):
    """Multiply matrices in batches; one that is not batched is taken as it is."""
    return call.wrapped(matmul(call.below(call["input"]), call.below(call["mat2"])))


@rule_for("bmm")
def bmm(call: BatchedCall):
    """Multiply with the batch in front, and dims of size 1 after it where one operand has fewer dims."""
    dims = max(call["input"]._data.ndim, call["mat2"]._data.ndim)
    return call.wrapped(matmul(*(call.front_padded(call[name], dims) for name in ("input", "mat2"))))


@rule_for("mv")
def mv(call: BatchedCall):
    """Multiply matrices by vectors, as columns where they are batched."""
    matrix, vector = call["input"], call["vec"]
    if not call.is_batched(vector):
        return call.wrapped(matmul(matrix.physical, vector))
    if not call.is_batched(matrix) and matrix._data.ndim == 2:
        return call.wrapped(matmul(vector.physical, matrix.t()))
    columns = call.padded(vector, matrix._data.ndim - 1).unsqueeze(-1)
    return call.wrapped(matmul(call.below(matrix), columns).squeeze(-1))


@rule_for("vm")
def vm(call: BatchedCall):
    """Multiply vectors, as rows where they are batched, by matrices."""
    vector, matrix = call["input"], call["mat2"]
    if not call.is_batched(matrix) and matrix._data.ndim == 2:
        return call.wrapped(matmul(vector.physical, matrix))
    rows = call.padded(vector, matrix._data.ndim - 1).unsqueeze(-2) if call.is_batched(vector) else vector.unsqueeze(0)
    return call.wrapped(matmul(rows, call.below(matrix)).squeeze(-2))


@rule_for("dot", "vdot")
def dot(call: BatchedCall):
    """Multiply rows by columns."""
    first, second = (call[param.name] for param in call.op.arrays)
    if not call.is_batched(first):
        first, second = second, first
    if not call.is_batched(second):
        return call.wrapped(matmul(first.physical, second))
    return call.wrapped(matmul(first.physical.unsqueeze(1), second.physical.unsqueeze(2)).squeeze((1, 2)))


@rule_for("linear_with_bias", "linear_without_bias")
def linear(call: BatchedCall):
    """Merge the batch into the rows; where weights are batched, use a batched product and add the bias afterwards."""
    input, weight, bias = call["input"], call["weight"], call.given.get("bias")
    shape = input._data.shape
    if call.is_batched(weight) or call.is_batched(bias):
        with call.inside():
            rows = matmul(input.reshape((prod(shape[:-1]), shape[-1])), weight.t())
            return rows if bias is None else rows + bias
    rows = call.run_below()
    return call.wrapped(rows.reshape((call.size, prod(shape[:-1]), rows._data.shape[-1])))


@rule_for("addmm", "addmv", "addbmm", "addr", "baddbmm")
def added(call: BatchedCall):
    """Multiply, scale and add, one after the other."""
    with call.inside():
        input, first, second = (call[param.name] for param in call.op.arrays)
        beta, alpha = call["beta"], call["alpha"]
        product = first.outer(second) if call.op.name == "addr" else matmul(first, second)
        if call.op.name == "addbmm":
            product = product.sum(0)
        product = product if alpha == 1 else product * alpha
        if beta == 0:
            return product
        return product + (input if beta == 1 else input * beta)


@rule_for("einsum")
def einsum(call: BatchedCall):
    """Give the batch its own subscript."""
    tensors, terms, output = call["tensors"], call["terms"], call["output"]
    label = next(chr(code) for code in range(0x4E00, 0x9FFF) if chr(code) not in output and chr(code) not in str(terms))
    below = [call.below(one) for one in tensors]
    labels = tuple(label + term if call.is_batched(one) else term for one, term in zip(tensors, terms))
    return call.wrapped(contraction(below, labels, label + output))


@rule_for("cdist", "_cdist_forward")
def cdist(call: BatchedCall):
    """Compute distances with the batch in front of both."""
    dims = max(call["x1"]._data.ndim, call["x2"]._data.ndim)
    return call.run(**{name: call.front_padded(call[name], dims) for name in ("x1", "x2")})
