"""Transforms of functions: gradients of each example, Jacobians and Hessians, beside torch.func in one run.

Each row checks first that both engines give the same numbers.

    python benchmarks/func.py [--quick] [--json FILE] [--check]
"""

import importlib
import sys

import numpy as np
from measure import OURS, RIVAL, Case
from quiet import library
from suite import main

TITLE = "vmap, jacrev and hessian, float32, one thread, ms a call"


def arrays(*shapes) -> list[np.ndarray]:
    """Return the same standard normal numbers on each call."""
    rng = np.random.default_rng(0)
    return [np.asarray(rng.normal(size=shape) * 0.3, np.float32) for shape in shapes]


def func_of(module):
    """Return the engine's transforms."""
    return importlib.import_module(f"{module.__name__}.func")


def gradients_of_each(batch: int, width: int, layers: int = 2):
    """Return a maker of a call: the gradient of a small network's loss for each example of a batch."""

    def make(name: str):
        module = library(name)
        func = func_of(module)
        x, *weights = [module.tensor(a) for a in arrays((batch, width), *[(width, width)] * layers)]

        def loss(weights, one):
            for weight in weights:
                one = (weight @ one).tanh()
            return (one * one).sum()

        each = func.vmap(func.grad(loss), in_dims=(None, 0))
        return lambda: each(tuple(weights), x)

    return make


def gradients_of_each_image(batch: int, side: int):
    """Return a maker of a call: the gradient of a small CNN's loss for each picture of a batch."""

    def make(name: str):
        module = library(name)
        func = func_of(module)
        shapes = ((batch, 1, side, side), (8, 1, 3, 3), (8, 8, 3, 3), (10, 8 * (side // 2) ** 2))
        x, *weights = [module.tensor(a) for a in arrays(*shapes)]
        functional = importlib.import_module(f"{module.__name__}.nn.functional")

        def loss(weights, one):
            first, second, last = weights
            hidden = functional.conv2d(one.unsqueeze(0), first, padding=1).relu()
            hidden = functional.max_pool2d(functional.conv2d(hidden, second, padding=1).relu(), 2)
            return (hidden.flatten() @ last.t()).logsumexp(0)

        each = func.vmap(func.grad(loss), in_dims=(None, 0))
        return lambda: each(tuple(weights), x)

    return make


def derivative(transform: str, width: int):
    """Return a maker of a call: a Jacobian or a Hessian of a small network for its input."""

    def make(name: str):
        module = library(name)
        func = func_of(module)
        x, first, second = [module.tensor(a) for a in arrays((width,), (width, width), (width, width))]

        def network(one):
            return second @ (first @ one).tanh()

        function = network if transform != "hessian" else lambda one: (network(one) ** 2).sum()
        computed = getattr(func, transform)(function)
        return lambda: computed(x)

    return make


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each transform and size."""
    rows = [
        ("gradients of 64 examples, width 32", gradients_of_each(64, 32)),
        ("gradients of 256 examples, width 128", gradients_of_each(256, 128)),
        ("gradients of 32 pictures, CNN", gradients_of_each_image(32, 12)),
        ("jacrev, 32 to 32", derivative("jacrev", 32)),
        ("jacrev, 256 to 256", derivative("jacrev", 256)),
        ("jacfwd, 32 to 32", derivative("jacfwd", 32)),
        ("jacfwd, 256 to 256", derivative("jacfwd", 256)),
        ("hessian, 32", derivative("hessian", 32)),
        ("hessian, 128", derivative("hessian", 128)),
    ]
    return [row(title, make) for title, make in (rows[:1] if quick else rows)]


def row(title: str, make) -> Case:
    """Return one row."""
    return Case(
        title,
        {name: lambda name=name: make(name) for name in (OURS, RIVAL)},
        threads=1,
        unit="ms",
        rounds=15,
        seconds=2.0,
    )


if __name__ == "__main__":
    sys.exit(main("func", TITLE, cases))
