"""float16, bfloat16 and complex32: computed in twice the precision and rounded once, as PyTorch's CPU kernels do."""

import ml_dtypes
import numpy as np

FLOAT16 = np.dtype(np.float16)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
COMPLEX32 = np.dtype(ml_dtypes.complex32)
HALVES = (FLOAT16, BFLOAT16)


def is_half(array: np.ndarray) -> bool:
    """Tell whether an array holds float16, bfloat16 or complex32."""
    return array.dtype.kind == "W" or (array.dtype.itemsize == 2 and array.dtype in HALVES)


def widened(array: np.ndarray | None):
    """Return a float16 or bfloat16 array as float32, complex32 as complex64, any other as it is (None too)."""
    if array is None:
        return array
    if array.dtype.kind == "W":
        return array.astype(np.complex64)
    if array.dtype.itemsize != 2 or array.dtype not in HALVES:
        return array
    return array.astype(np.float32)


def rounded(array: np.ndarray, kind: np.dtype):
    """Return an array in dtype `kind`, itself if it has that dtype."""
    return array if array.dtype == kind else array.astype(kind)
