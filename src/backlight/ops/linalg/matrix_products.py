"""Products of vectors, matrices and batches of matrices.

NOTE [Products in PyTorch's dtypes]
NumPy multiplies mixed dtypes by promoting them; PyTorch refuses. NumPy multiplies halves in slow loops, and bfloat16 to
float32; PyTorch gives halves. So a forward takes NumPy's product only where both operands are of one wide dtype, and
leaves all else to `careful_product`. A rule calls the kernel where `grad` is a wide array, and `ops.mm` else.

NOTE [Folding]
A stack of matrices times one matrix or vector is one product of all the stack's rows, where the rows lie evenly in
memory, or where the smaller operand requires grad: of a product for each matrix its gradient would be as many, kept
until they are added up. A stack on the right is transposed, and the result copied into order. These are PyTorch's
rules, so that the graph has its nodes; only broadcasting is our bmm's own affair, where PyTorch's has nodes before it.
"""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from backlight.codegen.complex_ops import conjugate
from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError, UnsupportedError
from backlight.kernels.half_precision import is_half
from backlight.kernels.linalg import matrix_products
from backlight.ops.shape.reshaping import unsafe_view

ndarray = np.ndarray

__all__ = ["bmm", "dot", "matmul", "mm", "mv", "vdot"]


def careful_product(xp, a: Array, b: Array, check: Callable):
    """Return a @ b in the operands' dtype; halves are multiplied as float32.

    Args:
        check: raises PyTorch's error for operands of two dtypes, or of sizes that do not fit.
    """
    check(a, b)
    if is_half(a):
        return (a.astype(xp.float32) @ b.astype(xp.float32)).astype(a.dtype)
    if a.dtype.kind == "b":
        raise UnsupportedError(
            "\"addmm_impl_cpu_\" not implemented for 'Bool'; convert the operands with .to(torch.int64)"
        )
    wide = type(a) is type(b) is ndarray and a.dtype == b.dtype and a.dtype.char in "fd" and min(a.ndim, b.ndim) > 1
    return matrix_products.matmul(a, b) if wide else a @ b


def small_name(kind: np.dtype) -> str:
    """Return a dtype as PyTorch's products name it: float, double, long int."""
    return from_numpy_dtype(kind).c_name


def big_name(kind: np.dtype) -> str:
    """Return a dtype by its old name: Float, Double, Long."""
    return from_numpy_dtype(kind).old_name


def times(shape: Sequence[int]) -> str:
    """Return a shape as 2x3."""
    return "x".join(map(str, shape))


@public_function
def mm(input: TensorState, mat2: TensorState):
    """Multiply two matrices.

    Shapes: input (n, k), mat2 (k, m) -> (n, m)
    """
    for name, matrix in (("self", input), ("mat2", mat2)):
        if isinstance(matrix, TensorState) and matrix._data.ndim != 2:
            raise ShapeError(f"{name} must be a matrix; it has shape {list(matrix._data.shape)}: see torch.matmul")
    return matrix_product(input, mat2)


def check_matrices(a: Array, b: Array) -> None:
    """Raise PyTorch's error unless a (n, k) and b (k, m) can be multiplied."""
    check_inner_sizes(a, b)
    if a.dtype != b.dtype:
        raise ShapeError(
            f"expected m1 and m2 to have the same dtype, but got: {small_name(a.dtype)} != {small_name(b.dtype)}; "
            "convert one of them with .to(dtype)"
        )


def check_inner_sizes(a: Array, b: Array) -> None:
    """Raise PyTorch's error unless matrices of these shapes can be multiplied."""
    if a.shape[1] != b.shape[0]:
        raise ShapeError(
            f"mat1 and mat2 shapes cannot be multiplied ({times(a.shape)} and {times(b.shape)}); the inner sizes, "
            f"{a.shape[1]} and {b.shape[0]}, must be equal"
        )


def check_sum_dtypes(added: Array, mat1: Array, mat2: Array) -> None:
    """Raise PyTorch's error unless `added` + mat1 · mat2 is all of one dtype."""
    for name, array in (("self", added), ("mat1", mat1)):
        if array.dtype != mat2.dtype:
            raise ShapeError(
                f"{name} and mat2 must have the same dtype, but got {big_name(array.dtype)} and "
                f"{big_name(mat2.dtype)}; convert one of them with .to(dtype)"
            )


