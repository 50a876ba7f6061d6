"""Weights stored as int8 with a scale a row, or as differences to others at two bits, and back.

NOTE [int8 per row]
A matrix w is stored as int8 q with w[r] ≈ q[r] · scale[r], scale[r] = max |w[r]| / 127, under its name and
`<name>.scale`. An error is at most half a scale. Vectors stay float32. config.json says `"backlight_weights": "int8 per
row"`, and reading gives float32: models compute as ever.

NOTE [Stored differences]
A matrix w that was trained from another one b, and differs from it little, is stored as w − b at two bits: a sign,
and which of two sizes, under `<name>.differences` (rows, 2, columns / 8); the sizes of each row are `<name>.scale`
(rows, 2). b is the matrix of the other stream, `similarity.<name>`, as it is read back from int8. The word embeddings
are stored at six bits, `<name>.planes` (rows, 6, columns / 8), with w[r] = (q[r] − 31) · scale[r]. Scales and vectors
are float16 then. config.json says `"backlight_weights": "int8 per row, 2-bit differences"`.

Source: Liu and others, BitDelta: Your Fine-Tune May Only Be Worth One Bit, 2024, arXiv:2402.10193 (with one size a
matrix).
"""

from collections.abc import Mapping

import numpy as np

from backlight.errors import InputError

KEY, PER_ROW, COMPACT = "backlight_weights", "int8 per row", "int8 per row, 2-bit differences"
SCALE, DIFFERENCES, PLANES = ".scale", ".differences", ".planes"
HIGHEST = 127
BITS, MOST = 6, 31  # of a word's numbers, and the highest of them
FIRST_SIZES, ROUNDS = (0.45, 1.6), 8  # of a row's differences, in means of them: where the search for the best begins


