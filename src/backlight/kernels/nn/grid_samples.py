"""Sampling a picture or a volume at given places: which elements each sample is made of, and how much of each.

NOTE [Samples]
A grid names places by coordinates from −1 to 1. Along each dim a sample is made of some taps: positions in the input,
and weights that are polynomials of the fraction by which the place lies behind the first position. The weight of an
element is the product of the weights along all dims. Taps outside the input are 0 whatever lies at its border: all of
their elements are at place −1.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.state_blocks import silent_floats
from backlight.system.fork_safety import cached_property

A = -0.75  # of the cubic convolution kernel

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


class Sampling(NamedTuple):
    """How samples are taken: PyTorch's numbers of mode and padding mode."""

    mode: int
    padding: int
    align_corners: bool


class DimTaps:
    """The taps along one dim, for samples of shape (batch, samples).

    Args:
        places: where each tap is, clipped into the input, (taps, batch, samples).
        inside: 0 for taps outside the input, 1 for the others.
        fraction: how far behind the first position the sample lies.
        derivative: the derivative of the fraction for the grid's coordinate.
    """

    def __init__(self, mode: int, places: np.ndarray, inside: np.ndarray, fraction: np.ndarray, derivative: np.ndarray):
        self.mode = mode
        self.places = places
        self.inside = inside
        self.fraction = fraction
        self.derivative = derivative

    @cached_property
    def weights(self) -> list[np.ndarray]:
        """The weight of each tap."""
        return [inside * weight for inside, weight in zip(self.inside, weights_of(self.mode, self.fraction))]

    @cached_property
    def derivatives(self) -> list[np.ndarray]:
        """The derivative of each weight for the grid's coordinate."""
        found = zip(self.inside, _weight_derivatives(self.mode, self.fraction))
        return [inside * derivative * self.derivative for inside, derivative in found]


def weights_of(mode: int, f: np.ndarray) -> list:
    """Return the weights of the taps at a fraction: an array or a tensor."""
    if mode == NEAREST:
        return [f * 0 + 1]
    if mode == BILINEAR:
        return [1 - f, f]
    return [_far(f + 1), _near(f), _near(1 - f), _far(2 - f)]


def _weight_derivatives(mode: int, f: np.ndarray) -> list:
    if mode == NEAREST:
        return [np.zeros_like(f)]
    if mode == BILINEAR:
        return [np.full_like(f, -1), np.ones_like(f)]
    return [_far_derivative(f + 1), _near_derivative(f), -_near_derivative(1 - f), -_far_derivative(2 - f)]


def _near(d: np.ndarray):
    return ((A + 2) * d - (A + 3)) * d * d + 1


def _far(d: np.ndarray):
    return ((A * d - 5 * A) * d + 8 * A) * d - 4 * A


def _near_derivative(d: np.ndarray):
    return (3 * (A + 2) * d - 2 * (A + 3)) * d


def _far_derivative(d: np.ndarray):
    return (3 * A * d - 10 * A) * d + 8 * A


def taps_of(grid: np.ndarray, sizes: Sequence[int], how: Sampling) -> list[DimTaps]:
    """Return the taps along each dim.

    Shapes: grid (batch, samples, dims), its last dim first
    """
    return [_dim_taps(grid[..., len(sizes) - 1 - dim], size, how) for dim, size in enumerate(sizes)]


def _dim_taps(coordinates: np.ndarray, size: int, how: Sampling) -> DimTaps:
    kind = coordinates.dtype.type
    if how.align_corners:
        source, derivative = (coordinates + 1) / 2 * kind(size - 1), kind((size - 1) / 2)
    else:
        source, derivative = ((coordinates + 1) * kind(size) - 1) / 2, kind(size / 2)
    derivative = np.full_like(source, derivative)
    if how.mode != BICUBIC:
        source, sign = padded(source, size, how)
        derivative = derivative * sign
    first = np.rint(source) if how.mode == NEAREST else np.floor(source)
    offsets = {NEAREST: (0,), BILINEAR: (0, 1), BICUBIC: (-1, 0, 1, 2)}[how.mode]
    positions = np.stack([first + offset for offset in offsets])
    if how.mode == BICUBIC:
        positions = padded(positions, size, how)[0]
    inside = (positions >= 0) & (positions < size)  # NaN is outside
    places = np.clip(np.nan_to_num(positions, nan=0.0), 0, size - 1).astype(np.int64)
    return DimTaps(how.mode, places, inside.astype(kind), source - first, derivative)


