"""Statistics: variances, standard deviations, covariances."""

import math
from collections.abc import Callable, Sequence

from backlight.codegen.declaration import Array, op
from backlight.dtypes import bool as bool_dtype
from backlight.dtypes import from_numpy_dtype, real_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.elementwise.complex_parts import imaginary_parts, joined, real_parts
from backlight.kernels.half_precision import FLOAT16, rounded, widened
from backlight.ops.dims import kept_shape, reduced_count, reduced_dims, with_numpy_names
from backlight.ops.elementwise.complex_numbers import complex_of, conj, imag, real
from backlight.ops.type_promotion import FLOAT64, has_gradient, holds_complex, promote_types
from backlight.system.user_warnings import warn_outside

__all__ = ["corrcoef", "cov", "std", "std_mean", "var", "var_mean"]

NO_FREEDOM = (
    "{}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
    "divided by output numel)."
)


def variance(xp, input: Array, dim: int | Sequence[int] | None, correction: int, keepdim: bool, name: str):
    """Return (variance, mean) of an array over `dim`, half precision as float32."""
    if not has_gradient(input.dtype):
        raise ShapeError(
            "std and var only support floating point and complex dtypes\n"
            f"  Got {from_numpy_dtype(input.dtype)}: convert it first (.float())"
        )
    if input.dtype.kind == "W":
        return _variance_of_halves(xp, input, dim, correction, keepdim, name)
    values, dims = widened(input), reduced_dims(dim, input.ndim)
    count = reduced_count(input.shape, dim)
    if count <= correction or not input.size:
        warn_outside(NO_FREEDOM.format(name))
    mean = xp.add.reduce(values, dims, None, None, True) / count if count else values.mean(dims, keepdims=True)
    apart = values - mean
    squares = apart * apart if apart.dtype.kind not in "cW" else apart.real**2 + apart.imag**2
    spread = xp.add.reduce(squares, dims, None, None, keepdim)
    if spread.dtype.itemsize < 8 and not xp.isfinite(spread).all() and xp.isfinite(values).all():
        return variance(
            xp, input.astype(promote_types(input.dtype, FLOAT64)), dim, correction, keepdim, name
        )  # a square overflowed
    freedom = spread.dtype.type(max(count - correction, 0))
    return xp.divide(spread, freedom), mean if keepdim else mean.squeeze(dims)


def _variance_of_halves(xp, input: Array, *options):
    """Return (variance, mean) of complex32: those of the real parts and of the imaginary ones, each rounded first."""
    halves = [variance(xp, parts(input), *options) for parts in (real_parts, imaginary_parts)]
    (spread, mean), (other_spread, other_mean) = [[rounded(one, FLOAT16) for one in half] for half in halves]
    return spread + other_spread, joined(mean, other_mean)


def variance_gradient(grad: Array, input: Array, dim: int | Sequence[int] | None, correction: int, ops):
    """Return 2 / (n − correction) · grad · (input − mean)."""
    freedom = reduced_count(input.shape, dim) - correction
    grad_input = grad.reshape(kept_shape(input.shape, dim)) * (2 / freedom if freedom else math.inf)
    return grad_input * (input - ops.mean(input, dim, True))


@op(name="var", complex="own", layout="rows")
def var_dims(xp, input: Array, dim: tuple | None = None, correction: float = 1, keepdim: bool = False):
    """The variance over `dim`."""
    return rounded(variance(xp, input, dim, correction, keepdim, "var")[0], real_dtype(input.dtype))


var_dims.derivative("input", formula="2 / (n − correction) · grad · (input − mean)")(
    lambda grad, input, dim, correction, ops: variance_gradient(grad, input, dim, correction, ops)
)


@op(name="std", complex="own", layout="rows")
def std_dims(xp, input: Array, dim: tuple | None = None, correction: float = 1, keepdim: bool = False):
    """The standard deviation over `dim`."""
    return rounded(xp.sqrt(variance(xp, input, dim, correction, keepdim, "std")[0]), real_dtype(input.dtype))


@std_dims.derivative("input", formula="1 / (n − correction) · grad / std · (input − mean); 0 where std is 0")
def std_input(grad: Array, input: Array, out: Array, dim: tuple | None, correction: float, ops):
    return variance_gradient(ops.divide_or_zero(grad, 2 * out), input, dim, correction, ops)


@op(name="var_mean", outputs=2, complex="own", layout="rows")
def var_mean_dims(xp, input: Array, dim: tuple | None = None, correction: float = 1, keepdim: bool = False):
    """The variance and the mean over `dim`."""
    found, mean = variance(xp, input, dim, correction, keepdim, "var_mean")
    return rounded(found, real_dtype(input.dtype)), rounded(mean, input.dtype)


@var_mean_dims.derivative("input", formula="that of the variance plus that of the mean")
def var_mean_input(grad: Sequence[Array | None], input: Array, dim: tuple | None, correction: float, ops):
    found = None if grad[0] is None else variance_gradient(grad[0], input, dim, correction, ops)
    return with_mean_gradient(found, grad[1], input, dim, ops)


