"""Which documents of a long list a reranker reads: an index of the list, and the candidates it gives.

NOTE [Retriever]
A retriever is named: `bm25`; a bi-encoder (a model folder or an installed package), which means BM25 and the cosine of
that model, fused by `combined_sum`; or `none`, which has every document reranked. What is indexed are passages; a
document has the score of its best passage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from backlight.errors import InputError
from backlight.models.bi_encoder import BiEncoder
from backlight.models.checkpoint import BUILTIN, find_model
from backlight.models.fused import FusedCrossEncoder
from backlight.models.ranker import is_fused, load_ranker
from backlight.models.retrieval.bm25 import BM25
from backlight.models.retrieval.embeddings import Cosine, EmbeddingCache
from backlight.models.retrieval.fusion import combined_sum
from backlight.models.retrieval.passages import passages_of
from backlight.models.scorer import Progress, no_progress

BY_WORDS, NONE = "bm25", "none"
OWN_RETRIEVER = "retriever"  # the folder in a reranker's folder that holds its own bi-encoder, if it has one
RERANKED_WHOLE = 200  # documents, up to which a list is reranked whole unless a number of candidates is named
CANDIDATES = 100  # documents of a longer list that are reranked by default


class PassageScores(Protocol):
    """What scores all passages of an index for a query."""

    name: str

    def scores(self, query: str) -> np.ndarray:
        """Return the score of each passage, (passages,)."""


@dataclass(frozen=True, eq=False)
class Index:
    """Documents, ready to be searched; `build_index` makes one.

    Args:
        documents: what is searched, in the caller's order.
        first_passages: the number of each document's first passage, (documents,).
        passage_scores: what scores passages; several are fused.
    """

    documents: Sequence[str]
    first_passages: np.ndarray
    passage_scores: tuple[PassageScores, ...]

    @property
    def name(self) -> str:
        """What the retriever is called in results."""
        names = [one.name for one in self.passage_scores]
        return names[0] if len(names) == 1 else f"{' and '.join(names)}, added"

    def scores(self, query: str) -> np.ndarray:
        """Return how well each document fits a query; (documents,).

        Returns:
            of one retriever its own scores, of several the sum of them brought to [0, 1]: see `combined_sum`.

        Raises:
            InputError: the query is empty.
        """
        if not query.strip():
            raise InputError("the query must not be empty: say what to look for")
        found = [np.maximum.reduceat(one.scores(query), self.first_passages) for one in self.passage_scores]
        return found[0] if len(found) == 1 else combined_sum(found)

    def order(self, query: str) -> list[int]:
        """Return the numbers of all documents, best first; equal ones in the order of the list."""
        return np.argsort(-self.scores(query), kind="stable").tolist()


@dataclass(frozen=True)
class Retrieval:
    """How the documents that were reranked were chosen from a longer list."""

    retriever: str  # its name in words
    candidates: int  # documents that were reranked
    documents: int  # documents given


def build_index(
    documents: Sequence[str],
    retriever: str | Path = BY_WORDS,
    *,
    cache: str | Path | None = None,
    model: BiEncoder | None = None,
    progress: Progress = no_progress,
) -> Index:
    """Index documents for `Reranker.rank`, to search them several times or to keep embeddings on disk.

    Args:
        retriever: `bm25`, or a bi-encoder (see NOTE [Retriever]).
        cache: a folder that keeps the bi-encoder's embeddings from run to run; it is made if there is none.
        model: the bi-encoder that the retriever names, where it is loaded already.
        progress: called with the number of documents newly indexed.

    Raises:
        InputError: there is no document; the retriever is no bi-encoder; there is a cache and nothing to keep in it.
    """
    if not documents:
        raise InputError("there must be a document at least, got none")
    model = model or _checked(str(retriever), cache)
    passages, first_passages = [], np.empty(len(documents), np.int64)
    for number, document in enumerate(documents):
        first_passages[number] = len(passages)
        passages += passages_of(document)
    found: list[PassageScores] = [BM25(passages)]
    if model is not None:
        kept = None if cache is None else EmbeddingCache(Path(cache), find_model(str(retriever)))
        found.append(Cosine(passages, model, kept, _by_document(first_passages, progress)))
    else:
        progress(len(documents))
    return Index(documents, first_passages, tuple(found))


def check_retriever(retriever: str | Path, cache: str | Path | None = None) -> None:
    """Raise unless a retriever has this name, and embeddings to keep where there is a cache."""
    if cache is not None or str(retriever) != NONE:
        _checked(str(retriever), cache)


def _checked(name: str, cache: str | Path | None) -> BiEncoder | None:
    """Return the bi-encoder of a retriever; None for BM25 alone."""
    if cache is not None and name in (BY_WORDS, NONE):
        raise InputError(f"a cache must come with a retriever that is a bi-encoder, got {name}: it keeps embeddings")
    return None if name == BY_WORDS else bi_encoder_called(name)


def bi_encoder_called(name: str) -> BiEncoder:
    """Return the bi-encoder that a retriever's name means. Raises InputError: there is none of that name."""
    if name == NONE:
        raise InputError(f"an index must have a retriever, got {NONE}: give {BY_WORDS} or a bi-encoder")
    try:
        model = load_ranker(find_model(name), name)
    except InputError as problem:
        raise InputError(f"retriever must be {BY_WORDS}, {NONE} or a bi-encoder, got {name}: {problem}") from problem
    if isinstance(model, FusedCrossEncoder):
        return model.similarity
    if not isinstance(model, BiEncoder):
        raise InputError(
            f"retriever must be {BY_WORDS}, {NONE} or a bi-encoder, got the cross-encoder {name}: give it as the model "
            "that reranks"
        )
    return model


def candidate_count(documents: int, candidates: int | None = None, retriever: str | Path | Index = BY_WORDS) -> int:
    """Return how many documents of a list are reranked.

    Args:
        documents: of the list.
        candidates: how many were asked for; None: all of up to 200 documents, 100 of a longer list.
        retriever: `none` has all reranked.

    Raises:
        InputError: it is below 1, or comes with the retriever `none`.
    """
    every = not isinstance(retriever, Index) and str(retriever) == NONE
    if candidates is not None and candidates < 1:
        raise InputError(f"candidates must be 1 or more, got {candidates}")
    if candidates is not None and every:
        raise InputError(f"candidates must come with a retriever, got {candidates} and the retriever {NONE}")
    if every or (candidates is None and documents <= RERANKED_WHOLE):
        return documents
    return min(candidates or CANDIDATES, documents)


def own_retriever(model: Path) -> str:
    """Return the retriever of a reranker's folder: the bi-encoder that it brings, or that it holds, else `bm25`."""
    own = model / OWN_RETRIEVER
    if (own / "config.json").is_file():
        return str(own)
    if not is_fused(model):
        return BY_WORDS
    return BUILTIN if model.resolve() == find_model(BUILTIN).resolve() else str(model)


def _by_document(first_passages: np.ndarray, progress: Progress) -> Progress:
    """Return a progress in passages that calls one in documents, each when its last passage is done."""
    done = {"passages": 0, "documents": 0}

    def advance(passages: int) -> None:
        done["passages"] += passages
        begun = int(np.searchsorted(first_passages, done["passages"], side="left"))
        progress(begun - done["documents"])
        done["documents"] = begun

    return advance
