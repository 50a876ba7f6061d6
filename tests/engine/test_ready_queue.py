"""Leaves that get their last gradients together are written in PyTorch's order."""

import random

import pytest
import torch

import backlight as bl


def _order_of_stack(library, count: int) -> list[str]:
    order: list[str] = []
    leaves = _watched(library, count, order)
    library.stack(leaves).sum().backward()
    return order


def _watched(library, count: int, order: list[str]) -> list:
    leaves = [library.ones(2, requires_grad=True) for _ in range(count)]
    for number, leaf in enumerate(leaves):
        leaf.register_hook(lambda grad, number=number: order.append(f"grad {number}"))
        leaf.register_post_accumulate_grad_hook(lambda leaf, number=number: order.append(f"written {number}"))
    return leaves


def _order_of_program(library, seed: int) -> list[str]:
    """Return the order in which leaves are written where stacks of leaves and of results lead to one sum."""
    rng, order = random.Random(seed), []
    leaves = _watched(library, 12, order)
    values = list(leaves)
    for _ in range(rng.randrange(2, 6)):
        values.append(library.stack(rng.sample(values, rng.randrange(1, 9))).sum(0))
    roots = [library.stack(rng.sample(values, rng.randrange(3, len(values)))).sum(), values[-1].sum()]
    if rng.random() < 0.5:
        library.autograd.backward(roots)
    else:
        library.autograd.backward(roots[0], inputs=rng.sample(leaves, 7))
    return order


@pytest.mark.parametrize("count", range(2, 20))
def test_leaves_of_one_node_are_written_in_pytorchs_order(count):
    assert _order_of_stack(bl, count) == _order_of_stack(torch, count)


def test_a_leaf_is_written_after_its_last_edge():
    found: dict = {torch: [], bl: []}
    for library, order in found.items():
        first, second = _watched(library, 2, order)
        library.cat([first, second, first]).sum().backward()
    assert found[bl] == found[torch] == ["grad 1", "written 1", "grad 0", "written 0"]


def test_leaves_of_random_programs_are_written_in_pytorchs_order():
    for seed in range(60):
        assert _order_of_program(bl, seed) == _order_of_program(torch, seed)
