"""BM25: documents by the words that they share with a query (bm25s).

NOTE [Stems]
The index meets "cats" where it is asked for "cat": endings of English words are cut off, -s as Harman's S stemmer does,
then -ing, -ed and -e. With this and the longer list of stop words nDCG@10 over whole collections was higher in all of
six, by 0.01 to 0.045 (docs/retrieval.md). `best_by_bm25` leaves words as they are: candidates of our studies and of
training were taken with it.

Source: Robertson, Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009, doi:10.1561/1500000019; Lù,
BM25S: Orders of magnitude faster lexical search via eager sparse scoring, 2024, arXiv:2407.03618; Harman, How Effective
Is Suffixing?, 1991, doi:10.1002/(SICI)1097-4571(199101)42:1<7::AID-ASI2>3.0.CO;2-P.
"""

import re
import runpy
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from backlight.errors import InputError, install_hint

VOWELS = frozenset("aeiouy")
DOUBLED = frozenset("bdfgmnprt")  # consonants that English doubles before -ing and -ed: "stopped"


def stem(word: str) -> str:
    """Return a word without its English endings (see NOTE [Stems]).

    >>> [stem(word) for word in ("berries", "tomatoes", "buses", "glass", "planting", "stopped", "string", "prove")]
    ['berry', 'tomato', 'bus', 'glass', 'plant', 'stop', 'string', 'prov']
    """
    word = _without_s(word)
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and VOWELS & set(rest):
            word = rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] in DOUBLED else rest
            break
    return word.removesuffix("e") if len(word) > 3 else word


def _without_s(word: str) -> str:
    if len(word) < 4 or word.endswith(("us", "ss")):
        return word
    if len(word) > 4 and word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    return word.removesuffix("s")


PLAIN = {"stopwords": "en", "show_progress": False}
STEMMED = {
    "stopwords": "en_plus",
    "stemmer": lambda words: [stem(word) for word in words],
    "show_progress": False,
}
MISSING = f"finding candidates needs the bm25s library: {install_hint('explain')}"
K1, B = 1.5, 0.75  # bm25s's own
WORD = re.compile(r"\b\w\w+\b")  # what bm25s takes for a word
STEMS_KEPT = 1 << 14  # words whose stems are remembered


class BM25:
    """An index of passages by their words.

    Args:
        passages: what is indexed.
        stems: whether English endings are cut off (see NOTE [Stems]).

    Raises:
        InputError: the bm25s library is missing.
    """

    name = "BM25"

    def __init__(self, passages: Sequence[str], *, stems: bool = True):
        self._library, self._how = _bm25s(), STEMMED if stems else PLAIN
        tokens = self._library.tokenize(list(passages), **self._how)
        self._size = len(passages)
        self._index = self._library.BM25()
        if any(tokens.ids):
            self._index.index(tokens, show_progress=False)
        else:  # nothing but stop words: bm25s cannot index that
            self._index = None

    def scores(self, query: str) -> np.ndarray:
        """Return the score of each passage: 0 for those that share no word with the query; (passages,)."""
        (tokens,) = self._library.tokenize([query], return_ids=False, **self._how)
        if self._index is None or not (known := self._index.get_tokens_ids(tokens)):
            return np.zeros(self._size, np.float32)
        return self._index.get_scores(known)

    def best(self, queries: Sequence[str], depth: int) -> list[list[int]]:
        """Return for each query the numbers of the passages that rank highest, best first.

        Args:
            depth: how many; fewer, if there are fewer.
        """
        depth = min(depth, self._size)
        if self._index is None:
            return [list(range(depth)) for _ in queries]
        tokens = self._library.tokenize(list(queries), **self._how)
        return self._index.retrieve(tokens, k=depth, show_progress=False).documents.tolist()


def best_by_bm25(documents: Sequence[str], queries: Sequence[str], depth: int) -> list[list[int]]:
    """Return for each query the numbers of the documents that BM25 without stems ranks highest (see `BM25.best`)."""
    return BM25(documents, stems=False).best(queries, depth)


def bm25_in_one_pass(query: str, passages: Iterable[str]) -> np.ndarray:
    """Return the score of each passage for one query, as `BM25(passages).scores(query)` does, without an index.

    Of each passage its length and the counts of the query's words are kept, so that passages may be as many as the
    windows of a long book.

        Σ ln(1 + (n − nₜ + ½) / (nₜ + ½)) · f / (f + k₁ (1 − b + b · length / mean length))

    The bm25s library is not loaded for it, which with SciPy takes some 70 MB; its list of stop words is read.

    Args:
        passages: are gone through once.

    Returns:
        0 for passages that share no word with the query; (passages,), in float64.

    Raises:
        InputError: the bm25s library is missing.
    """
    stop_words, stem_of = _stop_words(), lru_cache(STEMS_KEPT)(stem)

    def words_of(text: str) -> list[str]:
        return [stem_of(word) for word in WORD.findall(text.lower()) if word not in stop_words]

    words = words_of(query)
    counts, lengths = [], []
    for passage in passages:
        held = words_of(passage)
        found = Counter(held)
        counts.append([found[word] for word in words])
        lengths.append(len(held))
    frequencies, length = np.array(counts, np.float64).reshape(len(lengths), len(words)), np.array(lengths, np.float64)
    holding = (frequencies > 0).sum(axis=0)  # passages with each word
    weights = np.log1p((len(length) - holding + 0.5) / (holding + 0.5))
    damping = K1 * (1 - B + B * length / (length.mean() or 1.0)) if len(length) else length
    return (weights * frequencies / np.maximum(frequencies + damping[:, None], 1e-9)).sum(axis=1)


@cache
def _stop_words() -> frozenset[str]:
    """Return the stop words of `STEMMED`, from bm25s's file of them alone."""
    found = find_spec("bm25s")
    if found is None or found.origin is None:
        raise InputError(MISSING)
    return frozenset(runpy.run_path(str(Path(found.origin).with_name("stopwords.py")))["STOPWORDS_EN_PLUS"])


def _bm25s():
    try:
        import bm25s
    except ImportError as problem:
        raise InputError(MISSING) from problem
    return bm25s
