"""Slices named by a vector of indices, and elements named by their place: index_select, index_add, take, put …

NOTE [Indices that another thread writes]
NumPy checks index arrays and masks first and reads them again when it uses them, for large ones without the
interpreter's lock, and sorts by places that it takes from the array itself. If another thread writes them in between,
memory is read and written outside of the arrays. So NumPy gets a copy that no other thread knows (`owned`), made before
anything is checked. `np.take` and the compiled kernels check what they use, and need none.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, DimError, ShapeError, ValueProblem
from backlight.kernels.reduction.slices import add_slices, slices_taken
from backlight.ops.dims import normalise_dim
from backlight.ops.scalars import element, element_like
from backlight.sizes import Shape, check_storage, storage_errors

__all__ = ["index_add", "index_copy", "index_fill", "index_select", "put", "take", "unravel_index"]

INDEX_KINDS = (np.dtype(np.int64), np.dtype(np.int32))


def owned(index: Array):
    """Return a copy of indices or of a mask: see NOTE [Indices that another thread writes]."""
    return index.copy()


def check_range(index: Array, size: int, message: str, error: type = DimError, lowest: int = 0) -> None:
    """Raise unless all indices lie in [lowest, size); the message names the first that does not."""
    if index.size and (index.min() < lowest or index.max() >= size):
        wrong = index[(index < lowest) | (index >= size)].reshape(-1)[0]
        raise error(message.format(index=int(wrong), size=size))


def check_vector(name: str, index: Array) -> None:
    """Raise unless `index` may name slices: a vector (or one number) of integers."""
    if index.ndim > 1:
        raise DimError(f"{name}(): Index is supposed to be a vector; got one of shape {list(index.shape)}")
    if index.dtype not in INDEX_KINDS:
        raise ShapeError(f"{name}(): Expected dtype int32 or int64 for index; convert it with .long()")


def _check_vector_added(index: Array) -> None:
    kind = from_numpy_dtype(index.dtype).old_name
    if index.ndim > 1:
        raise DimError(
            f"index_add_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {kind} and size: "
            f"{list(index.shape)}"
        )
    if index.dtype not in INDEX_KINDS:
        raise ShapeError(f"index_add_(): Expected dtype int32/int64 for index but got: {kind}")


def _check_vector_copied(index: Array) -> None:
    if index.ndim > 1:
        raise DimError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if index.dtype != INDEX_KINDS[0]:
        kind = from_numpy_dtype(index.dtype).old_name
        raise ShapeError(f"index_copy_(): Expected a long tensor for index, but got {kind}")


def _at(dim: int, index: Array) -> tuple:
    return (slice(None),) * dim + (index,)


def check_same_dtype(message: str, input: Array, source: Array) -> None:
    """Raise PyTorch's error, in which {0} and {1} are the old names of the dtypes, if they differ."""
    if input.dtype != source.dtype:
        names = [from_numpy_dtype(array.dtype).old_name for array in (input, source)]
        raise ShapeError(message.format(*names) + "; convert one with .to(…)")


@op(tangent="linear", complex="linear", layout="rows")
def index_select(xp, input: Array, dim: int, index: Array):
    """The slices along `dim` that a vector of indices names."""
    dim = normalise_dim(dim, input.ndim)
    check_vector("index_select", index)
    if not input.ndim:
        input = input.reshape(1)
        check_range(index, 1, "index out of range in self: {index} of {size}")
        return input[index.reshape(-1)].reshape(())
    check_range(index, input.shape[dim], "index out of range in self: {index} of {size}")
    return slices_taken(input, index.reshape(-1), dim)


index_select.derivative("input", formula="grad, added at the slices taken")(
    lambda grad, dim, index, input_shape, ops: ops.index_add(ops.new_zeros(grad, input_shape), dim, index, grad)
)


@op(tangent="linear", complex="holomorphic", layout="rows")
def index_add(xp, input: Array, dim: int, index: Array, source: Array, *, alpha: float = 1):
    """`input` with the slices of `source`, times alpha, added at the indices along `dim`."""
    dim = normalise_dim(dim, input.ndim)
    _check_vector_added(index)
    check_same_dtype("index_add_(): self ({0}) and source ({1}) must have the same scalar type", input, source)
    shape, rows = input.shape, index.reshape(-1)
    if bool(shape) != bool(source.ndim):
        raise _slices_differ(input, source)
    if source.ndim <= dim and shape:
        raise ShapeError(
            f"index_add_(): Indexing dim {dim} is out of bounds of the source tensor with dim {source.ndim}"
        )
    if source.ndim and source.shape[dim] != rows.size:
        raise ShapeError(
            f"index_add_(): Number of indices ({rows.size}) should be equal to source.size(dim): "
            f"({source.shape[dim]}), for dim: {dim}"
        )
    if source.shape[:dim] + source.shape[dim + 1 :] != shape[:dim] + shape[dim + 1 :]:
        raise _slices_differ(input, source)
    if len(shape) > 1:
        message, error = f"index {{index}} is out of bounds for dimension {dim} with size {{size}}", ShapeError
    else:
        message, error = "index out of range in self: index {index}, size {size}", DimError
    check_range(rows, shape[dim] if shape else 1, message, error)
    if alpha != 1:
        source = source * element_like(source, alpha)
    if not shape:
        return input + source.reshape(-1).sum(dtype=source.dtype)
    out = xp.array(input, order="C")
    add_slices(out, source if source.ndim else source.reshape(1), rows, dim)
    return out


