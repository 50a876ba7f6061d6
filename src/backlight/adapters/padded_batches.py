"""Batches of pairs padded to rectangles, for models that need equal lengths.

A token stands in the column of its position. What a pair leaves out is hidden by the mask, as is what stands before or
after a pair.

NOTE [The cost of padding]
A rectangle costs its cells, padded ones too, and something for its call. Pairs are sorted by length, and the cuts
between rectangles are those of the least total cost: few pairs of very different lengths stand alone, many of nearly
the same length together.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from backlight.models.pairs import PairBatch

CELLS = 4096  # of a rectangle, at most, if it has more than one row
CALL = 32  # what a call costs besides, in cells: with MiniLM-L6 25 on one thread, about twice that on two


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
    """Cut a batch into padded batches of pairs of similar length (see NOTE [The cost of padding]).

    Args:
        apart: put only pairs of the same length together, so that none is padded.
        pad, left: as for `PaddedBatch.of`.
    """
    spans = np.array([_span(pair) for pair in batch.pairs])
    order = np.argsort(spans, kind="stable")
    for start, end in cheapest_cuts(spans[order], apart=apart):
        yield PaddedBatch.of(batch, order[start:end], pad=pad, left=left)


def cheapest_cuts(spans: np.ndarray, *, apart: bool = False) -> list[tuple[int, int]]:
    """Return first and last + 1 row of each rectangle, by the least cost of all (see NOTE [The cost of padding]).

    Args:
        spans: how many columns each row takes, shortest first.
        apart: put only rows of the same length together.
    """
    least, starts = np.zeros(len(spans) + 1), np.zeros(len(spans) + 1, np.int64)  # of all rows before each one
    for end, width in enumerate(spans.tolist(), 1):
        rows = np.arange(1, min(end, max(CELLS // width, 1)) + 1)
        if apart:
            rows = rows[spans[end - rows] == width]
        costs = least[end - rows] + rows * width + CALL
        best = int(costs.argmin())
        least[end], starts[end] = costs[best], end - rows[best]
    cuts, end = [], len(spans)
    while end:
        cuts.append((int(starts[end]), end))
        end = cuts[-1][0]
    return cuts[::-1]


def _span(pair) -> int:
    return int(pair.positions.max(initial=0)) + 1
