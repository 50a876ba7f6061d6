"""Slopes of sampled functions: `gradient`, by differences between neighbours."""

from collections.abc import Sequence

from backlight.dtypes import uint8
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.ops.dims import normalise_dims
from backlight.ops.indexing.slicing import narrow
from backlight.ops.shape.joining import cat

__all__ = ["gradient"]


def gradient(input: TensorState, *, spacing=1, dim: int | Sequence[int] | None = None, edge_order: int = 1):
    """Return, for each dim, the slope of a function of which `input` holds samples.

        (f₊ − f₋) / (x₊ − x₋) inside, if the samples are evenly spaced; differences of `edge_order` at both ends

    Args:
        spacing: the distance between samples, one number or one for each dim; or their coordinates, a tensor a dim.
        dim: an int or several; all dims by default.

    Raises:
        RuntimeError: there are fewer samples along a dim than edge_order + 1, or spacing and dims do not match.
    """
    dims = tuple(range(input.ndim)) if dim is None else normalise_dims(dim, input.ndim)
    _check(input, dims, edge_order)
    others = [one for one in spacing if isinstance(one, TensorState)] if isinstance(spacing, (list, tuple)) else []
    strange = [one.device for one in others if one.device != input.device]
    if strange:
        raise ShapeError(
            f"torch.gradient expected each tensor to be on the same device, but got devices {input.device} and "
            f"{strange[0]}!"
        )
    return tuple([_slope(input, one, gap, edge_order) for one, gap in zip(dims, _gaps(input, dim, dims, spacing))])


def _check(input: TensorState, dims: Sequence[int], edge_order: int) -> None:
    if edge_order not in (1, 2):
        raise ShapeError(f"torch.gradient only supports edge_order=1 and edge_order=2.\n  Got {edge_order}")
    if input.dtype is uint8:
        raise ShapeError("torch.gradient does not support uint8 input.\n  Convert it with .float()")
    for one in dims:
        if input.shape[one] <= edge_order:
            raise ShapeError(
                "torch.gradient expected each dimension size to be at least edge_order+1\n"
                f"  dim {one} has size {input.shape[one]}, edge_order is {edge_order}"
            )


def _gaps(input: TensorState, dim: int, dims: Sequence[int], spacing) -> list:
    """Return what lies between neighbouring samples of each dim: a number, or a tensor of distances."""
    if spacing is None or isinstance(spacing, (int, float)) or (isinstance(spacing, TensorState) and not spacing.ndim):
        return [1 if spacing is None else spacing] * len(dims)
    if len(spacing) != len(dims):
        start = "torch.gradient expected spacing to be unspecified, a scalar"
        if dim is None:
            raise ShapeError(
                f"{start}, or a list of length equal to 'self.dim() = {input.ndim}', since dim argument was not given, "
                f"but got a list of length {len(spacing)}"
            )
        raise ShapeError(
            f"{start} or it's spacing and dim arguments to have the same length, but got a spacing argument of length "
            f"{len(spacing)} and a dim argument of length {len(dims)}."
        )
    return [_distances(one, input.shape[where]) for one, where in zip(spacing, dims)]


def _distances(coordinates: TensorState, count: int):
    if not isinstance(coordinates, TensorState):
        return coordinates
    if coordinates.ndim != 1:
        raise ShapeError(
            "torch.gradient expected each element of spacing to have one dimension, but got an element with "
            f"{coordinates.ndim} dimensions!"
        )
    if coordinates.shape[0] != count:
        raise ShapeError(
            f"torch.gradient expected as many coordinates as samples, got {coordinates.shape[0]} for a dim of size "
            f"{count}"
        )
    return narrow(coordinates, 0, 1, count - 1) - narrow(coordinates, 0, 0, count - 1)


def _slope(input: TensorState, dim: int, gap: TensorState | float, edge_order: int):
    """Return the slope along one dim: that of a parabola through three neighbours, inside."""
    size = input.shape[dim]
    first, last = [_edge(input, dim, gap, edge_order, at_end) for at_end in (False, True)]
    if size == 2:
        return cat([first, last], dim)
    before, here, after = [narrow(input, dim, start, size - 2) for start in range(3)]
    if not isinstance(gap, TensorState) or not gap.ndim:
        return cat([first, (after - before) / (gap * 2), last], dim)
    shape = tuple(-1 if one == dim else 1 for one in range(input.ndim))
    left, right = [narrow(gap, 0, start, size - 2).reshape(shape) for start in range(2)]
    middle = (
        before * (-right / (left * (left + right)))
        + here * ((right - left) / (left * right))
        + after * (left / (right * (left + right)))
    )
    return cat([first, middle, last], dim)


def _edge(input: TensorState, dim: int, gap: TensorState | float, edge_order: int, at_end: bool):
    """Return the slope at one end, from two samples or (order 2) three, counted inwards."""
    size, inwards = input.shape[dim], -1 if at_end else 1
    end = size - 1 if at_end else 0
    samples = [narrow(input, dim, end + inwards * step, 1) for step in range(edge_order + 1)]
    even = not isinstance(gap, TensorState) or not gap.ndim
    gaps = [gap if even else gap[inwards * step - at_end] for step in range(edge_order)]
    if edge_order == 1:
        return (samples[1] - samples[0]) * inwards / gaps[0]
    if even:
        return (samples[0] * -3 + samples[1] * 4 - samples[2]) * inwards / (gap * 2)
    near, far = gaps
    slope = (
        samples[0] * (-(2 * near + far) / (near * (near + far)))
        + samples[1] * ((near + far) / (near * far))
        - samples[2] * (near / (far * (near + far)))
    )
    return slope * inwards
