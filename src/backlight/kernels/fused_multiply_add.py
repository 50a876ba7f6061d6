"""Multiply and add with one rounding, as the CPU's fused instruction does and as PyTorch's loops are compiled to."""

import numpy as np

_SPLIT = 2.0**27 + 1  # Veltkamp's constant: splits a float64 into two halves of 26 bits


def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray):
    """Return a · b + c in the dtype of `a`, rounded once.

    In float32 the product is exact in float64. In float64 the rounding errors of product and sum are computed (Dekker's
    and Knuth's algorithms) and added at the end. The last bit can be wrong where two roundings meet: once in 2²⁹.
    Half precision is rounded twice, as PyTorch does.
    """
    kind = np.asarray(a).dtype
    if kind == np.float32:
        return multiply_add32(a, b, c)
    if kind != np.float64:
        return a * b + c
    product = a * b
    total = product + c
    part = total - product
    sum_error = (product - (total - part)) + (c - part)
    return total + (sum_error + _product_error(a, b, product))


def multiply_add32(a: np.ndarray, b: np.ndarray | float, c: np.ndarray | float):
    """Return a · b + c, rounded once to float32: all are float32, or Python floats that float32 holds."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


def _product_error(a: np.ndarray, b: np.ndarray, product: np.ndarray):
    """Return a · b − product exactly (Dekker)."""
    a_high, b_high = _high(a), _high(b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _high(x: np.ndarray):
    scaled = _SPLIT * x
    return scaled - (scaled - x)
