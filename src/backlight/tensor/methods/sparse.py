"""Tensor's methods for layouts: conversion between dense and sparse (COO), and what a sparse tensor consists of."""

from backlight.dtypes import dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import GraphError, UnsupportedError
from backlight.kernels.sparse_array import SparseArray, is_sparse, no_kernel
from backlight.layouts import layout, sparse_coo, strided
from backlight.ops.sparse import coo


class SparseMethods:
    """Tensor's methods for the sparse layout: NOTE [The sparse layout] in kernels/sparse_array.py."""

    __slots__ = ()

    @property
    def layout(self) -> layout:
        """How the elements lie in memory: `strided`, or `sparse_coo`."""
        return sparse_coo if is_sparse(self) else strided

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is `sparse_coo`."""
        return is_sparse(self)

    def to_sparse(self, sparse_dim: int | None = None, *, layout: layout = sparse_coo, blocksize=None, dense_dim=None):
        """Return the tensor with only its non-zero elements, as a sparse COO tensor.

        Args:
            sparse_dim: how many dims, from the first, are sparse; all by default.

        Raises:
            NotImplementedError: another sparse layout is requested.
        """
        if layout is not sparse_coo:
            raise UnsupportedError(f"to_sparse: layout must be torch.sparse_coo, got {layout}; others are not there")
        if is_sparse(self):
            if sparse_dim not in (None, self.sparse_dim()):
                raise GraphError(
                    "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
                    "supported; call .to_dense() first"
                )
            return self
        most = self._data.ndim
        dims = most if sparse_dim is None else sparse_dim
        if not min(1, most) <= dims <= most:
            raise GraphError(f"sparse_dim argument must be in [{min(1, most)},{most}] range, but {dims} is given")
        return coo.dense_to_sparse(self, dims)

    def to_sparse_coo(self):
        """Return the tensor with only its non-zero elements, as a sparse COO tensor."""
        return self.to_sparse()

    def to_sparse_csr(self, *args, **kwargs):
        """Raise NotImplementedError: COO is the only sparse layout."""
        raise UnsupportedError("compressed sparse layouts are not in backlight: use .to_sparse(), which is COO")

    to_sparse_csc = to_sparse_bsr = to_sparse_bsc = to_sparse_csr

    def to_dense(self, dtype: dtype | None = None, *, masked_grad: bool | None = None):
        """Return a sparse tensor as a dense one; a dense tensor itself, in another dtype if one is given."""
        if not is_sparse(self):
            return self if dtype is None else self.to(dtype)
        if dtype is not None:
            raise GraphError("dtype argument is not supported by sparse_to_dense; call .to_dense().to(dtype)")
        return coo.sparse_to_dense(self)

    def sparse_mask(self, mask: TensorState):
        """Return the elements at the entries of a sparse tensor, as a sparse tensor."""
        if not is_sparse(mask):
            raise no_kernel("sparse_mask", "CPU")
        return coo.sparse_mask(self, mask.detach())

    def sparse_dim(self) -> int:
        """Return how many dims are sparse: those that `indices` has coordinates for."""
        return len(self._data.indices) if is_sparse(self) else 0

    def dense_dim(self) -> int:
        """Return how many dims are dense: those of each value."""
        return self._data.ndim - self.sparse_dim()

    def is_coalesced(self) -> bool:
        """Tell whether the entries are in order, and each at other coordinates."""
        return _entries(self, "is_coalesced").coalesced

    def coalesce(self):
        """Return the tensor with its entries in order, those at the same coordinates summed."""
        return self if _entries(self, "coalesce").coalesced else coo.coalesced_entries(self)

    def indices(self):
        """Return the coordinates of the entries of a coalesced tensor: (sparse dims, entries)."""
        return wrap(_coalesced(self, "indices").indices)

    def values(self):
        """Return the values of the entries of a coalesced tensor, as part of the graph: (entries, *dense dims)."""
        _coalesced(self, "values")
        return coo.entry_values(self)

    def _indices(self):
        """Return the coordinates of the entries, coalesced or not."""
        return wrap(_sparse_data(self, "_indices").indices)

    def _values(self):
        """Return the memory of the values, without a history."""
        return wrap(_sparse_data(self, "_values").values)

    def _nnz(self) -> int:
        """Return how many entries there are."""
        return _sparse_data(self, "_nnz").indices.shape[1]

    def _coalesced_(self, coalesced: bool):
        """Say whether the entries are coalesced, and return the tensor."""
        data = _sparse_data(self, "_coalesced_")
        self._data = SparseArray(data.indices, data.values, data.shape, coalesced)
        return self


def _sparse_data(tensor: TensorState, name: str) -> SparseArray:
    if not is_sparse(tensor):
        raise no_kernel(name, "CPU")
    return tensor._data


def _entries(tensor: TensorState, name: str) -> SparseArray:
    if not is_sparse(tensor):
        raise GraphError(
            f"{name} expected sparse coordinate tensor layout but got Strided; call .to_sparse() on it first"
        )
    return tensor._data


def _coalesced(tensor: TensorState, name: str) -> SparseArray:
    if not _entries(tensor, name).coalesced:
        raise GraphError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")
    return tensor._data
