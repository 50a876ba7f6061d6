"""PyTorch's `torch.signal.windows`: weights that fall off to both sides, computed in float64 and rounded once."""

from collections.abc import Callable, Sequence
from numbers import Integral

import numpy as np

from backlight.dispatch.arguments.checked import public_functions, with_checks
from backlight.dtypes import from_numpy_dtype
from backlight.errors import ArgumentError, ValueProblem
from backlight.kernels.special import modified_bessel
from backlight.kernels.state_blocks import silent_floats
from backlight.layouts import strided
from backlight.ops.type_promotion import is_float
from backlight.sizes import require_memory, storage_errors
from backlight.tensor.creation import made
from backlight.tensor.factories import float_dtype
from backlight.tensor.tensor import Tensor


@storage_errors
def _window(name: str, length: int, sym: bool, weights: Callable, options: dict) -> Tensor:
    """Return `weights(n, N)` of the numbers n = 0 … length − 1, where the last of a symmetric window is N."""
    known = {"dtype", "layout", "device", "requires_grad"}
    if not set(options) <= known:
        wrong = sorted(set(options) - known)[0]
        raise ArgumentError(f"{name}() got an unexpected keyword argument '{wrong}'")
    kind = float_dtype(options.get("dtype"))
    if not isinstance(length, Integral):
        raise ArgumentError(
            f"linspace() received an invalid combination of arguments: M must be int, not {type(length).__name__}"
        )
    if length < 0:
        raise ValueProblem(f"{name} requires non-negative window length, got M={length}")
    if not is_float(kind) or kind.itemsize == 2:
        raise ValueProblem(f"{name} expects float32 or float64 dtypes, got: {from_numpy_dtype(kind)}")
    if options.get("layout") not in (None, strided):
        raise ValueProblem(f"{name} is implemented for strided tensors only, got: {options['layout']}")
    require_memory((length,), kind)
    with silent_floats():
        last = length - 1 if sym and length > 1 else length
        values = weights(np.arange(length, dtype=np.float64), last) if length != 1 else np.ones(1)
    place = options.get("requires_grad", False), options.get("device"), options.get("layout"), False
    return made(np.asarray(values).astype(kind), *place)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return exp(−|n − center| / tau).

    Args:
        M: how many weights there are.
        center: the position of the peak, the middle by default; a symmetric window has it there.
        sym: whether the window is symmetric; else it is one period of a periodic function.
        options: dtype, layout, device, requires_grad.
    """
    if tau <= 0:
        raise ValueProblem(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueProblem("Center must be None for symmetric windows")

    def weights(n, last):
        return np.exp(-abs(n - (last / 2 if center is None else center)) / tau)

    return _window("exponential", M, sym, weights, options)


def cosine(M: int, *, sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return sin(π · (n + ½) / (N + 1)), where N is the last n of a symmetric window; `exponential` has the rest."""
    return _window("cosine", M, sym, lambda n, last: np.sin(np.pi * (n + 0.5) / (M if sym else M + 1)), options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return exp(−(n − N / 2)² / (2 · std²)); the other arguments are those of `exponential`."""
    if std <= 0:
        raise ValueProblem(f"Standard deviation must be positive, got: {std} instead.")
    return _window("gaussian", M, sym, lambda n, last: np.exp(-(((n - last / 2) / std) ** 2) / 2), options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return I₀(beta · √(1 − (2 · n / N − 1)²)) / I₀(beta); the other arguments are those of `exponential`."""
    if beta < 0:
        raise ValueProblem(f"beta must be non-negative, got: {beta} instead.")

    def weights(n, last):
        inside = beta * np.sqrt(np.maximum(1 - (2 * n / last - 1) ** 2, 0))
        return modified_bessel.i0e(inside) / modified_bessel.i0e(np.array([beta], float)) * np.exp(inside - beta)

    return _window("kaiser", M, sym, weights, options)


def hamming(M: int, *, sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return 0.54 − 0.46 · cos(2π · n / N); the other arguments are those of `exponential`."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return ½ − ½ · cos(2π · n / N); the other arguments are those of `exponential`."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return 0.42 − 0.5 · cos(2π · n / N) + 0.08 · cos(4π · n / N); `exponential` has the other arguments."""
    return _window("blackman", M, sym, _cosines([0.42, 0.5, 0.08]), options)


def bartlett(M: int, *, sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return the triangle 1 − |2 · n / N − 1|; the other arguments are those of `exponential`."""
    return _window("bartlett", M, sym, lambda n, last: 1 - abs(2 * n / last - 1), options)


def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return Σ (−1)^k · a[k] · cos(2π · k · n / N); the other arguments are those of `exponential`."""
    if not isinstance(a, Sequence):
        raise ArgumentError("Coefficients must be a list/tuple")
    if not a:
        raise ValueProblem("Coefficients cannot be empty")
    if isinstance(a, (str, bytes)):
        raise ValueProblem(f"too many dimensions '{type(a).__name__}': coefficients are numbers")

    return _window("general_cosine", M, sym, _cosines(a), options)


def _cosines(factors: Sequence[float]) -> Callable:
    def weights(n, last):
        return sum((-1) ** k * factor * np.cos(2 * np.pi * k * n / last) for k, factor in enumerate(factors))

    return weights


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return alpha − (1 − alpha) · cos(2π · n / N); the other arguments are those of `exponential`."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options) -> Tensor:  # noqa: N803
    """Return Nuttall's sum of four cosines; the other arguments are those of `exponential`."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


__all__ = public_functions(globals(), own=True)
globals().update(with_checks(globals(), __all__, __name__))
