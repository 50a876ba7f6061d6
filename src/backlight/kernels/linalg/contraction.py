"""Sums of products over named dims, carried out as matrix products.

A term is a string of labels, one a dim, all different. Every label stands in at least two places: two operands, or an
operand and the output. (ops/linalg/einsum.py brings any equation into this form.)
"""

import functools
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from backlight.kernels.linalg.matrix_products import matmul


def contract(arrays: Sequence[np.ndarray], terms: tuple[str, ...], output: str) -> np.ndarray:
    """Multiply arrays where labels agree, and sum over the labels that are not in the output."""
    arrays, terms = list(arrays), list(terms)
    shapes = tuple(array.shape for array in arrays)
    for i, j, target in contraction_order(tuple(terms), output, shapes):
        right, right_term = arrays.pop(j), terms.pop(j)
        left, left_term = arrays.pop(i), terms.pop(i)
        arrays.append(contract_pair(left, left_term, right, right_term, target))
        terms.append(target)
    return arrays[0]


def in_order(array: np.ndarray, term: str, output: str):
    """Return the array with its dims in the order of `output`, which has the same labels."""
    return array if term == output else array.transpose([term.index(label) for label in output])


@functools.lru_cache(maxsize=256)
def contraction_order(terms: tuple[str, ...], output: str, shapes: Sequence) -> list[tuple[int, int, str]]:
    """Choose which two operands to multiply next, greedily by how much smaller the operands get.

    Returns:
        For each step, the places i < j of the two (their product goes to the end), and the product's labels.
    """
    sizes = {label: size for term, shape in zip(terms, shapes) for label, size in zip(term, shape)}
    terms, steps = list(terms), []
    while len(terms) > 2:
        choices = []
        for j in range(1, len(terms)):
            for i in range(j):
                rest = set(output).union(*(term for place, term in enumerate(terms) if place not in (i, j)))
                target = "".join(dict.fromkeys(label for label in terms[i] + terms[j] if label in rest))
                growth = _size(target, sizes) - _size(terms[i], sizes) - _size(terms[j], sizes)
                choices.append((growth, i, j, target))
        _, i, j, target = min(choices)
        steps.append((i, j, target))
        terms = [term for place, term in enumerate(terms) if place not in (i, j)] + [target]
    return [*steps, (0, 1, output)]


def _size(term: str, sizes: dict[str, int]) -> int:
    return prod(sizes[label] for label in term)


def contract_pair(left: np.ndarray, left_term: str, right: np.ndarray, right_term: str, output: str):
    """Contract two operands by one batched matrix product: (shared, left, summed) · (shared, summed, right)."""
    plan = _pair_plan(left_term, left.shape, right_term, right.shape, output)
    if plan is None:
        # multiply two operands that share only labels of the output: nothing is summed
        return _aligned(left, left_term, output) * _aligned(right, right_term, output)
    first = left.transpose(plan.left_order).reshape(plan.left_shape)
    second = right.transpose(plan.right_order).reshape(plan.right_shape)
    return matmul(first, second).reshape(plan.shape).transpose(plan.order)


class PairPlan(NamedTuple):
    """How two operands become stacks of matrices, and their product the output."""

    left_order: tuple[int, ...]
    left_shape: tuple[int, ...]
    right_order: tuple[int, ...]
    right_shape: tuple[int, ...]
    shape: tuple[int, ...]
    order: tuple[int, ...]


@functools.lru_cache(maxsize=1024)
def _pair_plan(
    left_term: str, left_shape: Sequence[int], right_term: str, right_shape: Sequence[int], output: str
) -> PairPlan | None:
    """Return the plan, or None where nothing is summed."""
    shared, summed, left_only, right_only = _roles(left_term, right_term, output)
    if not summed:
        return None
    sizes = dict(zip(left_term, left_shape)) | dict(zip(right_term, right_shape))
    lead = tuple(sizes[label] for label in shared)
    rows, columns = tuple(sizes[label] for label in left_only), tuple(sizes[label] for label in right_only)
    inner = prod(sizes[label] for label in summed)
    return PairPlan(
        tuple(left_term.index(label) for label in shared + left_only + summed),
        (*lead, prod(rows), inner),
        tuple(right_term.index(label) for label in shared + summed + right_only),
        (*lead, inner, prod(columns)),
        (*lead, *rows, *columns),
        tuple((shared + left_only + right_only).index(label) for label in output),
    )


def _roles(left: str, right: str, output: str) -> tuple[str, str, str, str]:
    """Sort labels into those kept in both, summed over, and kept in one of the operands only."""
    both = [label for label in left if label in right]
    shared = "".join(label for label in both if label in output)
    summed = "".join(label for label in both if label not in output)
    return (
        shared,
        summed,
        "".join(label for label in left if label not in right),
        "".join(label for label in right if label not in left),
    )


def _aligned(array: np.ndarray, term: str, output: str):
    """Return the array with the output's dims, size 1 where it has none."""
    ordered = in_order(array, term, "".join(label for label in output if label in term))
    sizes = iter(ordered.shape)
    return ordered.reshape([next(sizes) if label in term else 1 for label in output])