def quantised(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights with each matrix as int8 and a scale a row (see NOTE [int8 per row]).

    Raises:
        InputError: a number is not finite.
    """
    found: dict[str, np.ndarray] = {}
    _check_finite(weights)
    for name, weight in weights.items():
        if weight.ndim != 2:
            found[name] = np.asarray(weight, np.float32)
            continue
        highest = np.abs(weight).max(1)
        scale = np.where(highest > 0, highest / HIGHEST, 1).astype(np.float32)
        found[name] = np.rint(weight / scale[:, None]).clip(-HIGHEST, HIGHEST).astype(np.int8)
        found[name + SCALE] = scale
    return found


def restored(weights: Mapping[str, np.ndarray], settings: Mapping) -> dict[str, np.ndarray]:
    """Return the weights of a model folder as models compute with them, however its config.json says they are stored.

    Raises:
        InputError: they are stored in a way that is not known, or a scale is missing.
    """
    stored = settings.get(KEY)
    if stored is None:
        return dict(weights)
    if stored not in (PER_ROW, COMPACT):
        raise InputError(
            f"{KEY} must be {PER_ROW!r} or {COMPACT!r}, got {stored!r}: this version of backlight reads no other"
        )
    found = {name: _float(name, weight, weights) for name, weight in weights.items() if not _is_packed(name, weights)}
    for name in [name for name in weights if name.endswith(PLANES)]:
        found[name.removesuffix(PLANES)] = _from_planes(name.removesuffix(PLANES), weights)
    for name in [name for name in weights if name.endswith(DIFFERENCES)]:
        found[name.removesuffix(DIFFERENCES)] = _with_differences(name.removesuffix(DIFFERENCES), found, weights)
    return found


def compacted(weights: Mapping[str, np.ndarray], bases: Mapping[str, str], words: str) -> dict[str, np.ndarray]:
    """Return weights as int8, some of them as differences, and the word embeddings at six bits.

    See NOTE [Stored differences].

    Args:
        bases: by the name of a matrix that is stored as differences, the name of the one that it differs from.
        words: the name of the word embeddings, whose width is a multiple of 8.

    Raises:
        InputError: a number is not finite, or the width is another.
    """
    _check_finite(weights)
    rest = {name: one for name, one in weights.items() if name not in bases and name != words}
    plain = {name: one if one.dtype == np.int8 else one.astype(np.float16) for name, one in quantised(rest).items()}
    plain |= _planes_of(words, weights[words])
    back = restored(plain, {KEY: COMPACT})
    for name, base in bases.items():
        plain |= _differences_of(name, weights[name] - back[base])
    return plain


def _check_finite(weights: Mapping[str, np.ndarray]) -> None:
    """Raise unless all numbers of all weights are finite."""
    for name, weight in weights.items():
        if not np.isfinite(weight).all():
            raise InputError(f"{name} must hold finite numbers, and does not: train it anew")


def base_of(name: str) -> str:
    """Return the name of the weight that another one's differences are to: that of the second stream."""
    prefix = "bert." if name.startswith("bert.") else ""
    return f"{prefix}similarity.{name.removeprefix(prefix)}"


def _planes_of(name: str, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Return a matrix at six bits."""
    if weight.shape[1] % 8:
        raise InputError(f"{name} must be as wide as a multiple of 8, got {weight.shape[1]}: bits are packed by eights")
    highest = np.abs(weight).max(1)
    scale = np.where(highest > 0, highest / MOST, 1).astype(np.float16)
    numbers = np.rint(weight / scale.astype(np.float32)[:, None]).clip(-MOST, MOST).astype(np.int8) + MOST
    bits = (numbers.astype(np.uint8)[:, None] >> np.arange(BITS, dtype=np.uint8)[:, None]) & 1
    return {name + PLANES: np.packbits(bits, axis=2), name + SCALE: scale}


def _from_planes(name: str, stored: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return a matrix that is stored at six bits."""
    planes = stored[name + PLANES]
    if planes.dtype != np.uint8 or planes.ndim != 3 or planes.shape[1] != BITS:
        raise InputError(
            f"the checkpoint must hold {name}{PLANES} as {BITS} planes of bits, and does not: it is damaged"
        )
    numbers = np.zeros((len(planes), planes.shape[2] * 8), np.int8)
    for place in range(BITS):
        numbers |= np.unpackbits(planes[:, place], axis=1).view(np.int8) << place
    numbers -= MOST
    return numbers * _scale_of(name, planes, stored.get(name + SCALE))


def _differences_of(name: str, found: np.ndarray) -> dict[str, np.ndarray]:
    """Return differences by their signs and two sizes a row, which are moved until they fit best (Lloyd)."""
    sizes = np.abs(found)
    mean = sizes.mean(1, keepdims=True)
    low, high = FIRST_SIZES[0] * mean, FIRST_SIZES[1] * mean
    for _ in range(ROUNDS):
        large = sizes > (low + high) / 2
        high = _mean_where(sizes, large, high)
        low = _mean_where(sizes, ~large, low)
    bits = np.stack([found >= 0, sizes > (low + high) / 2], 1)
    scale = np.concatenate([low, high], 1).astype(np.float16)
    return {name + DIFFERENCES: np.packbits(bits, axis=2), name + SCALE: scale}


def _mean_where(values: np.ndarray, mask: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Return the mean of each row's values where a mask is set; (rows, 1)."""
    count = mask.sum(1, keepdims=True)
    return np.where(count, (values * mask).sum(1, keepdims=True) / np.maximum(count, 1), otherwise)


def _with_differences(name: str, weights: Mapping[str, np.ndarray], stored: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return a matrix that is known by its differences to another one."""
    bits, base = stored[name + DIFFERENCES], weights.get(base_of(name))
    if base is None or bits.dtype != np.uint8 or bits.shape != (len(base), 2, -(-base.shape[1] // 8)):
        raise InputError(f"the checkpoint must hold {base_of(name)}, as large as {name}, and does not: it is damaged")
    scale = _scale_of(name, bits, stored.get(name + SCALE), sizes=2)
    positive, large = (np.unpackbits(bits[:, place], axis=1, count=base.shape[1]).view(np.int8) for place in (0, 1))
    positive *= 2
    positive -= 1  # 1 and −1
    found = large * (scale[:, 1:] - scale[:, :1])
    found += scale[:, :1]
    found *= positive
    found += base
    return found


def _is_packed(name: str, weights: Mapping[str, np.ndarray]) -> bool:
    """Return whether an array is a part of a weight's storage, not a weight of its own."""
    scaled = name.removesuffix(SCALE)
    kept = {scaled, scaled + PLANES, scaled + DIFFERENCES}
    return name.endswith((PLANES, DIFFERENCES)) or (scaled != name and not kept.isdisjoint(weights))


def _float(name: str, weight: np.ndarray, weights: Mapping[str, np.ndarray]) -> np.ndarray:
    return weight * _scale_of(name, weight, weights.get(name + SCALE)) if weight.dtype == np.int8 else weight


def _scale_of(name: str, weight: np.ndarray, scale: np.ndarray | None, sizes: int = 1) -> np.ndarray:
    """Return a weight's scales in float32, (rows, sizes)."""
    if scale is None or scale.size != len(weight) * sizes or len(scale) != len(weight):
        raise InputError(f"the checkpoint must hold {name}{SCALE}, {sizes} a row, and does not: it is damaged")
    return scale.astype(np.float32).reshape(-1, sizes)
