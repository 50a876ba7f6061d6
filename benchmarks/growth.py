"""How time and peak memory grow: the batch of an MLP, the tokens of a pair, the depth of a graph; five sizes each.

python benchmarks/growth.py [--quick] [--json FILE]
"""

import sys

import numpy as np
import pairs as work
import saliency
from floors import gemm_floor
from measure import OURS, RIVAL, Case
from quiet import library
from suite import main
from training_steps import NETWORKS, Network, flops, training

TITLE = "growth with the size, forward + backward"
BATCHES = (16, 64, 256, 1024, 4096)
TOKENS = (32, 64, 128, 256, 512)
DEPTHS = (100, 1000, 5000, 20_000, 100_000)
FLOATS = 16


def mlp(batch: int) -> Case:
    """Return the row of a training step of the MLP with this batch."""
    small = NETWORKS["MLP"]
    products = tuple((times, batch, k, n) for times, _, k, n in small.products)
    network = Network(small.make, (batch, 784), products)
    return Case(
        f"MLP, batch {batch}",
        {rival: lambda rival=rival: training(rival, network) for rival in (OURS, RIVAL)},
        floor=gemm_floor(flops(network), [shape for _, *shape in products]),
        seconds=4.0,
        memory=(OURS, RIVAL),
    )


def pair(tokens: int) -> Case:
    """Return the row of the saliency of one pair of this length."""
    pairs = work.single(tokens)
    return Case(
        f"pair, {tokens} tokens",
        {OURS: lambda: saliency.our_saliency(pairs), RIVAL: lambda: saliency.their_saliency(pairs, [range(1)])},
        floor=gemm_floor(work.flops(pairs, backward=True), work.gemm_shapes(tokens)),
        rounds=9,
        seconds=4.0,
        memory=(OURS, RIVAL),
    )


def chain(name: str, depth: int):
    """Return a function that builds a graph so deep and walks back through it."""
    module = library(name)
    x, w = (module.tensor(np.full(FLOATS, value, np.float32), requires_grad=True) for value in (0.5, 0.999))

    def once():
        x.grad = w.grad = None
        h = x
        for _ in range(depth):
            h = h * w
        h.sum().backward()
        return x.grad

    return once


def deep(depth: int) -> Case:
    """Return the row of a graph of this depth."""
    return Case(
        f"graph, {depth:,} ops deep",
        {rival: lambda rival=rival: chain(rival, depth) for rival in (OURS, RIVAL)},
        threads=1,
        rounds=9,
        seconds=4.0,
        tolerance=None if depth > 1000 else 1e-3,  # 0.999 to the power of 100,000 is 0
        memory=(OURS, RIVAL),
    )


def cases(quick: bool = False) -> list[Case]:
    """Return five sizes of each kind."""
    if quick:
        return [mlp(4), deep(10)]
    return [*map(mlp, BATCHES), *map(pair, TOKENS), *map(deep, DEPTHS)]


if __name__ == "__main__":
    sys.exit(main("growth", TITLE, cases))