@op(name="std_mean", outputs=2, complex="own", layout="rows")
def std_mean_dims(xp, input: Array, dim: tuple | None = None, correction: float = 1, keepdim: bool = False):
    """The standard deviation and the mean over `dim`."""
    found, mean = variance(xp, input, dim, correction, keepdim, "std_mean")
    return rounded(xp.sqrt(found), real_dtype(input.dtype)), rounded(mean, input.dtype)


@std_mean_dims.derivative("input", formula="that of the standard deviation plus that of the mean")
def std_mean_input(
    grad: Sequence[Array | None], input: Array, out: Sequence[Array], dim: tuple | None, correction: float, ops
):
    grad_input = None if grad[0] is None else ops.divide_or_zero(grad[0], 2 * out[0])
    found = None if grad_input is None else variance_gradient(grad_input, input, dim, correction, ops)
    return with_mean_gradient(found, grad[1], input, dim, ops)


def with_mean_gradient(found: Array, grad: Array, input: Array, dim: int | Sequence[int] | None, ops):
    """Return `found` plus grad / n repeated over `dim`; either may be missing."""
    if grad is None:
        return found
    dims = reduced_dims(dim, input.ndim)
    grad_input = ops.spread(grad / reduced_count(input.shape, dim), tuple(input.shape), dims)
    return grad_input if found is None else found + grad_input


def _with_correction(of_dims: Callable, name: str, what: str):
    """Return the public form of a variance: `unbiased` is the old way to say a correction of 1 or 0."""

    def public(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None:
            if correction is not None:
                raise TypeError(f"{name}() got an unexpected keyword argument 'correction'")  # beside `unbiased`
            correction = int(unbiased)
        return of_dims(input, dim, 1 if correction is None else correction, keepdim)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = f"Return {what}, of all elements or over `dim`; Σ (x − mean)² is divided by n − `correction` (1)."
    return with_numpy_names(public)


var = _with_correction(var_dims, "var", "the variance")
std = _with_correction(std_dims, "std", "the standard deviation")
var_mean = _with_correction(var_mean_dims, "var_mean", "(variance, mean)")
std_mean = _with_correction(std_mean_dims, "std_mean", "(standard deviation, mean)")


def cov(
    input: TensorState, *, correction: int = 1, fweights: TensorState | None = None, aweights: TensorState | None = None
):
    """Return the covariances of variables (rows) over observations (columns).

    Args:
        fweights: how often each observation counts, integers of shape (observations,).
        aweights: how much each observation counts, of shape (observations,).

    Raises:
        RuntimeError: the input has more than two dims or holds bools; weights of another length or kind, or negative.
    """
    if input.ndim > 2:
        raise ShapeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if input.dtype is bool_dtype:
        raise ShapeError("cov(): bool dtype is not supported for input; convert it with .float()")
    rows = input.reshape(1, -1) if input.ndim < 2 else input
    weights = _observation_weights(rows.shape[1], fweights, aweights)
    total = rows.shape[1] if weights is None else weights.sum()
    freedom = total - correction
    if weights is not None and total == 0:
        raise ShapeError("cov(): weights sum to zero, can't be normalized")
    if aweights is not None and correction:
        freedom = total - correction * (weights * aweights).sum() / total
    if freedom <= 0:
        warn_outside(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations."
        )
        freedom = 0
    apart = rows - (rows if weights is None else rows * weights).sum(1, keepdim=True) / total
    weighted = apart if weights is None else apart * weights
    return ((apart @ conj(weighted.t())) / freedom).squeeze()


def _observation_weights(count: int, fweights: TensorState | None, aweights: TensorState | None):
    """Return the product of both weights of observations; None if neither is given."""
    for name, weights, kind in (("fweights", fweights, "integral"), ("aweights", aweights, "floating point")):
        if weights is None:
            continue
        expected, got = f"cov(): expected {name} to have", f"but got {name} with"
        if weights.ndim > 1:
            raise ShapeError(f"{expected} one or fewer dimensions {got} {weights.ndim} dimensions")
        if weights.is_floating_point() is not (name == "aweights") or weights.dtype is bool_dtype:
            raise ShapeError(f"{expected} {kind} dtype {got} {weights.dtype.old_name} dtype")
        if weights.numel() != count:
            raise ShapeError(
                f"{expected} the same numel as there are observations in the input but got {weights.numel()} != {count}"
            )
        if count and weights.min() < 0:
            raise ShapeError(f"cov(): {name} cannot be negative")
    return fweights if aweights is None else aweights if fweights is None else fweights * aweights


def corrcoef(input: TensorState):
    """Return the correlation coefficients of variables (rows) over observations (columns)."""
    if input.ndim > 2:
        raise ShapeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    found = cov(input)
    if found.ndim == 0:
        return found / found
    deviations = real(found.diagonal()).sqrt()
    found = found / deviations.unsqueeze(1) / deviations.unsqueeze(0)
    if holds_complex(found):
        return complex_of(real(found).clip(-1, 1), imag(found).clip(-1, 1))
    return found.clip(-1, 1)
