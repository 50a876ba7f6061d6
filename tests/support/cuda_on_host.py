"""A stand-in for CuPy and cuBLAS on the processor: NumPy, encoder.cu compiled by g++ (see cuda_shim.h), and gemmEx."""

import contextlib
import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np

from backlight.adapters.cupy_device import CupyDevice
from backlight.kernels.cuda.device import SOURCE, THREADS

SHIM = Path(__file__).with_name("cuda_shim.h")
COMPILER = shutil.which("g++")
STORED = {0: np.float32, 14: ml_dtypes.bfloat16}  # of cuBLAS's dtypes


class HostArray(np.ndarray):
    """An array that says where it lies as CuPy's do."""

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(ptr=self.ctypes.data)


def host(array) -> HostArray:
    return np.ascontiguousarray(array).view(HostArray)


@cache
def compiled_kernels(options: tuple[str, ...]) -> ctypes.CDLL:
    """Return encoder.cu as a library of the processor."""
    built = Path(tempfile.mkdtemp()) / "encoder.so"
    flags = ["-std=c++17", "-O2", "-U_FORTIFY_SOURCE", "-fPIC", "-shared", *options, f'-DSOURCE="{SOURCE}"']
    subprocess.run([COMPILER, *flags, "-x", "c++", str(SHIM), "-o", str(built)], check=True, capture_output=True)
    return ctypes.CDLL(str(built))


class RawModule:
    """CuPy's class of this name."""

    def __init__(self, *, code: str, options: tuple[str, ...]):
        assert code == SOURCE.read_text()
        self._library = compiled_kernels(options)

    def get_function(self, name: str) -> Callable:
        def kernel(grid: tuple[int, int], block: tuple[int], arguments: tuple) -> None:
            assert block == (THREADS,)
            values = [np.uintp(one.data.ptr) if isinstance(one, np.ndarray) else one for one in arguments]
            assert all(isinstance(one, (np.uintp, np.int32, np.float32)) for one in values)
            dense = [one for one in arguments if isinstance(one, np.ndarray)]
            assert all(one.flags.c_contiguous and one.dtype in (np.float32, np.int32, np.uint16) for one in dense)
            kept = [np.array(one) for one in values]
            places = (ctypes.c_void_p * len(kept))(*(one.ctypes.data for one in kept))
            assert self._library.launch_kernel(name.encode(), *grid, places) == 0, f"no kernel is called {name}"

        return kernel


def _matrix(pointer: int, dtype: type, rows: int, columns: int, leading: int) -> np.ndarray:
    """Return a matrix by columns that lies somewhere in memory, `leading` numbers from one column to the next."""
    size = np.dtype(dtype).itemsize * leading * columns
    flat = np.frombuffer((ctypes.c_char * size).from_address(pointer), dtype)
    return flat.reshape(columns, leading)[:, :rows].T


def gemm_ex(
    handle, transa, transb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, compute, algorithm
):  # fmt: skip
    """Compute C = alpha · op(A) · op(B) + beta · C by columns, as cublasGemmEx is documented."""
    shapes = ((k, m) if transa else (m, k)), ((n, k) if transb else (k, n))
    left = _matrix(a, STORED[a_type], *shapes[0], lda).astype(np.float32)
    right = _matrix(b, STORED[b_type], *shapes[1], ldb).astype(np.float32)
    out = _matrix(c, STORED[c_type], m, n, ldc)
    if compute == 77:  # factors with the 10 bits of TF32
        bits = (np.array(one).view(np.uint32) & 0xFFFFE000 for one in (left, right))
        left, right = (one.view(np.float32) for one in bits)
    first, second = (ctypes.c_float.from_address(one).value for one in (alpha, beta))
    found = first * ((left.T if transa else left) @ (right.T if transb else right))
    out[...] = found + second * out if second else found


class Memory:
    """How many bytes an array may have, as if the device had no more."""

    limit: int | None = None

    def empty(self, shape: tuple[int, ...], dtype: type) -> HostArray:
        made = np.full(shape, 255, np.uint8) if dtype is np.uint8 else np.empty(shape, dtype)
        if self.limit is not None and made.nbytes > self.limit:
            raise MemoryError
        if made.dtype == np.float32:
            made.fill(np.nan)  # so that what no kernel wrote shows
        return host(made)


def host_device(dtype: str = "float32", limit: int | None = None) -> CupyDevice:
    """Return a `CupyDevice` on the processor.

    Args:
        limit: how many bytes an array may have.
    """
    memory = Memory()
    cupy = SimpleNamespace(
        RawModule=RawModule,
        asarray=host,
        asnumpy=np.asarray,
        empty=memory.empty,
        limit=memory,
        empty_like=lambda array: memory.empty(array.shape, array.dtype.type),
        get_default_memory_pool=lambda: SimpleNamespace(free_all_blocks=lambda: None),
        cuda=SimpleNamespace(
            Device=lambda number: contextlib.nullcontext(),
            device=SimpleNamespace(get_cublas_handle=lambda: 0),
        ),
    )
    device = CupyDevice(cupy, SimpleNamespace(gemmEx=gemm_ex), 0, dtype)
    memory.limit = limit
    return device
