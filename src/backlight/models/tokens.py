"""From text to token ids: the tokenizer of a model folder, and texts of any lengths laid end to end.

NOTE [Laid end to end]
Texts of different lengths are not padded into a rectangle. Their tokens follow each other in one row, and `starts` says
where each text begins. What a layer does to each token alone runs on the row; attention runs text by text.

NOTE [Long texts]
The library keeps some 150 bytes a token, 400 MB for a text of 10 MB. A text of more than `PIECE` characters is cut into
tokens a piece at a time, and what is kept of a token is its id and its place, 12 bytes. Pieces end before a single
space between two words, where no tokenizer joins what stands before and after it, so the tokens are those of the whole
text; where there is no such space in half a piece (some scripts have none), a piece ends at the last white space or,
without any, anywhere. Windows are made when they are read, so that a pass holds its own and no others.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, Protocol, TypeVar, overload

import numpy as np

from backlight.errors import InputError, install_hint
from backlight.formats.strict_json import Bounds
from backlight.models.checkpoint import checked_settings, read_settings
from backlight.system.fork_safety import cached_property

PIECE = 1 << 16  # characters that are cut into tokens at once (see NOTE [Long texts])
Item = TypeVar("Item")


class Encoding(Protocol):
    """What the tokenizers library makes of a text."""

    ids: list[int]
    type_ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    special_tokens_mask: list[int]
    overflowing: list["Encoding"]

    def __len__(self) -> int: ...

    def truncate(self, max_length: int, stride: int = 0) -> None:
        """Cut the encoding; the windows that follow become `overflowing`."""


class LibraryTokenizer(Protocol):
    """What of a tokenizer of the tokenizers library is used."""

    def to_str(self) -> str: ...

    def num_special_tokens_to_add(self, is_pair: bool) -> int: ...

    def encode_batch(self, texts: list[str], *, add_special_tokens: bool) -> list[Encoding]: ...

    def post_process(self, encoding: Encoding, pair: Encoding | None, add_special_tokens: bool) -> Encoding: ...

    def token_to_id(self, token: str) -> int | None: ...

    def id_to_token(self, id: int) -> str: ...


@dataclass(frozen=True, eq=False)
class Tokens:
    """One text as a model reads it."""

    text: str
    ids: np.ndarray  # (tokens,)
    type_ids: np.ndarray  # (tokens,), the segment of each token
    offsets: np.ndarray  # (tokens, 2), first and last + 1 character in `text`; 0, 0 for special tokens
    special: np.ndarray  # (tokens,), whether the tokenizer added the token
    pieces: tuple[str, ...]  # the tokens as the vocabulary spells them
    left_out: int  # tokens of the text beyond what the model reads

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def characters_read(self) -> int:
        """How many characters of the text come before the first token left out."""
        return int(self.offsets[:, 1].max(initial=0)) if self.left_out else len(self.text)


@dataclass(frozen=True, eq=False)
class TokenRow:
    """The tokens of a text of any length, without special tokens (see NOTE [Long texts])."""

    text: str
    ids: np.ndarray  # (tokens,), int32
    offsets: np.ndarray  # (tokens, 2), int32: first and last + 1 character in `text`

    def __len__(self) -> int:
        return len(self.ids)


class Windows(Sequence[Item], Generic[Item]):
    """Windows of a text, each made anew when it is read: a long text has thousands (see NOTE [Long texts]).

    Args:
        make: returns a window, given its number from 0.
        count: how many there are.
    """

    def __init__(self, make: Callable[[int], Item], count: int):
        self._make, self._count = make, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Item: ...

    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...

    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        if isinstance(place, slice):
            return [self._make(number) for number in range(*place.indices(self._count))]
        if not -self._count <= place < self._count:
            raise IndexError(f"there are {self._count} windows, got number {place}")
        return self._make(place % self._count)


@dataclass(frozen=True)
class TokenizerSettings:
    """The settings of tokenizer_config.json."""

    model_max_length: Annotated[float, Bounds(1, words="a number, 1 or more")] | None = None
    model_input_names: tuple[str, ...] = ()
    padding_side: str = "right"
    pad_token: str | dict | None = None
    mask_token: str | dict | None = None


def tokenizer_settings(folder: Path) -> TokenizerSettings:
    """Return what a folder's tokenizer_config.json says.

    Raises:
        InputError: it is no JSON object, or a value in it is of another kind.
    """
    file = folder / "tokenizer_config.json"
    return checked_settings(TokenizerSettings, read_settings(file), file)


class Tokenizer:
    """The tokenizer of a model folder (`tokenizer.json`), which cuts a text at `max_length` tokens.

    Args:
        folder: the model folder.
        max_length: how many tokens the model reads, the special ones among them.

    Raises:
        InputError: the folder has no tokenizer that can be read, or the `tokenizers` library is missing.
    """

    def __init__(self, folder: Path, max_length: int, *, lower_case: bool = False):
        library = _read_tokenizer(Path(folder) / "tokenizer.json", lower_case)
        self._set(library, tokenizer_settings(Path(folder)), max_length, f"{folder}: ")

    @classmethod
    def of(cls, library: LibraryTokenizer, settings: TokenizerSettings, max_length: int) -> "Tokenizer":
        """Return a tokenizer over a copy of one of the library's that is in memory, which stays as it is.

        Args:
            settings: as tokenizer_config.json would have them.
        """
        found = cls.__new__(cls)
        found._set(_unlimited(type(library).from_str(library.to_str())), settings, max_length, "")
        return found

    def _set(self, library: LibraryTokenizer, settings: TokenizerSettings, max_length: int, where: str) -> None:
        self.max_length, self._settings, self._tokenizer = max_length, settings, library
        self._room = max_length - library.num_special_tokens_to_add(False)
        if self._room < 1:
            raise InputError(f"{where}max_length must leave room for one token of text, got {max_length}")

    @property
    def added_to_pair(self) -> int:
        """How many special tokens a pair of texts gets."""
        return self._tokenizer.num_special_tokens_to_add(True)

    def id_of(self, use: str) -> int:
        """Return the id of the token that pads texts (`pad`) or stands for a hidden word (`mask`).

        Raises:
            InputError: the tokenizer has none.
        """
        said = self._settings.pad_token if use == "pad" else self._settings.mask_token
        said = said.get("content") if isinstance(said, dict) else said
        spelt = [piece for piece in (said, f"[{use.upper()}]", f"<{use}>") if piece and isinstance(piece, str)]
        found = [self._tokenizer.token_to_id(piece) for piece in spelt]
        known = [number for number in found if number is not None]
        if not known:
            raise InputError(f"the tokenizer must have a {use} token, and it knows no {spelt[0]}")
        return known[0]

    def knows(self, piece: str) -> bool:
        """Return whether the vocabulary has a token of this spelling."""
        return self.number_of(piece) is not None

    def number_of(self, piece: str) -> int | None:
        """Return the number of the token of this spelling in the vocabulary; None where there is none."""
        return self._tokenizer.token_to_id(piece)

    def __call__(self, text: str) -> Tokens:
        """Return the tokens of one text."""
        return self.all_of([text])[0]

    def all_of(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text."""
        short = iter(self.encoded([text for text in texts if len(text) <= PIECE]))
        return [self._cut(text, next(short)) if len(text) <= PIECE else self._first(text) for text in texts]

    def windows(self, text: str, stride: int | None = None) -> Sequence[Tokens]:
        """Return the tokens of each window of a text; one, if all of it fits.

        Args:
            stride: how many tokens each window begins after the one before; half a window by default.

        Raises:
            InputError: the stride is not between 1 and a window.
        """
        row = self.row(text)
        stride = checked_stride(stride, self._room)
        if len(row) <= self._room:
            return [self(text)]
        around = self.around(row)
        return Windows(
            lambda number: self._window(row, around, number * stride), count_of_windows(len(row), self._room, stride)
        )

    def row(self, text: str) -> TokenRow:
        """Return the tokens of a text of any length (see NOTE [Long texts])."""
        ids, offsets = [], []
        for start, end in pieces_of(text):
            (encoding,) = self.encoded([text[start:end]])
            ids.append(np.array(encoding.ids, np.int32))
            offsets.append(np.array(encoding.offsets, np.int32).reshape(-1, 2) + start)
        return TokenRow(text, np.concatenate(ids), np.concatenate(offsets))

    def part(self, row: TokenRow, count: int) -> Encoding:
        """Return the library's encoding of the first tokens of a row, for what it puts around them."""
        end = int(row.offsets[count - 1, 1]) if count else 0
        if len(row.text) - end > PIECE:
            end = _end_of_piece(row.text, end, end + PIECE // 2)  # so that the last word is whole
        else:
            end = len(row.text)
        (encoding,) = self.encoded([row.text[:end]])
        encoding.truncate(count)
        return encoding

    def one(self, row: TokenRow) -> Encoding:
        """Return the library's encoding of one token of a row that has some."""
        start, end = row.offsets[np.flatnonzero(row.offsets[:, 1] > row.offsets[:, 0])[0]].tolist()
        (encoding,) = self.encoded([row.text[start:end]])
        encoding.truncate(1)
        return encoding

    def spelled(self, ids: np.ndarray) -> tuple[str, ...]:
        """Return tokens as the vocabulary spells them."""
        return tuple(map(self._tokenizer.id_to_token, ids.tolist()))

    def around(self, row: TokenRow) -> Tokens:
        """Return one token of a text with the special ones around it, between which any others may stand."""
        return self._finished(row.text, self.one(row), 0)

    def _first(self, text: str) -> Tokens:
        """Return as much of a long text as the model reads."""
        row = self.row(text)
        return self._window(row, self.around(row), 0) if len(row) else self._cut(text, *self.encoded([""]))

    def _window(self, row: TokenRow, around: Tokens, start: int) -> Tokens:
        """Return the tokens of a row from a place on, as many as the model reads, with the special ones around them."""
        ids, offsets = row.ids[start : start + self._room], row.offsets[start : start + self._room]
        place = int(np.flatnonzero(~around.special)[0])
        return Tokens(
            text=row.text,
            ids=put_in(around.ids, place, ids),
            type_ids=put_in(around.type_ids, place, np.full(len(ids), around.type_ids[place])),
            offsets=put_in(around.offsets, place, offsets),
            special=put_in(around.special, place, np.zeros(len(ids), bool)),
            pieces=around.pieces[:place] + self.spelled(ids) + around.pieces[place + 1 :],
            left_out=len(row) - len(ids),
        )

    def encoded(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the library's encoding of each text, without special tokens."""
        with _in_library("the tokenizer cannot cut this text"):
            return self._tokenizer.encode_batch(list(texts), add_special_tokens=False)

    def joined(self, query: Encoding, document: Encoding) -> Encoding:
        """Return two encodings as one, with the special tokens that belong around them."""
        return self._tokenizer.post_process(query, document, True)

    def segments_of(self, encoding: Encoding) -> np.ndarray:
        """Return the segment of each token: 0 for all where the tokenizer's files keep segments from the model."""
        input_names = self._settings.model_input_names or ("token_type_ids",)
        return np.array(encoding.type_ids, np.int64) * ("token_type_ids" in input_names)

    def _cut(self, text: str, encoding: Encoding) -> Tokens:
        left_out = max(0, len(encoding) - self._room)
        encoding.truncate(self._room)
        return self._finished(text, encoding, left_out)

    def _finished(self, text: str, encoding: Encoding, left_out: int) -> Tokens:
        encoding = self._tokenizer.post_process(encoding, None, True)
        return Tokens(
            text=text,
            ids=np.array(encoding.ids, np.int64),
            type_ids=self.segments_of(encoding),
            offsets=np.array(encoding.offsets, np.int64).reshape(-1, 2),
            special=np.array(encoding.special_tokens_mask, bool),
            pieces=tuple(encoding.tokens),
            left_out=left_out,
        )


def pieces_of(text: str, size: int = PIECE) -> Iterator[tuple[int, int]]:
    """Give first and last + 1 character of each piece of a text, one at least (see NOTE [Long texts])."""
    start = 0
    while len(text) - start > size:
        end = _end_of_piece(text, start + size // 2, start + size)
        yield start, end
        start = end
    yield start, len(text)


def _end_of_piece(text: str, first: int, last: int) -> int:
    """Return the last place between two at which a text may be cut."""
    place = text.rfind(" ", first, last)
    while place > 0:
        if text[place - 1].isalnum() and text[place + 1].isalnum():
            return place
        place = text.rfind(" ", first, place)
    return next((place for place in range(last - 1, first, -1) if text[place].isspace()), last)


def put_in(row: np.ndarray, place: int, values: np.ndarray) -> np.ndarray:
    """Return a row with values in place of the one at `place`."""
    return np.concatenate([row[:place], values, row[place + 1 :]]).astype(row.dtype)


def count_of_windows(tokens: int, room: int, stride: int) -> int:
    """Return how many windows of `room` tokens cover a text, each beginning `stride` tokens after the one before."""
    return 1 + max(0, -(-(tokens - room) // stride))


def checked_stride(stride: int | None, room: int) -> int:
    """Return how many tokens each window begins after the one before: half a window by default."""
    stride = max((room + 1) // 2, 1) if stride is None else stride
    if not 1 <= stride <= max(room, 1):
        raise InputError(f"stride must be from 1 to the {room} tokens of a window, got {stride}")
    return stride


@contextmanager
def _in_library(what: str) -> Iterator[None]:
    """Turn the library's errors into one: it raises bare Exception, and where Rust panics a BaseException."""
    try:
        yield
    except BaseException as problem:
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        raise InputError(f"{what}: {problem}") from problem


def _read_tokenizer(file: Path, lower_case: bool):
    """Return the library's tokenizer without the padding and truncation that the file may ask for."""
    try:
        import tokenizers
    except ImportError as problem:
        raise InputError(f"reading text needs the tokenizers library: {install_hint('explain')}") from problem
    if not file.is_file():
        raise InputError(
            f"{file.parent} has no tokenizer.json: save the model with its fast tokenizer, "
            "tokenizer.save_pretrained(folder)"
        )
    with _in_library(f"{file} is not a tokenizer that the tokenizers library can read"):
        found = tokenizers.Tokenizer.from_file(str(file))
    if not found.get_vocab_size():
        raise InputError(f"{file} must have a vocabulary, and has none: no text has a token in it")
    _unlimited(found)
    if lower_case:
        lower = tokenizers.normalizers.Lowercase()
        found.normalizer = tokenizers.normalizers.Sequence(
            [lower] + [found.normalizer] * (found.normalizer is not None)
        )
    return found


def _unlimited(library: LibraryTokenizer) -> LibraryTokenizer:
    """Turn off the library's padding and truncation; return the same tokenizer."""
    library.no_padding()
    library.no_truncation()
    return library


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts laid end to end (see NOTE [Laid end to end])."""

    ids: np.ndarray  # (tokens of all texts,)
    type_ids: np.ndarray
    positions: np.ndarray  # counted from 0 in each text
    lengths: tuple[int, ...]  # tokens of each text

    @classmethod
    def of(cls, texts: Sequence[Tokens]) -> "Batch":
        """Lay texts end to end, in this order. Raises InputError: there is no text."""
        if not texts:
            raise InputError("a batch must hold a text at least, got none")
        lengths = tuple(len(text) for text in texts)
        return cls(
            ids=np.concatenate([text.ids for text in texts]),
            type_ids=np.concatenate([text.type_ids for text in texts]),
            positions=np.concatenate([np.arange(length) for length in lengths]),
            lengths=lengths,
        )

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each text begins in the row of tokens."""
        return tuple(np.cumsum((0, *self.lengths[:-1])).tolist())

    def parts(self, values: np.ndarray) -> list[np.ndarray]:
        """Cut a row with one value (or vector) a token into the parts of each text."""
        return [values[start : start + length] for start, length in zip(self.starts, self.lengths)]
