"""Factors L · D · Lᵀ of symmetric matrices that need not be positive-definite, with blocks of one or two rows in D.

Source: Bunch and Kaufman, Some stable methods for calculating inertia and solving symmetric linear systems, 1977; the
results are LAPACK's (sytrf and sytrs): a negative pivot, given twice, marks a block of two.
"""

import numpy as np

from backlight.kernels.state_blocks import silent_floats

ALPHA = (1 + np.sqrt(17)) / 8  # bounds the growth of the numbers


def ldl(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return (LD, pivots, info) of one symmetric matrix, of which the lower triangle is read.

    Shapes: a (n, n) -> (n, n), (n,)
    """
    work, size = np.tril(a), len(a)
    pivots, info, column = np.zeros(size, np.int32), 0, 0
    while column < size:
        other, width = _pivot(work, column)
        if width == 1 and not (np.abs(work[column:, column]) > 0).any():
            info = info or column + 1
            pivots[column] = column + 1
        else:
            _exchange(work, column, column + width - 1, other)
            _eliminate(work, column, width)
            pivots[column : column + width] = other + 1 if width == 1 else -(other + 1)
        column += width
    return work, pivots, info


def _pivot(work: np.ndarray, column: int) -> tuple[int, int]:
    """Return which row to exchange, and how many columns to eliminate together."""
    diagonal, below = abs(work[column, column]), np.abs(work[column + 1 :, column])
    if not len(below) or diagonal >= ALPHA * below.max():
        return column, 1
    largest, most = column + 1 + int(below.argmax()), below.max()
    row = np.abs(np.concatenate([work[largest, column:largest], work[largest + 1 :, largest]])).max()
    if diagonal >= ALPHA * most * (most / row):
        return column, 1
    return largest, 1 if abs(work[largest, largest]) >= ALPHA * row else 2


def _exchange(work: np.ndarray, column: int, first: int, second: int) -> None:
    """Exchange two rows and columns of what is left of a symmetric matrix, from `column` on."""
    if first == second:
        return
    work[[first, second], column:first] = work[[second, first], column:first]
    work[second + 1 :, [first, second]] = work[second + 1 :, [second, first]]
    between = work[first + 1 : second, first].copy()
    work[first + 1 : second, first] = work[second, first + 1 : second]
    work[second, first + 1 : second] = between
    work[[first, second], [first, second]] = work[[second, first], [second, first]]


def _eliminate(work: np.ndarray, column: int, width: int) -> None:
    """Eliminate below one or two columns, and leave the multipliers there."""
    behind = column + width
    block = work[column:behind, column:behind]
    block = np.tril(block) + np.tril(block, -1).T
    below = work[behind:, column:behind].copy()
    multipliers = np.linalg.solve(block, below.T).T
    work[behind:, behind:] -= np.tril(multipliers @ below.T)
    work[behind:, column:behind] = multipliers


def ldl_solve(factor: np.ndarray, pivots: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return x with a · x = b, given one matrix's factor.

    Shapes: factor (n, n), pivots (n,), b (n, k) -> (n, k)
    """
    x, blocks = b.copy(), _blocks(pivots)
    with silent_floats():
        for start, stop in blocks:
            _exchange_rows(x, pivots, stop - 1)
            x[stop:] -= factor[stop:, start:stop] @ x[start:stop]
            block = factor[start:stop, start:stop]
            x[start:stop] = _solve_block(np.tril(block) + np.tril(block, -1).T, x[start:stop])
        for start, stop in reversed(blocks):
            x[start:stop] -= factor[stop:, start:stop].T @ x[stop:]
            _exchange_rows(x, pivots, stop - 1)
    return x


def _blocks(pivots: np.ndarray) -> list[tuple[int, int]]:
    """Return where each block of D begins and ends."""
    blocks, start = [], 0
    while start < len(pivots):
        stop = start + (1 if pivots[start] > 0 else 2)
        blocks.append((start, stop))
        start = stop
    return blocks


def _exchange_rows(x: np.ndarray, pivots: np.ndarray, row: int) -> None:
    other = abs(int(pivots[row])) - 1
    x[[row, other]] = x[[other, row]]


def _solve_block(block: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve for one or two rows; a zero gives infinities and NaN."""
    if len(block) == 1:
        return b / block
    return np.linalg.solve(block, b)
