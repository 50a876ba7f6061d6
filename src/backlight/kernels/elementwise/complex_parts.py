"""Complex arrays as arrays of their real and imaginary parts; NOTE [complex32] in dtypes.py."""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from backlight.dtypes import complex_dtype


def parts_of(array: np.ndarray | np.generic) -> np.ndarray:
    """Return the parts of complex numbers along a new last dim of size 2, in the same memory; a real array as it is."""
    if array.dtype.kind == "W":
        return np.asarray(array)[..., None].view(np.float16)
    if array.dtype.kind != "c":
        return array
    parts = np.asarray(array).real
    return as_strided(parts, (*array.shape, 2), (*array.strides, parts.itemsize))


def real_parts(array: np.ndarray | np.generic) -> np.ndarray | np.generic:
    """Return the real parts, a view; of a real array, itself."""
    return parts_of(array)[..., 0] if array.dtype.kind == "W" else array.real


def imaginary_parts(array: np.ndarray | np.generic) -> np.ndarray | np.generic:
    """Return the imaginary parts, a view."""
    return parts_of(array)[..., 1] if array.dtype.kind == "W" else array.imag


def joined(real: np.ndarray | np.generic, imag: np.ndarray | np.generic) -> np.ndarray | np.generic:
    """Return complex numbers of their parts, two arrays of one float dtype that broadcast."""
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape), complex_dtype(real.dtype))
    parts = parts_of(out)
    parts[..., 0], parts[..., 1] = real, imag
    return out if out.ndim else out[()]
