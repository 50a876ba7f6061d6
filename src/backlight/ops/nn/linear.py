"""Layers that multiply with a weight: linear and bilinear.

NOTE [Rows]
A weight sees its input as rows: all dims but the last are one. The op takes an input of any shape and returns rows; a
view in the caller's shape follows. So backward is two matrix products, in memory that is already in the right order.
"""

from math import prod

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, ShapeError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.linalg import matrix_products
from backlight.ops.linalg.einsum import einsum
from backlight.ops.linalg.matrix_products import (
    careful_product,
    check_inner_sizes,
    check_matrices,
    check_sum_dtypes,
    matmul,
    not_a_tensor,
    small_name,
)
from backlight.ops.number_operands import require_no_bools
from backlight.ops.shape.reshaping import unsafe_view
from backlight.sizes import Shape

__all__ = ["bilinear"]

ndarray = np.ndarray


@public_function
def linear(input: TensorState, weight: TensorState, bias: TensorState | None = None):
    """Apply x · weightᵀ + bias to the last dim.

    Shapes: input (…, in), weight (out, in) or (in,), bias (out,) or None -> (…, out) or (…)

    Raises:
        RuntimeError: the sizes or the dtypes do not fit.
    """
    try:
        shape, sizes = input._data.shape, weight._data.shape
        simple = len(sizes) == 2 and len(shape) > 1 and (bias is None or bias._data.shape == sizes[:1])
    except AttributeError:
        raise not_a_tensor("linear", input=input, weight=weight, **({} if bias is None else {"bias": bias})) from None
    if not simple:
        sizes = weight._data.shape
        if bias is not None and input._data.ndim == 1 and bias._data.shape == sizes[:1] and len(sizes) == 2:
            return view_of_rows(linear_with_bias(bias, input, weight), sizes[:1])
        product = matmul(input, weight.T if len(sizes) == 2 else weight)
        return product if bias is None else product + _expandable(bias, product)
    if bias is None:
        rows = linear_without_bias(input, weight)
        return rows if len(shape) == 2 else unsafe_view(rows, shape[:-1] + sizes[:1])
    rows = linear_with_bias(bias, input, weight)
    return rows if len(shape) == 2 else view_of_rows(rows, shape[:-1] + sizes[:1])


def _expandable(bias: TensorState, product: TensorState):
    """Return the bias, or raise PyTorch's error if it is larger than the product it is added to."""
    wanted, found = list(product._data.shape), list(bias._data.shape)
    for dim, size in enumerate(reversed(found), 1):
        if dim > len(wanted) or size not in (1, wanted[-dim]):
            at = len(wanted) - dim
            raise ShapeError(
                f"The expanded size of the tensor ({wanted[at]}) must match the existing size ({size}) at "
                f"non-singleton dimension {at}.  Target sizes: {wanted}.  Tensor sizes: {found}\n  A bias has one "
                "number for each row of the weight"
            )
    return bias


def rows_of(input: Array):
    """Return an array with all dims but the last made one."""
    return input if input.ndim == 2 else input.reshape((prod(input.shape[:-1]), input.shape[-1]))


def check_rows_and_weight(input: Array, weight: Array) -> None:
    """Raise PyTorch's error unless the input's last size is the weight's."""
    check_matrices(rows_of(input), weight.T)


def check_rows_weight_and_bias(bias: Array, input: Array, weight: Array) -> None:
    """Raise PyTorch's error unless weight and bias fit the input."""
    check_inner_sizes(rows_of(input), weight.T)
    check_sum_dtypes(bias, input, weight)


@op(node="MmBackward0", explain=check_rows_and_weight, tangent="multilinear", complex="holomorphic")
def linear_without_bias(xp, input: Array, weight: Array):
    """Rows times the transposed weight."""
    return (
        matrix_products.linear(input, weight, None)
        if input.dtype is weight.dtype and input.dtype.itemsize > 2
        else careful_product(xp, rows_of(input), weight.T, check_matrices)
    )


@op(node="AddmmBackward0", explain=check_rows_weight_and_bias, complex="holomorphic", called_as=(1, 2, 0))
def linear_with_bias(xp, bias: Array, input: Array, weight: Array):
    """Rows times the transposed weight, plus bias, which stands first, as in `addmm`."""
    kind = input.dtype
    if kind is not weight.dtype or kind is not bias.dtype or kind.itemsize <= 2:
        check_rows_weight_and_bias(bias, input, weight)
        require_no_bools("addmm_impl_cpu_", input)
        return rounded(rows_of(widened(input)) @ widened(weight).T + widened(bias), kind)
    return matrix_products.linear(input, weight, bias)


