"""Hard negatives: documents that look like an answer to BM25 or to a bi-encoder, and are none.

Source: Gao, Dai, Callan, Rethink Training of BERT Rerankers in Multi-Stage Retrieval Pipeline, 2021, arXiv:2101.08751.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backlight.models.bi_encoder import BiEncoder
from backlight.models.retrieval.bm25 import best_by_bm25
from backlight.training.reranker.candidates import overlap, words_of
from reranker.texts import Collection

DEPTH = 24  # how far down a ranking negatives are looked for
ALIKE = 0.6  # share of words in common from which a text is taken for a version of another


@dataclass(frozen=True)
class Drawn:
    """A question of a collection with its right document, first, and wrong ones, all by number."""

    which: int
    question: int
    documents: tuple[int, ...]


@dataclass(frozen=True)
class Negatives:
    """For each question the documents that are wrong answers.

    Args:
        bm25: those that BM25 ranks highest, best first.
        cosine: those whose embeddings lie nearest.
        positives: the right document of each question.
        questions: embeddings, (questions, hidden).
        documents: embeddings, (documents, hidden).
    """

    bm25: tuple[tuple[int, ...], ...]
    cosine: tuple[tuple[int, ...], ...]
    positives: tuple[int, ...]
    questions: np.ndarray
    documents: np.ndarray

    def cosines(self, drawn: Drawn) -> np.ndarray:
        """Return the cosine of a question to each of its documents."""
        return self.documents[list(drawn.documents)] @ self.questions[drawn.question]

    def draw(self, question: int, count: int, seed: Sequence[int]) -> list[int]:
        """Return `count` documents, two thirds by turns of BM25 and cosine, the others any; never the right one.

        The numbers depend on the seed and the question alone.
        """
        rng = np.random.default_rng([*seed, question])
        sources = [list(rng.permutation(found[question])) for found in (self.bm25, self.cosine)]
        if rng.random() < 0.5:
            sources.reverse()
        taken: list[int] = []
        hard = count - max(1, count // 3)
        while len(taken) < hard and any(sources):
            source = sources[len(taken) % 2] or sources[1 - len(taken) % 2]
            one = int(source.pop())
            if one not in taken:
                taken.append(one)
        while len(taken) < count:
            one = int(rng.integers(len(self.documents)))
            if one != self.positives[question] and one not in taken:
                taken.append(one)
        return taken


def find_negatives(collection: Collection, ranker: BiEncoder) -> Negatives:
    """Rank the documents for each question and leave out the positive and what may be a right answer.

    May be right: a document with one of the answers in it, where answers are known; else one that shares most of its
    words with the positive.
    """
    questions = ranker.embeddings_of([question.text for question in collection.questions])
    documents = ranker.embeddings_of(collection.documents)
    nearest = np.argsort(-(questions @ documents.T), axis=1, kind="stable")[:, :DEPTH]
    found = []
    for ranking in (bm25_rankings(collection, DEPTH), nearest):
        found.append(tuple(_wrong(collection, number, best) for number, best in enumerate(ranking)))
    return Negatives(*found, tuple(asked.positive for asked in collection.questions), questions, documents)


def bm25_rankings(collection: Collection, depth: int) -> np.ndarray:
    """Return for each question the documents that BM25 ranks highest; (questions, depth)."""
    asked = [question.text for question in collection.questions]
    return np.array(best_by_bm25(collection.documents, asked, depth))


def _wrong(collection: Collection, number: int, ranking: np.ndarray) -> tuple[int, ...]:
    """Return the documents of a ranking that do not answer the question."""
    asked = collection.questions[number]
    words = words_of(collection.documents[asked.positive])
    others = (int(place) for place in ranking if place != asked.positive)
    if asked.answers:
        return tuple(place for place in others if not _holds(collection.documents[place], asked.answers))
    return tuple(place for place in others if overlap(words_of(collection.documents[place]), words) < ALIKE)


def _holds(document: str, answers: Sequence[str]) -> bool:
    document = document.casefold()
    return any(answer.casefold() in document for answer in answers)
