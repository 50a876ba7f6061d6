"""Native ranks equal their references: order, ties, NaN."""

import numpy as np
import pytest

from backlight.kernels.reduction import sorting


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("size", [1, 5, 63, 64, 65, 1000])
def test_top_places_equal_their_reference(level, kind, largest, size):
    rng = np.random.default_rng(size)
    for numbers in (rng.normal(size=(7, size)), rng.integers(0, 4, (7, size)), np.full((7, size), np.nan)):
        rows = numbers.astype(kind)
        rows[rng.random(rows.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
        for count in {1, min(size, 5), min(size, 128), size}:
            found = sorting.top_places(rows, count, largest)
            assert np.array_equal(found, sorting.top_places.__wrapped__(rows, count, largest))
