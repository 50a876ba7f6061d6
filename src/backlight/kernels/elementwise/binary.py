"""Sums, differences, products and quotients of two arrays, with broadcasting; sums over dims.

Tensors are taken too, since the references are plain operators: so derivatives may use them in every order.
"""

import numpy as np

from backlight.kernels.native import native


@native
def plus(a: np.ndarray, b: np.ndarray):
    """Return a + b."""
    return a + b


@native
def minus(a: np.ndarray, b: np.ndarray):
    """Return a − b."""
    return a - b


@native
def times(a: np.ndarray, b: np.ndarray):
    """Return a · b."""
    return a * b


@native
def over(a: np.ndarray, b: np.ndarray):
    """Return a / b."""
    return a / b


@native
def summed(x: np.ndarray, dims: tuple | None, keepdim: bool):
    """Return the sum over `dims`, all of them for None; those dims stay with size 1 if `keepdim`."""
    return np.add.reduce(x, dims, None, None, keepdim)
