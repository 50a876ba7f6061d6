"""Idx files: the arrays that MNIST and data sets like it come in, plain or packed with gzip."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from backlight.errors import ValueProblem

__all__ = ["read_idx"]

GZIP = b"\x1f\x8b"
UNSIGNED_BYTES = 8  # the third byte of the magic number; the fourth is the number of dims
DAMAGE = (OSError, EOFError, zlib.error)


def read_idx(path: Path) -> np.ndarray:
    """Return the array of bytes that an idx file holds.

    Raises:
        ValueError: the file holds something else, or not as much as its first bytes say.
    """
    try:
        content = path.read_bytes()
        if content[:2] == GZIP:
            content = gzip.decompress(content)
    except DAMAGE as problem:
        raise ValueProblem(f"cannot read {path}: {problem}; fetch the file again") from problem
    shape = _shape(content[:20])
    if shape is None:
        raise ValueProblem(f"{path} is no idx file of bytes: it begins with {content[:4].hex(' ')}, not 00 00 08")
    start, size = 4 + 4 * len(shape), math.prod(shape)
    if len(content) - start != size:
        raise ValueProblem(
            f"{path} must hold {size} bytes for the shape {shape} that it states, got {len(content) - start}: fetch "
            "the file again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


def _shape(head: bytes) -> tuple[int, ...] | None:
    """Return the shape in a header of big-endian numbers: 0, 0, type, dims, then one number a dim."""
    if len(head) < 8 or head[:2] != b"\0\0" or head[2] != UNSIGNED_BYTES or not 1 <= head[3] <= 4:
        return None
    if len(head) < 4 + 4 * head[3]:
        return None
    return tuple(int(size) for size in np.frombuffer(head, ">u4", count=head[3], offset=4))
