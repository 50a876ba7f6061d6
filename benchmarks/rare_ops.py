"""Ops beside the common path: random numbers, special functions, small matrices, distances, sampling, own kernels.

Each row checks first that both libraries give the same: of random numbers the same bits.

    python benchmarks/rare_ops.py [--quick] [--json FILE] [--only "randn 1e6"]
"""

import sys
from collections.abc import Callable

import numpy as np
from measure import OURS, RIVAL, Bar, Case
from quiet import library
from suite import main

TITLE = "rarer ops, float32, one thread"
MOST = 2.0  # times PyTorch's time


def numbers(*shapes) -> list[np.ndarray]:
    """Return standard normal numbers, the same on each call."""
    rng = np.random.default_rng(0)
    return [np.asarray(rng.normal(size=shape), np.float32) for shape in shapes]


def matrices(count: int, size: int) -> np.ndarray:
    """Return matrices that are well conditioned."""
    (found,) = numbers((count, size, size))
    return found + 3 * size**0.5 * np.eye(size, dtype=np.float32)


def drawn(call: Callable) -> Callable:
    """Return a maker of draws from a stream that was seeded once: `call(module)`."""

    def make(name: str):
        module = library(name)
        module.manual_seed(0)
        return lambda: call(module)

    return make


def forward(call: Callable, *arrays) -> Callable:
    """Return a maker of `call(module, *tensors)` without gradients."""

    def make(name: str):
        module = library(name)
        tensors = [module.tensor(array) for array in arrays]
        return lambda: call(module, *tensors)

    return make


def both_ways(call: Callable, *arrays) -> Callable:
    """Return a maker of the gradients of `call(module, *tensors)`, from a gradient of ones."""

    def make(name: str):
        module = library(name)
        tensors = [module.tensor(array, requires_grad=True) for array in arrays]
        ones = module.ones_like(call(module, *tensors))

        def once():
            for tensor in tensors:
                tensor.grad = None
            call(module, *tensors).backward(ones)
            return [tensor.grad for tensor in tensors]

        return once

    return make


def _depthwise(module, x, weight):
    return module.nn.functional.conv2d(x, weight, padding=1, groups=len(weight))


def _grid_sample(module, x, grid):
    return module.nn.functional.grid_sample(x, grid, align_corners=False)


def _max_pool(module, x):
    return module.nn.functional.max_pool2d(x, 3, 2, 1)


def _max_pool_halved(module, x):
    return module.nn.functional.max_pool2d(x, 2)


def _avg_pool(module, x):
    return module.nn.functional.avg_pool2d(x, 3, 2, 1)


def _reflected(module, x):
    return module.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect")


POSITIVE = np.abs(numbers((100_000,))[0]) + 0.01
INSIDE = np.tanh(numbers((100_000,))[0])
ROWS = {
    "randn 1e3": drawn(lambda module: module.randn(1000)),
    "randn 1e6": drawn(lambda module: module.randn(1_000_000)),
    "normal_ 300 x 300": drawn(lambda module: module.empty(300, 300).normal_(0, 0.02)),
    "uniform_ 300 x 300": drawn(lambda module: module.empty(300, 300).uniform_(-0.1, 0.1)),
    "bernoulli_ 1e5": drawn(lambda module: module.empty(100_000).bernoulli_(0.3)),
    "randint 1e5": drawn(lambda module: module.randint(0, 1000, (100_000,))),
    "randperm 1e5": drawn(lambda module: module.randperm(100_000)),
    "exponential_ 1e5": drawn(lambda module: module.empty(100_000).exponential_()),
    "poisson 1e5": drawn(lambda module: module.poisson(module.full((100_000,), 20.0))),
    "multinomial 100 x 1000": drawn(lambda module: module.multinomial(module.ones(100, 1000), 20)),
    "depthwise conv2d 4 x 32 x 28 x 28": both_ways(_depthwise, *numbers((4, 32, 28, 28), (32, 1, 3, 3))),
    "grid_sample 8 x 16 x 32 x 32": both_ways(_grid_sample, *numbers((8, 16, 32, 32), (8, 32, 32, 2))),
    "max_pool2d 8 x 16 x 32 x 32": both_ways(_max_pool, *numbers((8, 16, 32, 32))),
    "max_pool2d 32 x 16 x 28 x 28, halved": both_ways(_max_pool_halved, *numbers((32, 16, 28, 28))),
    "max_pool2d 1 x 1 x 8 x 8": both_ways(_max_pool_halved, *numbers((1, 1, 8, 8))),
    "avg_pool2d 8 x 64 x 56 x 56": both_ways(_avg_pool, *numbers((8, 64, 56, 56))),
    "avg_pool2d 1 x 1 x 8 x 8": both_ways(_avg_pool, *numbers((1, 1, 8, 8))),
    "adaptive_max_pool2d 1 x 1 x 8 x 8": both_ways(
        lambda module, x: module.nn.functional.adaptive_max_pool2d(x, 3), *numbers((1, 1, 8, 8))
    ),
    "reflecting pad 8 x 16 x 32 x 32": both_ways(_reflected, *numbers((8, 16, 32, 32))),
    "hardswish 1e5": both_ways(lambda module, x: module.nn.functional.hardswish(x), *numbers((100_000,))),
    "relu6 1e5": both_ways(lambda module, x: module.nn.functional.relu6(x), *numbers((100_000,))),
    "cumsum 100 x 1000": both_ways(lambda module, x: module.cumsum(x, 1), *numbers((100, 1000))),
    "cummax 100 x 1000": both_ways(lambda module, x: module.cummax(x, 1).values, *numbers((100, 1000))),
    "tril 100 x 1000": both_ways(lambda module, x: module.tril(x), *numbers((100, 1000))),
    "topk 100 x 1000": forward(lambda module, x: module.topk(x, 5).values, *numbers((100, 1000))),
    "cdist 300 x 300": both_ways(lambda module, x, y: module.cdist(x, y), *numbers((300, 32), (300, 32))),
    "lu_factor 200 x 6 x 6": forward(lambda module, x: module.linalg.lu_factor(x)[0], matrices(200, 6)),
    "solve 200 x 6 x 6": both_ways(
        lambda module, a, b: module.linalg.solve(a, b), matrices(200, 6), *numbers((200, 6, 1))
    ),
    "inv 200 x 6 x 6": both_ways(lambda module, x: module.linalg.inv(x), matrices(200, 6)),
    "det 200 x 6 x 6": both_ways(lambda module, x: module.linalg.det(x), matrices(200, 6)),
    "erfinv 1e5": both_ways(lambda module, x: module.erfinv(x), INSIDE),
    "erfc 1e5": both_ways(lambda module, x: module.erfc(x), INSIDE),
    "lgamma 1e5": both_ways(lambda module, x: module.lgamma(x), POSITIVE),
}


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each op."""
    names = list(ROWS)[:2] if quick else ROWS
    return [
        Case(
            name,
            {one: lambda one=one, make=ROWS[name]: make(one) for one in (OURS, RIVAL)},
            bars=(Bar(MOST),),
            threads=1,
            rounds=15,
            seconds=1.5,
        )
        for name in names
    ]


if __name__ == "__main__":
    sys.exit(main("rare_ops", TITLE, cases))
