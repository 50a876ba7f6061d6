"""Single ops, forward and backward, float32, from what fits a cache to what does not.

    python benchmarks/elementwise.py [--quick] [--json FILE] [--only "gelu 4096 x 1536"]

The floor of each is the traffic that no implementation avoids if nothing stays in a cache: every input, result and
gradient read or written once, at the rate of copying arrays of the same size.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from floors import copy_floor
from measure import OURS, RIVAL, Bar, Case
from quiet import library
from suite import main

TITLE = "single ops, forward + backward, float32"
SIZES = ((64, 64), (512, 512), (4096, 1536))
BARRED = ("gelu", "layer_norm")
BAR, MEMORY_BAR = 0.8, 1.0


@dataclass(frozen=True)
class Op:
    """An op to measure.

    Args:
        call: computes it from a module (backlight or torch) and tensors.
        shapes: of the inputs, all of which get a gradient, from the size (rows, columns).
        passes: arrays of the full size that must be read or written at least, forward and backward.
        compared: whether both libraries give the same; a dropout does not.
    """

    call: Callable
    shapes: Callable = lambda rows, columns: [(rows, columns)]
    passes: int = 5  # read x, write y; read its gradient and x or y, write the gradient of x
    compared: bool = True


def _two(rows, columns):
    return [(rows, columns), (rows, columns)]


def _with_row(rows, columns):
    return [(rows, columns), (columns,)]


def _scaled(rows, columns):
    return [(rows, columns), (columns,), (columns,)]


def _of(name: str) -> Callable:
    return lambda module, *inputs: getattr(module, name)(*inputs)


def _functional(name: str, *options, **named) -> Callable:
    return lambda module, *inputs: getattr(module.nn.functional, name)(*inputs, *options, **named)


def _layer_norm(module, x, weight, bias):
    return module.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias)


def _rms_norm(module, x, weight):
    return module.nn.functional.rms_norm(x, (x.shape[-1],), weight)


def _cross_entropy(module, x):
    rows, columns = x.shape
    return module.nn.functional.cross_entropy(x, module.arange(rows) % columns)


OPS = {
    "gelu": Op(_functional("gelu")),
    "gelu tanh": Op(_functional("gelu", approximate="tanh")),
    "tanh": Op(_of("tanh")),
    "exp": Op(_of("exp")),
    "sigmoid": Op(_of("sigmoid")),
    "silu": Op(_functional("silu")),
    "add": Op(lambda module, x, y: x + y, _two, passes=6),
    "mul": Op(lambda module, x, y: x * y, _two, passes=8),
    "add a row": Op(lambda module, x, y: x + y, _with_row, passes=4),
    "mul by a row": Op(lambda module, x, y: x * y, _with_row, passes=5),
    "softmax": Op(_functional("softmax", -1)),
    "log_softmax": Op(_functional("log_softmax", -1)),
    "layer_norm": Op(_layer_norm, _scaled),
    "rms_norm": Op(_rms_norm, _with_row),
    "cross_entropy": Op(_cross_entropy, passes=3),
    "sum of rows": Op(lambda module, x: x.sum(1), passes=2),
    "sum of columns": Op(lambda module, x: x.sum(0), passes=2),
    "dropout": Op(_functional("dropout", 0.1), compared=False),
}


def both_ways(name: str, op: Op, size: tuple[int, int]):
    """Return a function that runs an op and its backward from a gradient that is given."""
    module = library(name)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in op.shapes(*size)]
    inputs = [module.tensor(array, requires_grad=True) for array in arrays]
    shape = tuple(op.call(module, *inputs).shape)
    grad = module.tensor(np.asarray(rng.normal(size=shape), np.float32))

    def once():
        for one in inputs:
            one.grad = None
        op.call(module, *inputs).backward(grad)
        return [one.grad for one in inputs]

    return once


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each op and size."""
    sizes = ((8, 12),) if quick else SIZES
    return [case(name, op, size) for size in sizes for name, op in OPS.items()]


def case(name: str, op: Op, size: tuple[int, int]) -> Case:
    """Return one row."""
    elements = size[0] * size[1]
    barred = name in BARRED and size == SIZES[-1]
    return Case(
        "{} {} x {}".format(name, *size),
        {library_name: lambda rival=library_name: both_ways(rival, op, size) for library_name in (OURS, RIVAL)},
        floor=copy_floor(4 * elements * op.passes, elements),
        bars=(Bar(BAR), Bar(MEMORY_BAR, of="memory")) if barred else (),
        unit="ms" if elements > 1 << 16 else "us",
        tolerance=1e-4 if op.compared else None,
        seconds=3.0,
        memory=(OURS, RIVAL) if barred else (),
    )


if __name__ == "__main__":
    sys.exit(main("elementwise", TITLE, cases))
