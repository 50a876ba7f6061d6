"""Refuse operands of in-place ops that overlap the written memory, as PyTorch does.

NOTE [Overlaps]
An elementwise op may write over an operand that is exactly what is written to, not over one that shows a part of it in
another order: what it reads would depend on what it wrote before. We compute first and write afterwards, so that the
result would be that of a copy, but a program that runs here must run in PyTorch. PyTorch looks only at memory without
gaps, so that neither refuses `x.add_(x[:, :1])`; there its result depends on the order, ours is that of a copy.

NOTE [Expanded memory]
PyTorch refuses to write where several elements of a tensor share one place, as after expand, but for: `zero_` and
`fill_` with a number, which write the same everywhere; `tril_` and `triu_`, which write zeros to a part; and with a
warning `masked_fill_`, `index_fill_` and `index_put_`. Of several values for one place the last stays. A backward to
what was there is refused, as in PyTorch (`CopySlices` in ops/view_history.py).
"""

from collections.abc import Sequence

import numpy as np
from numpy.lib.array_utils import byte_bounds

from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.system.user_warnings import warn_outside

FILLING = ("fill_", "zero_", "tril_", "triu_")  # these may write to expanded memory: NOTE [Expanded memory]
_INDEXED = {"index_put_": "indices] = tensor", "index_fill_": "mask] = scalar", "masked_fill_": "mask] = scalar"}
SHARED_PLACES = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)

READ_FIRST = {  # these read all of their operands before they write, or look at no operand's memory
    "addbmm_",
    "addmm_",
    "addmv_",
    "addr_",
    "baddbmm_",
    "index_fill_",
    "masked_fill_",
    "masked_scatter_",
    "renorm_",
}
PLACED = {  # these read or write at places, and may not even read what they write to
    "cat",
    "column_stack",
    "concat",
    "concatenate",
    "cross",
    "dstack",
    "gather",
    "hstack",
    "index_add",
    "index_add_",
    "index_copy",
    "index_copy_",
    "index_put_",
    "index_reduce",
    "index_reduce_",
    "index_select",
    "kthvalue",
    "linalg_cross",
    "masked_select",
    "median",
    "mode",
    "nanmedian",
    "nonzero",
    "put_",
    "row_stack",
    "scatter",
    "scatter_",
    "scatter_add",
    "scatter_add_",
    "scatter_reduce",
    "scatter_reduce_",
    "stack",
    "take",
    "take_along_dim",
    "vstack",
}


def refuse_expanded(target: TensorState, name: str = "") -> None:
    """Raise or warn if several elements of a tensor share one place in memory: see NOTE [Expanded memory]."""
    if name in FILLING or not overlaps_itself(target._data):
        return
    if name not in _INDEXED:
        raise ShapeError(SHARED_PLACES)
    warn_outside(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
        f"This also applies to advanced indexing e.g. tensor[{_INDEXED[name]}"
    )


def overlaps_itself(data: np.ndarray | np.generic) -> bool:
    """Tell whether several elements of an array share one place in memory, as after expand."""
    if data.__class__ is not np.ndarray or 0 not in data.strides or data.size < 2:
        return False
    return any(stride == 0 and size > 1 for stride, size in zip(data.strides, data.shape))


def write_changes(data: np.ndarray, values: np.ndarray, adds: bool) -> None:
    """Write values to memory that overlaps itself, where they differ from what is there, or add the differences."""
    if adds:
        np.add.at(data, ..., values - data)
        return
    changed = (values != data) & ((values == values) | (data == data))
    data[changed] = values[changed]


def refuse_overlaps(target: TensorState, operands: Sequence, name: str, size: int = 0) -> None:
    """Raise if an op would write over a part of one of its operands (see NOTE [Overlaps]).

    Args:
        size: how many elements the target will have, where it is resized first.
    """
    if name in READ_FIRST:
        return
    for operand in operands:
        if isinstance(operand, TensorState):
            if overlaps_partly(target, operand, name in PLACED, size):
                raise ShapeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                    "single memory location. Please clone() the tensor before performing the operation.\n  "
                    f"{name} would read memory that it has written to: give it a clone() of that operand"
                )
        elif operand.__class__ in (list, tuple):
            refuse_overlaps(target, operand, name, size)


def overlaps_partly(target: TensorState, operand: TensorState, wholly: bool, size: int = 0) -> bool:
    """Tell whether two tensors share elements, though not (or, on request, also) all of them in the same order.

    Args:
        size: how many elements the target will have, where it is resized first.
    """
    if operand is target or operand._storage is None or target._storage is None:  # `x.data` has a storage of its own
        return wholly and operand is target and max(target._data.size, size) > 0
    written, read = target._data, operand._data
    if wholly and size > written.size and shares_when_resized(target, operand, size):
        return True
    if written.__class__ is not np.ndarray or read.__class__ is not np.ndarray or not written.size or not read.size:
        return False
    if not (is_dense(written) and is_dense(read)):
        return False
    (start, end), (first, last) = byte_bounds(written), byte_bounds(read)
    if start == first and end == last:
        return wholly or not same_strides(written, read)
    return start < last and first < end


def shares_when_resized(target: TensorState, operand: TensorState, size: int) -> bool:
    """Tell whether a tensor would reach into an operand's memory with so many elements from its start on."""
    written, read = target._data, operand._data
    if written.__class__ is not np.ndarray or read.__class__ is not np.ndarray or not read.size:
        return False
    start, (first, last) = written.__array_interface__["data"][0], byte_bounds(read)
    return target._storage is operand._storage and start < last and first < start + size * written.itemsize


def is_dense(array: np.ndarray) -> bool:
    """Tell whether an array's elements lie side by side, in any order of its dims."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return True
    expected = array.itemsize
    for stride, size in sorted((stride, size) for stride, size in zip(array.strides, array.shape) if size > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def same_strides(one: np.ndarray, other: np.ndarray) -> bool:
    """Tell whether dense arrays have the same strides: a 0 is that of one element, which NumPy has broadcast, and fits.

    PyTorch compares the strides of dims of one element too: it refuses `x.add_(x[::2])` for an x of one element.
    """
    pairs = zip(one.strides, other.strides)
    return one.ndim == other.ndim and all(a == b or not a or not b for a, b in pairs)
