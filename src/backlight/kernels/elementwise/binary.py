"""Sums, differences, products and quotients of two arrays, with broadcasting; sums over dims.

Tensors are taken too, since the references are plain operators: so derivatives may use them in every order.
"""

import numpy as np

from backlight.kernels.native import native


@native
def plus(a, b):
    """Return a + b."""
    return a + b


@native
def minus(a, b):
    """Return a − b."""
    return a - b


@native
def times(a, b):
    """Return a · b."""
    return a * b


@native
def over(a, b):
    """Return a / b."""
    return a / b


@native
def summed(x: np.ndarray, dims: tuple | None, keepdim: bool):
    """Return the sum over `dims`, all of them for None; those dims stay with size 1 if `keepdim`."""
    return np.add.reduce(x, dims, None, None, keepdim)
