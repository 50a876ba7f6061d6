"""Means with the interval that holds them with 95 % confidence, by drawing the units anew.

Sources: Efron, Bootstrap Methods: Another Look at the Jackknife, 1979, doi:10.1214/aos/1176344552; Sakai, Evaluating
Evaluation Metrics based on the Bootstrap, 2006, doi:10.1145/1148170.1148261.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backlight.errors import InputError

DRAWS = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Mean:
    """A mean over pairs, and the interval that holds it with 95 % confidence."""

    value: float
    low: float
    high: float
    count: int  # pairs

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def mean_of(values: Sequence[float], units: Sequence[int] | None = None, *, draws: int = DRAWS, seed: int = 0) -> Mean:
    """Return the mean of a measure with its interval.

    Args:
        values: one for each pair.
        units: which question each pair belongs to: pairs of one question are drawn together. Each its own by default.

    Raises:
        InputError: there is no value.
    """
    values = np.asarray(values, np.float64)
    if not len(values):
        raise InputError("a mean must be of a value at least, got none")
    _, own = np.unique(np.arange(len(values)) if units is None else np.asarray(units), return_inverse=True)
    sums = np.bincount(own, values)
    sizes = np.bincount(own)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=draws)  # how often each question came
    means = (drawn @ sums) / (drawn @ sizes)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Mean(float(values.mean()), float(low), float(high), len(values))


def difference(values: Sequence[float], others: Sequence[float], units: Sequence[int] | None = None, **options) -> Mean:
    """Return the mean of values − others on the same pairs; otherwise as `mean_of`."""
    return mean_of(np.asarray(values, np.float64) - np.asarray(others, np.float64), units, **options)
