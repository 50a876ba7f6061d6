"""A GPU through CuPy, for the kernels of kernels/cuda: imported when a model is put there.

NOTE [Never run]
This file was written without a GPU. The tests run it with a stand-in for CuPy (tests/support/cuda_on_host.py): NumPy's
arrays, encoder.cu compiled by g++, and cuBLAS's gemmEx written out. What they cannot show is that CuPy, its driver and
cuBLAS do the same. So every model that is put on a GPU is compared with the processor before it is used.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from backlight.errors import InputError, install_hint
from backlight.kernels.cuda.device import DIMS, DTYPES, SOURCE, THREADS, Launch

FLOAT32, BFLOAT16 = 0, 14  # CUDA_R_32F, CUDA_R_16BF
COMPUTE = {"float32": 68, "tf32": 77, "bfloat16": 68}  # CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32
PLAIN, TRANSPOSED, DEFAULT_ALGORITHM = 0, 1, -1
INSTALL = install_hint("cuda")


def cupy_device(name: str = "cuda", dtype: str = "float32") -> "CupyDevice":
    """Return a GPU.

    Args:
        name: "cuda", or "cuda:1".
        dtype: what products of matrices round their factors to, one of `DTYPES`.

    Raises:
        InputError: CuPy is missing, or finds no such GPU.
    """
    kind, _, number = str(name).partition(":")
    if kind != "cuda" or (number and not number.isdecimal()):
        raise InputError(f"device must be cpu, cuda or cuda:N with backlight's engine, got {name}: add --engine torch")
    if dtype not in DTYPES:
        raise InputError(f"dtype must be one of {', '.join(DTYPES)} on cuda with backlight's engine, got {dtype}")
    cupy, cublas = _libraries()
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as problem:
        raise InputError(f"device {name} is not there: CuPy finds no GPU ({problem}); leave --device out") from problem
    if int(number or 0) >= count:
        raise InputError(f"device {name} is not there: CuPy finds {count} GPU(s), from cuda:0")
    return CupyDevice(cupy, cublas, int(number or 0), dtype)


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        import cupy
        from cupy_backends.cuda.libs import cublas
    except ImportError as problem:
        said = str(problem).partition("\n")[0].partition(": No such")[0]
        raise InputError(
            f"device cuda with backlight's engine needs CuPy and CUDA's libraries ({said}): {INSTALL}"
        ) from problem
    return cupy, cublas


class CupyDevice:
    """A GPU (see NOTE [A device] in kernels/cuda/device.py).

    Args:
        cupy, cublas: the libraries.
        number: which GPU.
        dtype: what products round their factors to.
    """

    def __init__(self, cupy: Any, cublas: Any, number: int, dtype: str):
        self.xp, self.dtype, self.name = cupy, dtype, f"cuda:{number}"
        self._cublas, self._number, self._round = cublas, number, None
        self._one, self._zero = np.ones((), np.float32), np.zeros((), np.float32)
        if dtype == "bfloat16":
            self._round = self.compiled(DIMS[0])

    def active(self) -> AbstractContextManager:
        """Make it the one that this thread allocates and launches on, inside the block."""
        return self.xp.cuda.Device(self._number)

    def compiled(self, dim: int) -> Launch:
        """Return what launches the kernels, compiled for heads of this size."""
        kernel = cache(self.xp.RawModule(code=SOURCE.read_text(), options=(f"-DDIM={dim}",)).get_function)

        def launch(name: str, grid: tuple[int, int], *arguments: Any) -> None:
            kernel(name)(grid, (THREADS,), tuple(_argument(one) for one in arguments))

        return launch

    def weight(self, array: np.ndarray) -> Any:
        """Return a matrix as products take it."""
        return self._factor(self.xp.asarray(np.ascontiguousarray(array, np.float32)))

    def product(self, rows: Any, weight: Any) -> Any:
        """Return rows · weightᵀ; (rows, in), (out, in) -> (rows, out)."""
        out = self.xp.empty((rows.shape[0], weight.shape[0]), np.float32)
        self._gemm(TRANSPOSED, weight, self._factor(rows), out, self._zero)
        return out

    def product_gradient(self, grad: Any, weight: Any, out: Any = None) -> Any:
        """Return grad · weight, added to `out` where that is given; (rows, out), (out, in) -> (rows, in)."""
        beta = self._zero if out is None else self._one
        out = self.xp.empty((grad.shape[0], weight.shape[1]), np.float32) if out is None else out
        self._gemm(PLAIN, weight, self._factor(grad), out, beta)
        return out

    def on_host(self, array: Any) -> np.ndarray:
        """Return an array in main memory, after all that was launched."""
        return self.xp.asnumpy(array)

    def free_memory(self) -> None:
        """Give memory back that CuPy keeps for later. Where there is none left, it raises a MemoryError."""
        self.xp.get_default_memory_pool().free_all_blocks()

    def _factor(self, rows: Any) -> Any:
        """Return a matrix as a factor of a product: in bfloat16, as the bits of each number."""
        if self._round is None:
            return rows
        out = self.xp.empty(rows.shape, np.uint16)
        self._round("round_to_bfloat16", (rows.shape[0], 1), rows, out, rows.shape[1])
        return out

    def _gemm(self, way: int, weight: Any, rows: Any, out: Any, beta: np.ndarray) -> None:
        """Write rows · weight (or weightᵀ) + beta · out to `out`.

        cuBLAS counts by columns: to it our dense rows are transposed. So it computes outᵀ = weightᵀ · rowsᵀ.
        """
        inner, kind = rows.shape[1], FLOAT32 if self._round is None else BFLOAT16
        self._cublas.gemmEx(
            self.xp.cuda.device.get_cublas_handle(), way, PLAIN, out.shape[1], out.shape[0], inner,
            self._one.ctypes.data, weight.data.ptr, kind, weight.shape[1], rows.data.ptr, kind, inner,
            beta.ctypes.data, out.data.ptr, FLOAT32, out.shape[1], COMPUTE[self.dtype], DEFAULT_ALGORITHM,
        )  # fmt: skip


def _argument(value: Any) -> Any:
    """Return a kernel's argument in the size that its C type has."""
    if value is None:
        return np.uintp(0)
    kinds: dict[type, Callable] = {int: np.int32, float: np.float32}
    return kinds[type(value)](value) if type(value) in kinds else value
