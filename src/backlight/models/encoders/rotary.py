"""Rotary positions: queries and keys are turned by angles that grow with the position of their token.

Source: Su, Lu, Pan, Murtadha, Wen, Liu, RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021,
arXiv:2104.09864.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from backlight.errors import InputError
from backlight.ops.shape.joining import cat
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

LARGEST = 1e300  # base of angles: beyond, powers of it leave float64


@dataclass(frozen=True, eq=False)
class Rotation:
    """Turns vectors by the angles of their tokens: value i of the first half with value i of the second."""

    cosine: Tensor  # (tokens, dim / 2)
    sine: Tensor

    @classmethod
    def of(cls, positions: np.ndarray, dim: int, theta: float, dtype: np.dtype) -> "Rotation":
        """Return the rotation for tokens at these positions: by position · theta^(−2i / dim) for pair i.

        Args:
            dim: the length of the vectors, an even number.
            dtype: of the vectors. The angles are computed in float64: in float32, as transformers computes them, they
                are off by 6e-8 of their size, which shows from some hundred positions on.
        """
        angles = np.outer(positions, float(theta) ** (-np.arange(0, dim, 2) / dim))  # (tokens, dim / 2)
        return cls(from_numpy(np.cos(angles).astype(dtype)), from_numpy(np.sin(angles).astype(dtype)))

    def __call__(self, x: Tensor) -> Tensor:
        """Return the turned vectors.

        Shapes: x (tokens, …, dim) -> the same
        """
        tokens, half = self.cosine.shape
        shape = (tokens, *[1] * (x.ndim - 2), half)
        cosine, sine = self.cosine.reshape(shape), self.sine.reshape(shape)
        first, second = x.split(half, -1)
        return cat([first * cosine - second * sine, second * cosine + first * sine], -1)


def theta_of(rope: Mapping, default: float) -> float:
    """Return the base of the angles that the `rope_parameters` (or `rope_scaling`) of a config.json say.

    Raises:
        InputError: they ask for another kind of rotation, or the base is no number above 0.
    """
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise InputError(f"rope_type must be default, got {kind}: backlight does not stretch rotary positions")
    theta = rope.get("rope_theta", default)
    if not isinstance(theta, int | float) or isinstance(theta, bool) or not 0 < theta < LARGEST:
        raise InputError(f"rope_theta must be a number above 0, got {theta!r}")
    return float(theta)
