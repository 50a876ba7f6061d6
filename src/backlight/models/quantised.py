"""Weights stored as int8 with a scale a row, and back: a quarter of the size.

NOTE [int8 per row]
A matrix w is stored as int8 q with w[r] ≈ q[r] · scale[r], scale[r] = max |w[r]| / 127, under its name and
`<name>.scale`. An error is at most half a scale. Vectors stay float32. config.json says `"backlight_weights": "int8 per
row"`, and reading gives float32: models compute as ever.
"""

from collections.abc import Mapping

import numpy as np

from backlight.errors import InputError

KEY, PER_ROW = "backlight_weights", "int8 per row"
SCALE = ".scale"
HIGHEST = 127


def quantised(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights with each matrix as int8 and a scale a row (see NOTE [int8 per row]).

    Raises:
        InputError: a number is not finite.
    """
    found: dict[str, np.ndarray] = {}
    for name, weight in weights.items():
        if not np.isfinite(weight).all():
            raise InputError(f"{name} must hold finite numbers, and does not: train it anew")
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
    if stored != PER_ROW:
        raise InputError(f"{KEY} must be {PER_ROW!r}, got {stored!r}: this version of backlight reads no other")
    return {
        name: _float(name, weight, weights.get(name + SCALE))
        for name, weight in weights.items()
        if name.removesuffix(SCALE) == name or name.removesuffix(SCALE) not in weights
    }


def _float(name: str, weight: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
    if weight.dtype != np.int8:
        return weight
    if scale is None or scale.shape != weight.shape[:1]:
        raise InputError(f"the checkpoint must hold {name}{SCALE}, a number a row, and does not: it is damaged")
    return weight * scale[:, None]
