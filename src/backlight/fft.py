"""PyTorch's `torch.fft`: Fourier transforms, of complex numbers, from and to real ones."""

from collections.abc import Sequence

from backlight.dispatch.arguments.checked import with_checks
from backlight.dtypes import get_default_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, ShapeError
from backlight.ops.dims import normalise_dims, one_or_several
from backlight.ops.fourier.transforms import half_to_real, real_to_half, spectrum
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


def fft(input: TensorState, n: int | None = None, dim: int = -1, norm: str | None = None):
    """Return the spectrum of a signal along `dim`, real or complex.

    Args:
        n: the size of the transform; the size of `input` by default. The input is cut off or filled up with zeros.
        norm: "backward" (the default) does not divide, "ortho" divides by √n, "forward" by n.
    """
    return spectrum("fft", input, None if n is None else (n,), (dim,), norm, True)


def fft2(input: TensorState, s: _Sizes = None, dim: _Dims = (-2, -1), norm: str | None = None):
    """Return the spectrum of a signal over two dims: see `fft`."""
    return spectrum("fft2", input, s, _several(dim), norm, True)


def fftn(input: TensorState, s: _Sizes = None, dim: _Dims = None, norm: str | None = None):
    """Return the spectrum of a signal over several dims, all by default: see `fft`."""
    return spectrum("fftn", input, s, _several(dim), norm, True)


def ifft(input: TensorState, n: int | None = None, dim: int = -1, norm: str | None = None):
    """Return the signal of a spectrum along `dim`.

    Args:
        n: the size of the transform; the size of `input` by default. The input is cut off or filled up with zeros.
        norm: "backward" (the default) divides by n, "ortho" by √n, "forward" does not divide.
    """
    return spectrum("ifft", input, None if n is None else (n,), (dim,), norm, False)


def ifft2(input: TensorState, s: _Sizes = None, dim: _Dims = (-2, -1), norm: str | None = None):
    """Return the signal of a spectrum over two dims: see `ifft`."""
    return spectrum("ifft2", input, s, _several(dim), norm, False)


def ifftn(input: TensorState, s: _Sizes = None, dim: _Dims = None, norm: str | None = None):
    """Return the signal of a spectrum over several dims, all by default: see `ifft`."""
    return spectrum("ifftn", input, s, _several(dim), norm, False)


def rfft(input: TensorState, n: int | None = None, dim: int = -1, norm: str | None = None):
    """Return half the spectrum of a real signal along `dim`: the other half mirrors it.

    Args:
        n: the size of the transform; the size of `input` by default. The input is cut off or filled up with zeros.
        norm: "backward" (the default) does not divide, "ortho" divides by √n, "forward" by n.
    """
    return real_to_half("rfft", input, None if n is None else (n,), (dim,), norm, True)


def rfft2(input: TensorState, s: _Sizes = None, dim: _Dims = (-2, -1), norm: str | None = None):
    """Return half the spectrum of a real signal over two dims: see `rfft`."""
    return real_to_half("rfft2", input, s, _several(dim), norm, True)


def rfftn(input: TensorState, s: _Sizes = None, dim: _Dims = None, norm: str | None = None):
    """Return half the spectrum of a real signal over several dims, all by default: see `rfft`."""
    return real_to_half("rfftn", input, s, _several(dim), norm, True)


def irfft(input: TensorState, n: int | None = None, dim: int = -1, norm: str | None = None):
    """Return the real signal of which `input` is half the spectrum along `dim`.

    Args:
        n: the size of the result; 2 · (size − 1) by default. The input is cut off or filled up with zeros.
        norm: "backward" (the default) divides by n, "ortho" by √n, "forward" does not divide.
    """
    return half_to_real("irfft", input, None if n is None else (n,), (dim,), norm, False)


def irfft2(input: TensorState, s: _Sizes = None, dim: _Dims = (-2, -1), norm: str | None = None):
    """Return the real signal of which `input` is half the spectrum over two dims: see `irfft`."""
    return half_to_real("irfft2", input, s, _several(dim), norm, False)


def irfftn(input: TensorState, s: _Sizes = None, dim: _Dims = None, norm: str | None = None):
    """Return the real signal of which `input` is half the spectrum over several dims, all by default: see `irfft`."""
    return half_to_real("irfftn", input, s, _several(dim), norm, False)


def hfft(input: TensorState, n: int | None = None, dim: int = -1, norm: str | None = None):
    """Return the real spectrum of which `input` is half the signal along `dim`.

    Args:
        n: the size of the result; 2 · (size − 1) by default. The input is cut off or filled up with zeros.
        norm: "backward" (the default) does not divide, "ortho" divides by √n, "forward" by n.
    """
    return half_to_real("hfft", input, None if n is None else (n,), (dim,), norm, True)


def hfft2(input: TensorState, s: _Sizes = None, dim: _Dims = (-2, -1), norm: str | None = None):
    """Return the real spectrum of which `input` is half the signal over two dims: see `hfft`."""
    return half_to_real("hfft2", input, s, _several(dim), norm, True)


def hfftn(input: TensorState, s: _Sizes = None, dim: _Dims = None, norm: str | None = None):
    """Return the real spectrum of which `input` is half the signal over several dims, all by default: see `hfft`."""
    return half_to_real("hfftn", input, s, _several(dim), norm, True)


def ihfft(input: TensorState, n: int | None = None, dim: int = -1, norm: str | None = None):
    """Return half the signal of a real spectrum along `dim`: the other half mirrors it.

    Args:
        n: the size of the transform; the size of `input` by default. The input is cut off or filled up with zeros.
        norm: "backward" (the default) divides by n, "ortho" by √n, "forward" does not divide.
    """
    return real_to_half("ihfft", input, None if n is None else (n,), (dim,), norm, False)


def ihfft2(input: TensorState, s: _Sizes = None, dim: _Dims = (-2, -1), norm: str | None = None):
    """Return half the signal of a real spectrum over two dims: see `ihfft`."""
    return real_to_half("ihfft2", input, s, _several(dim), norm, False)


def ihfftn(input: TensorState, s: _Sizes = None, dim: _Dims = None, norm: str | None = None):
    """Return half the signal of a real spectrum over several dims, all by default: see `ihfft`."""
    return real_to_half("ihfftn", input, s, _several(dim), norm, False)


def _several(dim: _Dims):
    return None if dim is None else one_or_several(dim)


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
    if n < 0:
        raise ShapeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    found = arange(n, dtype=dtype or get_default_dtype(), device=device)
    found[(n + 1) // 2 :] -= n
    return (found / (n * d) if n else found).requires_grad_(requires_grad)


def rfftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    """Make the frequencies of half a spectrum of n samples with spacing `d`: 0, 1 …, divided by n · d."""
    found = arange(n // 2 + 1, dtype=dtype or get_default_dtype(), device=device)
    return (found / (n * d) if n else found).requires_grad_(requires_grad)


_WITH_OUT = tuple(name for name in __all__ if not name.endswith("shift"))
globals().update(with_out(globals(), _WITH_OUT, __name__))
globals().update(with_checks(globals(), __all__, __name__))
