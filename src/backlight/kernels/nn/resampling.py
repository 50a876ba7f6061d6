"""Interpolation along one dim: for each new element, the old elements that it is made of and their weights.

NOTE [Resizing by taps]
All interpolation here is separable, so a resize is one pass a dim. A pass is a small sparse matrix (new, old), kept as
`Taps`: k places and k weights for each new element. A gradient goes through the transposed matrix, which is turned into
taps of its own. Where k is large (a strong reduction with antialiasing, the transpose of a strong
enlargement), a product with the dense matrix is faster.

Source coordinates are computed in the dtype that PyTorch computes them in, since rounding decides which element is the
nearest.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from backlight.kernels.state_blocks import silent_floats

MOST_TAPS = 12
RADIUS = {"linear": 1, "cubic": 2, "lanczos": 3}


class Resize(NamedTuple):
    """How one dim is resized.

    Args:
        mode: "same", "nearest", "nearest-exact", "linear", "cubic" or "lanczos".
        old: the size before.
        new: the size after.
        align_corners: let the centres of the outer elements fall together, not their edges.
        scale: new size / old size as the user gave it; None takes it from the sizes.
        antialias: widen the filter by the reduction.
    """

    mode: str
    old: int
    new: int
    align_corners: bool = False
    scale: float | None = None
    antialias: bool = False

    def step(self, kind: type) -> np.floating:
        """Return how far in the old dim one goes for one step in the new one."""
        if self.align_corners:
            return kind(self.old - 1) / kind(self.new - 1) if self.new > 1 else kind(0)
        if self.scale is not None and self.scale > 0:
            return kind(1.0 / self.scale)
        return kind(self.old) / kind(self.new)


class Taps(NamedTuple):
    """For each new element k places in the old dim and their weights; no weights if k is 1 and the weight too."""

    places: np.ndarray
    weights: np.ndarray | None
    old: int
    padded: bool = False  # some of the weights are 0, at places that do not count

    def matrix(self, kind: type) -> np.ndarray:
        """Return the matrix (new, old)."""
        new, count = self.places.shape
        found = np.zeros((new, self.old), kind)
        weights = np.ones((new, count), kind) if self.weights is None else self.weights
        np.add.at(found, (np.arange(new)[:, None], self.places), weights)
        return found


@lru_cache(maxsize=256)
def taps_of(resize: Resize, kind: type) -> Taps:
    """Return the taps of a resize, with coordinates and weights computed in dtype `kind`."""
    if resize.mode == "same":
        return Taps(np.arange(resize.old)[:, None], None, resize.old)
    if resize.mode.startswith("nearest"):
        numbers = np.arange(resize.new).astype(kind)
        half = kind(0.5) if resize.mode == "nearest-exact" else kind(0)
        found = np.floor(((numbers + half) * resize.step(kind)).astype(np.float32)).astype(np.int64)
        return Taps(np.minimum(found, resize.old - 1)[:, None], None, resize.old)
    return _antialiased(resize, kind) if resize.antialias else _interpolated(resize, kind)


@lru_cache(maxsize=256)
def transposed_taps(resize: Resize, kind: type) -> Taps:
    """Return the taps of the transposed matrix of a resize."""
    matrix = taps_of(resize, kind).matrix(kind).T  # (old, new)
    count = max(int(np.count_nonzero(matrix, axis=1).max(initial=0)), 1)
    places = np.argsort(matrix == 0, axis=1, kind="stable")[:, :count]
    weights = np.take_along_axis(matrix, places, 1)
    return Taps(places, weights, resize.new, padded=not weights.all())


def along_dims(input: np.ndarray, taps: list[Taps]) -> np.ndarray:
    """Return an array with each of its last dims resized.

    Shapes: (…, *old sizes) -> (…, *new sizes)
    """
    first = input.ndim - len(taps)
    for dim, one in enumerate(taps, first):
        input = _along(input, dim, one)
    return input


def _along(input: np.ndarray, dim: int, taps: Taps) -> np.ndarray:
    count = taps.places.shape[1]
    if taps.weights is None:
        return np.take(input, taps.places[:, 0], dim)
    if count > MOST_TAPS:
        return np.ascontiguousarray(applied(input, dim, taps.matrix(input.dtype)))
    shape = (-1, *(1,) * (input.ndim - dim - 1))
    out = None
    for place, weight in zip(taps.places.T, taps.weights.T):
        part = np.take(input, place, dim)
        part *= weight.reshape(shape)
        out = part if out is None else np.add(out, part, out)
    return applied(input, dim, taps.matrix(input.dtype)) if taps.padded and not np.isfinite(out).all() else out


def applied(input: np.ndarray, dim: int, matrix: np.ndarray) -> np.ndarray:
    """Return a matrix (new, old) times the elements along a dim; what it multiplies by 0 does not count, be it NaN.

    Shapes: (…, old, …) -> (…, new, …)
    """
    rows = np.moveaxis(input, dim, -1)
    with silent_floats():
        out = rows @ matrix.T
        if not np.isfinite(out).all():
            for place, weights in enumerate(matrix):
                (counted,) = np.nonzero(weights)
                out[..., place] = rows[..., counted] @ weights[counted]
    return np.moveaxis(out, -1, dim)


def _interpolated(resize: Resize, kind: type) -> Taps:
    numbers, step = np.arange(resize.new).astype(kind), resize.step(kind)
    source = numbers * step if resize.align_corners else step * (numbers + kind(0.5)) - kind(0.5)
    if resize.mode == "linear":
        source = np.maximum(source, kind(0))
        start = np.minimum(np.floor(source), resize.old - 1)
        rest = np.clip(source - start, kind(0), kind(1))
        places = start[:, None] + np.arange(2)
        weights = np.stack([1 - rest, rest], 1)
    else:
        start = np.floor(source)
        rest = np.clip(source - start, kind(0), kind(1))
        places = start[:, None] + np.arange(-1, 3)
        weights = cubic(np.abs(rest[:, None] - np.arange(-1, 3).astype(kind)), -0.75)
    places = np.clip(places.astype(np.int64), 0, resize.old - 1)
    return Taps(places, weights.astype(kind), resize.old)


def _antialiased(resize: Resize, kind: type) -> Taps:
    step = resize.step(kind)
    wide = max(step, kind(1))
    reach = kind(RADIUS[resize.mode]) * wide
    centre = step * (np.arange(resize.new).astype(kind) + kind(0.5))
    start = np.maximum((centre - reach + kind(0.5)).astype(np.int64), 0)
    end = np.minimum((centre + reach + kind(0.5)).astype(np.int64), resize.old)
    count = max(int((end - start).max(initial=1)), 1)
    places = start[:, None] + np.arange(count)
    distance = np.abs((places.astype(kind) - centre[:, None] + kind(0.5)) / wide)
    weights = np.where(places < end[:, None], FILTERS[resize.mode](distance), 0)
    total = weights.sum(1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    return Taps(np.minimum(places, resize.old - 1), weights.astype(kind), resize.old)


def cubic(distance: np.ndarray, a: float):
    """Return Keys' cubic convolution kernel at distances ≥ 0.

    Source: Robert Keys: Cubic Convolution Interpolation for Digital Image Processing, 1981
    """
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def _linear_filter(distance: np.ndarray):
    return np.maximum(1 - distance, 0)


def _cubic_filter(distance: np.ndarray):
    return cubic(distance, -0.5)


def _lanczos_filter(distance: np.ndarray):
    return np.where(distance < 3, np.sinc(distance) * np.sinc(distance / 3), 0)


FILTERS = {"linear": _linear_filter, "cubic": _cubic_filter, "lanczos": _lanczos_filter}