@linear_without_bias.derivative("input", formula="grad · weight")
@linear_with_bias.derivative("input", formula="grad · weight")
def linear_input(grad: Array, weight: Array, input_shape: Shape, ops):
    wide = grad.__class__ is ndarray and grad.itemsize > 2
    return (matrix_products.matmul(grad, weight) if wide else ops.mm(grad, weight)).reshape(input_shape)


@linear_without_bias.derivative("weight", formula="gradᵀ · rows of input")
@linear_with_bias.derivative("weight", formula="gradᵀ · rows of input")
def linear_weight(grad: Array, input: Array, ops):
    rows = input.reshape((grad.shape[0], input.shape[-1]))
    wide = grad.__class__ is ndarray and grad.itemsize > 2
    return matrix_products.matmul(grad.T, rows) if wide else ops.mm(grad.T, rows)


@linear_with_bias.derivative("bias", formula="Σ grad over rows")
def linear_with_bias_bias(grad: Array, ops):
    return matrix_products.column_sums(grad) if grad.__class__ is ndarray and grad.itemsize > 2 else ops.sum(grad, (0,))


linear_with_bias.tangent("input")(lambda tangent, weight, ops: ops.linear_without_bias(tangent, weight))
linear_with_bias.tangent("weight")(lambda tangent, input, ops: ops.linear_without_bias(input, tangent))
linear_with_bias.tangent("bias")(lambda tangent: tangent)


@op(node="ViewBackward0", tangent="linear", complex="linear")
def view_of_rows(xp, input: Array, size: tuple):
    """A fresh result in another shape."""
    return input.reshape(size)


view_of_rows.derivative("input", formula="grad in the shape of input")(
    lambda grad, input_shape: grad.reshape(input_shape)
)


@public_function
def bilinear(input1: TensorState, input2: TensorState, weight: TensorState, bias: TensorState | None = None):
    """Apply x1ᵀ · weight · x2 + bias to the last dims, one weight matrix for each output.

    Shapes: input1 (…, n), input2 (…, m), weight (out, n, m), bias (out,) or None -> (…, out)

    Raises:
        RuntimeError: the sizes do not fit.
    """
    left, right, sizes = input1._data.shape, input2._data.shape, weight._data.shape
    _check_one_dtype({"input1": input1, "input2": input2, "weight": weight, "bias": bias})
    if len(left) != len(right):
        raise ShapeError(f"bilinear(): input dimensions do not match: got {len(left)} and {len(right)}")
    for dim, (first, second) in enumerate(zip(left[:-1], right[:-1])):
        if first != second:
            raise ShapeError(
                f"bilinear(): input batch dimensions do not match at dim {dim}: got {first} and {second}; the shapes "
                f"are {list(left)} and {list(right)}, which may differ in the last dim only"
            )
    if not left:
        raise DimError("Dimension specified as -1 but tensor has no dimensions; the inputs need one")
    if len(sizes) != 3:
        raise ShapeError(f"number of dimensions must match; bilinear's weight has 3, got {list(sizes)}")
    for name, found, wanted in (("input1", left[-1], sizes[1]), ("input2", right[-1], sizes[2])):
        if found != wanted:
            raise ShapeError(f"bilinear(): {name} size does not match weight size: got {found} but expected {wanted}")
    if bias is not None and bias._data.shape != sizes[:1]:
        raise ShapeError(
            f"bilinear(): bias size does not match weight size: got {bias._data.size} but expected {sizes[0]}"
        )
    require_no_bools("bmm", weight)
    count = prod(left[:-1])
    first, second = input1.reshape((count, left[-1])), input2.reshape((count, right[-1]))
    rows = einsum("bi,oij,bj->bo", first, weight, second)
    out = rows.reshape((*left[:-1], sizes[0]))
    return out if bias is None else out + bias


def _check_one_dtype(named: dict) -> None:
    given = {name: tensor._data.dtype for name, tensor in named.items() if tensor is not None}
    if len(set(given.values())) > 1:
        listed = ", ".join(f"{name}: {small_name(kind)}" for name, kind in given.items())
        raise ShapeError(f"All tensors must have the same dtype, got {listed}")
