"""Distances and angles between vectors."""

import numpy as np

from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ShapeError
from backlight.ops.number_operands import require_floats
from backlight.ops.reduction.norms import cdist, pairwise
from backlight.ops.shape.expanding import broadcast_tensors
from backlight.ops.type_promotion import common_dtype, is_float

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]


def cosine_similarity(x1: TensorState, x2: TensorState, dim: int = 1, eps: float = 1e-8):
    """Return the cosine of the angle between vectors along `dim`; other dims broadcast.

    x1 · x2 / (max(|x1|, eps) · max(|x2|, eps))
    """
    kind = common_dtype([x1._data, x2._data])
    if not is_float(kind):
        raise ShapeError(
            f"expected common dtype to be floating point, yet common dtype is {from_numpy_dtype(kind).old_name}; "
            "convert with .float()"
        )
    x1, x2 = broadcast_tensors(x1.to(from_numpy_dtype(kind)), x2.to(from_numpy_dtype(kind)))
    return ((x1 / raised_length(x1, dim, eps)) * (x2 / raised_length(x2, dim, eps))).sum(dim)


@composite_function
def raised_length(x: TensorState, dim: int, eps: float):
    """Return the lengths of vectors, raised to eps; the gradient is that of the length itself, as in PyTorch."""
    length = x.norm(2, dim, keepdim=True)
    values = length._data
    if values.size and values.min() < eps:
        length = length + (length.detach().clamp_min(eps) - length.detach())
    return length


def pairwise_distance(x1: TensorState, x2: TensorState, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
    """Return the p-norm of x1 − x2 + eps over the last dim."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def pdist(input: TensorState, p: float = 2.0):
    """Return the p-norm distances between all pairs of rows, row 0 with all others first.

    Shapes: input (n, dim) -> (n · (n − 1) / 2,)
    """
    if input._data.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {input._data.ndim}D")
    if not is_float(input._data.dtype):
        raise ShapeError("pdist only supports floating-point dtypes; convert the input with .float()")
    require_floats("pdist", input, halves=False)
    if p < 0:
        raise ShapeError(f"pdist only supports non-negative p values, got {p}")
    first, second = np.triu_indices(len(input._data), 1)
    if p == 0 or input._data.shape[1] == 0:
        return pairwise(input, input, 0)[wrap(first), wrap(second)]
    if p in (1, 2) and input._data.dtype.char in "fd":
        return cdist(input, input, p).reshape(-1).index_select(0, wrap(first * len(input._data) + second))
    return (input.index_select(0, wrap(first)) - input.index_select(0, wrap(second))).norm(p, -1)
