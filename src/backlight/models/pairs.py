"""Query and document as a model reads them together, and many such pairs laid end to end.

NOTE [Leaving tokens out]
`pair.kept(mask)` drops tokens from a pair, and the others keep their positions. No token looks at what is not there, so
this gives what a mask over the dropped tokens gives, at the cost of the tokens that are left.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from backlight.errors import InputError
from backlight.models.misspellings import Misspelling, Speller, as_read, places_as_written, written_in
from backlight.models.tokens import (
    PIECE,
    Batch,
    Encoding,
    Tokenizer,
    TokenRow,
    Tokens,
    Windows,
    checked_stride,
    count_of_windows,
    put_in,
)
from backlight.system.fork_safety import cached_property

QUERY, DOCUMENT, ADDED = 0, 1, 2  # whose a token is: of one of the texts, or added by the tokenizer or the prompt

INK = re.compile(r"\S")  # searched for in place: a part of a long text would be a copy


@dataclass(frozen=True, eq=False)
class Pair:
    """One query and one document, as a model reads them."""

    query: str
    document: str
    ids: np.ndarray  # (tokens,)
    type_ids: np.ndarray  # (tokens,), the segment of each token
    positions: np.ndarray  # (tokens,), counted from 0 in each sequence
    sides: np.ndarray  # (tokens,), QUERY, DOCUMENT or ADDED
    offsets: np.ndarray  # (tokens, 2), first and last + 1 character in the token's own text; 0, 0 for added tokens
    pieces: tuple[str, ...]  # the tokens as the vocabulary spells them
    lengths: tuple[int, ...]  # tokens of each sequence: one for a cross-encoder, two for a bi-encoder
    left_out: tuple[int, int] = (0, 0)  # tokens of query and document that the model does not read
    name: str = "the document"  # what the document is called in errors
    windowed: bool = False  # whether this is one of several windows of its document
    best_of: int = 0  # how many windows there are, where the best of them gives the score
    stride: int | None = None  # of these windows
    read_as: tuple[Misspelling, ...] = ()  # words of the query that are read as others, at the places of their own

    def __len__(self) -> int:
        return len(self.ids)

    def of_side(self, side: int) -> np.ndarray:
        """Return the places of the tokens of one text; QUERY, DOCUMENT or ADDED."""
        return np.flatnonzero(self.sides == side)

    def text(self, side: int) -> str:
        """Return the query or the document."""
        return self.document if side == DOCUMENT else self.query

    def characters_read(self, side: int) -> tuple[int, int]:
        """Return the first and the last + 1 character of a text that the model reads: all, if no token is left out."""
        read = self.offsets[self.sides == side]
        if not self.left_out[side] or not len(read):
            return (0, 0) if self.left_out[side] else (0, len(self.text(side)))
        start = int(read[:, 0].min())
        return (start if INK.search(self.text(side), 0, start) else 0), int(read[:, 1].max())

    def kept(self, keep: np.ndarray) -> "Pair":
        """Return the pair without some of its tokens (see NOTE [Leaving tokens out]).

        Args:
            keep: whether each token stays, (tokens,).
        """
        ends = np.cumsum(self.lengths)
        counted = np.concatenate([[0], np.cumsum(keep)])
        return replace(
            self,
            ids=self.ids[keep],
            type_ids=self.type_ids[keep],
            positions=self.positions[keep],
            sides=self.sides[keep],
            offsets=self.offsets[keep],
            pieces=tuple(piece for piece, stays in zip(self.pieces, keep) if stays),
            lengths=tuple((counted[ends] - counted[ends - self.lengths]).tolist()),
        )


@dataclass(frozen=True, eq=False)
class PairBatch(Batch):
    """Pairs laid end to end."""

    pairs: tuple[Pair, ...] = ()

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "PairBatch":
        """Lay pairs end to end, in this order. Raises InputError: there is no pair."""
        if not pairs:
            raise InputError("a batch must hold a pair at least, got none")
        return cls(
            ids=np.concatenate([pair.ids for pair in pairs]),
            type_ids=np.concatenate([pair.type_ids for pair in pairs]),
            positions=np.concatenate([pair.positions for pair in pairs]),
            lengths=tuple(length for pair in pairs for length in pair.lengths),
            pairs=tuple(pairs),
        )

    @property
    def names(self) -> list[str]:
        """What the document of each pair is called in errors."""
        return [pair.name for pair in self.pairs]

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Where the tokens of each pair lie in the row."""
        ends = np.cumsum([len(pair) for pair in self.pairs]).tolist()
        return tuple(slice(end - len(pair), end) for pair, end in zip(self.pairs, ends))

    def by_pair(self, values: np.ndarray) -> list[np.ndarray]:
        """Cut a row with one value (or vector) a token into the parts of each pair."""
        return [values[place] for place in self.places]


