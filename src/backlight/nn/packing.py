"""Sequences of different lengths in one tensor: padded to the longest, or packed without padding.

A packed sequence holds, for each time step, one row for each sequence of at least that length, longest first.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from backlight import dtypes
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, ShapeError, ValueProblem
from backlight.ops.indexing.index_selection import index_copy, index_select
from backlight.ops.shape.joining import cat
from backlight.tensor.factories import full
from backlight.tensor.tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedFields(NamedTuple):
    """The fields of a packed sequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedFields):
    """The rows of several sequences, step by step; made by `pack_padded_sequence` and `pack_sequence`.

    Args:
        data: the rows.
        batch_sizes: the number of sequences at each time step.
        sorted_indices: the permutation that sorts the sequences by length.
        unsorted_indices: its inverse.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ):
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"{type(self).__name__}({fields})"

    def to(self, *args, **kwargs):
        """Convert the rows, as `Tensor.to` does."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self):
        """Return the sequence itself: it is on the CPU."""
        return self

    def cuda(self, *args, **kwargs):
        """Raise a RuntimeError: there is no such device."""
        return self.to("cuda")

    def pin_memory(self):
        """Raise a RuntimeError: memory cannot be pinned without an accelerator."""
        return type(self)(self.data.pin_memory(), *self[1:])

    @property
    def is_cuda(self) -> bool:
        """Whether the rows are on an accelerator: never."""
        return False

    def is_pinned(self) -> bool:
        """Tell whether the memory is pinned: never."""
        return False

    def float(self):
        """Convert the rows to float32."""
        return self.to(dtypes.float32)

    def double(self):
        """Convert the rows to float64."""
        return self.to(dtypes.float64)

    def half(self):
        """Convert the rows to float16."""
        return self.to(dtypes.float16)

    def long(self):
        """Convert the rows to int64."""
        return self.to(dtypes.int64)

    def int(self):
        """Convert the rows to int32."""
        return self.to(dtypes.int32)

    def short(self):
        """Convert the rows to int16."""
        return self.to(dtypes.int16)

    def char(self):
        """Convert the rows to int8."""
        return self.to(dtypes.int8)

    def byte(self):
        """Convert the rows to uint8."""
        return self.to(dtypes.uint8)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation."""
    if permutation is not None and not isinstance(permutation, TensorState):
        got = type(permutation).__name__
        raise ArgumentError(f"empty_like(): argument 'input' (position 1) must be Tensor, not {got}")
    return None if permutation is None else wrap(np.argsort(permutation._data.copy(), kind="stable"))


# --- packing ----------------------------------------------------------------------------------------------------------


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch.

    Shapes: input (time, batch, …), or (batch, time, …) with `batch_first`

    Args:
        lengths: the length of each sequence.
        enforce_sorted: whether the sequences must be sorted by decreasing length; else they are sorted here.

    Raises:
        RuntimeError: lengths do not match the batch, are not above 0, or are not sorted with `enforce_sorted`.
    """
    if not isinstance(input, TensorState):
        got = type(input).__name__
        raise ArgumentError(f"_pack_padded_sequence(): argument 'input' (position 1) must be Tensor, not {got}")
    counts = np.array(lengths._data if isinstance(lengths, TensorState) else lengths, np.int64)
    if counts.ndim != 1:
        raise ShapeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {counts.ndim}D cpu Long tensor")
    order = None
    if not enforce_sorted:
        order = np.argsort(-counts, kind="stable")
        counts = counts[order]
        input = index_select(input, 0 if batch_first else 1, wrap(order))
    _check_lengths(counts, input.shape[0 if batch_first else 1])
    steps, places = _places(counts)
    long, wide = input.shape[1 if batch_first else 0], len(counts)
    rows = places * long + steps if batch_first else steps * wide + places
    data = index_select(input.flatten(0, 1), 0, wrap(rows))
    sizes = np.bincount(steps).astype(np.int64)
    return PackedSequence(data, wrap(sizes), None if order is None else wrap(order))


def _check_lengths(counts: np.ndarray, batch: int) -> None:
    if len(counts) != batch:
        raise ShapeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={batch})"
        )
    if counts.min() <= 0:
        raise ShapeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (counts[1:] > counts[:-1]).any():
        raise ShapeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )


def _places(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (step, sequence) of each row, step by step, for descending lengths."""
    lasting = counts > np.arange(counts.max())[:, None]  # (time, batch)
    return np.nonzero(lasting)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Invert `pack_padded_sequence`: return the padded batch, in its original order, and the lengths.

    Args:
        padding_value: the value after the end of a sequence.
        total_length: pad to this length instead of the longest sequence's.

    Raises:
        ValueError: `total_length` is too short.
    """
    sizes = sequence.batch_sizes._data
    long, wide = len(sizes), int(sizes[0])
    if total_length is not None:
        if total_length < long:
            raise ValueProblem(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {long}"
            )
        long = total_length
    counts = (sizes[:, None] > np.arange(wide)).sum(0)
    steps, places = _places(counts)
    padded = _padded(sequence.data, steps, places, (long, wide), padding_value, batch_first)
    if sequence.unsorted_indices is None:
        return padded, wrap(counts)
    back = sequence.unsorted_indices
    return index_select(padded, 0 if batch_first else 1, back), wrap(counts[back._data])


def _padded(
    rows: Tensor, steps: np.ndarray, places: np.ndarray, shape: tuple[int, int], value: float, batch_first: bool
) -> Tensor:
    """Write rows at their (step, sequence) into a tensor filled with a value."""
    long, wide = shape
    first, second = (wide, long) if batch_first else (long, wide)
    numbers = places * long + steps if batch_first else steps * wide + places
    rest = tuple(rows.shape[1:])
    empty = full((first * second, *rest), value, dtype=rows.dtype)
    return index_copy(empty, 0, wrap(numbers), rows).reshape((first, second, *rest))


# --- lists of sequences -----------------------------------------------------------------------------------------------


def pad_sequence(
    sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Stack sequences of different lengths, padded to the longest.

    Shapes: each (time, …) -> (time, batch, …), or (batch, time, …) with `batch_first`

    Raises:
        RuntimeError: the sequences are not iterable, there are none, or the side is neither left nor right.
    """
    if not isinstance(sequences, Iterable):
        raise ShapeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    sequences = list(sequences)
    if not sequences:
        raise ShapeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise ShapeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    counts = [len(sequence) for sequence in sequences]
    starts = [max(counts) - count if padding_side == "left" else 0 for count in counts]
    steps = np.concatenate([start + np.arange(count) for start, count in zip(starts, counts)])
    places = np.repeat(np.arange(len(counts)), counts)
    return _padded(cat(sequences), steps, places, (max(counts), len(counts)), padding_value, batch_first)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Split a padded batch into its sequences."""
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[:length] for sequence, length in zip(batch, lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths."""
    counts = [len(sequence) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), counts, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Split a packed batch into its sequences, in their original order."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)
