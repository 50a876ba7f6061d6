"""Fourier transforms that take real numbers and give real numbers.

A real array x is read as half of a spectrum whose other half mirrors it. The signal that has this spectrum is

    out_m = scale · Σ_k w_k · x_k · cos(2π m·k / n),    w_k = 2, but 1 where −k is k itself on the last dim

with m·k / n summed over the dims. A hermitian transform and the inverse of a real one differ by their scale only.
"""

import math
from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, ShapeError
from backlight.ops.dims import normalise_dim, one_or_several
from backlight.ops.number_operands import promoted_with
from backlight.ops.type_promotion import is_float


class Transform(tuple):
    """Annotates the option that says what is transformed: (dims, sizes of the signal, scale)."""


@op(name="_fft_c2r", node="FftC2RBackward0", tangent="linear")
def signal_of_half(xp, input: Array, transform: Transform):
    """The real signal that a half spectrum stands for."""
    dims, sizes, scale = transform
    shape = list(sizes)
    shape[-1] = sizes[-1] // 2 + 1
    half = _resized(input, dims, shape)
    out = xp.fft.irfftn(half, sizes, dims, norm="forward")
    return (out * out.dtype.type(scale)).astype(input.dtype, copy=False)


signal_of_half.derivative("input", formula="scale · w_k · Σ_m grad_m · cos(2π m·k / n)")(
    lambda grad, input_shape, transform, ops: ops.half_of_signal(grad, transform, input_shape)
)


@op(node="FftR2CBackward0", tangent="linear")
def half_of_signal(xp, input: Array, transform: Transform, shape: tuple):
    """The transpose of `signal_of_half`."""
    dims, sizes, scale = transform
    found = xp.fft.rfftn(input, sizes, dims).real
    last = sizes[-1]
    weights = xp.full(last // 2 + 1, 2.0)
    weights[0] = 1
    if last % 2 == 0:
        weights[-1] = 1
    aligned = [1] * input.ndim
    aligned[dims[-1]] = -1
    found = (found * (scale * weights).reshape(aligned)).astype(input.dtype)
    return _resized(found, dims, [shape[dim] for dim in dims])


half_of_signal.derivative("input", formula="scale · Σ_k w_k · grad_k · cos(2π m·k / n)")(
    lambda grad, transform, ops: ops._fft_c2r(grad, transform)
)


def _resized(array: Array, dims: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Return an array with some dims cut off or filled up with zeros."""
    for dim, size in zip(dims, sizes):
        have = array.shape[dim]
        if have > size:
            array = array[(slice(None),) * dim + (slice(0, size),)]
        elif have < size:
            array = np.pad(array, [(0, size - have if one == dim else 0) for one in range(array.ndim)])
    return array


def real_signal(name: str, input: TensorState, sizes, dims, norm, inverse: bool):
    """Return the signal of a half spectrum.

    Args:
        sizes: of the signal over `dims`; None for 2 · (n − 1) on the last dim and what is there on the others.
        norm: "backward", "ortho" or "forward": which of the two directions is divided by n, or both by √n.
        inverse: whether this is the direction that "backward" divides.

    Raises:
        RuntimeError: a size is not positive, a dim is named twice, or the dtype is half precision.
    """
    kind = input._data.dtype
    if is_float(kind) and kind.itemsize == 2:
        raise ShapeError(f"Unsupported dtype {from_numpy_dtype(kind).old_name}\n  Convert the input with .float()")
    dims, sizes = _checked(name, input, sizes, dims)
    count = math.prod(sizes)
    divided = {None: inverse, "backward": inverse, "forward": not inverse}
    if norm != "ortho" and norm not in divided:
        raise ShapeError(f'Invalid normalization mode: "{norm}"; there are "backward", "ortho" and "forward"')
    scale = 1 / math.sqrt(count) if norm == "ortho" else 1 / count if divided[norm] else 1.0
    return signal_of_half(promoted_with(input, 1.0), Transform((dims, sizes, scale)))


def _checked(
    name: str, input: TensorState, sizes: Sequence[int] | None, dims: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dims, counted from the start, and the sizes of the signal along them."""
    ndim = input._data.ndim
    sizes, dims = (None if one is None else one_or_several(one) for one in (sizes, dims))
    if sizes is not None and dims is not None and len(sizes) != len(dims):
        raise ShapeError(
            "When given, dim and shape arguments must have the same length\n"
            f"  Got dim={tuple(dims)} and shape {tuple(sizes)}"
        )
    if sizes is not None and len(sizes) > ndim:
        raise ShapeError(f"Got shape with {len(sizes)} values but input tensor only has {ndim} dimensions.")
    if dims is None:
        dims = tuple(range(ndim)) if sizes is None else tuple(range(ndim - len(sizes), ndim))
    elif not ndim:
        raise DimError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    dims = tuple(normalise_dim(dim, ndim) for dim in dims)
    if len(set(dims)) != len(dims):
        raise ShapeError(f"FFT dims must be unique\n  Got {dims}")
    if not dims:
        raise ShapeError(f"{name} must transform at least one axis")
    shape = [input._data.shape[dim] for dim in dims]
    shape[-1] = 2 * (shape[-1] - 1)
    if sizes is not None:
        shape = [have if size == -1 else size for have, size in zip(shape, sizes)]
    for size in shape:
        if size < 1:
            raise ShapeError(f"Invalid number of data points ({size}) specified")
    return dims, tuple(shape)
