"""Batches of pairs padded to rectangles, for models that need equal lengths.

A token stands in the column of its position. What a pair leaves out is hidden by the mask, as is what stands before or
after a pair.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from backlight.models.pairs import PairBatch

CELLS = 4096  # of a rectangle, at most, if it has more than one row
WASTE = 1.25  # how much longer than the shortest row a rectangle is, at most


@dataclass(frozen=True, eq=False)
class PaddedBatch:
    """Some pairs of a batch, and where each of their tokens stands."""

    pairs: np.ndarray  # (rows,), their numbers in the batch
    tokens: np.ndarray  # (tokens,), the tokens' places in the batch
    rows: np.ndarray  # (tokens,)
    columns: np.ndarray  # (tokens,)
    ids: np.ndarray  # (rows, columns)
    type_ids: np.ndarray  # (rows, columns)
    mask: np.ndarray  # (rows, columns), 1 where a token stands

    @classmethod
    def of(cls, batch: PairBatch, numbers: np.ndarray, *, pad: int = 0, left: bool = False) -> "PaddedBatch":
        """Lay pairs of a batch under each other.

        Args:
            numbers: which pairs.
            pad: the id of the token that stands for none.
            left: whether shorter pairs are padded before their first token, not after their last.
        """
        pairs = [batch.pairs[number] for number in numbers]
        width = max(_span(pair) for pair in pairs)
        shape = len(pairs), width
        ids, types, mask = np.full(shape, pad), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        columns = [pair.positions + (width - _span(pair)) * left for pair in pairs]
        for row, (pair, places) in enumerate(zip(pairs, columns)):
            # a model may count what is no padding: what was left out between two tokens is none
            ids[row, places.min() : places.max() + 1] = pair.ids[0]
            ids[row, places], types[row, places], mask[row, places] = pair.ids, pair.type_ids, 1
        return cls(
            pairs=np.asarray(numbers),
            tokens=np.concatenate([np.arange(batch.places[n].start, batch.places[n].stop) for n in numbers]),
            rows=np.repeat(np.arange(len(pairs)), [len(pair) for pair in pairs]),
            columns=np.concatenate(columns),
            ids=ids,
            type_ids=types,
            mask=mask,
        )


def padded_batches(batch: PairBatch, *, apart: bool = False, pad: int = 0, left: bool = False) -> Iterator[PaddedBatch]:
    """Cut a batch into padded batches of pairs of similar length.

    Args:
        apart: put only pairs of the same length together, so that none is padded.
        pad, left: as for `PaddedBatch.of`.
    """
    spans = np.array([_span(pair) for pair in batch.pairs])
    some: list[int] = []
    for number in np.argsort(spans, kind="stable").tolist():
        span = spans[number]
        longer = some and span > spans[some[0]] * (1 if apart else WASTE)
        if some and (longer or span * (len(some) + 1) > CELLS):
            yield PaddedBatch.of(batch, np.array(some), pad=pad, left=left)
            some = []
        some.append(number)
    yield PaddedBatch.of(batch, np.array(some), pad=pad, left=left)


def _span(pair) -> int:
    return int(pair.positions.max(initial=-1)) + 1
