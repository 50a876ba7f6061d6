"""Attention between query and document: which words look at which, by layer and head.

Attention says where a layer looks, not what the score owes to it: Jain, Wallace, Attention is not Explanation, 2019,
arXiv:1902.10186.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backlight.explain.attribution import words_of
from backlight.explain.words import WordTokens
from backlight.models.pairs import DOCUMENT, QUERY, Pair, PairBatch
from backlight.models.scorer import Scorer

LOOKS = 12_000  # kept for a pair, all layers and heads and both ways together
MOST_A_WORD = 12


@dataclass(frozen=True)
class Look:
    """How much a word of one text attends to a word of the other."""

    query: int  # which word of the query
    document: int  # which word of the document
    share: float  # of all that the looking word looks at


@dataclass(frozen=True)
class AttentionLinks:
    """The strongest links between the words of a query and of a document.

    Args:
        model: the model's name.
        query, document: start and end character of each word.
        from_query: for each layer, for the mean of its heads and then for each head, the attention of the query's words
            to the document's, the strongest first.
        from_document: the attention of the document's words to the query's, likewise.
        kept: the number of links kept for each word of the query.
    """

    model: str
    query: tuple[tuple[int, int], ...]
    document: tuple[tuple[int, int], ...]
    from_query: tuple[tuple[tuple[Look, ...], ...], ...]
    from_document: tuple[tuple[tuple[Look, ...], ...], ...]
    kept: int


def attention_links(ranker: Scorer, pair: Pair) -> AttentionLinks | None:
    """Return the attention between the words of query and document; None for a model that encodes them separately.

    For a word of several tokens, the attention that it pays is averaged, and the attention that it gets is summed.
    """
    if len(pair.lengths) != 1:
        return None
    query_words, document_words = words_of(pair, QUERY), words_of(pair, DOCUMENT)
    inside = ranker.inside(PairBatch.of([pair]))
    layers = [layer[0][: inside.joint_heads] for layer in inside.attentions]  # each (heads, tokens, tokens)
    heads = layers[0].shape[0] + 1
    kept = int(np.clip(LOOKS // (2 * heads * len(layers) * len(query_words)), 2, MOST_A_WORD))
    from_query, from_document = [], []
    for layer in layers:
        with_mean = np.concatenate([layer.mean(axis=0, keepdims=True), layer])  # (1 + heads, tokens, tokens)
        out = _attention_between(with_mean, query_words, document_words)  # (1 + heads, query words, document words)
        back = _attention_between(with_mean, document_words, query_words).transpose(0, 2, 1)
        from_query.append(tuple(_strongest(head, kept) for head in out))
        from_document.append(tuple(_strongest(head, kept) for head in back))
    places = (tuple((word.start, word.end) for word in words) for words in (query_words, document_words))
    return AttentionLinks(ranker.name, *places, tuple(from_query), tuple(from_document), kept)


def _attention_between(attention: np.ndarray, lookers: Sequence[WordTokens], seen: Sequence[WordTokens]) -> np.ndarray:
    """Return how much words look at words; (heads, tokens, tokens) -> (heads, lookers, seen)."""
    rows = np.stack([attention[:, list(word.tokens)].mean(axis=1) for word in lookers], axis=1)
    return np.stack([rows[:, :, list(word.tokens)].sum(axis=2) for word in seen], axis=2)


def _strongest(looks: np.ndarray, kept: int) -> tuple[Look, ...]:
    """Return the strongest links of each word of the query, (query words, document words), the strongest first."""
    best = np.argsort(-looks, axis=1, kind="stable")[:, :kept]
    links = [
        Look(row, column, float(looks[row, column]))
        for row, columns in enumerate(best.tolist())
        for column in columns
        if looks[row, column] > 0
    ]
    return tuple(sorted(links, key=lambda link: -link.share))
