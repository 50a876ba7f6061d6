"""Accumulate a gradient into a tensor's `.grad`: stolen, copied or added, as PyTorch's AccumulateGrad does.

NOTE [Stealing]
A gradient becomes `.grad` as it is if nothing else can reach its memory, as its reference count shows: the array
is held by one local variable and nothing else. Another edge's buffer, a hook's tensor, the tensor that the user passed
to backward each count one more, and then the array is copied. A view is always copied: its base has another owner.

NOTE [Layout of .grad]
The first gradient of a leaf gets the strides of the leaf, if that fills its memory without gaps or overlaps, else it
lies row by row: PyTorch's gradient layout contract. Later ones are added in place.
"""

import sys

import numpy as np

from backlight.dispatch.torch_dispatch import torch_dispatch
from backlight.engine.grad_mode import modes
from backlight.engine.node import Edges, Node, new_node, origin
from backlight.engine.storage import InferenceStorage
from backlight.engine.tensor_state import (
    LEAF,
    Gradient,
    TensorState,
    edge_of,
    storage_of,
    wrap,
    wrap_gradient,
    writable,
)
from backlight.errors import GraphError
from backlight.kernels.memory_order import is_dense, model_of, row_major
from backlight.kernels.sparse_array import SparseArray, gradient_sum, is_sparse
from backlight.system.fork_safety import fork_safe_lock

ndarray = np.ndarray
_accumulating = fork_safe_lock()


def _count_of_a_local() -> int:
    array = np.empty(1)
    return sys.getrefcount(array)


# The count of an array held by one local variable and the check: 2 in CPython 3.11; other versions count differently.
HELD_BY_ONE_LOCAL = _count_of_a_local()


def may_be_stolen(grad: ndarray, references: int) -> bool:
    """Tell whether `.grad` may take this array as it is, given its reference count where only one local holds it."""
    return references <= HELD_BY_ONE_LOCAL and grad.base is None and grad.flags.c_contiguous


def add_to_grad(tensor: TensorState, grad: Gradient, graph: bool, *, steal: bool) -> None:
    """Add a gradient to `tensor.grad`; the first one is copied unless it may be stolen.

    Raises:
        RuntimeError: the present gradient was made in inference mode, which is off now, or the tensor is no leaf any
            more.
    """
    if tensor._edge is not LEAF:
        refuse_moved(tensor)
    _add(tensor, grad, graph, steal, tensor._data)


def refuse_moved(leaf: TensorState) -> None:
    """Raise RuntimeError if a tensor that was a leaf when it was used is now the result of an op."""
    if leaf._edge is not LEAF and leaf._edge is not None:
        raise GraphError(
            "leaf variable has been moved into the graph interior: after it was used, requires_grad_(False) and a "
            f"write in place made it a result. Run backward before the write, or write to a clone{origin(leaf)}"
        )


def _add(tensor: TensorState, grad: Gradient, graph: bool, steal: bool, like: ndarray | None) -> None:
    if graph and not modes.grad_enabled:  # the pass ran on tensors for an interpreter only
        if torch_dispatch.active and torch_dispatch.accumulate(tensor, grad):
            return
        grad, graph = grad._data, False
    with _accumulating:
        present = tensor._grad
        if graph:
            tensor._grad = _recorded_copy(grad, like) if present is None else gradient_sum(present, grad)
            return
        dtype = tensor._data.dtype
        if grad.dtype is not dtype and grad.dtype != dtype:
            grad, steal = grad.astype(dtype), True
        if grad.__class__ is SparseArray or (present is not None and present._data.__class__ is SparseArray):
            _add_sparse(tensor, present, grad)
            return
        if present is None:
            taken = grad.__class__ is not ndarray or (steal and row_major(grad, like))
            tensor._grad = wrap_gradient(grad if taken else own_copy(grad, like))
            return
        if present._storage.__class__ is InferenceStorage:
            present._storage.before_write()
        if present._data.__class__ is ndarray and present._data.flags.writeable:
            storage_of(present).wrote(
                "AccumulateGrad", (None, 0)
            )  # first: see `begin_write` in dispatch/observation.py
            np.add(present._data, grad, out=present._data)
        else:
            present._data = present._data + grad


def _add_sparse(tensor: TensorState, present: TensorState | None, grad: Gradient) -> None:
    """Add a sparse gradient, or one to a sparse gradient: in place, unless the sum of a sparse one becomes dense."""
    if present is None:
        tensor._grad = wrap_gradient(grad.copy())
    elif is_sparse(present) and not is_sparse(grad):
        tensor._grad = wrap(present._data + grad)
    else:
        storage_of(present).wrote("AccumulateGrad", (None, 0))
        present._data = present._data + grad if is_sparse(present) else grad.add_to(writable(present))


def accumulate_retained_grad(tensor: TensorState, grad: Gradient, graph: bool) -> None:
    """Add a gradient to the `.grad` of a tensor that is no leaf: a new tensor, since the old one may be referenced."""
    with _accumulating:
        present = tensor._grad
        if graph or present is None:
            _add(tensor, grad, graph, False, None)
        else:
            tensor._grad = wrap_gradient(present._data + grad.astype(tensor._data.dtype, copy=False))


def own_copy(grad: ndarray | SparseArray, like: ndarray | None = None) -> ndarray | SparseArray:
    """Return a copy that is contiguous row by row, or has the strides of another array that is dense."""
    if grad.__class__ is SparseArray:
        return grad.copy()
    if like.__class__ is not ndarray or row_major(like) or not is_dense(like):
        return np.array(grad, order="C", copy=True)
    copy = model_of(like, grad.dtype)
    copy[...] = grad
    return copy


class CopyBackwards(Node):
    """A copy of a gradient that is itself part of a graph."""

    __slots__ = ()

    def backward(self, grad: Gradient, edges: Edges, keep: bool):
        """Pass the gradient on; the memory that was written to has none."""
        return None, grad


def _recorded_copy(grad: TensorState, like: ndarray | None):
    """Return a copy of a gradient under create_graph."""
    made = wrap(own_copy(grad._data, like))
    if grad._edge is not None:
        made._edge = new_node(CopyBackwards, (None, edge_of(grad)))
    return made
