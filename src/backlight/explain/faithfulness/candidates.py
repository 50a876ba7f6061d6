"""The documents that a first stage finds for each question, by BM25 from the bm25s library.

Source: Robertson, Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009, doi:10.1561/1500000019; Lù,
BM25S: Orders of magnitude faster lexical search via eager sparse scoring, 2024, arXiv:2407.03618.
"""

from collections.abc import Sequence

from backlight.errors import InputError


def best_by_bm25(documents: Sequence[str], queries: Sequence[str], depth: int) -> list[list[int]]:
    """Return for each query the numbers of the documents that BM25 ranks highest, best first.

    Args:
        depth: how many; fewer, if there are fewer.

    Raises:
        InputError: the bm25s library is missing.
    """
    try:
        import bm25s
    except ImportError as problem:
        raise InputError('finding candidates needs the bm25s library: pip install "backlight[evaluate]"') from problem
    index = bm25s.BM25()
    quiet = {"stopwords": "en", "show_progress": False}
    index.index(bm25s.tokenize(list(documents), **quiet), show_progress=False)
    found = index.retrieve(bm25s.tokenize(list(queries), **quiet), k=min(depth, len(documents)), show_progress=False)
    return found.documents.tolist()