def padded(source: np.ndarray, size: int, how: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates brought into the input as the padding mode says, and the derivative of that."""
    sign = np.ones_like(source)
    if how.padding == ZEROS:
        return source, sign
    if how.padding == REFLECTION:
        source, sign = _reflected(source, size, how.align_corners)
    beyond = (source <= 0) | (source >= size - 1)
    clipped = np.clip(np.where(np.isnan(source), 0, source), 0, size - 1).astype(source.dtype)
    return clipped, np.where(beyond, 0, sign).astype(source.dtype)


def _reflected(source: np.ndarray, size: int, align_corners: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates reflected at the centres of the outer elements, or at their edges."""
    low, span = (0.0, size - 1) if align_corners else (-0.5, size)
    if span == 0:
        return np.zeros_like(source), np.zeros_like(source)
    distance = source - source.dtype.type(low)
    sign = np.where(distance < 0, -1, 1).astype(source.dtype)
    distance = np.abs(distance)
    with silent_floats():
        rest = np.fmod(distance, source.dtype.type(span))
        odd = np.floor(distance / span) % 2 == 1
    found = np.where(odd, span - rest + low, rest + low).astype(source.dtype)
    return found, np.where(odd, -sign, sign)


def corners(taps: list[DimTaps], sizes: Sequence[int]):
    """Yield each combination of taps: (its number along each dim, the flat places of its elements, −1 outside)."""
    for numbers in product(*(range(len(one.places)) for one in taps)):
        place, inside = 0, 1
        for number, one, size in zip(numbers, taps, sizes):
            place = place * size + one.places[number]
            inside = inside * one.inside[number]
        yield numbers, np.where(inside == 0, -1, place)


def product_of(factors: Sequence[np.ndarray]):
    """Return the product of arrays or tensors."""
    found, *others = factors
    for one in others:
        found = found * one
    return found


def sampled(planes: np.ndarray, taps: list[DimTaps], sizes: Sequence[int]) -> np.ndarray:
    """Return the samples.

    Shapes: planes (batch, channels, positions) -> (batch, channels, samples)
    """
    weights, places = [], []
    for numbers, place in corners(taps, sizes):
        weights.append(product_of([one.weights[number] for one, number in zip(taps, numbers)]))
        places.append(place)
    return weighted_samples(planes, np.stack(weights), np.stack(places))


def gradients(
    grad: np.ndarray, planes: np.ndarray, taps: list[DimTaps], sizes: Sequence[int], needs: Sequence[bool]
) -> tuple:
    """Return the gradients for the planes and for the grid's coordinates, those that are needed.

    Shapes: grad (batch, channels, samples) -> (batch, channels, positions), (batch, samples, dims)
    """
    numbers, places = zip(*corners(taps, sizes))
    places = np.stack(places)
    chosen = [[one.weights[number] for one, number in zip(taps, each)] for each in numbers]
    for_planes = for_grid = None
    if needs[0]:
        weights = np.stack([product_of(factors) for factors in chosen])
        for_planes = scatter_samples(grad, weights, places, planes.shape[2])
    if needs[1]:
        for_grid = np.zeros((len(grad), grad.shape[2], len(sizes)), grad.dtype)
        moving = taps[0].mode != NEAREST  # the nearest element stays the same
        for dots, each, weights in zip(sample_weight_dots(grad, planes, places) if moving else (), numbers, chosen):
            for dim, (number, one) in enumerate(zip(each, taps)):
                factors = [*weights[:dim], one.derivatives[number], *weights[dim + 1 :]]
                for_grid[..., len(sizes) - 1 - dim] += dots * product_of(factors)
    return for_planes, for_grid


@native
def weighted_samples(planes: np.ndarray, weights: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return Σ over taps of weight · element.

    Shapes: planes (batch, channels, positions), weights and places (taps, batch, samples) -> (batch, channels, samples)
    """
    out = np.zeros((*planes.shape[:2], places.shape[2]), planes.dtype)
    for weight, place in zip(weights, places):
        out += _elements(planes, place) * weight[:, None]
    return out


@native
def scatter_samples(grad: np.ndarray, weights: np.ndarray, places: np.ndarray, positions: int) -> np.ndarray:
    """Return zeros with weight · grad added at each tap's place: the transpose of `weighted_samples`.

    Shapes: grad (batch, channels, samples) -> (batch, channels, positions)
    """
    planes = np.arange(grad.shape[0] * grad.shape[1]).reshape((*grad.shape[:2], 1))
    out = np.zeros((*grad.shape[:2], positions), grad.dtype)
    for weight, place in zip(weights, places):
        inside = np.broadcast_to(place[:, None] >= 0, grad.shape)
        np.add.at(out.reshape(-1), (planes * positions + place[:, None])[inside], (grad * weight[:, None])[inside])
    return out


@native
def sample_weight_dots(grad: np.ndarray, planes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return Σ over channels of grad · element, for each tap.

    Shapes: grad (batch, channels, samples), planes (batch, channels, positions) -> (taps, batch, samples)
    """
    return np.stack([(_elements(planes, place) * grad).sum(1) for place in places])


def _elements(planes: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the elements at places, 0 where a place is −1."""
    return np.where(place[:, None] < 0, 0, np.take_along_axis(planes, np.maximum(place, 0)[:, None], 2))
