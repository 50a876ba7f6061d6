"""Fingerprints of tensors: whether two are the same bit for bit, and if not how far apart, without their values.

NOTE [A fingerprint]
A hash of the bytes says whether two tensors are the same, and nothing of how far apart they are. For that there is a
count sketch: each element is given one of 32 buckets and a sign, both fixed by its place in logical order, and each
bucket holds the sum of its elements times their signs. The sketch is linear, so the difference of two sketches is the
sketch of the difference, and its squares sum to the squared norm of the difference, on average over signs; with 32
buckets the norm is right within about an eighth, a third where the difference is the same in all of a large tensor.
Every element counts, so one wrong number among millions is seen, which a sample of elements would miss; norms and means
would not see a transposed or permuted tensor. The places do not depend on shape or
dtype: a view, another dtype and another engine's tensor can be compared.

Source: Charikar, Chen, Farach-Colton: Finding Frequent Items in Data Streams, 2002.
"""

from functools import cache
from hashlib import blake2b

import numpy as np

from backlight.kernels.state_blocks import silent_floats
from backlight.lens.records.nodes import Fingerprint

BUCKETS = 32
BLOCK = 32_768  # elements; all blocks have the same table of places, with a sign and a rotation of their own
HASH_BYTES = 8
SEED = 0x9E3779B97F4A7C15


def fingerprint_of(array: np.ndarray) -> Fingerprint:
    """Return the hash of an array's values in logical order, and their sketch."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return Fingerprint(blake2b(flat.view(np.uint8), digest_size=HASH_BYTES).hexdigest(), sketch_of(flat))


def sketch_of(flat: np.ndarray) -> list[float]:
    """Return the count sketch of a vector; what is not finite counts as 0. [] where float64 cannot hold it."""
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    buckets, signs = _places()
    total = np.zeros(BUCKETS)
    with silent_floats():
        for number, start in enumerate(range(0, flat.size, BLOCK)):
            part = flat[start : start + BLOCK].astype(np.float64)
            if not np.isfinite(part).all():
                part[~np.isfinite(part)] = 0
            part *= signs[: part.size]
            sums = np.bincount(buckets[: part.size], weights=part, minlength=BUCKETS)
            bits = int(_random_bits(number, 1)[0])
            total += np.roll(sums if bits & 1 else -sums, bits >> 32)
    return total.tolist() if np.isfinite(total).all() else []


@cache
def _places() -> tuple[np.ndarray, np.ndarray]:
    """Return the bucket and the sign of each place in a block."""
    bits = _random_bits(SEED, BLOCK)
    return (bits % BUCKETS).astype(np.intp), np.where(bits >> np.uint64(63), 1.0, -1.0)


def _random_bits(start: int, count: int) -> np.ndarray:
    """Return random numbers of 64 bits that are the same on every machine and in every version (SplitMix64)."""
    with silent_floats():
        bits = (np.arange(count, dtype=np.uint64) + np.uint64(start)) * np.uint64(SEED)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))
