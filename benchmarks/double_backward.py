"""Gradients of gradients: a penalty on an MLP's input gradient, and chains recorded with create_graph.

python benchmarks/double_backward.py [--quick] [--json FILE]
"""

import sys

import numpy as np
from floors import copy_floor, gemm_floor
from measure import OURS, RIVAL, Case
from quiet import library
from suite import main

TITLE = "double backward, float32"
BATCH, SIZE, HIDDEN = 64, 784, 256
CHAIN = 10  # of tanh(h · w)


def penalty(name: str):
    """Return a function that computes the gradient of |∂ score / ∂ input|² for the weights of an MLP."""
    module = library(name)
    rng = np.random.default_rng(0)
    shapes = ((HIDDEN, SIZE), (HIDDEN, HIDDEN), (1, HIDDEN))
    weights = [
        module.tensor((rng.normal(size=shape) / np.sqrt(shape[1])).astype(np.float32), requires_grad=True)
        for shape in shapes
    ]
    inputs = module.tensor(rng.normal(size=(BATCH, SIZE)).astype(np.float32), requires_grad=True)
    linear = module.nn.functional.linear

    def once():
        first, second, last = weights
        scores = linear(module.tanh(linear(module.tanh(linear(inputs, first)), second)), last)
        (slopes,) = module.autograd.grad(scores.sum(), inputs, create_graph=True)
        return module.autograd.grad((slopes * slopes).sum(1).mean(), weights)

    return once


def derivative(name: str, order: int, size: int):
    """Return a function that differentiates a chain of tanh(h · w) so many times."""
    module = library(name)
    rng = np.random.default_rng(0)
    x, w = (module.tensor(rng.normal(size=size).astype(np.float32), requires_grad=True) for _ in range(2))

    def once():
        value = x
        for _ in range(CHAIN):
            value = module.tanh(value * w)
        for number in range(order):
            (value,) = module.autograd.grad(value.sum(), x, create_graph=number < order - 1)
        return value

    return once


def rivals(make, *arguments):
    """Return the two candidates."""
    return {rival: lambda rival=rival: make(rival, *arguments) for rival in (OURS, RIVAL)}


def cases(quick: bool = False) -> list[Case]:
    """Return the penalty, and derivatives of the chain."""
    first, second = (BATCH, SIZE, HIDDEN), (BATCH, HIDDEN, HIDDEN)
    once, twice = 2 * BATCH * SIZE * HIDDEN, 2 * BATCH * HIDDEN * HIDDEN
    chains = [
        Case(
            f"order {order}, {size} floats",
            rivals(derivative, order, size),
            floor=copy_floor(4 * size * 3 * 2 * CHAIN * 2**order, size),  # each order doubles the ops at least
            threads=1,
            unit="us",
            tolerance=1e-3,
        )
        for order, size in ((2, 16),) + (() if quick else ((3, 16), (2, 16384)))
    ]
    # per layer: forward, input gradient, and in the second pass a product for each factor of each of them
    return [
        Case("penalty of an MLP", rivals(penalty), floor=gemm_floor(5 * once + 6 * twice, [first, second])),
        *chains,
    ]


if __name__ == "__main__":
    sys.exit(main("double_backward", TITLE, cases))
