"""`grid_sample` and `affine_grid`, with PyTorch's checks."""

import warnings
from collections.abc import Sequence

from backlight.errors import ShapeError, ValueProblem
from backlight.ops.nn.grid_sampling import affine_grid_generator, grid_sampler
from backlight.tensor.tensor import Tensor

__all__ = ["affine_grid", "grid_sample"]

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Sample the input at the coordinates of a grid.

    Shapes: input (batch, channels, *sizes), grid (batch, *new sizes, dims) -> (batch, channels, *new sizes)

    Args:
        grid: coordinates from −1 to 1, the last dim's first.
        mode: "bilinear" (trilinear for volumes), "nearest" or, for images, "bicubic".
        padding_mode: the values outside: "zeros", "border" (the nearest element) or "reflection".
        align_corners: whether −1 and 1 are the centres of the outer elements, not their edges.

    Raises:
        ValueError: there is no such mode.
        RuntimeError: the shapes or dtypes do not fit.
    """
    if mode not in _MODES:
        raise ValueProblem(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueProblem(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    align_corners = _warned(align_corners)
    return grid_sampler(input, grid, _MODES.index(mode), _PADDINGS.index(padding_mode), align_corners)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the sampling grid of affine maps of images or volumes.

    Shapes: theta (batch, dims, dims + 1) -> (batch, *size[2:], dims), for `grid_sample`

    Args:
        size: (batch, channels, *sizes) of the sampled output.
        align_corners: as for `grid_sample`.

    Raises:
        ValueError: the maps do not fit the size.
        RuntimeError: the size is neither of images nor of volumes.
    """
    align_corners = _warned(align_corners)
    if not theta.is_floating_point():
        raise ValueProblem(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise ShapeError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    dims = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueProblem(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            UserWarning,
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueProblem(f"Expected non-zero, positive output size. Got {size}")
    return affine_grid_generator(theta, tuple(map(int, size)), align_corners)


def _warned(align_corners: bool | None) -> bool:
    """Return the option; give PyTorch's warning if it is left out."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            UserWarning,
            stacklevel=3,
        )
    return bool(align_corners)
