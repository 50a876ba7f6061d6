"""The part of PyTorch's `torch.fft` that needs only real numbers; the rest raises, for lack of complex dtypes."""

from collections.abc import Sequence

from backlight.dispatch.arguments.checked import with_checks
from backlight.dtypes import get_default_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError
from backlight.ops.dims import normalise_dims, one_or_several
from backlight.ops.elementwise.complex_numbers import refusing
from backlight.ops.linalg.fft import real_signal
from backlight.ops.out_variants import with_out
from backlight.ops.shape.flipping import roll
from backlight.tensor.ranges import arange

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


_Dims = int | Sequence[int] | None
_Sizes = Sequence[int] | None


def irfft(input: TensorState, n: int | None = None, dim: int = -1, norm: str | None = None):
    """Return the real signal of which `input`, real too, is half the spectrum along `dim`.

    Args:
        n: how long the signal is; 2 · (size − 1) by default.
        norm: "backward" (the default) divides by n, "ortho" by √n, "forward" does not divide.
    """
    return real_signal("irfft", input, None if n is None else (n,), (dim,), norm, inverse=True)


def irfft2(input: TensorState, s: _Sizes = None, dim: _Dims = (-2, -1), norm: str | None = None):
    """Return the real plane of which `input`, real too, is half the spectrum."""
    return real_signal("irfft2", input, s, _several(dim), norm, inverse=True)


def irfftn(input: TensorState, s: _Sizes = None, dim: _Dims = None, norm: str | None = None):
    """Return the real signal of which `input`, real too, is half the spectrum over several dims, all by default."""
    return real_signal("irfftn", input, s, _several(dim), norm, inverse=True)


def hfft(input: TensorState, n: int | None = None, dim: int = -1, norm: str | None = None):
    """Return the real spectrum of which `input`, real too, is half the hermitian signal along `dim`.

    Args:
        n: how long the spectrum is; 2 · (size − 1) by default.
        norm: "backward" (the default) does not divide, "ortho" divides by √n, "forward" by n.
    """
    return real_signal("hfft", input, None if n is None else (n,), (dim,), norm, inverse=False)


def hfft2(input: TensorState, s: _Sizes = None, dim: _Dims = (-2, -1), norm: str | None = None):
    """Return the real spectrum of which `input`, real too, is half the hermitian plane."""
    return real_signal("hfft2", input, s, _several(dim), norm, inverse=False)


def hfftn(input: TensorState, s: _Sizes = None, dim: _Dims = None, norm: str | None = None):
    """Return the real spectrum of which `input`, real too, is half the hermitian signal over several dims."""
    return real_signal("hfftn", input, s, _several(dim), norm, inverse=False)


def _several(dim: _Dims):
    return None if dim is None else one_or_several(dim)


_SIGNAL, _SPECTRUM = "the signal of a spectrum", "the spectrum of a signal"
fft, fft2, fftn = [refusing(f"fft.{name}", _SPECTRUM) for name in ("fft", "fft2", "fftn")]
ifft, ifft2, ifftn = [refusing(f"fft.{name}", _SIGNAL) for name in ("ifft", "ifft2", "ifftn")]
rfft, rfft2, rfftn = [refusing(f"fft.{name}", f"half {_SPECTRUM}") for name in ("rfft", "rfft2", "rfftn")]
ihfft, ihfft2, ihfftn = [refusing(f"fft.{name}", f"half {_SIGNAL}") for name in ("ihfft", "ihfft2", "ihfftn")]


def fftshift(input: TensorState, dim: _Dims = None):
    """Return a spectrum with the frequency 0 in the middle of each dim instead of at its start."""
    dims = _shifted(input, dim)
    return roll(input, [input.shape[one] // 2 for one in dims], dims)


def ifftshift(input: TensorState, dim: _Dims = None):
    """Return a spectrum with the frequency 0 at the start of each dim: the inverse of `fftshift`."""
    dims = _shifted(input, dim)
    return roll(input, [(input.shape[one] + 1) // 2 for one in dims], dims)


def _shifted(input: TensorState, dim: _Dims) -> tuple:
    """Return the dims to shift: all by default."""
    if dim is None:
        return tuple(range(input.ndim))
    dims = normalise_dims(dim, input.ndim)
    if dims and not input.ndim:
        raise DimError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return dims


def fftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    """Make the frequencies of a spectrum of n samples with spacing `d`: 0, 1 …, −1, divided by n · d."""
    found = arange(n, dtype=dtype or get_default_dtype(), device=device)
    found[(n + 1) // 2 :] -= n
    return (found / (n * d) if n else found).requires_grad_(requires_grad)


def rfftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    """Make the frequencies of half a spectrum of n samples with spacing `d`: 0, 1 …, divided by n · d."""
    found = arange(n // 2 + 1, dtype=dtype or get_default_dtype(), device=device)
    return (found / (n * d) if n else found).requires_grad_(requires_grad)


_REAL = ("irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn", "fftfreq", "rfftfreq")
globals().update(with_out(globals(), _REAL, __name__))
globals().update(with_checks(globals(), __all__, __name__))
