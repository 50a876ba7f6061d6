"""Weights stored as int8 with a scale a row, or as signs of differences to others, and back.

NOTE [int8 per row]
A matrix w is stored as int8 q with w[r] ≈ q[r] · scale[r], scale[r] = max |w[r]| / 127, under its name and
`<name>.scale`. An error is at most half a scale. Vectors stay float32. config.json says `"backlight_weights": "int8 per
row"`, and reading gives float32: models compute as ever.

NOTE [Signs of differences]
A matrix w that was trained from another one b, and differs from it little, is stored as the signs of w − b, a bit each,
and the mean size of each row's differences: w[r] ≈ b[r] ± size[r], under `<name>.signs` and `<name>.scale`. b is the
matrix of the other stream, `similarity.<name>`, as it is read back from int8. Scales and vectors are float16 then.
config.json says `"backlight_weights": "int8 per row, signs of differences"`.

Source: Liu and others, BitDelta: Your Fine-Tune May Only Be Worth One Bit, 2024, arXiv:2402.10193.
"""

from collections.abc import Mapping

import numpy as np

from backlight.errors import InputError

KEY, PER_ROW, SIGNED = "backlight_weights", "int8 per row", "int8 per row, signs of differences"
SCALE, SIGNS = ".scale", ".signs"
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
    if stored not in (PER_ROW, SIGNED):
        raise InputError(
            f"{KEY} must be {PER_ROW!r} or {SIGNED!r}, got {stored!r}: this version of backlight reads no other"
        )
    signed = [name.removesuffix(SIGNS) for name in weights if name.endswith(SIGNS)]
    found = {
        name: _float(name, weight, weights.get(name + SCALE))
        for name, weight in weights.items()
        if not name.endswith(SIGNS) and (name.removesuffix(SCALE) == name or _is_weight(name, weights))
    }
    return found | {name: _with_differences(name, found, weights) for name in signed}


def with_signs(weights: Mapping[str, np.ndarray], bases: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return weights as int8, and some of them as signs of differences (see NOTE [Signs of differences]).

    Args:
        bases: by the name of a matrix that is stored so, the name of the one that it differs from.

    Raises:
        InputError: a number is not finite.
    """
    plain = {
        name: weight if weight.dtype == np.int8 else weight.astype(np.float16)
        for name, weight in quantised({name: one for name, one in weights.items() if name not in bases}).items()
    }
    back = restored(plain, {KEY: SIGNED})
    for name, base in bases.items():
        differences = weights[name] - back[base]
        plain[name + SIGNS] = np.packbits(differences >= 0, axis=1)
        plain[name + SCALE] = np.abs(differences).mean(1).astype(np.float16)
    return plain


def _is_weight(name: str, weights: Mapping[str, np.ndarray]) -> bool:
    """Return whether an array that is called as a scale is one of the model's own."""
    scaled = name.removesuffix(SCALE)
    return scaled not in weights and scaled + SIGNS not in weights


def _float(name: str, weight: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
    if weight.dtype != np.int8:
        return weight
    return weight * _scale_of(name, weight, scale)


def _with_differences(name: str, weights: Mapping[str, np.ndarray], stored: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return a matrix whose differences to another one are known by their signs."""
    signs, base = stored[name + SIGNS], weights.get(base_of(name))
    if base is None or signs.dtype != np.uint8 or signs.shape != (len(base), -(-base.shape[1] // 8)):
        raise InputError(f"the checkpoint must hold {base_of(name)}, as large as {name}, and does not: it is damaged")
    scale = _scale_of(name, signs, stored.get(name + SCALE))
    ones = np.unpackbits(signs, axis=1, count=base.shape[1]).view(np.int8)
    ones *= 2
    ones -= 1  # 1 and −1
    found = ones * scale
    found += base
    return found


def base_of(name: str) -> str:
    """Return the name of the weight that another one's differences are to: that of the second stream."""
    prefix = "bert." if name.startswith("bert.") else ""
    return f"{prefix}similarity.{name.removeprefix(prefix)}"


def _scale_of(name: str, weight: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
    """Return a weight's scales in float32, (rows, 1)."""
    if scale is None or scale.shape != weight.shape[:1]:
        raise InputError(f"the checkpoint must hold {name}{SCALE}, a number a row, and does not: it is damaged")
    return scale.astype(np.float32)[:, None]
