"""In-place functions on sparse tensors, and those that add a sparse tensor to a dense one.

A sparse tensor gets new entries; others that share its old ones keep them, as in PyTorch.
"""

from collections.abc import Callable

import numpy as np

from backlight.dispatch.interpreters import UNHANDLED
from backlight.dtypes import from_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState, storage_of, wrap, writable
from backlight.engine.views import check_may_write, has_history
from backlight.errors import GraphError, ShapeError
from backlight.kernels.sparse_array import SparseArray, is_sparse, no_kernel
from backlight.ops.inplace import refuse_writing, write
from backlight.ops.sparse import coo
from backlight.tensor.sparse.arithmetic import add, div, mul, neg
from backlight.tensor.sparse.conversions import cast


def written(target: TensorState, out: TensorState, name: str) -> TensorState:
    """Give a sparse tensor the entries and the history of a result; other tensors over its entries keep them."""
    if modes.grad_enabled and (has_history(target) or out._edge is not None):
        check_may_write(target)
    refuse_writing(target, name)
    own, found = target._data.dtype, out._data.dtype
    if not np.can_cast(found, own, "same_kind"):
        raise ShapeError(
            f"result type {from_numpy_dtype(found).old_name} can't be cast to the desired output type "
            f"{from_numpy_dtype(own).old_name}"
        )
    storage_of(target).wrote(name, user_place(3))
    out = cast(out, own)
    target._data = out._data
    target._edge = out._edge if out._edge is not None else target._edge
    return target


def add_(input: TensorState, other: TensorState | float, *, alpha: float = 1) -> TensorState:
    if is_sparse(input):
        return written(input, add(input, other, alpha=alpha), "add_")
    if not (modes.grad_enabled and (has_history(input) or other._edge is not None)):
        addend = other._data if alpha == 1 else other._data * alpha
        if addend.shape != input._data.shape:
            return UNHANDLED
        refuse_writing(input, "add_")
        storage_of(input).wrote("add_", user_place(2))
        addend.add_to(writable(input))
        return input
    check_may_write(input)
    before = input._edge
    source = wrap(input._data, before)
    write(input, add(source, other, alpha=alpha), "add_", before=before)
    return input


def sub_(input: TensorState, other: TensorState | float, *, alpha: float = 1) -> TensorState:
    return add_(input, other, alpha=-alpha)


def mul_(input: TensorState, other: TensorState | float) -> TensorState:
    return written_sparse(input, mul, other, "mul_")


def div_(input: TensorState, other: TensorState | float) -> TensorState:
    return written_sparse(input, div, other, "div_")


def neg_(input: TensorState) -> TensorState:
    return written(input, neg(input), "neg_")


def written_sparse(input: TensorState, rule: Callable, other: TensorState | float, name: str) -> TensorState:
    if not is_sparse(input):
        raise no_kernel(name)
    return written(input, rule(input, other), name)


def zero_(input: TensorState) -> TensorState:
    data = input._data
    nothing = SparseArray(data.indices[:, :0], data.values[:0], data.shape)
    return written(input, wrap(nothing), "zero_")


def copy_(input: TensorState, src: TensorState, non_blocking: bool = False) -> TensorState:
    if not (is_sparse(input) and is_sparse(src)):
        raise GraphError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{input.type()} and src type = {src.type()}"
        )
    return written(input, coo.sparse_clone(cast(src, input._data.dtype)), "copy_")
