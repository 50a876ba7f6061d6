"""`interpolate` and its older names: the op for a mode and a number of dims, with PyTorch's checks."""

import warnings
from collections.abc import Sequence
from numbers import Integral, Real

from backlight.errors import ArgumentError, ShapeError, ValueProblem
from backlight.ops.nn.adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from backlight.ops.nn.interpolation import upsample_to
from backlight.tensor.tensor import Tensor

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

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
        raise ShapeError(f"Got {dims + 2}D input, but {mode} mode needs {wanted[0] + 2}D input")
    raise ShapeError(
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
