"""`interpolate`, its older names, `grid_sample` and `affine_grid`: the op for a mode, with PyTorch's checks."""

import warnings
from collections.abc import Sequence
from numbers import Integral, Real

from backlight.dispatch.dispatcher import public_function
from backlight.errors import ArgumentError, UnsupportedError, ValueProblem
from backlight.ops.nn.adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from backlight.ops.nn.grid_sampling import affine_grid_generator, grid_sampler
from backlight.ops.nn.interpolation import upsample_to
from backlight.tensor.tensor import Tensor

Sizes = int | Sequence[int]
Factors = float | Sequence[float]

_MEANS = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_KERNELS = {  # mode -> the op, and the number of dims
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "trilinear": ("linear", (3,)),
    "bicubic": ("cubic", (2,)),
    "lanczos": ("lanczos", (2,)),
}


def interpolate(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: Factors | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize signals, images or volumes to a size, or by a factor.

    Shapes: input (batch, channels, *sizes) with one to three sizes -> (batch, channels, *new sizes)

    Args:
        mode: "nearest" (as OpenCV), "nearest-exact" (as Pillow), "area"; for one size "linear", for two "bilinear",
            "bicubic" and, with `antialias`, "lanczos"; for three "trilinear".
        align_corners: align the centres of the corner elements, not their outer corners.
        recompute_scale_factor: use the exact factor between the rounded sizes.
        antialias: average over all elements that a new element covers when an image becomes smaller.

    Raises:
        ValueError: the options contradict each other.
        RuntimeError: a size is not positive, or the mode is for another number of dims.
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueProblem(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                "trilinear"
            )
    dims = input.ndim - 2
    sizes, scales = _sizes(input, size, dims), _scales(input, scale_factor, dims)
    if (sizes is None) == (scales is None):
        rule = "either size or scale_factor should be defined"
        raise ValueProblem(rule if sizes is None else "only one of size or scale_factor should be defined")
    if recompute_scale_factor and sizes is not None:
        raise ValueProblem("recompute_scale_factor is not meaningful with an explicit size.")
    if sizes is None and (recompute_scale_factor or mode == "area"):
        sizes, scales = tuple(int(old * factor) for old, factor in zip(input.shape[2:], scales)), None
    _check_mode(mode, dims, bool(align_corners), antialias)
    if mode == "area":
        return _MEANS[dims](input, sizes)
    return upsample_to(input, _KERNELS[mode][0], sizes, scales, bool(align_corners), antialias)


def _sizes(input: Tensor, size: Sizes | None, dims: int) -> tuple[int, ...] | None:
    """Return the new size of each dim, or None where none is given."""
    if size is None:
        return None
    if not isinstance(size, (list, tuple)):
        size = (size,) * dims
    if len(size) != dims:
        raise ValueProblem(
            "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(input.shape[2:])} and output size of {size}. Please provide input tensor in (N, C, d1, d2, "
            "...,dK) format and output size in (o1, o2, ...,oK) format."
        )
    if not all(isinstance(one, Integral) for one in size):
        raise ArgumentError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
            f"with types {[type(one) for one in size]}"
        )
    return tuple(map(int, size))


def _scales(input: Tensor, scale_factor: Factors | None, dims: int) -> tuple[float, ...] | None:
    """Return the factor of each dim, or None where none is given."""
    if scale_factor is None:
        return None
    if not isinstance(scale_factor, (list, tuple)):
        scale_factor = (scale_factor,) * dims
    if len(scale_factor) != dims:
        raise ValueProblem(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(input.shape[2:])} and scale_factor of shape {scale_factor}. Please provide input "
            "tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    for factor in scale_factor:
        if not isinstance(factor, Real):
            raise ArgumentError(
                f"scale_factor must be a number or one for each of {dims} dims, but got {factor!r} of type "
                f"{type(factor).__name__}"
            )
    return tuple(scale_factor)


def _check_mode(mode: str, dims: int, align_corners: bool, antialias: bool) -> None:
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and dims == 2):
        raise ValueProblem(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and dims == 2:
        if align_corners:
            raise ValueProblem("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueProblem("Lanczos mode requires antialias=True")
    wanted = (1, 2, 3) if mode == "area" else _KERNELS.get(mode, ("", ()))[1]
    if dims in wanted:
        return
    if mode in ("linear", "bilinear", "trilinear") and dims in (1, 2, 3):
        raise UnsupportedError(f"Got {dims + 2}D input, but {mode} mode needs {wanted[0] + 2}D input")
    raise UnsupportedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dims + 2}D) for the modes: nearest | linear | "
        f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def upsample(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: Factors | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
):
    """Resize signals, images or volumes: the old name of `interpolate`."""
    _warn("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Sizes | None = None, scale_factor: Factors | None = None):
    """Resize by taking the nearest element: the old name of `interpolate` with mode "nearest"."""
    _warn("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Sizes | None = None, scale_factor: Factors | None = None):
    """Resize images bilinearly, with corners aligned: an old name of `interpolate`."""
    _warn("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _warn(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", UserWarning, stacklevel=3
    )


_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@public_function
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
        raise UnsupportedError(
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