@op(name="mm", explain=check_matrices, tangent="multilinear", complex="holomorphic")
def matrix_product(xp, input: Array, mat2: Array):
    """Multiply two matrices."""
    return (
        matrix_products.matmul(input, mat2)
        if input.dtype is mat2.dtype and input.dtype.itemsize > 2
        else careful_product(xp, input, mat2, check_matrices)
    )


@matrix_product.derivative("input", formula="grad · mat2ᵀ")
def matrix_product_input(grad: Array, mat2: Array, ops):
    return (
        matrix_products.matmul(grad, mat2.T)
        if grad.__class__ is ndarray and grad.itemsize > 2
        else ops.mm(grad, mat2.T)
    )


@matrix_product.derivative("mat2", formula="inputᵀ · grad")
def matrix_product_mat2(grad: Array, input: Array, ops):
    return (
        matrix_products.matmul(input.T, grad)
        if grad.__class__ is ndarray and grad.itemsize > 2
        else ops.mm(input.T, grad)
    )


@public_function
def bmm(input: TensorState, mat2: TensorState):
    """Multiply two batches of matrices, pair by pair.

    Shapes: input (b, n, k), mat2 (b, k, m) -> (b, n, m)
    """
    for name, batch in (("batch1", input), ("batch2", mat2)):
        if isinstance(batch, TensorState) and batch._data.ndim != 3:
            raise ShapeError(f"{name} must be a 3D tensor; it has shape {list(batch._data.shape)}: see torch.matmul")
    if isinstance(input, TensorState) and isinstance(mat2, TensorState):
        check_batches(input._data, mat2._data)
    return batch_product(input, mat2)


def check_batches(a: Array, b: Array) -> None:
    """Raise PyTorch's error unless a (b, n, k) and b (b, k, m) can be multiplied."""
    expected = [a.shape[0], a.shape[2]]
    if list(b.shape[:2]) != expected:
        raise ShapeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: {list(b.shape[:2])}."
            f"\n  The shapes are {list(a.shape)} and {list(b.shape)}: one matrix for each, and inner sizes equal"
        )


def check_stacks(a: Array, b: Array) -> None:
    """Raise PyTorch's error unless stacks of matrices can be multiplied and their batch dims broadcast."""
    if a.dtype != b.dtype:
        raise ShapeError(
            f"expected scalar type {big_name(a.dtype)} but found {big_name(b.dtype)}; convert one with .to(dtype)"
        )
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    for place, (left, right) in enumerate(zip(reversed(lead_a), reversed(lead_b)), 1):
        if left != right and 1 not in (left, right):
            dim = max(len(lead_a), len(lead_b)) - place
            raise ShapeError(
                f"The size of tensor a ({left}) must match the size of tensor b ({right}) at non-singleton dimension "
                f"{dim}; the shapes are {list(a.shape)} and {list(b.shape)}: all dims but the last two must broadcast"
            )
    if a.shape[-1] != b.shape[-2]:
        count = prod(np.broadcast_shapes(lead_a, lead_b))
        raise ShapeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {a.shape[-1]}] but got: "
            f"[{count}, {b.shape[-2]}].\n  The shapes are {list(a.shape)} and {list(b.shape)}: the inner sizes, "
            f"{a.shape[-1]} and {b.shape[-2]}, must be equal"
        )


@op(name="bmm", explain=check_stacks, tangent="multilinear", complex="holomorphic")
def batch_product(xp, input: Array, mat2: Array):
    """Multiply stacks of matrices; batch dims broadcast."""
    return (
        matrix_products.matmul(input, mat2)
        if input.dtype is mat2.dtype and input.dtype.itemsize > 2
        else careful_product(xp, input, mat2, check_stacks)
    )


batch_product.derivative("input", formula="grad · mat2ᵀ, summed over broadcast dims")(
    lambda grad, mat2, input_shape, ops: ops.sum_to_size(ops.bmm(grad, mat2.mT), input_shape)
)
batch_product.derivative("mat2", formula="inputᵀ · grad, summed over broadcast dims")(
    lambda grad, input, mat2_shape, ops: ops.sum_to_size(ops.bmm(input.mT, grad), mat2_shape)
)


