"""Batches of sequences padded to rectangles, for models that need equal lengths.

A token stands in the column of its position. What a pair leaves out is hidden by the mask, as is what stands before or
after a sequence. Cross-encoders read one sequence a pair, bi-encoders two, which are padded apart.

NOTE [The cost of padding]
A rectangle costs its cells, padded ones too, and something for its call. Pairs are sorted by length, and the cuts
between rectangles are those of the least total cost: few pairs of very different lengths stand alone, many of nearly
the same length together.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from backlight.models.scoring import passes
from backlight.models.tokens import Batch

CELLS = 4096  # of a rectangle, at most, if it has more than one row
CALL = 32  # what a call costs besides, in cells: with MiniLM-L6 25 on one thread, about twice that on two


@dataclass(frozen=True, eq=False)
class PaddedBatch:
    """Some sequences of a batch, and where each of their tokens stands."""

    sequences: np.ndarray  # (rows,), their numbers in the batch
    tokens: np.ndarray  # (tokens,), the tokens' places in the batch
    rows: np.ndarray  # (tokens,)
    columns: np.ndarray  # (tokens,)
    ids: np.ndarray  # (rows, columns)
    type_ids: np.ndarray  # (rows, columns)
    mask: np.ndarray  # (rows, columns), 1 where a token stands

    @classmethod
    def of(cls, batch: Batch, numbers: np.ndarray, *, pad: int = 0, left: bool = False) -> "PaddedBatch":
        """Lay sequences of a batch under each other.

        Args:
            numbers: which sequences.
            pad: the id of the token that stands for none.
            left: whether shorter ones are padded before their first token, not after their last.
        """
        numbers = np.asarray(numbers)
        places = [slice(batch.starts[n], batch.starts[n] + batch.lengths[n]) for n in numbers.tolist()]
        positions = [batch.positions[place] for place in places]
        spans = [_span(one) for one in positions]
        width = max(spans)
        shape = len(numbers), width
        ids, types, mask = np.full(shape, pad), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        columns = [one + (width - span) * left for one, span in zip(positions, spans)]
        for row, (place, own) in enumerate(zip(places, columns)):
            # a model may count what is no padding: what was left out between two tokens is none
            ids[row, own.min(initial=width) : own.max(initial=0) + 1] = batch.ids[place][:1]
            ids[row, own], types[row, own], mask[row, own] = batch.ids[place], batch.type_ids[place], 1
        return cls(
            sequences=numbers,
            tokens=np.concatenate([np.arange(place.start, place.stop) for place in places]),
            rows=np.repeat(np.arange(len(numbers)), [place.stop - place.start for place in places]),
            columns=np.concatenate(columns),
            ids=ids,
            type_ids=types,
            mask=mask,
        )


Group = tuple[PaddedBatch, ...]  # of the same pairs: one, or the queries' and the documents'


@dataclass(frozen=True)
class Padding:
    """How a model's sequences are padded.

    Args:
        sides: how many sequences a pair has: 1, or 2 where query and document are read apart.
        apart: put only sequences of the same length together, so that none is padded.
        pad, left: as for `PaddedBatch.of`.
        cells: of the rectangles of a group, at most, if they have more than one row.
        end_to_end: cut by the tokens alone: the model's layers do not work on what is padded.
    """

    sides: int = 1
    apart: bool = False
    pad: int = 0
    left: bool = False
    cells: int = CELLS
    end_to_end: bool = False


def padded_batches(batch: Batch, padding: Padding, numbers: np.ndarray | None = None) -> Iterator[Group]:
    """Cut a batch into padded batches of pairs of similar length (see NOTE [The cost of padding]).

    Args:
        numbers: which pairs; all by default.
    """
    for some in pair_numbers(batch, padding, numbers):
        yield padded_group(batch, padding, some)


def padded_group(batch: Batch, padding: Padding, numbers: np.ndarray) -> Group:
    """Return the rectangles of some pairs, one for each side."""
    sides = range(padding.sides)
    return tuple(
        PaddedBatch.of(batch, numbers * padding.sides + side, pad=padding.pad, left=padding.left) for side in sides
    )


def pair_numbers(batch: Batch, padding: Padding, numbers: np.ndarray | None = None) -> list[np.ndarray]:
    """Return the numbers of the pairs of each group, shortest first."""
    numbers = np.arange(len(batch.lengths) // padding.sides) if numbers is None else numbers
    every = np.array([_span(one) for one in batch.parts(batch.positions)]).reshape(-1, padding.sides)
    own = every[numbers]
    if not padding.apart:
        order = np.argsort(own.sum(axis=1), kind="stable")
        spans = own[order].sum(axis=1)
        if padding.end_to_end:
            parts = passes(zip(order.tolist(), spans.tolist()), lambda one: one[1], padding.cells)
            return [numbers[[place for place, _ in part]] for part in parts]
        return [numbers[order[start:end]] for start, end in cheapest_cuts(spans, cells=padding.cells)]
    found = []
    for lengths in np.unique(own, axis=0):
        same = numbers[(own == lengths).all(axis=1)]
        spans = np.full(len(same), lengths.sum())
        found += [same[start:end] for start, end in cheapest_cuts(spans, cells=padding.cells)]
    return found


def cheapest_cuts(spans: np.ndarray, *, cells: int = CELLS) -> list[tuple[int, int]]:
    """Return first and last + 1 row of each rectangle, by the least cost of all (see NOTE [The cost of padding]).

    Args:
        spans: how many columns each row takes, shortest first.
        cells: of a rectangle, at most, if it has more than one row.
    """
    least, starts = np.zeros(len(spans) + 1), np.zeros(len(spans) + 1, np.int64)  # of all rows before each one
    for end, width in enumerate(spans.tolist(), 1):
        rows = np.arange(1, min(end, max(cells // max(width, 1), 1)) + 1)
        costs = least[end - rows] + rows * width + CALL
        best = int(costs.argmin())
        least[end], starts[end] = costs[best], end - rows[best]
    cuts, end = [], len(spans)
    while end:
        cuts.append((int(starts[end]), end))
        end = cuts[-1][0]
    return cuts[::-1]


def _span(positions: np.ndarray) -> int:
    return int(positions.max(initial=0)) + 1


def by_token(batch: Batch, pieces: list[tuple[PaddedBatch, list[np.ndarray]]], layers: int) -> tuple[list, list]:
    """Return states as rows of the batch's tokens, and attentions by layer and sequence.

    Args:
        pieces: for each rectangle its states, (rows, columns, hidden), and its attentions, (rows, heads, columns,
            columns), which are the last `layers` ones.
    """
    states = rows_of(batch, [(part, places[:-layers]) for part, places in pieces])
    attentions = [[None] * len(batch.lengths) for _ in range(layers)]
    for part, places in pieces:
        for layer, place in zip(attentions, places[-layers:]):
            for row, number in enumerate(part.sequences):
                columns = part.columns[part.rows == row]
                layer[number] = place[row][:, columns][:, :, columns]
    return states, [tuple(layer) for layer in attentions]


def rows_of(batch: Batch, pieces: list[tuple[PaddedBatch, list[np.ndarray]]]) -> list[np.ndarray]:
    """Return arrays of rectangles, each (rows, columns, hidden), as rows of the batch's tokens, (tokens, hidden)."""
    found = [np.empty((len(batch.ids), place.shape[-1]), place.dtype) for place in pieces[0][1]]
    for part, places in pieces:
        for rows, place in zip(found, places):
            rows[part.tokens] = place[part.rows, part.columns]
    return found
