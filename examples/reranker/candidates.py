"""Questions with the documents that BM25 found for them, to be ranked anew."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.training.reranker.measures import ranks_of
from reranker.negatives import bm25_rankings
from reranker.texts import Collection

CANDIDATES = 20  # documents that are ranked for a question


@dataclass(frozen=True)
class Candidates:
    """Questions with the documents that BM25 ranks highest for them, to be ranked anew.

    Args:
        collection: all documents and questions.
        asked: which questions, (questions,).
        documents: the candidates of each, best first, (questions, candidates).
    """

    collection: Collection
    asked: np.ndarray
    documents: np.ndarray

    @classmethod
    def of(cls, collection: Collection, count: int | None = None, seed: int = 0) -> "Candidates":
        """Return the candidates of all questions, or of `count` of them drawn by the seed."""
        everyone = np.arange(len(collection.questions))
        asked = np.sort(np.random.default_rng(seed).permutation(everyone)[:count])
        return cls(collection, asked, bm25_rankings(collection, CANDIDATES)[asked])

    @property
    def right(self) -> np.ndarray:
        """The place of the right document among each question's candidates, -1 where it is missing."""
        positives = np.array([self.collection.questions[number].positive for number in self.asked])
        is_right = self.documents == positives[:, None]
        return np.where(is_right.any(1), is_right.argmax(1), -1)

    def pairs(self) -> list[tuple[str, str]]:
        """Return each question with each of its candidates."""
        questions, documents = self.collection.questions, self.collection.documents
        return [
            (questions[asked].text, documents[document])
            for asked, found in zip(self.asked, self.documents)
            for document in found
        ]

    def ranks(self, scores: Callable[[Sequence[tuple[str, str]]], np.ndarray]) -> np.ndarray:
        """Return the rank of each question's right document when these scores rank its candidates."""
        return ranks_of(scores(self.pairs()).reshape(self.documents.shape), self.right)
