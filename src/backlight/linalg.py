"""The part of `torch.linalg` that backlight has."""

from backlight.ops.norms import linalg_norm as norm
from backlight.ops.norms import matrix_norm, vector_norm

__all__ = ["matrix_norm", "norm", "vector_norm"]
