"""Products of matrices.

NOTE [Who multiplies]
On x86-64 with AVX2 or AVX-512 products run in csrc/kernels: gemm.c, gemm_amx.c for large ones of float32 on Intel's
tile unit, gemv.c beside a vector. With AVX-512 they take half the time of an OpenBLAS that chose AVX2, 0.6 to 1.0
of one that chose AVX-512; with AVX2 as long as OpenBLAS on one thread and 0.8 on two, since there is one pool of
threads and not two that get into each other's way: one product by BLAS in a step keeps BLAS's threads spinning beside
ours. Where only the narrowest vectors are compiled, or BLAS has wider
ones than the kernels in use, NumPy multiplies.
"""

from math import prod

import numpy as np

from backlight.kernels.native import multiplies, native

_chosen = native if multiplies() else lambda reference: reference


@_chosen
def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply matrices, or stacks of them; for small ones `a.dot(b)` takes a third of the time of `a @ b`.

    Shapes: a (…, n, k), b (…, k, m) -> (…, n, m)
    """
    return a.dot(b) if a.ndim == b.ndim == 2 else a @ b


@_chosen
def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Return the rows of x · weightᵀ + bias.

    Shapes: x (…, in), weight (out, in), bias (out,) or None -> (rows, out)
    """
    out = matmul(x if x.ndim == 2 else x.reshape((prod(x.shape[:-1]), x.shape[-1])), weight.T)
    if bias is not None:
        out += bias
    return out


@_chosen
def column_sums(x: np.ndarray) -> np.ndarray:
    """Return the sum of a matrix's rows."""
    return x.sum(0)