index_add.derivative("input", formula="grad")(lambda grad: grad)


def _slices_differ(input: Array, source: Array) -> ShapeError:
    return ShapeError(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
        f"{list(input.shape)} source.shape = {list(source.shape)}"
    )


@index_add.derivative("source", formula="alpha · grad at the indices")
def index_add_source(grad: Array, dim: int, index: Array, source_shape: Shape, alpha: float, ops):
    taken = ops.index_select(grad, dim, index).reshape(source_shape)
    return taken if alpha == 1 else taken * alpha


@op(tangent="linear", complex="linear", layout="rows")
def index_copy(xp, input: Array, dim: int, index: Array, source: Array):
    """`input` with the slices at the indices along `dim` replaced by those of `source`."""
    dim = normalise_dim(dim, input.ndim)
    _check_vector_copied(index)
    message = "index_copy_(): self and source expected to have the same dtype, but got (self) {0} and (source) {1}"
    check_same_dtype(message, input, source)
    shape, rows = input.shape, owned(index).reshape(-1)
    _check_copied_slices(shape, source.shape, dim, rows)
    message = f"index_copy_(): index {{index}} is out of bounds for dimension {dim} with size {{size}}"
    check_range(rows, shape[dim] if shape else 1, message)
    if not shape:
        return source.reshape(-1)[-1:].reshape(()) if rows.size else input
    out = xp.array(input)
    out[_at(dim, rows)] = source if source.ndim else source.reshape(1)
    return out


def _check_copied_slices(shape: Sequence[int], source_shape: Sequence[int], dim: int, rows: Array) -> None:
    wanted = shape[:dim] + shape[dim + 1 :]
    found = source_shape[:dim] + source_shape[dim + 1 :]
    if wanted != found:
        raise ShapeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, wanted))} at dimension {dim} and source slice shape: {' '.join(map(str, found))} at "
            f"dimension {dim}."
        )
    count = source_shape[dim] if source_shape else 1
    if count != rows.size:
        raise DimError(f"index_copy_(): Number of indices ({rows.size}) should be equal to source.size(dim) ({count})")


index_copy.derivative("input", formula="grad, 0 at the indices")(
    lambda grad, dim, index, ops: ops.index_fill(grad, dim, index, 0)
)
index_copy.derivative("source", formula="grad at the indices")(
    lambda grad, dim, index, source_shape, ops: ops.index_select(grad, dim, index).reshape(source_shape)
)


@op(name="index_fill", tangent="symmetric", complex="linear", layout="preserved")
def index_fill_number(xp, input: Array, dim: int, index: Array, value: float):
    """`input` with the slices at the indices along `dim` filled with a number."""
    return _filled(xp, input, dim, index, element(value, input.dtype))


index_fill_number.derivative("input", formula="grad, 0 at the indices")(
    lambda grad, dim, index, ops: ops.index_fill(grad, dim, index, 0)
)


@op(node="IndexFillBackward1", tangent="linear", complex="linear", layout="preserved")
def index_fill_tensor(xp, input: Array, dim: int, index: Array, value: Array):
    """`input` with the slices at the indices along `dim` filled with a 0-d tensor."""
    if value.ndim:
        raise ShapeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    return _filled(xp, input, dim, index, value)


index_fill_tensor.derivative("input", formula="grad, 0 at the indices")(
    lambda grad, dim, index, ops: ops.index_fill(grad, dim, index, 0)
)
index_fill_tensor.derivative("value", formula="Σ grad at the indices, each counted once")(
    lambda grad, dim, index, ops: (grad - ops.index_fill(grad, dim, index, 0)).sum()
)


def _filled(xp, input: Array, dim: int, index: Array, value: Array):
    dim = normalise_dim(dim, input.ndim)
    if index.dtype != INDEX_KINDS[0]:
        raise DimError("index_fill_(): Expected dtype int64 for index.; convert it with .long()")
    index = owned(index)
    size = input.shape[dim] if input.ndim else 1
    check_range(index, size, f"index {{index}} is out of bounds for dimension {dim} with size {{size}}", lowest=-size)
    out = xp.array(input.reshape(1) if not input.ndim else input)
    out[_at(dim, index.reshape(-1))] = value
    return out.reshape(input.shape) if not input.ndim else out


