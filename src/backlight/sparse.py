"""PyTorch's `torch.sparse`: functions of sparse tensors. COO is the layout that there is."""

from collections.abc import Sequence as _Sequence
from contextlib import ContextDecorator as _ContextDecorator

from backlight.dispatch.arguments.checked import public_functions as _public_functions
from backlight.dispatch.arguments.checked import with_checks as _with_checks
from backlight.dtypes import dtype as _dtype
from backlight.engine.tensor_state import TensorState as _TensorState
from backlight.errors import GraphError as _GraphError
from backlight.kernels.sparse_array import is_sparse as _is_sparse
from backlight.kernels.sparse_array import no_kernel as _no_kernel
from backlight.kernels.state_blocks import Block as _Block
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


class check_sparse_tensor_invariants(_Block, _ContextDecorator):  # noqa: N801 - PyTorch's name
    """Set whether sparse tensors are checked when they are made: remembered; here their indices always are.

    A block, `with check_sparse_tensor_invariants():`, a decorator, or `enable()` and `disable()` for good.
    """

    _enabled = False

    def __init__(self, enable: bool = True):
        self.state = enable

    @staticmethod
    def is_enabled() -> bool:
        """Return whether the checks are on."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Turn the checks on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Turn the checks off."""
        check_sparse_tensor_invariants._enabled = False

    def _block_state(self) -> bool:
        return check_sparse_tensor_invariants._enabled

    def _block_change(self, before: bool) -> None:
        check_sparse_tensor_invariants._enabled = self.state

    def _block_restore(self, before: bool) -> None:
        check_sparse_tensor_invariants._enabled = before


globals().update(_with_checks(globals(), _public_functions(globals(), own=True), __name__))
