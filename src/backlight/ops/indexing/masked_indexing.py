"""Reading and adding at index tensors of which a mask leaves out some, so that these may lie outside."""

from collections.abc import Sequence

from backlight.engine.tensor_state import TensorState
from backlight.ops.indexing.getitem import get_item, index_put
from backlight.ops.indexing.masking import masked_fill

__all__ = ["_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"]


def _unsafe_masked_index(input: TensorState, mask: TensorState, indices: Sequence[TensorState], fill: float):
    """Return `input[indices]` where the mask is True, `fill` elsewhere."""
    return masked_fill(get_item(input, _inside(mask, indices)), ~mask, fill)


def _unsafe_masked_index_put_accumulate(
    input: TensorState, mask: TensorState, indices: Sequence[TensorState], values: TensorState
):
    """Return a copy of `input` to which `values` are added at the indices, where the mask is True."""
    return index_put(input, _inside(mask, indices), masked_fill(values, ~mask, 0), accumulate=True)


def _inside(mask: TensorState, indices: Sequence[TensorState]) -> tuple:
    """Return the index tensors with 0 where the mask is False; None takes a whole dim."""
    return tuple([slice(None) if index is None else index * mask for index in indices])
