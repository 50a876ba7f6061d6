"""BM25: documents by the words that they share with a query (bm25s).

Source: Robertson, Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009, doi:10.1561/1500000019; Lù,
BM25S: Orders of magnitude faster lexical search via eager sparse scoring, 2024, arXiv:2407.03618.
"""

from collections.abc import Sequence

import numpy as np

from backlight.errors import InputError

TOKENS = {"stopwords": "en", "show_progress": False}


class BM25:
    """An index of passages by their words.

    Args:
        passages: what is indexed.

    Raises:
        InputError: the bm25s library is missing.
    """

    name = "BM25"

    def __init__(self, passages: Sequence[str]):
        self._library = _bm25s()
        tokens = self._library.tokenize(list(passages), **TOKENS)
        self._size = len(passages)
        self._index = self._library.BM25()
        if any(tokens.ids):
            self._index.index(tokens, show_progress=False)
        else:  # nothing but stop words: bm25s cannot index that
            self._index = None

    def scores(self, query: str) -> np.ndarray:
        """Return the score of each passage: 0 for those that share no word with the query; (passages,)."""
        (tokens,) = self._library.tokenize([query], return_ids=False, **TOKENS)
        if self._index is None or not (known := self._index.get_tokens_ids(tokens)):
            return np.zeros(self._size, np.float32)
        return self._index.get_scores(known)


def best_by_bm25(documents: Sequence[str], queries: Sequence[str], depth: int) -> list[list[int]]:
    """Return for each query the numbers of the documents that BM25 ranks highest, best first.

    Args:
        depth: how many; fewer, if there are fewer.

    Raises:
        InputError: the bm25s library is missing.
    """
    bm25s = _bm25s()
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(documents), **TOKENS), show_progress=False)
    found = index.retrieve(bm25s.tokenize(list(queries), **TOKENS), k=min(depth, len(documents)), show_progress=False)
    return found.documents.tolist()


def _bm25s():
    try:
        import bm25s
    except ImportError as problem:
        raise InputError('finding candidates needs the bm25s library: pip install "backlight[explain]"') from problem
    return bm25s
