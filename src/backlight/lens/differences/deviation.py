"""How far two recorded tensors are apart: from their values, else their fingerprints, else their figures."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from backlight.lens.records.nodes import Summary

# The distance from 1 to the next number of a dtype, and what share two results may differ by and count as the same:
# some hundred roundings, of a type with few digits only some, else nothing would count as different.
EPS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "complex128": 2.0**-52,
    "complex64": 2.0**-23,
    "float8_e4m3fn": 2.0**-3,
    "float8_e5m2": 2.0**-2,
}
TOLERANCES = {2.0**-52: 1e-9, 2.0**-23: 1e-4, 2.0**-10: 3e-2, 2.0**-7: 0.1}
ROUGHEST = 0.25


@dataclass(frozen=True)
class Deviation:
    """The difference of two tensors.

    Args:
        absolute: the root mean square of the elementwise differences; inf if the tensors are not comparable.
        relative: `absolute` divided by the root mean square of the larger tensor.
        largest: the largest elementwise difference, if all values are known.
        eps: the machine epsilon of the coarser dtype.
        exact: whether they are the same bit for bit.
        reordered: whether they contain the same numbers in another order, according to their statistics.
    """

    absolute: float
    relative: float
    eps: float
    largest: float | None = None
    exact: bool = False
    reordered: bool = False

    @property
    def units(self) -> float:
        """The relative deviation in units of eps."""
        return self.relative / self.eps

    @property
    def tolerance(self) -> float:
        """What relative deviation of such dtypes counts as the same."""
        return TOLERANCES.get(self.eps, ROUGHEST)


def eps_of(one: Summary, other: Summary) -> float:
    """Return the eps of the dtype with fewer digits; integers are exact."""
    return max(EPS.get(summary.dtype, EPS["float64"]) for summary in (one, other))


def rms(summary: Summary) -> float:
    """Return the root mean square of the finite elements; 0 where there is none, or it is not known."""
    finite = summary.size - (summary.nans or 0) - (summary.infs or 0)
    norm = summary.norm
    if norm is None and summary.fingerprint is not None:  # of complex numbers
        norm = math.hypot(*summary.fingerprint.sketch)
    return (norm or 0.0) / math.sqrt(finite) if finite > 0 else 0.0


def deviation(one: Summary, other: Summary) -> Deviation | None:
    """Return how far two tensors are apart, whose shapes may differ; None if too little is known of one of them."""
    eps = eps_of(one, other)
    if one.nans is None or other.nans is None:
        return None
    if one.size != other.size or (one.nans, one.infs) != (other.nans, other.infs):
        return Deviation(math.inf, math.inf, eps)
    prints = one.fingerprint, other.fingerprint
    if one.dtype == other.dtype and None not in prints and prints[0].hash == prints[1].hash:
        return Deviation(0.0, 0.0, eps, 0.0, exact=True)
    if one.values is not None and other.values is not None and "complex" not in one.dtype + other.dtype:
        return _of_values(one, other, eps)
    if None not in prints and prints[0].sketch and prints[1].sketch:
        return _of_norm(one, other, eps, math.dist(prints[0].sketch, prints[1].sketch))
    return _of_norm(one, other, eps, _least_distance(one, other))


def _of_values(one: Summary, other: Summary, eps: float) -> Deviation:
    pairs = list(zip(numbers(one.values), numbers(other.values)))
    if any(was != now and str in (type(was), type(now)) for was, now in pairs):
        return Deviation(math.inf, math.inf, eps)
    apart = [abs(was - now) for was, now in pairs if type(was) is not str]
    found = _of_norm(one, other, eps, math.hypot(*apart))
    exact = one.dtype == other.dtype and all(was == now for was, now in pairs)
    return Deviation(found.absolute, found.relative, eps, max(apart, default=0.0), exact, found.reordered)


def numbers(values: object) -> Iterator:
    """Yield the elements of nested lists."""
    if not isinstance(values, list):
        yield values
        return
    for value in values:
        yield from numbers(value)


def _of_norm(one: Summary, other: Summary, eps: float, distance: float) -> Deviation:
    finite = max(one.size - (one.nans or 0) - (one.infs or 0), 1)
    absolute, larger = distance / math.sqrt(finite), max(rms(one), rms(other))
    relative = 0.0 if absolute == 0 else absolute / larger if larger else math.inf
    return Deviation(absolute, relative, eps, reordered=relative > 100 * eps and _same_figures(one, other, 4 * eps))


def _same_figures(one: Summary, other: Summary, share: float) -> bool:
    """Return whether least, most and norm of tensors with several elements are the same."""
    if one.norm is None or other.norm is None or one.least == one.most:
        return False
    figures = ((getattr(one, name), getattr(other, name)) for name in ("least", "most", "norm"))
    return all(abs(was - now) <= share * max(abs(was), abs(now)) for was, now in figures)


def _least_distance(one: Summary, other: Summary) -> float:
    """Return how far apart two tensors are at least, by figures alone."""
    if one.norm is None or other.norm is None:
        return 0.0
    means = abs((one.mean or 0.0) - (other.mean or 0.0)) * math.sqrt(one.size)
    ends = (abs(getattr(one, name) - getattr(other, name)) for name in ("least", "most"))
    return max(abs(one.norm - other.norm), means, *ends)
