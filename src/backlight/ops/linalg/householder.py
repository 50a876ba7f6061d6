"""Products of Householder reflections, which QR factors are stored as.

NOTE [Reflections]
H_i = I − τ_i · v_i · v_iᵀ, where v_i is column i of V: zeros, a 1 on the diagonal, and below it what is stored. Their
product is Q = I − V · D · W⁻¹ · Vᵀ with D = diag(τ) and W = I + striu(Vᵀ · V) · D, which always has an inverse.
"""

from collections.abc import Sequence

from backlight.codegen.declaration import Array, op
from backlight.codegen.op_table import ARRAY_OPS
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError, UnsupportedError
from backlight.ops.linalg.matrix_checks import identity, zeros
from backlight.ops.linalg.matrix_products import big_name

__all__ = ["orgqr", "ormqr"]


def reflectors(packed: Array, count: int, ops):
    """Return V: the first columns below the diagonal, ones on it, zeros above."""
    return ops.tril(packed[..., :count], -1) + identity(packed.shape[-2], packed)[:, :count]


def reflected(vectors: Array, tau: Array, other: Array, transpose: bool, ops):
    """Return (Q · other, W⁻¹ · Vᵀ · other) or, with `transpose`, (Qᵀ · other, W⁻ᵀ · D · Vᵀ · other)."""
    columns = tau[..., None]
    overlaps = ops.triu(vectors.mT @ vectors, 1)
    inner = overlaps * tau[..., None, :] + identity(vectors.shape[-1], vectors)
    turned = vectors.mT @ other
    if transpose:
        found = ops.linalg_solve_triangular(inner.mT, columns * turned, upper=False, unitriangular=True)
        return other - vectors @ found, found
    halfway = ops.linalg_solve_triangular(inner, turned, upper=True, unitriangular=True)
    return other - vectors @ (columns * halfway), halfway


def gradients_of_reflections(grad: Array, packed: Array, tau: Array, other: Array, ops):
    """Return the gradients of the packed reflectors and of τ, for Q · other.

    With Y = W⁻¹ · Vᵀ · other, U = W⁻ᵀ · D · Vᵀ · grad and K = striu(U · Yᵀ · D):
    ∂V = −grad · Yᵀ · D − other · Uᵀ + V · (K + Kᵀ), ∂τ_j = −(Vᵀ · grad · Yᵀ)_jj + Σ_i (Vᵀ · V)_ij · (U · Yᵀ)_ij, i < j.
    """
    count = tau.shape[-1]
    vectors = reflectors(packed, count, ops)
    first = reflected(vectors, tau, other, False, ops)[1]
    second = reflected(vectors, tau, grad, True, ops)[1]
    product = second @ first.mT
    through = ops.triu(product * tau[..., None, :], 1)
    grad_input = vectors @ (through + through.mT) - grad @ first.mT * tau[..., None, :] - other @ second.mT
    overlaps = ops.triu(vectors.mT @ vectors, 1)
    grad_tau = ops.sum(overlaps * product, (-2,)) - ops.sum(vectors * (grad @ first.mT), (-2,))
    grad_input = ops.tril(grad_input, -1)
    missing = packed.shape[-1] - count
    if missing:
        grad_input = ops.cat([grad_input, zeros((*grad_input.shape[:-1], missing), grad_input)], -1)
    return grad_input, grad_tau


def check_reflectors(name: str, input: Array, tau: Array) -> None:
    """Raise PyTorch's error for reflectors and factors τ that do not belong together."""
    if input.ndim < 2:
        raise ShapeError(f"{name}: input must have at least 2 dimensions.")
    if tau.ndim != input.ndim - 1:
        raise ShapeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {input.ndim}"
        )
    check_batch(name, "tau", tau.shape[:-1], input)


def check_batch(name: str, argument: str, found: Sequence[int], input: Array) -> None:
    """Raise PyTorch's error for an argument whose batch dims are not those of `input`."""
    if found != input.shape[:-2]:
        raise ShapeError(
            f"{name}: Expected batch dimensions of {argument} to be equal to input.shape[:-2], but got {list(found)}"
        )


def check_real(name: str, input: Array) -> None:
    """Raise PyTorch's error for a dtype that has no such kernel."""
    if input.dtype.char not in "fd":
        raise UnsupportedError(f"\"{name}\" not implemented for '{big_name(input.dtype)}'; convert it (.float())")


