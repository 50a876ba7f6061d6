"""Matrix products of an encoder's shapes, float32: with Intel's tile unit where the machine has one, and without.

    python benchmarks/matrix_products.py [--quick] [--json FILE] [--only "2048 x 384 x 1536"]

A row is rows x inner x columns: texts of 2048 tokens through MiniLM's layers, and a square. *By vectors* are the
kernels of level v4, the same but for the unit; all compute x · wᵀ. NumPy and PyTorch multiply by their own BLAS.
"""

import sys
from collections.abc import Callable

import numpy as np
from measure import OURS, RIVAL, Case
from quiet import library
from suite import main

TITLE = "matrix products, float32"
SHAPES = ((2048, 384, 384), (2048, 384, 1536), (2048, 1536, 384), (128, 384, 384), (1024, 1024, 1024))
BY_VECTORS, NUMPY = "backlight by vectors", "numpy"


def _operands(rows: int, inner: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((rows, inner), np.float32), rng.standard_normal((columns, inner), np.float32)


def _product(name: str, shape: tuple[int, int, int], level: str | None = None) -> Callable[[], Callable]:
    """Return a function that makes the product in a library, at a level of backlight's kernels."""

    def made() -> Callable:
        module = library(name)
        x, w = (one if name == "numpy" else module.from_numpy(one) for one in _operands(*shape))
        if name != "backlight":
            return lambda: [np.asarray(x @ w.T)]
        kernels = library("backlight.kernels.native").compiled
        wanted = level or kernels.level()

        def multiplied() -> list[np.ndarray]:
            before = kernels.level()
            kernels.use_level(wanted)
            found = x @ w.T
            kernels.use_level(before)
            return [found.numpy()]

        return multiplied

    return made


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each shape."""
    tiles = library("backlight.kernels.native").compiled.level() == "amx"
    rows = []
    for shape in SHAPES[:1] if quick else SHAPES:
        candidates = {
            OURS: _product("backlight", shape),
            RIVAL: _product("torch", shape),
            NUMPY: _product("numpy", shape),
        }
        candidates |= {BY_VECTORS: _product("backlight", shape, "v4")} if tiles else {}
        rows.append(Case(" x ".join(map(str, shape)), candidates))
    return rows


if __name__ == "__main__":
    sys.exit(main("matrix_products", TITLE, cases))
