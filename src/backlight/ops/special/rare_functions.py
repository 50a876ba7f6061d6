"""Special functions that have values and no derivative in PyTorch, or one by their second argument only."""

from collections.abc import Callable

from backlight.codegen.declaration import Array, op
from backlight.errors import UnsupportedError
from backlight.kernels.half_precision import HALVES
from backlight.kernels.special import orthogonal_polynomials
from backlight.ops.number_operands import no_integers, no_kernel
from backlight.system.lazy_import import function_later

__all__ = ["igamma", "igammac"]

gammainc = function_later("backlight.kernels.special.incomplete_gamma", "gammainc")
gammaincc = function_later("backlight.kernels.special.incomplete_gamma", "gammaincc")
hurwitz_zeta = function_later("backlight.kernels.special.incomplete_gamma", "zeta")


def _refuse_halves(kernel: str, *arrays: Array) -> None:
    """Raise PyTorch's error, in the name of its kernel, for float16 and bfloat16."""
    for array in arrays:
        if array.dtype in HALVES:
            raise no_kernel(kernel, array.dtype, "convert the input with .float()")


def _bessel_function(name: str, meaning: str):
    kernel = function_later("backlight.kernels.special.bessel", name)

    def forward(xp, input: Array):
        _refuse_halves(f"{name}_cpu", input)
        return kernel(input)

    forward.__name__, forward.__doc__ = name, f"{meaning} There is no derivative, as in PyTorch."
    return op(forward, name=f"special_{name}", promote="float")


airy_ai = _bessel_function("airy_ai", "Airy's function Ai.")
bessel_j0 = _bessel_function("bessel_j0", "The Bessel function of the first kind of order 0.")
bessel_j1 = _bessel_function("bessel_j1", "The Bessel function of the first kind of order 1.")
bessel_y0 = _bessel_function("bessel_y0", "The Bessel function of the second kind of order 0.")
bessel_y1 = _bessel_function("bessel_y1", "The Bessel function of the second kind of order 1.")
modified_bessel_i0 = _bessel_function(
    "modified_bessel_i0", "The modified Bessel function of the first kind of order 0."
)
modified_bessel_i1 = _bessel_function(
    "modified_bessel_i1", "The modified Bessel function of the first kind of order 1."
)
modified_bessel_k0 = _bessel_function(
    "modified_bessel_k0", "The modified Bessel function of the second kind of order 0."
)
modified_bessel_k1 = _bessel_function(
    "modified_bessel_k1", "The modified Bessel function of the second kind of order 1."
)
scaled_modified_bessel_k0 = _bessel_function("scaled_modified_bessel_k0", "exp(input) · modified_bessel_k0(input).")
scaled_modified_bessel_k1 = _bessel_function("scaled_modified_bessel_k1", "exp(input) · modified_bessel_k1(input).")
spherical_bessel_j0 = _bessel_function("spherical_bessel_j0", "sin(input) / input.")


def _by_other_only(declared: Callable, name: str) -> None:
    """Declare that an op has no derivative by `input`: computing one raises PyTorch's error."""

    @declared.derivative("input", formula="not known: an error, as in PyTorch")
    def by_input(grad: Array):
        raise UnsupportedError(f"the derivative for '{name}' is not implemented.\n  Only `other` has one: detach input")


def _share(name: str, kernel: Callable, sign: int, meaning: str):
    """Declare the share of Γ's integral on one side of `other`; the two sides' slopes differ by their sign."""
    refuse = no_integers(f"{name}_cpu")

    def forward(xp, input: Array, other: Array):
        problem = refuse(input.dtype)
        if problem:
            raise UnsupportedError(problem)
        return kernel(input, other)

    forward.__doc__ = meaning
    made = op(forward, name=name, promote="same", dtype_error=refuse, tangent="symmetric")
    _by_other_only(made, f"{name}: input")

    @made.derivative("other", formula="± grad times the density of the gamma distribution of shape input at other")
    def by_other(grad: Array, input: Array, other: Array, ops):
        return sign * grad * ops.exp(ops.log(other) * (input - 1) - other - ops.lgamma(input))

    return made


igamma = _share("igamma", gammainc, 1, "The share of Γ(input) = ∫ t^(input − 1) · exp(−t) dt that lies below `other`.")
igammac = _share("igammac", gammaincc, -1, "1 − igamma(input, other), exact where it is small.")


@op(name="special_zeta", promote="float", tangent="symmetric")
def zeta(xp, input: Array, other: Array):
    """Hurwitz's zeta Σ 1 / (other + k)^input over k ≥ 0."""
    _refuse_halves("zeta_cpu", input, other)
    return hurwitz_zeta(input, other)


_by_other_only(zeta, "zeta")


zeta.derivative("other", formula="−grad · input · zeta(input + 1, other)")(
    lambda grad, input, other, ops: grad * -input * ops.special_zeta(input + 1, other)
)


def _polynomial(name: str):
    def forward(xp, x: Array, n: Array):
        _refuse_halves(f"{name}_cpu", x)
        return orthogonal_polynomials.polynomial(name, x, n)

    forward.__doc__ = f"The {name.replace('_polynomial_', ' polynomial ')} of degree n at x. There is no derivative."
    return op(forward, name=f"special_{name}", promote="float")


POLYNOMIALS = {
    name: _polynomial(name)
    for name in (
        *[f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"],
        "hermite_polynomial_h",
        "hermite_polynomial_he",
        "laguerre_polynomial_l",
        "legendre_polynomial_p",
    )
}