@op
def linalg_householder_product(xp, input: Array, tau: Array):
    """Return the first columns of Q, the product of the reflections that `input` holds below its diagonal.

    Shapes: input (…, m, n), tau (…, k) -> (…, m, n), k ≤ n ≤ m
    """
    name = "torch.linalg.householder_product"
    if input.ndim >= 2 and input.shape[-2] < input.shape[-1]:
        raise ShapeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if input.ndim >= 2 and tau.ndim and input.shape[-1] < tau.shape[-1]:
        raise ShapeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    check_reflectors(name, input, tau)
    if input.dtype != tau.dtype:
        raise ShapeError(f"{name}: tau dtype {big_name(tau.dtype)} does not match input dtype {big_name(input.dtype)}")
    check_real("orgqr_cpu", input)
    start = xp.broadcast_to(identity(input.shape[-2], input)[:, : input.shape[-1]], input.shape)
    return reflected(reflectors(input, tau.shape[-1], ARRAY_OPS), tau, start, False, ARRAY_OPS)[0]


@linalg_householder_product.derivative(
    "input", "tau", formula="those of the reflections, applied to the identity's columns"
)
def linalg_householder_product_inputs(grad: Array, input: Array, tau: Array, ops):
    return gradients_of_reflections(grad, input, tau, identity(input.shape[-2], input)[:, : input.shape[-1]], ops)


@public_function
def orgqr(input: TensorState, input2: TensorState):
    """Return the first columns of a product of reflections; the old name of `linalg.householder_product`."""
    return linalg_householder_product(input, input2)


@op
def ormqr(xp, input: Array, input2: Array, input3: Array, left: bool = True, transpose: bool = False):
    """Return Q · input3, where Q is the product of the reflections that `input` (and τ, `input2`) holds.

    Shapes: input (…, m, k), input2 (…, k), input3 (…, m, n) -> (…, m, n)

    Args:
        left: False gives input3 · Q.
        transpose: take Qᵀ in the place of Q.
    """
    check_applied(input, input2, input3, left)
    vectors = reflectors(input, input2.shape[-1], ARRAY_OPS)
    if left:
        return reflected(vectors, input2, input3, transpose, ARRAY_OPS)[0]
    return xp.ascontiguousarray(reflected(vectors, input2, input3.mT, not transpose, ARRAY_OPS)[0].mT)


@ormqr.derivative("input", "input2", "input3", formula="input3: Qᵀ · grad; the others: those of the reflections")
def ormqr_inputs(
    grad: Array, input: Array, input2: Array, input3: Array, left: bool, transpose: bool, needs: tuple[bool, ...], ops
):
    tau, other = input2, input3
    if not left:
        grad, other, transpose = grad.mT, other.mT, not transpose
    grad_input = grad_tau = grad_other = None
    if needs[0] or needs[1]:
        given = (other, grad) if transpose else (grad, other)  # ⟨grad, Qᵀ · other⟩ = ⟨other, Q · grad⟩
        grad_input, grad_tau = gradients_of_reflections(given[0], input, tau, given[1], ops)
    if needs[2]:
        grad_other = reflected(reflectors(input, tau.shape[-1], ops), tau, grad, not transpose, ops)[0]
    return grad_input, grad_tau, grad_other if left or grad_other is None else grad_other.mT


def check_applied(input: Array, tau: Array, other: Array, left: bool) -> None:
    """Raise PyTorch's error unless reflections can be applied to `other`."""
    name, side = "torch.ormqr", -2 if left else -1
    for argument, array in (("input", input), ("other", other)):
        if array.ndim < 2:
            raise ShapeError(f"{name}: {argument} must have at least 2 dimensions.")
    if tau.ndim and tau.shape[-1] != min(other.shape[side], input.shape[-1]):
        raise ShapeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if other.shape[side] != input.shape[-2]:
        raise ShapeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    check_reflectors(name, input, tau)
    check_batch(name, "other", other.shape[:-2], input)
    for argument, array in (("tau", tau), ("other", other)):
        if array.dtype != input.dtype:
            raise ShapeError(
                f"{name}: Expected input and {argument} to have the same dtype, but input has dtype"
                f"{big_name(input.dtype)} and {argument} has dtype {big_name(array.dtype)}"
            )
    check_real("ormqr_cpu", input)
