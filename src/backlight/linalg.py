"""The part of `torch.linalg` that backlight has."""

from backlight.ops.contractions import linalg_cross as cross
from backlight.ops.contractions import multi_dot, vecdot
from backlight.ops.norms import linalg_norm as norm
from backlight.ops.norms import matrix_norm, vector_norm
from backlight.ops.products import matmul

__all__ = ["cross", "matmul", "matrix_norm", "multi_dot", "norm", "vecdot", "vector_norm"]
