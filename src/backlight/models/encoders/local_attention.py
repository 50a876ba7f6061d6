"""Attention of each token to those near it.

NOTE [Nearby tokens]
A token looks at the tokens of its text that are up to half a window away, by position. A text is cut into bands: some
queries in a row, and the keys that one of them may look at. So work and memory grow with the length of a text and not
with its square. Where each token may look at all of its text, there are no bands, and attention is the ordinary one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.models.tokens import Batch
from backlight.ops.nn.attention import scaled_dot_product_attention
from backlight.ops.shape.joining import cat
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

LEAST_QUERIES = 16  # of a band: less would be all overhead


@dataclass(frozen=True, eq=False)
class Band:
    """Some queries, and the keys that one of them may look at."""

    queries: slice  # of the row of tokens
    keys: slice
    near: Tensor  # (queries, keys), whether the query may look at the key


def bands_of(batch: Batch, window: int) -> list[Band]:
    """Return the bands of all texts (see NOTE [Nearby tokens]); none, if each token may look at all of its text.

    Args:
        window: how many positions a token looks at, to both sides together.
    """
    parts = batch.parts(batch.positions)
    if all(part[-1] - part[0] <= window // 2 for part in parts):
        return []
    return [band for start, part in zip(batch.starts, parts) for band in _bands_of_text(start, part, window)]


def _bands_of_text(start: int, positions: np.ndarray, window: int) -> Iterator[Band]:
    half, width = window // 2, max(window, LEAST_QUERIES)
    for first in range(0, len(positions), width):
        asking = positions[first : first + width]
        low = int(np.searchsorted(positions, asking[0] - half))
        high = int(np.searchsorted(positions, asking[-1] + half, "right"))
        near = from_numpy(_near(asking, positions[low:high], window))
        yield Band(slice(start + first, start + first + len(asking)), slice(start + low, start + high), near)


def _near(queries: np.ndarray, keys: np.ndarray, window: int) -> np.ndarray:
    """Return whether each query may look at each key, by their positions; (queries, keys)."""
    return np.abs(queries[:, None] - keys) <= window // 2


def banded_attention(qkv: Tensor, bands: Sequence[Band]) -> Tensor:
    """Return what each token saw within its band.

    Shapes: qkv (tokens, 3, heads, dim) -> (tokens, heads · dim)
    """
    query, key, value = qkv.permute(1, 2, 0, 3).unbind(0)  # each (heads, tokens, dim)
    seen = [
        scaled_dot_product_attention(query[:, band.queries], key[:, band.keys], value[:, band.keys], band.near)
        for band in bands
    ]
    return cat(seen, 1).transpose(0, 1).flatten(1)


def banded_mask(batch: Batch, window: int, dtype: np.dtype) -> list[Tensor]:
    """Return for each text what keeps its tokens from looking farther, if it is added to scores: 0 or −∞.

    Shapes: -> texts × (1, queries, keys)
    """
    near = [_near(part, part, window) for part in batch.parts(batch.positions)]
    return [from_numpy(np.where(one, 0, -np.inf).astype(dtype)).unsqueeze(0) for one in near]
