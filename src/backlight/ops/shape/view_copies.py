"""PyTorch's `…_copy` functions: the result of a view op, in new memory."""

from collections.abc import Callable, Sequence

from backlight.engine.tensor_state import TensorState
from backlight.layouts import contiguous_format, preserve_format
from backlight.ops.elementwise.copying import clone
from backlight.ops.indexing.slicing import select, sliced
from backlight.ops.shape.expanding import broadcast_to
from backlight.ops.shape.reshaping import alias, reshape, squeeze, unsqueeze
from backlight.ops.shape.splitting import split, split_with_sizes, unbind
from backlight.ops.shape.striding import as_strided
from backlight.ops.shape.transposing import permute, t, transpose

__all__ = [
    "alias_copy",
    "as_strided_copy",
    "expand_copy",
    "permute_copy",
    "select_copy",
    "slice_copy",
    "split_copy",
    "split_with_sizes_copy",
    "squeeze_copy",
    "t_copy",
    "transpose_copy",
    "unbind_copy",
    "unsqueeze_copy",
    "view_copy",
]


def _viewed(input: TensorState, *sizes, size: Sequence[int] = ()):
    """Return the tensor in another shape, a copy where its strides allow no view."""
    return reshape(input, *(sizes or (size,)))


def _copied(show: Callable, name: str):
    """Return a function that copies what a view op shows (each of several views)."""

    def copy(input, *args, **kwargs):
        shown = show(input, *args, **kwargs)
        if isinstance(shown, tuple):
            return tuple(clone(part, memory_format=contiguous_format) for part in shown)
        return clone(shown, memory_format=preserve_format if show is alias else contiguous_format)

    copy.__name__ = copy.__qualname__ = name
    copy.__doc__ = f"Return a copy of what `{name.removesuffix('_copy')}` shows."
    return copy


alias_copy = _copied(alias, "alias_copy")
as_strided_copy = _copied(as_strided, "as_strided_copy")
expand_copy = _copied(broadcast_to, "expand_copy")
permute_copy = _copied(permute, "permute_copy")
select_copy = _copied(select, "select_copy")
slice_copy = _copied(sliced, "slice_copy")
split_copy = _copied(split, "split_copy")
split_with_sizes_copy = _copied(split_with_sizes, "split_with_sizes_copy")
squeeze_copy = _copied(squeeze, "squeeze_copy")
t_copy = _copied(t, "t_copy")
transpose_copy = _copied(transpose, "transpose_copy")
unbind_copy = _copied(unbind, "unbind_copy")
unsqueeze_copy = _copied(unsqueeze, "unsqueeze_copy")
view_copy = _copied(_viewed, "view_copy")
