"""Determinants, and the logarithms of their sizes."""

from collections.abc import Sequence

import numpy as np

from backlight import return_types
from backlight.codegen.complex_ops import adjoint, conjugate
from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.ops.elementwise.transcendental import log
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.linalg.matrix_checks import check_float, check_square
from backlight.ops.linalg.singular_values import decomposed
from backlight.ops.type_promotion import holds_complex

__all__ = ["det", "logdet", "slogdet"]


@op(complex="holomorphic")
def linalg_det(xp, A: Array):
    """Return the determinants of square matrices.

    Shapes: A (…, n, n) -> (…)
    """
    check_square("linalg.det", A)
    check_float("linalg.det", A)
    return determinant(xp, A)


def determinant(xp, matrices: Array):
    """Return NumPy's determinants, which may overflow without a warning."""
    with xp.errstate(all="ignore"):
        return xp.linalg.det(matrices)


@linalg_det.derivative("A", formula="grad · cofactors of A, which are det(A) · A⁻ᵀ where A is invertible")
def linalg_det_input(grad: Array, A: Array, ops):
    return grad[..., None, None] * ops.cofactors(A)


@op(node="LinalgDetBackwardBackward0", complex="holomorphic")
def cofactors(xp, input: Array):
    """The matrix of cofactors: what the determinant changes by for a change of each element.

    It exists for singular matrices too. With input = U · diag(s) · Vᵀ it is det(U) · det(V) · U · diag(c) · Vᵀ, where
    c_i is the product of all s but s_i; of complex numbers with U and V conjugated.
    """
    try:
        inverse = xp.linalg.inv(input)
    except xp.linalg.LinAlgError:
        return _cofactors_by_values(xp, input)
    found = determinant(xp, input)[..., None, None] * inverse.mT
    condition = xp.abs(input).sum(-2).max(-1, initial=0) * xp.abs(inverse).sum(-2).max(-1, initial=0)
    close = ~(condition * xp.finfo(input.dtype).eps ** 0.5 < 1)  # to a singular matrix
    if close.any():
        found[close] = _cofactors_by_values(xp, input[close])
    return found


def _cofactors_by_values(xp, matrices: Array):
    """Return the cofactors by singular values."""
    left, sizes, right = decomposed(xp, matrices, True)
    sign = xp.linalg.det(left) * xp.linalg.det(right)
    left, right = conjugate(left), conjugate(right)
    return (left * (sign[..., None] * products_without(xp, sizes))[..., None, :]) @ right


def products_without(xp, values: Array):
    """Return, for each value, the product of all the others along the last dim, without dividing."""
    ones = xp.ones_like(values[..., :1])
    before = xp.concatenate([ones, xp.cumprod(values, -1)[..., :-1]], -1)
    after = xp.concatenate([xp.cumprod(values[..., ::-1], -1)[..., -2::-1], ones], -1)
    return before * after if values.shape[-1] else values


cofactors.derivative("input", formula="the change of the cofactors along grad: they are their own transposed map")(
    lambda grad, input, ops: ops.cofactor_derivative(input, grad)
)


@op(node="LinalgDetBackwardBackwardBackward0", complex="holomorphic")
def cofactor_derivative(xp, input: Array, direction: Array):
    """By how much the cofactors of `input` change along `direction`.

    With M = Uᵀ · direction · V, and c_ij the product of all s but s_i and s_j, this is det(U) · det(V) · U · K · Vᵀ,
    where K_ii = Σ_j≠i c_ij · M_jj and K_ij = −c_ij · M_ji.
    """
    left, sizes, right = decomposed(xp, input, True)
    sign = xp.linalg.det(left) * xp.linalg.det(right)
    without = pairs_without(xp, sizes)
    turned = conjugate(left).mT @ direction @ conjugate(right).mT
    change = -without * turned.mT
    places = xp.arange(sizes.shape[-1])
    change[..., places, places] = (without @ xp.diagonal(turned, 0, -2, -1)[..., None])[..., 0]
    return sign[..., None, None] * (conjugate(left) @ change @ conjugate(right))


def pairs_without(xp, values: Array):
    """Return, for each two places, the product of all values but theirs; 0 on the diagonal."""
    count = values.shape[-1]
    itself = xp.eye(count, dtype=bool)
    left_out = itself[:, None, :] | itself[None, :, :]
    found = xp.where(left_out, values.dtype.type(1), values[..., None, None, :]).prod(-1)
    return xp.where(itself, values.dtype.type(0), found)


cofactor_derivative.derivative("direction", formula="the change of the cofactors along grad")(
    lambda grad, input, ops: ops.cofactor_derivative(input, grad)
)


@cofactor_derivative.derivative("input", formula="third derivatives of det, written with A⁻ᵀ: for invertible A only")
def cofactor_derivative_input(grad: Array, input: Array, direction: Array, ops):
    inverse = ops.linalg_inv_ex(input, raising="third derivative of linalg.det")[0].mT
    first, second = direction.mT @ inverse, grad.mT @ inverse  # Gᵀ · B, Hᵀ · B, with B = A⁻ᵀ
    trace_first, trace_second, trace_both = (traces(m, ops) for m in (first, second, first @ second))
    scale = ops.linalg_det(input)[..., None, None]
    outer = (trace_first * trace_second - trace_both) * inverse
    inner = inverse @ (first @ second + second @ first - trace_second * first - trace_first * second)
    return scale * (outer + inner)


def traces(matrices: Array, ops):
    """Return the traces of a batch of matrices, with two dims of size 1 in their place."""
    return ops.sum(ops.diagonal(matrices, 0, -2, -1), (-1,), True)[..., None]


def det(input: TensorState):
    """Return the determinants of square matrices.

    Shapes: input (…, n, n) -> (…)
    """
    return linalg_det(input)


@op(name="linalg_slogdet", outputs=2, complex="own", returns=return_types.linalg_slogdet)
def sign_and_logarithm(xp, A: Array):
    """The sign of the determinant, and the logarithm of its size."""
    check_square("linalg.slogdet", A)
    check_float("linalg.slogdet", A)
    return tuple(xp.linalg.slogdet(A))


@sign_and_logarithm.derivative("A", formula="(grad of the logarithm − i · Im(conj(grad of the sign) · sign)) · A⁻ᴴ")
def sign_and_logarithm_input(grad: Sequence[Array | None], A: Array, out: Sequence[Array], ops):
    factor = grad[1]
    if grad[0] is not None and holds_complex(A):
        turn = ops.imag(conjugate(grad[0]) * out[0]) * -1j
        factor = turn if factor is None else factor + turn
    return None if factor is None else factor[..., None, None] * adjoint(ops.linalg_inv_ex(A)[0])


def linalg_slogdet(A: TensorState):
    """Return (sign, logarithm of the size) of the determinants of square matrices.

    Shapes: A (…, n, n) -> (…), (…)
    """
    return sign_and_logarithm(A)


def slogdet(input: TensorState):
    """Return (sign, logarithm of the size) of the determinants of square matrices."""
    return return_types.slogdet(*sign_and_logarithm(input))


def logdet(input: TensorState):
    """Return the logarithms of the determinants of square matrices: NaN where the determinant is negative."""
    check_square("logdet", input._data)
    check_float("logdet", input._data)
    sign, logarithm = sign_and_logarithm(input)
    if holds_complex(input):
        return log(sign) + logarithm
    return where(sign == -1, np.nan, logarithm)
