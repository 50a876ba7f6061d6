"""How much an op costs when the arrays are small: 20 × tanh(h · w + b) and a sum, 61 ops, one thread.

The products are element by element, so that the figure is the engine's and not BLAS's.

    python benchmarks/tiny_ops.py [--quick] [--json FILE] [--check]
"""

import math
import sys

import numpy as np
from floors import copy_floor
from measure import OURS, RIVAL, Bar, Case
from quiet import library
from suite import main

TITLE = "20 × tanh(h · w + b), float32, one thread, µs an op"
LAYERS = 20
OPS = 3 * LAYERS + 1
SHAPES = {"0-d": (), "16": (16,), "64": (64,), "32 x 32": (32, 32), "128 x 128": (128, 128)}
BARS = {"0-d": 0.20, "16": 0.20, "32 x 32": 0.45, "128 x 128": 0.75}


def chain(name: str, shape: tuple[int, ...], *, backward: bool):
    """Return a function that runs the chain once, with or without its backward."""
    module = library(name)
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.normal(size=shape), np.float32) for _ in range(3)]
    x, w, b = (module.tensor(array, requires_grad=True) for array in arrays)
    tanh = module.tanh

    def forward():
        h = x
        for _ in range(LAYERS):
            h = tanh(h * w + b)
        return h.sum()

    def both():
        x.grad = w.grad = b.grad = None
        forward().backward()
        return x.grad, w.grad, b.grad

    return both if backward else forward


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each shape, forward alone and with backward."""
    shapes = {"16": SHAPES["16"]} if quick else SHAPES
    return [case(title, shape, backward) for title, shape in shapes.items() for backward in (True, False)]


def case(title: str, shape: tuple[int, ...], backward: bool) -> Case:
    """Return one row; its floor is reading two arrays and writing one, for each op, and twice that in backward."""
    size = 4 * math.prod(shape)
    return Case(
        title if backward else f"{title}, forward",
        {name: lambda name=name: chain(name, shape, backward=backward) for name in (OURS, RIVAL)},
        floor=copy_floor((9 if backward else 3) * OPS * size, math.prod(shape)),
        bars=(Bar(BARS[title]),) if backward and title in BARS else (),
        threads=1,
        unit="us",
        scale=1 / OPS,
        rounds=21,
        seconds=3.0,
    )


if __name__ == "__main__":
    sys.exit(main("tiny", TITLE, cases))
