"""Idx files: the arrays that MNIST and data sets like it come in, plain or packed with gzip.

NOTE [As much as is stated]
A file is read up to the size that its first bytes state, and one byte more that must not be there: a packed file that
unpacks to gigabytes costs no more than what it states. What it states must fit into it: gzip packs 1,032 bytes into one
at the most, so a shape larger than that is refused before memory is taken for it.
"""

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from backlight.errors import ValueProblem

__all__ = ["read_idx"]

GZIP = b"\x1f\x8b"
UNSIGNED_BYTES = 8  # the third byte of the magic number; the fourth is the number of dims
DAMAGE = (OSError, EOFError, zlib.error)
MOST_PACKED = 1032  # bytes that deflate packs into one, at most


def read_idx(path: Path) -> np.ndarray:
    """Return the array of bytes that an idx file holds (see NOTE [As much as is stated]).

    Raises:
        ValueError: the file holds something else, or not as much as its first bytes say.
    """
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            room = os.fstat(file.fileno()).st_size * (MOST_PACKED if packed else 1)
            if not packed:
                return _array_in(file, room, path)
            with gzip.open(file, "rb") as content:
                return _array_in(content, room, path)
    except DAMAGE as problem:
        raise ValueProblem(f"cannot read {path}: {problem}; fetch the file again") from problem


def _array_in(content: BinaryIO, room: int, path: Path) -> np.ndarray:
    """Read header and data.

    Args:
        room: how many bytes the file can hold at the most.
    """
    head = content.read(4)
    shape = _shape(head + content.read(4 * head[3] if len(head) == 4 and head[3] <= 4 else 0))
    if shape is None:
        raise ValueProblem(f"{path} is no idx file of bytes: it begins with {head.hex(' ')}, not 00 00 08")
    size = math.prod(shape)
    stated = f"{path} must hold {size} bytes for the shape {shape} that it states"
    if size > room:
        raise ValueProblem(f"{stated}, and is too short for that: fetch the file again")
    array = np.empty(size, np.uint8)
    found = _fill(content, memoryview(array))
    if found < size:
        raise ValueProblem(f"{stated}, got {found}: fetch the file again")
    if content.read(1):
        raise ValueProblem(f"{stated}, and holds more: fetch the file again")
    return array.reshape(shape)


def _fill(content: BinaryIO, memory: memoryview) -> int:
    """Read into memory until it is full or the file ends; return how many bytes were read."""
    done = 0
    while done < len(memory):
        count = content.readinto(memory[done:])
        if not count:
            break
        done += count
    return done


def _shape(head: bytes) -> tuple[int, ...] | None:
    """Return the shape in a header of big-endian numbers: 0, 0, type, dims, then one number a dim."""
    if len(head) < 8 or head[:2] != b"\0\0" or head[2] != UNSIGNED_BYTES or not 1 <= head[3] <= 4:
        return None
    if len(head) < 4 + 4 * head[3]:
        return None
    return tuple(int(size) for size in np.frombuffer(head, ">u4", count=head[3], offset=4))
