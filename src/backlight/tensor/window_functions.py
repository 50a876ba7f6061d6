"""Window functions for spectra: weights that fall off to both sides, computed step by step as PyTorch rounds them."""

import numpy as np

from backlight.dtypes import dtype, from_numpy_dtype
from backlight.errors import ShapeError
from backlight.kernels.special import modified_bessel
from backlight.layouts import layout, strided
from backlight.ops.number_operands import no_kernel
from backlight.ops.type_promotion import category
from backlight.sizes import require_memory
from backlight.tensor.creation import made
from backlight.tensor.factories import float_dtype
from backlight.types import Device

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]


def _window(
    name: str, length: int, periodic: bool, weights, dtype, requires_grad, device, layout, pin_memory, turn=None
):
    """Return `weights` at points from 0 to `turn`: a symmetric window, or a periodic one, which lacks the last point.

    Without `turn` the points lie from 0 to 1, in float64.
    """
    kind = float_dtype(dtype)
    if layout is not None and layout is not strided:
        stated = "float (default)" if dtype is None and name == "hann_window" else from_numpy_dtype(kind).c_name
        raise ShapeError(
            f"{name} is not implemented for sparse types, got: TensorOptions(dtype={stated}, device=cpu, "
            "layout=Sparse, requires_grad=false (default), pinned_memory=false, memory_format=(nullopt))"
        )
    if category(kind) == 3 and length > 1:
        raise no_kernel("arange_cpu", kind, "a window holds real numbers")
    if category(kind) < 2:
        raise ShapeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={from_numpy_dtype(kind).c_name}, "
            "device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false, "
            "memory_format=(nullopt)); a window holds fractions"
        )
    if length < 0:
        raise ShapeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length < 2:
        return made(np.ones(length, kind), requires_grad, device, layout, pin_memory)
    require_memory((length,), kind)
    exact = kind if turn and kind.itemsize >= 4 else np.dtype(np.float64)
    step = exact.type((turn or 1.0) / (length if periodic else length - 1))
    return made(weights(np.arange(length, dtype=exact) * step).astype(kind), requires_grad, device, layout, pin_memory)


def hann_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """Return sin²(π · n / N) for n = 0 … window_length − 1.

    Args:
        periodic: N is window_length, for use as one period of a periodic function; else window_length − 1, and the
            window is symmetric.
    """
    options = dtype, requires_grad, device, layout, pin_memory
    return _window("hann_window", window_length, periodic, lambda x: -0.5 * np.cos(x) + 0.5, *options, turn=2 * np.pi)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
):
    """Return alpha − beta · cos(2π · n / N); `hann_window` says what N is."""
    options = dtype, requires_grad, device, layout, pin_memory
    return _window(
        "hamming_window", window_length, periodic, lambda x: -beta * np.cos(x) + alpha, *options, turn=2 * np.pi
    )


def blackman_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """Return 0.42 − 0.5 · cos(2π · n / N) + 0.08 · cos(4π · n / N); `hann_window` says what N is."""

    def weights(x: np.ndarray):
        return 0.08 * np.cos(4 * x) - 0.5 * np.cos(2 * x) + 0.42

    options = dtype, requires_grad, device, layout, pin_memory
    return _window("blackman_window", window_length, periodic, weights, *options, turn=np.pi)


def bartlett_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """Return the triangle 1 − |2 · n / N − 1|; `hann_window` says what N is."""
    options = dtype, requires_grad, device, layout, pin_memory
    return _window("bartlett_window", window_length, periodic, lambda x: np.minimum(x, 2 - x), *options, turn=2.0)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
):
    """Return I₀(beta · √(1 − (2 · n / N − 1)²)) / I₀(beta); `hann_window` says what N is.

    Args:
        beta: the larger, the narrower.
    """

    def weights(x):
        inside = beta * np.sqrt(np.maximum(1 - (2 * x - 1) ** 2, 0))
        return modified_bessel.i0e(inside) / modified_bessel.i0e(np.array([beta], float)) * np.exp(inside - abs(beta))

    options = dtype, requires_grad, device, layout, pin_memory
    return _window("kaiser_window", window_length, periodic, weights, *options)
