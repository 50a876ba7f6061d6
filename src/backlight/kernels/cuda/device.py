"""What runs the kernels of encoder.cu and products of matrices: what code above needs of a GPU, and nothing else.

NOTE [A device]
`CupyDevice` (adapters/cupy_device.py) is one; the tests have another, on the processor: NumPy, and the same encoder.cu
compiled by g++. Arrays belong to `xp`, are dense, and hold float32 and int32.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

SOURCE = Path(__file__).with_name("encoder.cu")
THREADS, ROWS = 128, 64  # of encoder.cu: threads of a block, and the rows of attention that they take
DIMS = range(8, 129, 8)  # of a head, that attention can be compiled for
ACTIVATIONS = {  # names of config.json, and their numbers in encoder.cu
    "gelu": 0,
    "gelu_python": 0,
    "gelu_new": 1,
    "gelu_fast": 1,
    "gelu_accurate": 1,
    "gelu_pytorch_tanh": 1,
    "gelu_python_tanh": 1,
    "relu": 2,
}
DTYPES = ("float32", "tf32", "bfloat16")  # of products: what their factors are rounded to; all else is float32
Launch = Callable[..., None]  # called with a kernel's name, (columns, rows) of blocks, and its arguments; None: a null


class Device(Protocol):
    """A GPU (see NOTE [A device]).

    Attributes:
        name: what it is called in results.
        dtype: one of `DTYPES`.
        xp: the array module: NumPy's functions.
    """

    name: str
    dtype: str
    xp: Any

    def active(self) -> AbstractContextManager:
        """Make it the one that this thread allocates and launches on, inside the block."""

    def compiled(self, dim: int) -> Launch:
        """Return what launches the kernels, compiled for heads of this size."""

    def weight(self, array: np.ndarray) -> Any:
        """Return a matrix as products take it."""

    def product(self, rows: Any, weight: Any) -> Any:
        """Return rows · weightᵀ; (rows, in), (out, in) -> (rows, out)."""

    def product_gradient(self, grad: Any, weight: Any, out: Any = None) -> Any:
        """Return grad · weight, added to `out` where that is given; (rows, out), (out, in) -> (rows, in)."""

    def on_host(self, array: Any) -> np.ndarray:
        """Return an array in main memory, after all that was launched."""

    def free_memory(self) -> None:
        """Give memory back that is kept for later. Where there is none left, a MemoryError is raised."""


def attention_blocks(lengths: Sequence[int]) -> np.ndarray:
    """Return the first token of its sequence, its length and its first row for each block; (blocks, 3)."""
    starts = np.cumsum([0, *lengths])
    rows = [(start, length, row) for start, length in zip(starts.tolist(), lengths) for row in range(0, length, ROWS)]
    return np.array(rows, np.int32).reshape(-1, 3)
