"""Reductions of the segments that a dim falls into."""

import math

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ShapeError, UnsupportedError
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.indexing.gather_scatter import scatter_reduce
from backlight.ops.indexing.slicing import narrow
from backlight.ops.shape.expanding import expand
from backlight.ops.type_promotion import is_float

__all__ = ["segment_reduce"]

# What a segment starts from, and what scatter_reduce calls the reduction.
_KINDS = {
    "sum": (0.0, "sum"),
    "mean": (0.0, "sum"),
    "prod": (1.0, "prod"),
    "max": (-math.inf, "amax"),
    "amax": (-math.inf, "amax"),
    "min": (math.inf, "amin"),
    "amin": (math.inf, "amin"),
}


@composite_function
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Return the sum, mean, product, maximum or minimum of each segment of `data` along `axis`.

    Args:
        reduce: "sum", "mean", "prod", "max" or "min".
        lengths: how long the segments are; the dims before `axis` may each have lengths of their own.
        offsets: where the segments start, and where the last one ends, in the place of lengths.
        unsafe: leave unchecked whether the lengths add up; what no segment holds is left out.
        initial: what every segment starts from. An empty one is this value (for a mean without it: NaN).

    Shapes: data (…, n, …), lengths (…, segments), offsets (…, segments + 1) -> (…, segments, …)
    """
    lengths = _lengths(data, reduce, lengths, indices, offsets, axis, unsafe)
    # which segment each element belongs to; those after the last one make an extra segment
    size = data.shape[axis]
    ends = np.cumsum(lengths, -1).reshape(-1, lengths.shape[-1])
    rows = [np.searchsorted(row, np.arange(size), side="right") for row in ends]
    places, segments = np.array(rows, np.int64).reshape(*lengths.shape[:-1], size), lengths.shape[-1]
    shape = (*data.shape[:axis], segments + 1, *data.shape[axis + 1 :])
    inner = (1,) * (data.ndim - axis - 1)
    start, kind = _KINDS[reduce]
    index = expand(wrap(places.reshape(*places.shape, *inner)), tuple(data.shape))
    found = scatter_reduce(data.new_full(shape, start), axis, index, data, kind, include_self=False)
    found = _with_initial(narrow(found, axis, 0, segments), reduce, initial)
    if reduce != "mean":
        return _named(found)
    sizes = lengths.reshape(*lengths.shape, *inner)
    divisor = np.where(sizes == 0, 1 if initial is not None else 0, sizes).astype(data._data.dtype)
    return _named(found / wrap(divisor))


@op(name="segment_reduce", tangent="linear", zero_derivative=("input",))
def _named(xp, input: Array):
    """The result, under the node that PyTorch has for all of this."""
    return input.copy()


_named.derivative("input", formula="grad")(lambda grad: grad)


def _with_initial(found: TensorState, reduce: str, initial: float | None):
    """Combine each segment's result with the value that it starts from."""
    if initial is None:
        return found
    if reduce in ("sum", "mean"):
        return found + initial
    if reduce == "prod":
        return found * initial
    beyond = found < initial if reduce in ("max", "amax") else found > initial
    return where(beyond, found.new_full((), initial), found)


def _lengths(data, reduce, lengths, indices, offsets, axis, unsafe) -> np.ndarray:
    """Return the lengths of the segments, or raise PyTorch's error for arguments that cannot be meant."""
    if indices is not None:
        raise ShapeError("segment_reduce(): indices based reduction is not supported yet.\n  Use lengths or offsets")
    if reduce not in _KINDS:
        raise ShapeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if lengths is None and offsets is None:
        raise ShapeError("segment_reduce(): Either lengths or offsets must be defined.")
    if not is_float(data._data.dtype):
        raise UnsupportedError(
            f"\"_segment_reduce_cpu\" not implemented for '{from_numpy_dtype(data._data.dtype).old_name}'; convert the "
            "data with .float()"
        )
    name, given = ("offsets", offsets) if lengths is None else ("lengths", lengths)
    if axis != given.ndim - 1:
        raise ShapeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    found = np.asarray(given._data)
    found = found if lengths is not None else np.diff(found, axis=-1)
    if not unsafe:
        _check_sums(data, found, axis)
    return found


def _check_sums(data: TensorState, lengths: np.ndarray, axis: int) -> None:
    if (lengths < 0).any():
        raise ShapeError(f"lengths contains negative value!\n  Got {lengths.tolist()}")
    if (lengths.sum(-1) != data.shape[axis]).any():
        raise ShapeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            f"!unsafe.\n  Got {lengths.tolist()} for {data.shape[axis]} elements"
        )
