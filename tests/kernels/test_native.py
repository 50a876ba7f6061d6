"""Native kernels agree with their NumPy references, at every level this machine runs, in both types and any size."""

import numpy as np
import pytest

from backlight.kernels.nn import softmax as rows

SIZES = [(1, 1), (3, 5), (7, 16), (2, 33), (5, 100), (300, 257)]
KINDS = (np.float32, np.float64)


def close(found, expected, kind, ulps=32):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=ulps * np.finfo(kind).eps, atol=ulps * np.finfo(kind).tiny)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SIZES)
def test_softmax_agrees_with_its_reference(level, shape, kind):
    x = np.random.default_rng(0).normal(size=shape, scale=4).astype(kind)
    out = rows.softmax(x, -1)
    close(out, rows.softmax.__wrapped__(x, -1), kind)
    grad = np.random.default_rng(1).normal(size=shape).astype(kind)
    found, expected = rows.softmax_gradient(grad, out, -1), rows.softmax_gradient.__wrapped__(grad, out, -1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=64 * np.finfo(kind).eps * np.abs(grad).max())
