"""Padding: more slices at both ends of dims, constant, reflected, repeated or from the other end."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError, UnsupportedError
from backlight.kernels.memory_order import LAYOUTS, model_of
from backlight.kernels.reduction.slices import add_slices, slices_taken
from backlight.ops.number_operands import no_bools
from backlight.ops.scalars import element, is_plain
from backlight.sizes import Shape

__all__ = ["constant_pad_nd"]


@op(tangent="linear", tangent_with={"value": 0}, complex="linear")
def constant_pad_nd(xp, input: Array, pad: tuple, value: float = 0):
    """`input` with slices of one value at the ends of its last dims; a negative count takes slices away.

    Args:
        pad: the counts before and behind, of the last dim first.
    """
    pairs = _pairs(pad, input.ndim)
    shape = tuple(size + before + behind for size, (before, behind) in zip(input.shape, pairs))
    if any(size < 0 for size in shape):
        raise ShapeError(
            f"narrow(): length must be non-negative.; the padding {list(pad)} of a tensor of size {list(input.shape)} "
            f"resulted in a negative output size, {list(shape)}"
        )
    filling = value if is_plain(value, input.dtype) else element(value, input.dtype)
    out = xp.full(shape, filling, input.dtype)
    inner = tuple(slice(max(before, 0), size - max(behind, 0)) for size, (before, behind) in zip(shape, pairs))
    read = tuple(slice(max(-before, 0), size - max(-behind, 0)) for size, (before, behind) in zip(input.shape, pairs))
    if input.ndim and max(pad, default=0) <= 0:  # a copy in PyTorch, too
        out = model_of(input[read])
        out[...] = input[read]
        return out
    out[inner] = input[read] if input.ndim else input
    return LAYOUTS["suggested"](out, input)


constant_pad_nd.derivative("input", formula="grad without the padding")(
    lambda grad, pad, ops: ops.constant_pad_nd(grad, tuple(-count for count in pad))
)


def _pairs(pad: Sequence[int], ndim: int) -> list[tuple[int, int]]:
    """Return (before, behind) for each dim, the first dim first."""
    if len(pad) % 2:
        raise ShapeError(f"Padding length must be divisible by 2; got {len(pad)}")
    if len(pad) > 2 * ndim:
        raise ShapeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {ndim}"
        )
    named = [(int(pad[place]), int(pad[place + 1])) for place in range(0, len(pad), 2)]
    return [(0, 0)] * (ndim - len(named)) + named[::-1]


@lru_cache(256)
def _sources(mode: str, size: int, before: int, behind: int) -> np.ndarray:
    """Return for each slice of the padded dim the slice of the input that it repeats; read-only."""
    places = np.arange(-before, size + behind)
    if mode == "replicate":
        return np.clip(places, 0, size - 1)
    if mode == "circular":  # around what negative counts leave of the dim
        start, kept = max(-before, 0), size + min(before, 0) + min(behind, 0)
        return (places - start) % kept + start
    return (size - 1) - np.abs((size - 1) - np.abs(places))


def _repeated(xp, input: Array, pad: Sequence[int], mode: str):
    for dim, (size, (before, behind)) in enumerate(zip(input.shape, _pairs(pad, input.ndim))):
        if before or behind:
            input = slices_taken(input, _sources(mode, size, before, behind), dim)
    return input


@op(tangent="linear", complex="linear", layout="suggested")
def repeating_pad_backward(xp, grad_output: Array, input_sizes: tuple, pad: tuple, mode: str):
    """The gradients of repeated slices, added at the slices that they repeat."""
    for dim, (size, (before, behind)) in enumerate(zip(input_sizes, _pairs(pad, len(input_sizes)))):
        if before or behind:
            out = xp.zeros((*grad_output.shape[:dim], size, *grad_output.shape[dim + 1 :]), grad_output.dtype)
            add_slices(out, grad_output, _sources(mode, size, before, behind), dim)
            grad_output = out
    return grad_output


repeating_pad_backward.derivative("grad_output", formula="grad, padded in the same way")(
    lambda grad, pad, mode, ops: getattr(ops, _OPS[mode][len(pad) // 2 - 1])(grad, pad, mode)
)


def _declare(name: str, node: str):
    """Declare one of the ops that pad by repeating; they differ by their names only."""

    circular = name.startswith("circular")

    @op(
        name=name,
        node=node,
        tangent="linear",
        zero_derivative=() if circular else ("input",),
        dtype_error=None if circular else no_bools(name),
        complex="linear",
        layout="rows" if circular else "suggested",
    )
    def repeating_pad(xp, input: Array, pad: tuple, mode: str):
        """`input` with slices at the ends of its last dims that repeat slices of its own."""
        return _repeated(xp, input, pad, mode)

    rule = repeating_pad.derivative("input", formula="grad, with that of the padding added at the slices repeated")
    rule(_circular_pad_input if circular else _repeating_pad_input)
    return repeating_pad


def _circular_pad_input(grad: Array, input_shape: Shape, pad: tuple, mode: str, ops):
    return ops.repeating_pad_backward(grad, input_shape, pad, mode)


def _repeating_pad_input(grad: Array, input: Array, pad: tuple, mode: str, ops):  # PyTorch's node saves its input, too
    return ops.repeating_pad_backward(grad, tuple(input.shape), pad, mode)


_OPS = {
    "reflect": ("reflection_pad1d", "reflection_pad2d", "reflection_pad3d"),
    "replicate": ("replication_pad1d", "replication_pad2d", "replication_pad3d"),
    "circular": ("circular_pad1d", "circular_pad2d", "circular_pad3d"),
}
_PUBLIC = {
    name: _declare(name, f"{name[0].upper()}{name[1:].split('_')[0]}Pad{name[-2]}DBackward0")
    for names in _OPS.values()
    for name in names
}


def pad(input: TensorState, pad: Sequence[int], mode: str = "constant", value: float | None = None):
    """Add slices at the ends of the last dims.

    Args:
        pad: how many before and behind the last dim, then the last but one, …; negative counts take slices away.
        mode: "constant" adds `value`, "reflect" the slices next to the edge in reverse order, "replicate" the slice at
            the edge, "circular" those of the other end.

    Raises:
        RuntimeError: the counts do not fit the tensor, or there is no such mode.
    """
    pad = tuple(pad)
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    if mode not in _OPS:
        raise UnsupportedError(f"Unrecognised padding mode {mode}; choose constant, reflect, replicate or circular")
    if value not in (None, 0):
        raise ShapeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    _check_repeating(input._data.shape, pad, mode)
    if mode != "circular":
        _check_no_empty_dims(input._data.shape, len(pad) // 2)
    return _PUBLIC[_OPS[mode][len(pad) // 2 - 1]](input, pad, mode)


def _check_no_empty_dims(shape: Sequence[int], count: int) -> None:
    """Raise PyTorch's error if a dim other than the batch is empty: there is nothing to repeat."""
    if 0 in shape[len(shape) - count - 1 :]:
        raise ShapeError(
            f"Expected {count + 1}D or {count + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )


def _check_repeating(shape: Sequence[int], pad: Sequence[int], mode: str) -> None:
    count = len(pad) // 2
    if len(pad) % 2 or not 1 <= count <= 3 or len(shape) not in (count + 1, count + 2):
        raise UnsupportedError(
            f"Padding size {len(pad)} is not supported for {len(shape)}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    for dim, (size, (before, behind)) in reversed(list(enumerate(zip(shape, _pairs(pad, len(shape)))))):
        if mode == "reflect" and max(before, behind) >= max(size, 1):
            raise ShapeError(
                f"Argument #{4 + 2 * (len(shape) - 1 - dim)}: Padding size should be less than the corresponding input "
                f"dimension, but got: padding ({before}, {behind}) at dimension {dim} of input {list(shape)}"
            )
        if mode == "circular" and max(before, behind) > size:
            raise ShapeError("Padding value causes wrapping around more than once.; pad at most the size of the dim")
        if (before or behind) and size + before + behind <= 0:
            raise ShapeError(
                f"input ({', '.join(f'{axis}: {size}' for axis, size in zip('DHW'[-count:], shape[-count:]))}) is too "
                f"small. Calculated output {'DHW'[dim - len(shape)]}: {size + before + behind}; "
                f"the padding is {list(pad)}"
            )