def index_fill(input: TensorState, dim: int, index: TensorState, value: TensorState | float):
    """Fill the slices at the indices along `dim` with one value, a number or a 0-d tensor."""
    if isinstance(value, TensorState):
        return index_fill_tensor(input, dim, index, value)
    if isinstance(value, complex) and input._data.dtype.kind not in "cW":
        raise ShapeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    return index_fill_number(input, dim, index, value)


def _check_places(input: Array, index: Array, name: str) -> None:
    if index.dtype != INDEX_KINDS[0]:
        kind = from_numpy_dtype(index.dtype).old_name
        raise ShapeError(f"{name}(): Expected a long tensor for index, but got {kind}; convert it with .long()")
    message = f"out of range: tried to access index {{index}} on a tensor of {input.size} elements."
    check_range(index, input.size, message, lowest=-input.size)


@op(tangent="linear", complex="linear")
def take(xp, input: Array, index: Array):
    """The elements at places counted row by row, in the shape of `index`."""
    if not input.size and index.size:
        raise DimError("take(): tried to take from an empty tensor")
    _check_places(input, index, "take")
    return xp.take(input.reshape(-1), index)


take.derivative("input", formula="grad, added at the places taken")(
    lambda grad, index, input_shape, ops: ops.put(ops.new_zeros(grad, input_shape), index, grad, True)
)


@op(tangent="linear", complex="linear", layout="preserved")
def put(xp, input: Array, index: Array, source: Array, accumulate: bool = False):
    """`input` with the elements at places counted row by row replaced by those of `source`, or these added to them."""
    index = owned(index)
    _check_places(input, index, "put_")
    message = "put_(): self and source expected to have the same dtype, but got self.dtype = {0} and source.dtype = {1}"
    check_same_dtype(message, input, source)
    if source.size != index.size:
        raise DimError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    out = xp.array(input, order="C")
    if accumulate:
        xp.add.at(out.reshape(-1), index.reshape(-1), source.reshape(-1))
    else:
        out.reshape(-1)[index.reshape(-1)] = source.reshape(-1)
    return out


@put.derivative("input", formula="grad, 0 at the places replaced")
def put_input(grad: Array, index: Array, source_shape: Shape, accumulate: bool, ops):
    return grad if accumulate else ops.put(grad, index, ops.new_zeros(grad, source_shape))


put.derivative("source", formula="grad at the places")(
    lambda grad, index, source_shape, ops: ops.take(grad, index).reshape(source_shape)
)


@storage_errors
def one_hot(tensor: TensorState, num_classes: int = -1):
    """Return, for each class number, a row of zeros with a one at that place.

    Args:
        num_classes: how long the rows are; by default one more than the largest number.

    Raises:
        RuntimeError: a number is negative or too large, or the dtype is not int64.
    """
    data = tensor._data
    if data.dtype != INDEX_KINDS[0]:
        raise ShapeError("one_hot is only applicable to index tensor of type LongTensor.; convert it with .long()")
    if not data.size and num_classes <= 0:
        raise ShapeError("Can not infer total number of classes from empty tensor.; give num_classes")
    if data.size and data.min() < 0:
        raise ShapeError(f"Class values must be non-negative.; the smallest is {data.min()}")
    count = int(data.max()) + 1 if num_classes == -1 else num_classes
    if data.size and data.max() >= count:
        raise ShapeError(f"Class values must be smaller than num_classes.; the largest is {data.max()}")
    check_storage((*data.shape, count), INDEX_KINDS[0].itemsize)
    return wrap((data[..., None] == np.arange(count)).astype(np.int64))


def unravel_index(indices: TensorState, shape: Sequence[int]):
    """Return, for places counted row by row, the index along each dim of an array of the given shape.

    A place outside the array counts on from its beginning, as in PyTorch.

    Raises:
        TypeError: the places are no integers, or a size is no int.
        ValueError: a size is negative.
        RuntimeError: there is a place in an array without elements.
    """
    data = indices._data
    if data.dtype.kind not in "iu":
        raise ArgumentError(
            f"expected 'indices' to be integer dtype, but got {from_numpy_dtype(data.dtype)}; convert them with .long()"
        )
    if not isinstance(shape, (int, Sequence)):
        raise ArgumentError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in shape:
        if not isinstance(size, int):
            raise ArgumentError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in shape):
        raise ValueProblem(f"'shape' cannot have negative values, but got {shape}")
    if 0 in shape and data.size:
        raise ShapeError(f"ZeroDivisionError; an array of shape {list(shape)} has no elements")
    steps = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    found = np.empty((*data.shape, len(shape)), np.int64)
    for dim, (step, size) in enumerate(zip(steps, shape)):
        found[..., dim] = data.astype(np.int64) // max(step, 1) % max(size, 1)
    return tuple(wrap(found[..., dim]) for dim in range(len(shape)))
