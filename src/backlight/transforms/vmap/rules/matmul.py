"""Batching rules of products of matrices and vectors: the batch is one more dim in front of the matrices."""

from math import prod

from backlight.ops.linalg.einsum import contraction
from backlight.ops.linalg.matrix_products import matmul
from backlight.transforms.vmap.op_call import Call
from backlight.transforms.vmap.rule_table import rule_for


@rule_for("mm")
def mm(call: Call):
    """Multiply matrices in batches; one that is not batched is taken as it is."""
    return call.wrapped(matmul(call.below(call["input"]), call.below(call["mat2"])))


@rule_for("bmm")
def bmm(call: Call):
    """Multiply with the batch in front, and dims of size 1 after it where one operand has fewer dims."""
    dims = max(call["input"]._data.ndim, call["mat2"]._data.ndim)
    return call.wrapped(matmul(*(call.front_padded(call[name], dims) for name in ("input", "mat2"))))


@rule_for("mv")
def mv(call: Call):
    """Multiply matrices by vectors, as columns where they are batched."""
    matrix, vector = call["input"], call["vec"]
    if not call.is_batched(vector):
        return call.wrapped(matmul(matrix.physical, vector))
    if not call.is_batched(matrix) and matrix._data.ndim == 2:
        return call.wrapped(matmul(vector.physical, matrix.t()))
    columns = call.padded(vector, matrix._data.ndim - 1).unsqueeze(-1)
    return call.wrapped(matmul(call.below(matrix), columns).squeeze(-1))


@rule_for("vm")
def vm(call: Call):
    """Multiply vectors, as rows where they are batched, by matrices."""
    vector, matrix = call["input"], call["mat2"]
    if not call.is_batched(matrix) and matrix._data.ndim == 2:
        return call.wrapped(matmul(vector.physical, matrix))
    rows = call.padded(vector, matrix._data.ndim - 1).unsqueeze(-2) if call.is_batched(vector) else vector.unsqueeze(0)
    return call.wrapped(matmul(rows, call.below(matrix)).squeeze(-2))


@rule_for("dot", "vdot")
def dot(call: Call):
    """Multiply rows by columns."""
    first, second = (call[param.name] for param in call.op.arrays)
    if not call.is_batched(first):
        first, second = second, first
    if not call.is_batched(second):
        return call.wrapped(matmul(first.physical, second))
    return call.wrapped(matmul(first.physical.unsqueeze(1), second.physical.unsqueeze(2)).squeeze((1, 2)))


@rule_for("linear_with_bias", "linear_without_bias")
def linear(call: Call):
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
def added(call: Call):
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
def einsum(call: Call):
    """Give the batch its own subscript."""
    tensors, terms, output = call["tensors"], call["terms"], call["output"]
    label = next(chr(code) for code in range(0x4E00, 0x9FFF) if chr(code) not in output and chr(code) not in str(terms))
    below = [call.below(one) for one in tensors]
    labels = tuple(label + term if call.is_batched(one) else term for one, term in zip(tensors, terms))
    return call.wrapped(contraction(below, labels, label + output))


@rule_for("cdist", "_cdist_forward")
def cdist(call: Call):
    """Compute distances with the batch in front of both."""
    dims = max(call["x1"]._data.ndim, call["x2"]._data.ndim)
    return call.run(**{name: call.front_padded(call[name], dims) for name in ("x1", "x2")})
