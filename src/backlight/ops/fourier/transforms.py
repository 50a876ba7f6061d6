"""Fourier transforms: of complex numbers, of real numbers to half a spectrum, and of half a spectrum to real numbers.

    c2c    out_m = scale · Σ_k x_k · e^(∓2πi·m·k / n)              − forward, + inverse
    r2c    the same of a real x, forward; one-sided only m ≤ n / 2 along the last dim: the rest mirrors it
    c2r    its inverse: the real signal of which x is half the spectrum

with m·k / n summed over the dims.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dtypes import complex_dtype, from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, ShapeError
from backlight.ops.dims import normalise_dim, one_or_several
from backlight.ops.elementwise.complex_numbers import conj_physical
from backlight.ops.elementwise.copying import cast
from backlight.ops.indexing.slicing import sliced
from backlight.ops.number_operands import promoted_with
from backlight.ops.shape.padding import constant_pad_nd
from backlight.ops.type_promotion import has_gradient


class Dims(tuple):
    """Annotates the option that says which dims are transformed, counted from the start."""


@op(name="_fft_c2c", node="FftC2CBackward0", tangent="linear", complex="own")
def complex_transform(xp, input: Array, dims: Dims, scale: float, to_spectrum: bool):
    """The spectrum of complex numbers, or with to_spectrum=False the signal of a spectrum, times `scale`."""
    if not dims:
        return input.copy()
    found = xp.fft.fftn(input, None, dims) if to_spectrum else xp.fft.ifftn(input, None, dims, norm="forward")
    return found if scale == 1 else found * found.real.dtype.type(scale)


complex_transform.derivative("input", formula="the transform in the other direction, with the same scale")(
    lambda grad, dims, scale, to_spectrum, ops: ops._fft_c2c(grad, dims, scale, not to_spectrum)
)


@op(name="_fft_r2c", node="FftR2CBackward0", tangent="linear", complex="own")
def half_spectrum(xp, input: Array, dims: Dims, scale: float, onesided: bool = True):
    """The spectrum of real numbers times `scale`; one-sided, half of it along the last of the dims."""
    found = (xp.fft.rfftn if onesided else xp.fft.fftn)(input, None, dims)
    return found if scale == 1 else found * found.real.dtype.type(scale)


@half_spectrum.derivative("input", formula="Re of the inverse transform, of grad filled up with zeros if one-sided")
def half_spectrum_input(grad: Array, input_shape: tuple, dims: Dims, scale: float, onesided: bool, ops):
    if onesided:
        last = dims[-1]
        lacking = input_shape[last] - grad.shape[last]
        grad = ops.constant_pad_nd(grad, (0, 0) * (len(input_shape) - 1 - last) + (0, lacking))
    return ops.real(ops._fft_c2c(grad, dims, scale, False))


@op(name="_fft_c2r", node="FftC2RBackward0", tangent="linear", complex="own")
def signal_of_half(xp, input: Array, dims: Dims, scale: float, last_size: int):
    """The real signal of half a spectrum, `last_size` long in the last of the dims, times `scale`."""
    sizes = [*(input.shape[dim] for dim in dims[:-1]), last_size]
    found = xp.fft.irfftn(input, sizes, dims, norm="forward")
    return found if scale == 1 else found * found.dtype.type(scale)


@signal_of_half.derivative("input", formula="the half spectrum of grad, doubled where its mirror is left out")
def signal_of_half_input(grad: Array, dims: Dims, scale: float, last_size: int, ops):
    half = ops._fft_r2c(grad, dims, scale)
    weights = np.full(half.shape[dims[-1]], 2.0)
    weights[0] = 1
    if last_size % 2 == 0:
        weights[-1] = 1
    weights = weights.astype(np.float32 if half.dtype.itemsize == 8 else np.float64)
    return half * weights.reshape([-1 if dim == dims[-1] else 1 for dim in range(len(grad.shape))])


# --- arguments --------------------------------------------------------------------------------------------------------


def scale_of(norm: str | None, count: int, forward: bool) -> float:
    """Return what a transform over `count` elements is multiplied with.

    Args:
        norm: "backward", "ortho" or "forward": which of the two directions is divided by n, or both by √n.
        forward: the direction.

    Raises:
        RuntimeError: there is no such norm.
    """
    divided = {None: not forward, "backward": not forward, "forward": forward}
    if norm != "ortho" and norm not in divided:
        raise ShapeError(f'Invalid normalization mode: "{norm}"; there are "backward", "ortho" and "forward"')
    return 1 / math.sqrt(count) if norm == "ortho" else 1 / count if divided[norm] else 1.0


def promoted(name: str, input: TensorState, needs: str) -> TensorState:
    """Return a tensor as floats or complex numbers: "real" ones, "complex" ones, or "any".

    Raises:
        RuntimeError: the dtype is half precision, or complex where it must be real.
    """
    kind = input._data.dtype
    if kind.kind == "W":
        raise ShapeError("MKL FFT doesn't support tensors of type: Half\n  Convert the input with .cfloat()")
    if has_gradient(kind) and kind.itemsize == 2:
        raise ShapeError(f"Unsupported dtype {from_numpy_dtype(kind).old_name}\n  Convert the input with .float()")
    if needs == "real" and kind.kind in "cW":
        found = from_numpy_dtype(kind).old_name
        if name in ("rfft", "ihfft"):
            raise ShapeError(f"{name} expects a real input tensor, but got {found}")
        if name.startswith("rfft"):
            raise ShapeError(f"rfftn expects a real-valued input tensor, but got {found}")
        raise ShapeError(f"Only supports floating-point dtypes, but found: {found}")
    input = promoted_with(input, 1.0)
    return cast(input, complex_dtype(input._data.dtype)) if needs == "complex" else input


def resized(input: TensorState, dims: Sequence[int], sizes: Sequence[int]) -> TensorState:
    """Return a tensor with some dims cut off or filled up with zeros."""
    shape = input._data.shape
    for dim, size in zip(dims, sizes):
        if shape[dim] > size:
            input = sliced(input, dim, 0, size)
    behind = [0] * (2 * len(shape))
    for dim, size in zip(dims, sizes):
        behind[2 * (len(shape) - 1 - dim) + 1] = max(size - shape[dim], 0)
    return constant_pad_nd(input, tuple(behind)) if any(behind) else input


def dims_and_sizes(
    input: TensorState, sizes: Sequence[int] | None, dims: Sequence[int] | None, last: Callable = int
) -> tuple[Dims, tuple[int, ...]]:
    """Return the dims, counted from the start, and the sizes along them, of which all are positive.

    Args:
        last: the default of the last size, of the size that is there.
    """
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
    elif dims and not ndim:
        raise DimError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    dims = tuple(normalise_dim(dim, ndim) for dim in dims)
    if len(set(dims)) != len(dims):
        raise ShapeError(f"FFT dims must be unique\n  Got {dims}")
    shape = [input._data.shape[dim] for dim in dims]
    if shape:
        shape[-1] = last(shape[-1])
    if sizes is not None:
        shape = [have if size == -1 else size for have, size in zip(shape, sizes)]
    for size in shape:
        if size < 1:
            raise ShapeError(f"Invalid number of data points ({size}) specified")
    return Dims(dims), tuple(shape)


def _require_dims(name: str, dims: Dims) -> None:
    if not dims:
        raise ShapeError(f"{name} must transform at least one axis")


# --- the transforms ---------------------------------------------------------------------------------------------------


def spectrum(name: str, input: TensorState, sizes, dims, norm: str | None, forward: bool):
    """Return the spectrum of a tensor, or with forward=False the signal of a spectrum."""
    one_dim = dims is not None and len(dims) == 1
    input = promoted(name, input, "any" if forward and one_dim else "complex")
    dims, sizes = dims_and_sizes(input, sizes, dims)
    input = resized(input, dims, sizes)
    scale = scale_of(norm, math.prod(sizes), forward)
    if input._data.dtype.kind not in "cW":
        return half_spectrum(input, dims, scale, False)
    return complex_transform(input, dims, scale, forward)


def real_to_half(name: str, input: TensorState, sizes, dims, norm: str | None, forward: bool):
    """Return half the spectrum of a real tensor, or with forward=False half the signal of a real spectrum."""
    input = promoted(name, input, "real")
    dims, sizes = dims_and_sizes(input, sizes, dims)
    _require_dims(name, dims)
    input = resized(input, dims, sizes)
    scale = scale_of(norm, math.prod(sizes), forward)
    if forward:
        return half_spectrum(input, dims, scale)
    half = conj_physical(half_spectrum(input, Dims(dims[-1:]), scale))
    return complex_transform(half, Dims(dims[:-1]), 1.0, False) if dims[:-1] else half


def half_to_real(name: str, input: TensorState, sizes, dims, norm: str | None, forward: bool):
    """Return the real signal of half a spectrum, or with forward=True the real spectrum of half a signal."""
    input = promoted(name, input, "complex")
    dims, sizes = dims_and_sizes(input, sizes, dims, lambda half: 2 * (half - 1))
    _require_dims(name, dims)
    input = resized(input, dims, (*sizes[:-1], sizes[-1] // 2 + 1))
    scale = scale_of(norm, math.prod(sizes), forward)
    if not forward:
        return signal_of_half(input, dims, scale, sizes[-1])
    if dims[:-1]:
        input = complex_transform(input, Dims(dims[:-1]), 1.0, True)
    return signal_of_half(conj_physical(input), Dims(dims[-1:]), scale, sizes[-1])
