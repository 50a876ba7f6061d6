"""Interpolation: pictures, signals and volumes made larger or smaller.

The ops differ by their names and by how many dims they resize; kernels/nn/resampling.py computes all of them.
"""

from collections.abc import Sequence

from backlight.codegen.declaration import Array, op
from backlight.errors import ArgumentError, ShapeError, UnsupportedError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.nn import resampling
from backlight.kernels.nn.resampling import Resize
from backlight.ops.type_promotion import LONG
from backlight.sizes import check_storage


class Resizes(tuple):
    """Annotates the option that says how each of the last dims is resized."""


def _declare(name: str, node: str):
    """Declare one of the ops."""

    @op(name=name, node=node, tangent="linear", layout="suggested")
    def upsample(xp, input: Array, resizes: Resizes):
        """Return the input with its last dims resized."""
        wide = widened(input)
        kind = wide.dtype.type if wide.dtype.kind == "f" else xp.float32
        taps = [resampling.taps_of(one, kind) for one in resizes]
        return rounded(resampling.along_dims(wide, taps), input.dtype)

    @upsample.derivative("input", formula="each element's grad times its weights, added where it was taken from")
    def upsample_input(grad: Array, resizes: Resizes, ops):
        return ops.upsample_backward(grad, resizes, name)

    return upsample


@op(tangent="linear", layout="suggested")
def upsample_backward(xp, grad_output: Array, resizes: Resizes, upsample: str):
    """The transpose of the resize: each gradient, times its weights, added where its element was taken from."""
    wide = widened(grad_output)
    taps = [resampling.transposed_taps(one, wide.dtype.type) for one in resizes]
    return rounded(resampling.along_dims(wide, taps), grad_output.dtype)


upsample_backward.derivative("grad_output", formula="grad, resized")(
    lambda grad, resizes, upsample, ops: getattr(ops, upsample)(grad, resizes)
)


_NAMES = {
    **{("nearest", dims): (f"upsample_nearest{dims}d", f"UpsampleNearest{dims}D") for dims in (1, 2, 3)},
    **{
        ("nearest-exact", dims): (f"_upsample_nearest_exact{dims}d", f"UpsampleNearestExact{dims}D")
        for dims in (1, 2, 3)
    },
    ("linear", 1): ("upsample_linear1d", "UpsampleLinear1D"),
    ("linear", 2): ("upsample_bilinear2d", "UpsampleBilinear2D"),
    ("linear", 3): ("upsample_trilinear3d", "UpsampleTrilinear3D"),
    ("cubic", 2): ("upsample_bicubic2d", "UpsampleBicubic2D"),
    ("linear", "antialias"): ("_upsample_bilinear2d_aa", "UpsampleBilinear2DAa"),
    ("cubic", "antialias"): ("_upsample_bicubic2d_aa", "UpsampleBicubic2DAa"),
    ("lanczos", "antialias"): ("_upsample_lanczos2d_aa", "UpsampleLanczos2DAa"),
}
_OPS = {key: _declare(name, f"{node}Backward0") for key, (name, node) in _NAMES.items()}


def upsample_to(input, mode: str, sizes, scales, align_corners: bool, antialias: bool):
    """Resize the last dims of a batch of channels.

    Args:
        mode: "nearest", "nearest-exact", "linear", "cubic" or "lanczos".
        sizes: the new sizes; None takes them from `scales`.
        scales: new size / old size for each dim, or None.

    Raises:
        RuntimeError: a size is not positive, or the dtype is not one that has means.
    """
    array = input._data
    old, name = array.shape[2:], _NAMES[mode, "antialias" if antialias else array.ndim - 2][0]
    if sizes is None:
        sizes = tuple(int(size * scale) for size, scale in zip(old, scales))
    _check(name, array, mode, old, sizes)
    scales = scales or (None,) * len(old)
    dims = "antialias" if antialias else len(old)
    options = (align_corners, antialias)
    resizes = Resizes(_resize(mode, dims, *sized, *options) for sized in zip(old, sizes, scales))
    return _OPS[mode, dims](input, resizes)


def _resize(
    mode: str, dims: int | str, old: int, new: int, scale: float | None, align_corners: bool, antialias: bool
) -> Resize:
    """Return how one dim is resized; as in PyTorch, some kinds leave a dim that keeps its size as it is."""
    if old == new and (mode == "linear" or antialias or (mode, dims) == ("nearest", 2)):
        return Resize("same", old, new)
    return Resize(mode, old, new, align_corners, scale, antialias)


def _check(name: str, array: Array, mode: str, old: Sequence[int], sizes: Sequence[int]) -> None:
    if min((*old, *sizes)) <= 0:
        letters = ("D", "H", "W")[-len(old) :]
        given, wanted = (", ".join(f"{a}: {n}" for a, n in zip(letters, part)) for part in (old, sizes))
        link = " and" if len(old) == 1 else ""
        raise ShapeError(
            f"Input and output sizes should be greater than 0, but got input ({given}){link} output ({wanted})"
        )
    for place, size in enumerate(sizes):
        if size >= LONG:
            raise ArgumentError(
                f"{name}(): argument 'output_size' failed to unpack the object at pos {place + 1} with error "
                f'"Overflow when unpacking long long"; got {size}'
            )
    check_storage((*array.shape[:2], *sizes), array.itemsize)
    if array.shape[1] == 0:
        raise ShapeError(
            f"Non-empty {array.ndim}D data tensor expected but got a tensor with sizes {list(array.shape)}"
        )
    if array.dtype.kind in "biu" and not (array.dtype == "uint8" and mode.startswith("nearest")):
        raise UnsupportedError(f"\"{name}\" not implemented for '{array.dtype.name}'; convert the input with .float()")