class PairReader:
    """Reads query and document as one sequence, as cross-encoders do: [CLS] query [SEP] document [SEP].

    A pair that is too long is cut as the `tokenizers` library's longest_first does: the longer text first.

    Args:
        tokenizer: the model's.
    """

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer, self.max_length = tokenizer, tokenizer.max_length
        self._room = self.max_length - tokenizer.added_to_pair
        if self._room < 2:
            raise InputError(f"max_length must leave room for two tokens of text, got {self.max_length}")

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
        """Return each pair of texts as the model reads it."""
        short = [pair for pair in pairs if max(map(len, pair)) <= PIECE]
        read = iter(self.tokenizer.encoded([text for pair in short for text in pair]))
        found = []
        for query, document in pairs:
            if max(len(query), len(document)) > PIECE:
                found.append(self._long(query, document))
                continue
            query_encoding, document_encoding = next(read), next(read)
            rooms = longest_first(len(query_encoding), len(document_encoding), self._room)
            left_out = len(query_encoding) - rooms[0], len(document_encoding) - rooms[1]
            query_encoding.truncate(rooms[0])
            document_encoding.truncate(rooms[1])
            found.append(self._joined(query, document, query_encoding, document_encoding, left_out))
        return found

    def _long(self, query: str, document: str) -> Pair:
        """Return a pair with a long text (see NOTE [Long texts] in models/tokens.py)."""
        rows = self.tokenizer.row(query), self.tokenizer.row(document)
        rooms = longest_first(len(rows[0]), len(rows[1]), self._room)
        parts = [self.tokenizer.part(row, room) for row, room in zip(rows, rooms)]
        return self._joined(query, document, *parts, (len(rows[0]) - rooms[0], len(rows[1]) - rooms[1]))

    def windows(self, query: str, document: str, stride: int | None = None) -> Sequence[Pair]:
        """Return a pair for each window of a long document; one, if all of it fits (see `Scorer.windows`)."""
        query_row, row = self.tokenizer.row(query), self.tokenizer.row(document)
        asked = query_room(len(query_row), len(row), self._room)
        room = self._room - asked
        if len(row) <= room or not asked:
            return self([(query, document)])
        stride = checked_stride(stride, room)
        part = self.tokenizer.part(query_row, asked)
        frame = self._joined(query, document, part, self.tokenizer.one(row), (len(query_row) - asked, 0))
        return Windows(
            lambda number: self._window(frame, row, number * stride, room), count_of_windows(len(row), room, stride)
        )

    def _window(self, frame: Pair, row: TokenRow, start: int, room: int) -> Pair:
        """Return a pair with tokens of a document, `room` at most from `start` on.

        Args:
            frame: the pair with one token of the document.
        """
        ids, offsets = row.ids[start : start + room], row.offsets[start : start + room]
        (place,) = frame.of_side(DOCUMENT).tolist()
        found = put_in(frame.ids, place, ids)
        return replace(
            frame,
            ids=found,
            type_ids=put_in(frame.type_ids, place, np.full(len(ids), frame.type_ids[place])),
            positions=np.arange(len(found)),
            sides=put_in(frame.sides, place, np.full(len(ids), DOCUMENT)),
            offsets=put_in(frame.offsets, place, offsets),
            pieces=frame.pieces[:place] + self.tokenizer.spelled(ids) + frame.pieces[place + 1 :],
            lengths=(len(found),),
            left_out=(frame.left_out[QUERY], len(row) - len(ids)),
        )

    def _joined(
        self,
        query: str,
        document: str,
        query_encoding: Encoding,
        document_encoding: Encoding,
        left_out: tuple[int, int],
    ) -> Pair:
        """Let the tokenizer put its special tokens around two encodings."""
        encoding = self.tokenizer.joined(query_encoding, document_encoding)
        sides = np.full(len(encoding), ADDED, np.int8)
        own = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)  # a template that joins loses sequence_ids
        sides[own[: len(query_encoding)]], sides[own[len(query_encoding) :]] = QUERY, DOCUMENT
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        offsets[sides == ADDED] = 0
        return Pair(
            query=query,
            document=document,
            ids=np.array(encoding.ids, np.int64),
            type_ids=self.tokenizer.segments_of(encoding),
            positions=np.arange(len(encoding.ids)),
            sides=sides,
            offsets=offsets,
            pieces=tuple(encoding.tokens),
            lengths=(len(encoding.ids),),
            left_out=left_out,
        )


