"""Native distances, samples and eliminations equal their references, at every level, in both types."""

import numpy as np
import pytest

from backlight.kernels.linalg import factors
from backlight.kernels.loss import distances
from backlight.kernels.nn import grid_samples

KINDS = (np.float32, np.float64)


def near(found, expected, kind):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype == kind
    size = np.abs(expected).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=64 * np.finfo(kind).eps * size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize(("batch", "n", "m", "dims"), [(1, 1, 1, 1), (2, 5, 7, 3), (3, 4, 150, 33), (1, 20, 16, 64)])
def test_distances_and_their_slopes_equal_their_references(level, kind, p, batch, n, m, dims):
    rng = np.random.default_rng(0)
    x1, x2, grad = (
        rng.normal(size=shape).astype(kind) for shape in ((batch, n, dims), (batch, m, dims), (batch, n, m))
    )
    x1[0, 0] = x2[0, 0]  # a distance of 0
    turned = np.ascontiguousarray(x2.swapaxes(1, 2))
    out = distances.distances(x1, turned, p)
    near(out, distances.distances.__wrapped__(x1, turned, p), kind)
    slopes = distances.distance_gradients(grad, x1, x2, out, p)
    for found, expected in zip(slopes, distances.distance_gradients.__wrapped__(grad, x1, x2, out, p)):
        near(found, expected, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("taps", "batch", "channels", "positions", "samples"), [(1, 1, 1, 1, 1), (4, 3, 5, 30, 77)])
def test_taps_equal_their_references(level, kind, taps, batch, channels, positions, samples):
    rng = np.random.default_rng(0)
    planes = rng.normal(size=(batch, channels, positions)).astype(kind)
    grad = rng.normal(size=(batch, channels, samples)).astype(kind)
    weights = rng.normal(size=(taps, batch, samples)).astype(kind)
    places = rng.integers(0, positions, weights.shape)
    for kernel, given in (
        (grid_samples.weighted_samples, (planes, weights, places)),
        (grid_samples.scatter_samples, (grad, weights, places, positions)),
        (grid_samples.sample_weight_dots, (grad, planes, places)),
    ):
        near(kernel(*given), kernel.__wrapped__(*given), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("batch", "rows", "columns"), [(1, 1, 1), (5, 6, 6), (2, 40, 17), (3, 17, 40), (1, 70, 70)])
def test_eliminations_equal_their_reference(level, kind, batch, rows, columns):
    matrices = np.random.default_rng(0).normal(size=(batch, rows, columns)).astype(kind)
    matrices[0, :, 0] = 0  # a column without a pivot
    count = min(rows, columns)
    found, expected = (
        (matrices.copy(), np.zeros((batch, count), np.int32)),
        (matrices.copy(), np.zeros((batch, count), np.int32)),
    )
    for start, stop in ((0, count // 2), (count // 2, count)):
        factors.eliminate_columns(*found, start, stop)
        factors.eliminate_columns.__wrapped__(*expected, start, stop)
    assert np.array_equal(found[1], expected[1])
    near(found[0], expected[0], kind)
