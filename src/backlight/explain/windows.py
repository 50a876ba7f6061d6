"""How documents are read and scored that are longer than the model reads.

NOTE [Windows]
A document that is longer than the model reads is read in windows that overlap. `best`, the default, ranks it by its
best window and explains that one. `mean` ranks it by the mean of all; the explanation of a mean is the mean of the
explanations, and a word that several windows read gets a share of each. With None it is cut at its end. Of more than
`FEW_WINDOWS` windows only the best is read again without a word, and `Window.effects_of` says so. Windows are made as
they are scored (see NOTE [Long texts] in models/tokens.py), and of those that do not count a score is kept.

NOTE [Preselected windows]
A text of 10 MB has some 8,000 windows, which take a cross-encoder most of an hour. Of a document with more windows than
`max_windows` only so many are scored. For `best` these are the first and those that BM25 ranks highest for the query;
where fewer than that share a word with it, the others are spread evenly over the rest of the document. For `mean` all
are spread evenly, since a mean over windows that were chosen by the query would be no estimate of the mean over all.
Whatever holds a score says of it how many windows were scored of how many, and how they were chosen (`Window.read`,
`Window.chosen_by`). To choose them the document is gone through once more, a window at a time (`bm25_in_one_pass`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Window
from backlight.explain.checks import check_readable
from backlight.explain.methods.ablation import of_few_windows
from backlight.models.pairs import DOCUMENT, Pair
from backlight.models.retrieval.bm25 import BM25, bm25_in_one_pass
from backlight.models.scorer import Progress, Scorer, Texts, no_progress
from backlight.models.tokens import PIECE, Windows, checked_stride

BEST, MEAN = WINDOWS = ("best", "mean")
MAX_WINDOWS = 64  # of a document that are scored by default
BY_WORDS, EVENLY = BM25.name, "evenly spread"  # how windows were chosen, in `Window.chosen_by`
STEPS = 1024  # of a document in windows, for progress: a power of two, so that parts add up to 1 exactly


@dataclass(frozen=True)
class WindowOptions:
    """How documents are read that are longer than the model reads.

    Args:
        windows: "best" or "mean" (see NOTE [Windows]); None: they are cut at their end.
        stride: how many tokens each window begins after the one before; half a window by default.
        max_windows: how many windows of a document are scored at most; 0 for all (see NOTE [Preselected windows]).

    Raises:
        InputError: there is no such way, or `max_windows` is 1 or negative.
    """

    windows: str | None = BEST
    stride: int | None = None
    max_windows: int = MAX_WINDOWS

    def __post_init__(self):
        if self.windows not in (None, *WINDOWS):
            raise InputError(f"windows must be one of {', '.join(WINDOWS)}, or None, got {self.windows}")
        if self.max_windows < 0 or self.max_windows == 1:
            raise InputError(
                f"max_windows must be 2 or more, or 0 for all windows, got {self.max_windows}: windows=None reads the "
                "first one alone"
            )


class PreselectedWindows(Windows[Pair]):
    """The windows of a document that are scored, of more (see NOTE [Preselected windows]).

    Args:
        windows: all of them.
        numbers: which are scored, in their order, from 0.
        chosen_by: how they were chosen.
        stride: of the windows.
    """

    def __init__(self, windows: Sequence[Pair], numbers: Sequence[int], chosen_by: str, stride: int | None):
        super().__init__(lambda place: windows[numbers[place]], len(numbers))
        self.windows, self.numbers, self.chosen_by, self.stride = windows, tuple(numbers), chosen_by, stride

    @property
    def tokens_read(self) -> int:
        """How many tokens of the document stand in one of the windows that are scored."""
        first = self.windows[0]
        room = len(first.of_side(DOCUMENT))
        starts = np.array(self.numbers) * checked_stride(self.stride, room)
        total = room + first.left_out[DOCUMENT]
        return int(np.minimum(room, np.diff(starts, append=total)).sum())


def preselected(windows: Sequence[Pair], reading: WindowOptions) -> Sequence[Pair]:
    """Return the windows of a document that are scored: all, or as many as may be."""
    most, count = reading.max_windows, len(windows)
    if not most or count <= most:
        return windows
    scores = np.zeros(count)
    if reading.windows != MEAN:
        scores = bm25_in_one_pass(windows[0].query, map(_text_read, windows))
    if not scores.any():
        return PreselectedWindows(windows, spread_evenly(count, most), EVENLY, reading.stride)
    order = [number for number in np.argsort(-scores, kind="stable").tolist() if number and scores[number] > 0]
    chosen = {0, *order[: most - 1]}
    rest = [number for number in range(count) if number not in chosen]
    chosen.update(rest[place] for place in spread_evenly(len(rest), most - len(chosen)))
    return PreselectedWindows(windows, sorted(chosen), BY_WORDS, reading.stride)


def spread_evenly(count: int, chosen: int) -> list[int]:
    """Return some of `count` places, the first and the last among them.

    >>> spread_evenly(9, 3), spread_evenly(9, 1), spread_evenly(9, 0)
    ([0, 4, 8], [0], [])
    """
    return np.linspace(0, count - 1, chosen).round().astype(int).tolist()


def _text_read(window: Pair) -> str:
    first, last = window.characters_read(DOCUMENT)
    return window.document[first:last]


@dataclass(frozen=True, eq=False)
class ScoredDocument:
    """A document as it was scored: its one pair, or a pair for each of its windows that were scored."""

    pairs: Sequence[Pair]
    scores: np.ndarray  # (pairs,)
    windows: str | None  # None, or one of WINDOWS

    @property
    def best(self) -> int:
        """The window of the highest score."""
        return int(self.scores.argmax())

    @property
    def best_pair(self) -> Pair:
        """The pair of the window of the highest score."""
        return self.pairs[self.best]

    @property
    def score(self) -> float:
        """The raw score that the document is ranked by."""
        return float(self.scores.mean() if self.windows == MEAN else self.scores[self.best])

    @property
    def explained(self) -> list[int]:
        """Which of the pairs the score is made of."""
        return list(range(len(self.pairs))) if self.windows == MEAN else [self.best]

    @property
    def tokens_read(self) -> int | None:
        """How many tokens of the document a mean of preselected windows knows; None where it knows all of them."""
        return self.pairs.tokens_read if isinstance(self.pairs, PreselectedWindows) else None

    def window(self) -> Window | None:
        """Return which window the score belongs to; None where the document was not read in windows."""
        if self.windows is None or len(self.pairs) == 1:
            return None
        some = self.pairs if isinstance(self.pairs, PreselectedWindows) else None
        of = len(self.pairs if some is None else some.windows)
        scored = len(self.pairs), None if some is None else some.chosen_by
        if self.windows == MEAN:
            return Window(MEAN, None, of, 0, len(self.pairs[0].document), *scored)
        number = self.best if some is None else some.numbers[self.best]
        effects_of = "document" if of_few_windows(self.best_pair) else "window"
        return Window(BEST, number + 1, of, *self.best_pair.characters_read(DOCUMENT), *scored, effects_of)


def read_in_windows(ranker: Scorer, pairs: Sequence[Texts], reading: WindowOptions) -> list[Sequence[Pair]]:
    """Return what a model reads of pairs of texts: one `Pair` each, or one for each window that is to be scored."""
    if reading.windows is None:
        return [[pair] for pair in ranker.read(pairs)]
    short = iter(ranker.read([pair for pair in pairs if len(pair[1]) <= PIECE]))
    found: list[Sequence[Pair]] = []
    for pair in pairs:
        whole = next(short) if len(pair[1]) <= PIECE else None
        is_long = whole is None or whole.left_out[DOCUMENT]
        found.append(preselected(ranker.windows(*pair, reading.stride), reading) if is_long else [whole])
    return found


def read_named(
    ranker: Scorer, pairs: Sequence[Texts], names: Sequence[str], reading: WindowOptions
) -> list[Sequence[Pair]]:
    """Return what a model reads of pairs of texts as `read_in_windows` does, each with its document's name.

    Raises:
        InputError: a text holds nothing that the model reads.
    """
    read = read_in_windows(ranker, pairs, reading)
    found = [named(some, name, reading) for some, name in zip(read, names, strict=True)]
    for some in found:
        check_readable(some[0])
    return found


def named(pairs: Sequence[Pair], name: str, reading: WindowOptions) -> Sequence[Pair]:
    """Return the pairs of one document with its name, and what is known of its windows."""
    if len(pairs) == 1:
        return [replace(pairs[0], name=name)]
    some = pairs if isinstance(pairs, PreselectedWindows) else None
    all_windows = pairs if some is None else some.windows
    best_of = len(pairs) if reading.windows == BEST and some is None else 0
    of = {"name": name, "windowed": True, "best_of": best_of, "stride": reading.stride}
    found = Windows(lambda number: replace(all_windows[number], **of), len(all_windows))
    return found if some is None else PreselectedWindows(found, some.numbers, some.chosen_by, reading.stride)


@dataclass(frozen=True, eq=False)
class BestPair:
    """What gives a query and a document their score, where one pair is explained: all of both, or the best window."""

    pair: Pair
    window: Window | None  # None where the document was not read in windows
    passes: int  # how many pairs were scored to find it


def read_best(ranker: Scorer, pairs: Sequence[Texts], names: Sequence[str], reading: WindowOptions) -> list[BestPair]:
    """Return of each pair of texts the pair that the model reads, of a long document that of its best window.

    Raises:
        InputError: a text holds nothing that the model reads, or windows are to be scored by their mean.
    """
    if reading.windows == MEAN:
        raise InputError(f"windows must be {BEST} or None, got {MEAN}: what is explained is one window, or the start")
    found = []
    for some in read_named(ranker, pairs, names, reading):
        if len(some) == 1:
            found.append(BestPair(some[0], None, 0))
        else:
            (scored,) = score_documents(ranker, [some], reading, no_progress)
            found.append(BestPair(scored.best_pair, scored.window(), len(some)))
    return found


def score_documents(
    ranker: Scorer, read: Sequence[Sequence[Pair]], reading: WindowOptions, progress: Progress
) -> list[ScoredDocument]:
    """Score the windows of all documents, one after another.

    Args:
        read: as `read_named` gives them.
        progress: called with the number of documents newly done, of a document in windows with a part of 1.
    """
    ends = np.cumsum([len(pairs) for pairs in read])
    passed, done = 0, 0.0

    def advance(windows_done: int) -> None:
        nonlocal passed, done
        passed += windows_done
        ready = int(np.searchsorted(ends, passed, side="right"))
        begun = passed - (ends[ready - 1] if ready else 0)  # windows of the next document
        part = begun * STEPS // len(read[ready]) / STEPS if begun else 0
        progress(ready + part - done)
        done = ready + part

    return cut_by_document(read, ranker.scores_of(chain.from_iterable(read), advance), reading)


def cut_by_document(read: Sequence[Sequence[Pair]], scores: np.ndarray, reading: WindowOptions) -> list[ScoredDocument]:
    """Return the scores of all windows, laid end to end, as documents'."""
    parts = np.split(scores, np.cumsum([len(pairs) for pairs in read])[:-1])
    how = reading.windows
    return [ScoredDocument(pairs, part, how if len(pairs) > 1 else None) for pairs, part in zip(read, parts)]