class SpellingReader(PairReader):
    """Reads pairs as `PairReader` does, and misspelt words of the query as others (see NOTE [Misspellings])."""

    def __init__(self, tokenizer: Tokenizer):
        super().__init__(tokenizer)
        self._speller = Speller(tokenizer)

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
        """Return each pair of texts as the model reads it."""
        found = {query: self._speller.misspellings(query) for query in {query for query, _ in pairs}}
        others = [_where_not_written(found[query], document) for query, document in pairs]
        read = super().__call__([(as_read(query, some), text) for (query, text), some in zip(pairs, others)])
        return [_as_written(pair, query, some) for pair, (query, _), some in zip(read, pairs, others)]

    def windows(self, query: str, document: str, stride: int | None = None) -> Sequence[Pair]:
        """Return a pair for each window of a long document, the query read alike in all; one, if all of it fits."""
        some = _where_not_written(self._speller.misspellings(query), document)
        windows = super().windows(as_read(query, some), document, stride)
        return Windows(lambda number: _as_written(windows[number], query, some), len(windows)) if some else windows


def reads_misspellings(ranker: object) -> bool:
    """Return whether a scorer reads misspelt words of a query as others."""
    return isinstance(getattr(ranker, "reader", None), SpellingReader)


def _where_not_written(misspellings: Sequence[Misspelling], document: str) -> tuple[Misspelling, ...]:
    """Return those of the misspellings that a document does not have as well; none, if it is empty."""
    if not misspellings or not INK.search(document):
        return ()
    return tuple(one for one in misspellings if not written_in(document, one.text))


def _as_written(pair: Pair, query: str, misspellings: tuple[Misspelling, ...]) -> Pair:
    """Return a pair with the query as it is written, of which some words were read as others."""
    if not misspellings:
        return pair
    offsets, own = pair.offsets.copy(), pair.of_side(QUERY)
    offsets[own] = np.array(places_as_written(offsets[own].tolist(), misspellings), np.int64).reshape(-1, 2)
    return replace(pair, query=query, offsets=offsets, read_as=misspellings)


def longest_first(query: int, document: int, room: int) -> tuple[int, int]:
    """Return how many tokens of query and document are read: the longer gives way first, then both alike.

    >>> longest_first(10, 600, 509), longest_first(400, 300, 509)
    ((10, 499), (255, 254))
    """
    shorter, longer = sorted((query, document))
    if query + document > room:
        shorter = min(shorter, room // 2)
        longer = room - shorter
    return (shorter, longer) if query <= document else (longer, shorter)


def query_room(query: int, document: int, room: int) -> int:
    """Return how many tokens of a query are read beside windows of its document: all, or half of the room at most.

    >>> query_room(10, 600, 509), query_room(400, 600, 509), query_room(400, 100, 509)
    (10, 254, 400)
    """
    return min(query, max(room // 2, room - document))


class SeparateReader:
    """Reads query and document as two sequences, as bi-encoders do.

    Args:
        tokenizer: the model's.
        query_tokenizer: another one for queries, which have a prompt or a length of their own.
    """

    def __init__(self, tokenizer: Tokenizer, query_tokenizer: Tokenizer | None = None):
        self.tokenizer, self.max_length = tokenizer, tokenizer.max_length
        self._query_tokenizer = query_tokenizer or tokenizer

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
        """Return each pair of texts as the model reads it."""
        if self._query_tokenizer is self.tokenizer:
            read = self.tokenizer.all_of([text for pair in pairs for text in pair])
            return [side_by_side(query, document) for query, document in zip(read[0::2], read[1::2])]
        queries = self._query_tokenizer.all_of([query for query, _ in pairs])
        documents = self.tokenizer.all_of([document for _, document in pairs])
        return [side_by_side(query, document) for query, document in zip(queries, documents)]

    def windows(self, query: str, document: str, stride: int | None = None) -> Sequence[Pair]:
        """Return a pair for each window of a long document; one, if all of it fits (see `Scorer.windows`)."""
        tokens, windows = self._query_tokenizer(query), self.tokenizer.windows(document, stride)
        return Windows(lambda number: side_by_side(tokens, windows[number]), len(windows))


def side_by_side(query: Tokens, document: Tokens) -> Pair:
    """Return query and document, read apart, as a pair of two sequences."""
    sides = [np.where(text.special, ADDED, side) for side, text in ((QUERY, query), (DOCUMENT, document))]
    return Pair(
        query=query.text,
        document=document.text,
        ids=np.concatenate([query.ids, document.ids]),
        type_ids=np.concatenate([query.type_ids, document.type_ids]),
        positions=np.concatenate([np.arange(len(query)), np.arange(len(document))]),
        sides=np.concatenate(sides).astype(np.int8),
        offsets=np.concatenate([query.offsets, document.offsets]),
        pieces=query.pieces + document.pieces,
        lengths=(len(query), len(document)),
        left_out=(query.left_out, document.left_out),
    )