def mv(input: TensorState, vec: TensorState):
    """Multiply a matrix with a vector.

    Shapes: input (n, k), vec (k,) -> (n,)
    """
    if isinstance(input, TensorState) and isinstance(vec, TensorState):
        dims = input._data.ndim, vec._data.ndim
        if dims != (2, 1):
            raise ShapeError(f"vector + matrix @ vector expected, got 1, {dims[0]}, {dims[1]}; see torch.matmul")
    return matrix_vector_product(input, vec)


@op(name="mv", tangent="multilinear", complex="holomorphic")
def matrix_vector_product(xp, input: Array, vec: Array):
    """Multiply a matrix with a vector."""
    return careful_product(xp, input, vec, check_matrix_and_vector)


matrix_vector_product.derivative("input", formula="grad · vecᵀ")(lambda grad, vec: grad.reshape((*grad.shape, 1)) * vec)
matrix_vector_product.derivative("vec", formula="inputᵀ · grad")(lambda grad, input, ops: ops.mv(input.T, grad))


def check_matrix_and_vector(a: Array, b: Array) -> None:
    """Raise PyTorch's error unless a (n, k) and b (k,) can be multiplied."""
    rows, count = a.shape
    if count != b.shape[0]:
        raise ShapeError(
            f"size mismatch, got input ({rows}), mat ({rows}x{count}), vec ({b.shape[0]}); the vector must have "
            f"{count} numbers"
        )
    if a.dtype != b.dtype:
        raise ShapeError(
            f"addmv input tensors must have the same dtype, but got {big_name(b.dtype)}, {big_name(a.dtype)}, and "
            f"{big_name(b.dtype)}; convert one of them with .to(dtype)"
        )


def check_vector_and_matrix(a: Array, b: Array) -> None:
    """Raise PyTorch's error unless a (k,) and b (k, m) can be multiplied."""
    check_matrices(a[None], b)


@op(name="vm", node="SqueezeBackward4", tangent="multilinear", complex="holomorphic")
def vector_matrix_product(xp, input: Array, mat2: Array):
    """Multiply a vector with a matrix."""
    return careful_product(xp, input, mat2, check_vector_and_matrix)


vector_matrix_product.derivative("input", formula="mat2 · grad")(lambda grad, mat2, ops: ops.mv(mat2, grad))
vector_matrix_product.derivative("mat2", formula="input · gradᵀ")(lambda grad, input: input.reshape((-1, 1)) * grad)


@op(tangent="multilinear", complex="holomorphic")
def dot(xp, input: Array, tensor: Array):
    """Multiply two vectors element by element and add up.

    Shapes: input (n,), tensor (n,) -> ()
    """
    return careful_product(xp, input, tensor, check_vectors)


dot.derivative("input", formula="grad · tensor")(lambda grad, tensor: grad * tensor)
dot.derivative("tensor", formula="grad · input")(lambda grad, input: grad * input)


@op(tangent="multilinear", complex="own")
def vdot(xp, input: Array, other: Array):
    """Multiply two vectors element by element, the first conjugated, and add up."""
    return careful_product(xp, conjugate(input), other, check_vectors)


vdot.derivative("input", formula="conj(grad) · other")(lambda grad, other: conjugate(grad) * other)
vdot.derivative("other", formula="grad · input")(lambda grad, input: grad * input)


def check_vectors(a: Array, b: Array) -> None:
    """Raise PyTorch's error unless a and b are vectors of one size and dtype."""
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors; see torch.matmul")
    if a.dtype != b.dtype:
        raise ShapeError(
            f"dot : expected both vectors to have same dtype, but found {big_name(a.dtype)} and {big_name(b.dtype)}; "
            "convert one of them with .to(dtype)"
        )
    if a.dtype.kind == "b":
        raise UnsupportedError("\"dot\" not implemented for 'Bool'; convert the vectors with .to(torch.int64)")
    if a.shape != b.shape:
        raise ShapeError(
            f"inconsistent tensor size, expected tensor [{a.size}] and src [{b.size}] to have the same number of "
            f"elements, but got {a.size} and {b.size} elements respectively"
        )


