"""Pairs without some of their words, and the scores of many such pairs.

NOTE [Ways to leave words out]
`mask`: the words' tokens leave the attention, and all others keep their positions (see NOTE [Leaving tokens out]).
`drop`: the words are deleted from the text, which is read again: what follows moves up, and where a text was cut at the
model's limit, what was cut moves in, as it would for a person who deletes the words and asks for the score again. Of a
document whose best window gives the score all windows are read again, up to four, and the best of them counts; of one
with more windows only this window is read again. Where misspelt words of queries are read as others, the changed texts
are read so as well: a document that loses such a word as it is written is scored with the other one.
`[MASK]`: the words' tokens are replaced by the model's mask token: as many as there were.
The three ask different questions and give different values. A model was trained on texts like those that `drop` makes,
never on gaps in the positions; and a reranker has not seen [MASK] since its encoder was pretrained.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from backlight.errors import InputError
from backlight.explain.parts import Part
from backlight.models.pairs import DOCUMENT, QUERY, Pair, PairBatch
from backlight.models.scorer import Progress, Scorer, no_progress
from backlight.models.scoring import passes

FEW_WINDOWS = 4  # up to which all windows of a document are read again
TEXTS_AT_ONCE = 256  # read again by `drop` before they are scored


def masked(ranker: Scorer, pair: Pair, removals: Iterable[Sequence[Part]]) -> Iterator[Pair]:
    """Yield the pair without the tokens of the parts of each removal.

    Raises:
        InputError: nothing is left of a text that the model encodes separately.
    """
    for parts in removals:
        found = pair.kept(~_places(pair, parts))
        if 0 in found.lengths:
            raise InputError(
                f"{pair.name} must keep a token of each text, and its model adds none of its own: leave fewer words out"
            )
        yield found


def dropped(ranker: Scorer, pair: Pair, removals: Iterable[Sequence[Part]]) -> Iterator[Pair]:
    """Yield the pair read from its texts without the parts of each removal."""
    removals = iter(removals)
    while some := list(islice(removals, TEXTS_AT_ONCE)):
        texts = [tuple(_text_without(pair, side, parts) for side in (QUERY, DOCUMENT)) for parts in some]
        read = _best_windows(ranker, texts, pair.stride) if of_few_windows(pair) else ranker.read(texts)
        for parts, found in zip(some, read, strict=True):
            yield replace(found, name=pair.name) if parts else pair


def of_few_windows(pair: Pair) -> bool:
    """Return whether all windows of a pair's document are scored again (see NOTE [Ways to leave words out])."""
    return 1 < pair.best_of <= FEW_WINDOWS


def _best_windows(ranker: Scorer, texts: Sequence[tuple[str, str]], stride: int | None) -> list[Pair]:
    """Return the window of each query and document that has the highest score."""
    windows = [list(ranker.windows(query, document, stride)) for query, document in texts]
    scores = iter(ranker.scores_of([one for own in windows for one in own]).tolist())
    return [own[int(np.argmax([next(scores) for _ in own]))] for own in windows]


def passes_of_removal(remove: "Removal", pair: Pair) -> int:
    """Return the number of passes for the score of a pair after one removal."""
    return 1 + pair.best_of if remove is dropped and of_few_windows(pair) else 1


def replaced(ranker: Scorer, pair: Pair, removals: Iterable[Sequence[Part]]) -> Iterator[Pair]:
    """Yield the pair with the model's mask token in place of the tokens of the parts of each removal.

    Raises:
        InputError: the tokenizer has no mask token.
    """
    mask = ranker.tokenizer.id_of("mask")
    for parts in removals:
        gone = _places(pair, parts)
        pieces = tuple("[MASK]" if away else piece for piece, away in zip(pair.pieces, gone))
        yield replace(pair, ids=np.where(gone, mask, pair.ids), pieces=pieces)


Removal = Callable[[Scorer, Pair, Iterable[Sequence[Part]]], Iterator[Pair]]
WAYS: dict[str, Removal] = {"mask": masked, "drop": dropped, "[MASK]": replaced}


def removal_called(name: str) -> Removal:
    """Return the function of `WAYS` by name: `way(ranker, pair, removals)` yields one pair per removal.

    Raises:
        InputError: there is none.
    """
    if name not in WAYS:
        raise InputError(f"by must be one of {', '.join(WAYS)}, got {name}")
    return WAYS[name]


def score_groups(
    ranker: Scorer, groups: Iterable[Iterable[Pair]], progress: Progress = no_progress
) -> list[np.ndarray]:
    """Return the raw scores of the pairs of each group; pairs of several groups share a pass.

    Args:
        groups: an iterable, consumed lazily; each group has at least one pair.
        progress: called with the number of groups newly done.

    Returns:
        For each group its scores, (pairs of the group,), in float64.
    """
    numbered = ((number, pair) for number, group in enumerate(groups) for pair in group)
    found: list[list[float]] = []
    done = 0
    for some in passes(numbered, lambda entry: len(entry[1]), ranker.tokens_a_pass):
        scores = ranker.score(PairBatch.of([pair for _, pair in some]))
        for (number, _), score in zip(some, scores.tolist(), strict=True):
            if number == len(found):
                found.append([])
            found[number].append(score)
        progress(some[-1][0] - done)
        done = some[-1][0]
    progress(len(found) - done)
    return [np.array(scores, np.float64) for scores in found]


def text_without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a text without the characters of spans, and without white space that becomes doubled or trailing.

    >>> text_without("a red fox, a dog", [(2, 5)]), text_without("a red fox", [(6, 9)])
    ('a fox, a dog', 'a red')
    """
    kept, done = "", 0
    for start, end in [*sorted(spans), (len(text), len(text))]:
        part = text[done:start]
        kept += part.lstrip() if done and (not kept or kept[-1].isspace()) else part
        done = max(done, end)
    return kept.rstrip() if spans else kept


def _text_without(pair: Pair, side: int, parts: Sequence[Part]) -> str:
    """Return one of the texts, or the window of it that the model reads, without its parts."""
    is_window = side == DOCUMENT and pair.windowed and not of_few_windows(pair)
    first, last = pair.characters_read(side) if is_window else (0, len(pair.text(side)))
    spans = [(part.start - first, part.end - first) for part in parts if part.side == side]
    return text_without(pair.text(side)[first:last], spans)


def _places(pair: Pair, parts: Sequence[Part]) -> np.ndarray:
    """Return whether each token of a pair belongs to one of the parts, (tokens,)."""
    gone = np.zeros(len(pair), bool)
    gone[[token for part in parts for token in part.tokens]] = True
    return gone
