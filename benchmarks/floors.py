"""How fast this machine multiplies matrices and copies memory, measured beside what is compared with it."""

import importlib
from collections.abc import Sequence

import numpy as np
from measure import Floor, Work

SMALLEST_COPY = 1 << 16  # bytes: below, a copy's time is that of the call


def gemm_floor(flops: float, shapes: Sequence[tuple[int, int, int]]) -> Floor:
    """Return the time of so many FLOPs at the rate of float32 matrix products of these shapes, (m, k) · (k, n)."""
    probes = {"np.matmul": lambda: _numpy_products(shapes)}
    native = native_gemm()
    if native is not None:
        probes["native gemm"] = lambda: _native_products(native, shapes)
    return Floor(flops, "FLOP", probes, sum(2 * m * k * n for m, k, n in shapes))


def copy_floor(traffic: float, elements: int) -> Floor:
    """Return the time of so many bytes, read or written, at the rate of copying arrays of so many float32."""
    size = max(elements * 4, SMALLEST_COPY)
    return Floor(
        traffic, "byte", {"np.copyto": lambda: _np_copy(size), "torch.copy_": lambda: _torch_copy(size)}, 2 * size
    )


def native_gemm():
    """Return the product of two matrices if it is backlight's own here, or None where NumPy's is in use."""
    native = importlib.import_module("backlight.kernels.native")
    return importlib.import_module("backlight.kernels.linalg.matrix_products").matmul if native.multiplies() else None


def _numpy_products(shapes) -> Work:
    operands = [(*_factors(*shape), np.empty((shape[0], shape[2]), np.float32)) for shape in shapes]

    def work():
        for a, b, out in operands:
            np.matmul(a, b, out=out)

    return work


def _native_products(gemm, shapes) -> Work:
    operands = [_factors(*shape) for shape in shapes]

    def work():
        for a, b in operands:
            gemm(a, b)

    return work


def _factors(m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((m, k), np.float32), rng.random((k, n), np.float32)


def _np_copy(size: int) -> Work:
    source, target = np.ones(size // 4, np.float32), np.zeros(size // 4, np.float32)
    return lambda: np.copyto(target, source)


def _torch_copy(size: int) -> Work:
    """A copy by PyTorch, which uses all threads where NumPy uses one."""
    torch = importlib.import_module("torch")
    source, target = torch.ones(size // 4), torch.zeros(size // 4)
    return lambda: target.copy_(source)