@public_function
def matmul(input: TensorState, other: TensorState):
    """Multiply vectors, matrices or stacks of matrices.

    A vector counts as a row on the left and as a column on the right. Dims before the last two broadcast.

    Shapes: input (…, n, k), other (…, k, m) -> (…, n, m)

    Raises:
        RuntimeError: an operand is 0-d, the inner sizes or the dtypes differ, or the batch dims do not broadcast.
    """
    if not isinstance(input, TensorState) or not isinstance(other, TensorState):
        raise not_a_tensor("matmul", input=input, other=other)
    return matrix_product(input, other)


@matrix_product.unless_dims(dims=2)
def product_of_dims(input: TensorState, other):
    """Multiply tensors that are not both matrices, by the op that fits (see NOTE [Folding])."""
    left, right = input._data.ndim, other._data.ndim
    if left == 0 or right == 0:
        raise ShapeError(
            f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D; use * for numbers"
        )
    if right <= 2 < left:
        # a stack times one matrix or vector is to be one product (see NOTE [Folding])
        return folded(input, other) if other._edge is not None or rows_follow(input._data) else stacked(input, other)
    if left <= 2 < right:
        return folded_from_left(input, other) if folds_from_left(input, other) else stacked(input, other)
    if left > 2:
        return folded_stack(input, other) if left == right == 3 else stacked(input, other)
    if right == 2:
        return vector_matrix_product(input, other)
    return dot(input, other) if left == 1 else matrix_vector_product(input, other)


def folds_from_left(one: TensorState, stack: TensorState) -> bool:
    """Tell the same of one matrix or vector times a stack."""
    return one._edge is not None or (one._data.ndim == 1 and rows_follow(stack._data.mT))


def rows_follow(data: Array) -> bool:
    """Tell whether the rows of a stack lie in memory with one distance between all of them."""
    if data.__class__ is not ndarray or data.flags.c_contiguous:
        return True
    return all(data.strides[dim] == data.strides[dim + 1] * data.shape[dim + 1] for dim in range(data.ndim - 2))


def folded(stack: TensorState, one: TensorState):
    """Multiply all rows of a stack by one matrix or vector."""
    shape = stack._data.shape
    rows = stack.reshape((prod(shape[:-1]), shape[-1]))
    if one._data.ndim == 1:
        return unsafe_view(matrix_vector_product(rows, one), shape[:-1])
    return unsafe_view(matrix_product(rows, one), shape[:-1] + one._data.shape[1:])


def folded_from_left(one: TensorState, stack: TensorState):
    """Multiply one matrix or vector by a stack: as the transposed stack's product by the transposed one."""
    if one._data.ndim == 1:
        return folded(stack.mT, one)
    return folded(stack.mT, one.t()).mT.contiguous()


def folded_stack(input: TensorState, other: TensorState):
    """Multiply stacks of one batch dim; one that holds a single matrix, whose gradient is wanted, is that matrix."""
    left, right = len(input._data), len(other._data)
    if left == 1 != right and input._edge is not None:
        return product_of_dims(input.squeeze(0), other)
    if right == 1 != left and other._edge is not None:
        return product_of_dims(input, other.squeeze(0))
    return stacked(input, other)


def stacked(input: TensorState, other: TensorState):
    """Multiply pair by pair; a matrix or vector is one for each of the other's matrices."""
    if other._data.ndim == 1:
        product = batch_product(input, other.unsqueeze(1)).squeeze(-1)
        return unsafe_view(product, product._data.shape)
    product = batch_product(input if input._data.ndim > 1 else input.unsqueeze(0), other)
    shape = product._data.shape
    return unsafe_view(product, shape if input._data.ndim > 1 else shape[:-2] + shape[-1:])


def not_a_tensor(name: str, **arguments) -> ArgumentError:
    """Return PyTorch's error for the first argument that is no tensor."""
    place, wrong = next(
        (place, name) for place, (name, value) in enumerate(arguments.items(), 1) if not isinstance(value, TensorState)
    )
    return ArgumentError(
        f"{name}(): argument '{wrong}' (position {place}) must be Tensor, not {type(arguments[wrong]).__name__}; "
        "wrap it with torch.tensor(…)"
    )
