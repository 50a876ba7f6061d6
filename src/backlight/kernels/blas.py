"""The OpenBLAS inside NumPy: which kernels it runs, and how many threads it has.

Everywhere else (another BLAS, another build) nothing is known of it, and nothing is set.
"""

import ctypes
import functools
from collections.abc import Callable

import numpy as np

_SPELLINGS = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
_BYTES = {"SKYLAKEX": 64, "COOPERLAKE": 64, "SAPPHIRERAPIDS": 64, "HASWELL": 32, "ZEN": 32, "EXCAVATOR": 32}


@functools.cache
def _loaded() -> ctypes.CDLL | None:
    """Return the library behind NumPy's products; its symbols are those of all it was linked with."""
    try:
        return ctypes.CDLL(np._core._multiarray_umath.__file__)
    except (AttributeError, OSError):
        return None


def _function(name: str) -> Callable | None:
    return next((found for each in _SPELLINGS if (found := getattr(_loaded(), each.format(name), None))), None)


def core_name() -> str | None:
    """Return the processor for which OpenBLAS chose its kernels, such as Haswell."""
    function = _function("get_corename")
    if function is None:
        return None
    function.restype = ctypes.c_char_p
    return function().decode()


def vector_bytes() -> int | None:
    """Return the width of the vectors in OpenBLAS's kernels; None where it is not known."""
    name = core_name()
    return None if name is None else _BYTES.get(name.upper(), 16)


def set_threads(count: int) -> None:
    """Let OpenBLAS use so many threads."""
    function = _function("set_num_threads")
    if function is not None:
        function(ctypes.c_int(count))
