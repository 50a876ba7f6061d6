"""BM25: documents ranked by the words that they share with a query.

Source: Robertson, Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009, doi:10.1561/1500000019; Lù,
BM25S: Orders of magnitude faster lexical search via eager sparse scoring, 2024, arXiv:2407.03618.
"""

from collections.abc import Sequence

import numpy as np

from backlight.errors import InputError

QUIET = {"stopwords": "en", "show_progress": False}


class Bm25:
    """An index of documents.

    Args:
        documents: their texts.

    Raises:
        InputError: the bm25s library is missing, or no document has a word that counts.
    """

    def __init__(self, documents: Sequence[str]):
        try:
            import bm25s
        except ImportError as problem:
            raise InputError(
                'finding candidates needs the bm25s library: pip install "backlight[evaluate]"'
            ) from problem
        self._tokenize, self._count = bm25s.tokenize, len(documents)
        tokens = bm25s.tokenize(list(documents), **QUIET)
        if not any(tokens.ids):
            raise InputError(
                f"documents must have words to rank them by, and all {len(documents)} have stop words and letters alone"
            )
        self._index = bm25s.BM25()
        self._index.index(tokens, show_progress=False)

    def best(self, queries: Sequence[str], depth: int) -> list[list[int]]:
        """Return for each query the numbers of the documents that rank highest, best first.

        Args:
            depth: how many; fewer, if there are fewer.
        """
        tokens = self._tokenize(list(queries), **QUIET)
        return self._index.retrieve(tokens, k=min(depth, self._count), show_progress=False).documents.tolist()

    def scores(self, query: str, documents: Sequence[int]) -> np.ndarray:
        """Return the score of some documents, by number, for a query; (documents,)."""
        (tokens,) = self._tokenize([query], return_ids=False, **QUIET)
        known = [token for token in tokens if token in self._index.vocab_dict]
        if not known:
            return np.zeros(len(documents), np.float32)
        return self._index.get_scores(known)[np.asarray(documents, np.int64)]
