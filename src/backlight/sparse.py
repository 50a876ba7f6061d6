"""PyTorch's `torch.sparse`: functions of sparse tensors. COO is the layout that there is."""

from collections.abc import Sequence as _Sequence

from backlight.dispatch.arguments.checked import public_functions as _public_functions
from backlight.dispatch.arguments.checked import with_checks as _with_checks
from backlight.dtypes import dtype as _dtype
from backlight.engine.tensor_state import TensorState as _TensorState
from backlight.errors import GraphError as _GraphError
from backlight.kernels.sparse_array import is_sparse as _is_sparse
from backlight.kernels.sparse_array import no_kernel as _no_kernel
from backlight.ops.linalg.matrix_products import mm as _mm
from backlight.ops.reduction.reductions import sum as _sum
from backlight.ops.sparse.arithmetic import sparse_product as _sparse_product
from backlight.ops.sparse.coo import coalesced_entries as _coalesced_entries
from backlight.ops.sparse.coo import entry_values as _entry_values


def mm(mat1: _TensorState, mat2: _TensorState):
    """Return the product of two matrices; if the first is sparse, its gradient is sparse.

    Raises:
        RuntimeError: the shapes or the dtypes do not fit.
    """
    if not _is_sparse(mat1) or _is_sparse(mat2) or mat1.ndim != 2 or mat2.ndim != 2 or mat1.dtype != mat2.dtype:
        return _mm(mat1, mat2)
    return _sparse_product(mat1, mat2)


def addmm(mat: _TensorState, mat1: _TensorState, mat2: _TensorState, *, beta: float = 1.0, alpha: float = 1.0):
    """Return beta · mat + alpha · mat1 · mat2 of a sparse matrix `mat1`, whose gradient is sparse."""
    if _is_sparse(mat):
        raise _no_kernel("addmm")
    return beta * mat + alpha * mm(mat1, mat2)


def sum(input: _TensorState, dim: int | _Sequence[int] | None = None, dtype: _dtype | None = None):
    """Return the sum of all elements of a sparse tensor, or the sums along dims; gradients are sparse.

    Raises:
        RuntimeError: the tensor is dense.
    """
    if not _is_sparse(input):
        raise _GraphError("sparse.sum expected a sparse tensor but got Strided; use torch.sum, or .to_sparse() first")
    input = input if dtype is None else input.to(dtype)
    if dim is None:
        return _sum(_entry_values(_coalesced_entries(input)))
    return _sum(input, dim)


globals().update(_with_checks(globals(), _public_functions(globals(), own=True), __name__))
