"""Packed and padded sequences under PyTorch's name, `nn.utils.rnn`."""

from backlight.dispatch.arguments.checked import with_checks
from backlight.nn.packing import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

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

globals().update(with_checks(globals(), __all__, __name__))
