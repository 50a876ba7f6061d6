"""Negatives: those in the data, and hard negatives mined by ranking all other documents.

Source: Gao, Dai, Callan, Rethink Training of BERT Rerankers in Multi-Stage Retrieval Pipeline, 2021, arXiv:2101.08751.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from backlight.models.bi_encoder import BiEncoder
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.retrieval.bm25 import BM25
from backlight.training.reranker.loss import Group
from backlight.training.reranker.model import scores_of
from backlight.training.reranker.rows import Judged

HARD = 2 / 3  # share of the mined negatives that are hard; the others are random
DEPTH = 24  # ranks to search for negatives
MOST_RIGHT = 3  # right documents of a query that a step sees
BLOCK = 512  # queries whose cosines are in memory at once
Doing = Callable[[int], None]  # is called with how many queries are newly done


@dataclass(frozen=True)
class Candidates:
    """A query with its documents: those that the data judges, then those that were found.

    Args:
        asked: the query with what the data says of it.
        found: mined negatives, by number.
        teacher: another model's score of each document, of the judged ones first; NaN where there is none.
    """

    asked: Judged
    found: tuple[int, ...]
    teacher: tuple[float, ...]

    @property
    def documents(self) -> tuple[int, ...]:
        """The numbers of all documents."""
        return self.asked.documents + self.found

    @property
    def labels(self) -> tuple[float, ...]:
        """How right each document is."""
        return self.asked.labels + (0.0,) * len(self.found)

    def draw(self, texts: Sequence[str], negatives: int, seed: Sequence[int]) -> Group:
        """Return what a step sees of the query: right documents, and wrong ones drawn by the seed.

        Those that the data names come first; if they are too few, others that were found.

        Args:
            texts: of all documents.
            negatives: how many negatives.
        """
        rng = np.random.default_rng(seed)
        labels = np.array(self.labels)
        judged = len(self.asked.documents)
        right = rng.permutation(np.flatnonzero(labels > 0))[:MOST_RIGHT]
        given = rng.permutation(np.flatnonzero(labels[:judged] == 0))[:negatives]
        found = judged + rng.permutation(len(self.found))[: negatives - len(given)]
        places = np.concatenate([right, given, found]).astype(int).tolist()
        return Group(
            query=self.asked.text,
            documents=tuple(texts[self.documents[place]] for place in places),
            labels=tuple(self.labels[place] for place in places),
            teacher=tuple(self.teacher[place] for place in places),
            weight=self.asked.weight,
        )


@dataclass
class LeftOut:
    """How many documents that a ranking found were not taken as wrong ones."""

    right: int = 0  # known to be right for the query
    near_duplicates: int = 0  # near-duplicates of a positive


class Miner:
    """Mines hard negatives by BM25 and, if there is a bi-encoder, by its cosine.

    Args:
        texts: all documents.
        ranker: the bi-encoder.
        near_duplicates: share of words in common from which a document counts as a near-duplicate of a positive.
    """

    def __init__(self, texts: Sequence[str], ranker: BiEncoder | None = None, near_duplicates: float = 0.6):
        self.bm25, self._texts, self._ranker = BM25(texts, stems=False), texts, ranker
        self._near_duplicates = near_duplicates
        self.embeddings: np.ndarray | None = None  # of all documents, once they are there
        self._words: dict[int, frozenset[str]] = {}
        self.left_out = LeftOut()

    def embed(self) -> None:
        """Embed all documents, if there is a bi-encoder and it was not done yet."""
        if self._ranker is not None and self.embeddings is None:
            self.embeddings = self._ranker.embeddings_of(self._texts)

    def rankings(self, queries: Sequence[Judged]) -> Iterator[list[list[int]]]:
        """Give for each query the best documents of each ranking that there is."""
        self.embed()
        for start in range(0, len(queries), BLOCK):
            texts = [query.text for query in queries[start : start + BLOCK]]
            by_words = self.bm25.best(texts, DEPTH)
            rankings = [by_words]
            if self.embeddings is not None:
                cosines = self._ranker.embeddings_of(texts, queries=True) @ self.embeddings.T
                rankings.append(np.argsort(-cosines, axis=1, kind="stable")[:, :DEPTH].tolist())
            yield from map(list, zip(*rankings))

    def wrong(self, query: Judged, rankings: Sequence[Sequence[int]]) -> list[int]:
        """Return the documents of rankings that do not answer a query, by turns, each once."""
        right, found = _right_of(query), []
        for number in dict.fromkeys(by_turns(rankings)):
            if number in query.documents:
                self.left_out.right += number in right
            elif self._is_version(number, right):
                self.left_out.near_duplicates += 1
            else:
                found.append(number)
        return found

    def any_others(self, query: Judged, but: Sequence[int], count: int, rng: np.random.Generator) -> list[int]:
        """Return random documents, without those of the query, near-duplicates of positives, and `but`."""
        right, taken, found = _right_of(query), {*query.documents, *but}, []
        for number in rng.integers(len(self._texts), size=4 * count + 8).tolist():
            if len(found) < count and number not in taken and not self._is_version(number, right):
                taken.add(number)
                found.append(number)
        return found

    def _is_version(self, number: int, right: Sequence[int]) -> bool:
        """Return whether a document is a near-duplicate of a positive."""
        return any(overlap(self._words_of(number), self._words_of(one)) >= self._near_duplicates for one in right)

    def _words_of(self, number: int) -> frozenset[str]:
        if number not in self._words:
            self._words[number] = words_of(self._texts[number])
        return self._words[number]


def _right_of(query: Judged) -> list[int]:
    """Return the numbers of the documents that answer a query."""
    return [number for number, label in zip(query.documents, query.labels) if label > 0]


def training_candidates(
    queries: Sequence[Judged], miner: Miner, negatives: int, mined: int, seed: int, done: Doing = lambda count: None
) -> list[Candidates]:
    """Return queries with mined negatives if the data names fewer than `negatives`: two thirds hard, the others random.

    A query that nothing answers gets none: its documents are those of the data.
    """
    needed = [query.answered and query.labels.count(0) < negatives for query in queries]
    rankings = miner.rankings([query for query, needs in zip(queries, needed) if needs])
    candidates = []
    for number, (query, needs) in enumerate(zip(queries, needed)):
        found: list[int] = []
        if needs:
            hard = miner.wrong(query, next(rankings))[: max(1, round(HARD * mined))]
            rng = np.random.default_rng([seed, 1, number])
            found = hard + miner.any_others(query, hard, mined - len(hard), rng)
        candidates.append(Candidates(query, tuple(found), query.teacher + (np.nan,) * len(found)))
        done(1)
    return candidates


def validation_candidates(
    queries: Sequence[Judged], miner: Miner, count: int, done: Doing = lambda count: None
) -> list[Candidates]:
    """Return queries with the best negatives of the rankings, so that there are `count` documents in all."""
    rankings = miner.rankings(queries)
    candidates = []
    for query in queries:
        found = miner.wrong(query, next(rankings)) if query.answered else []
        found = found[: max(0, count - len(query.documents))]
        candidates.append(Candidates(query, tuple(found), query.teacher + (np.nan,) * len(found)))
        done(1)
    return candidates


def taught(
    candidates: Sequence[Candidates],
    texts: Sequence[str],
    teacher: BiEncoder | CrossEncoder,
    done: Doing = lambda count: None,
    embeddings: np.ndarray | None = None,
) -> list[Candidates]:
    """Return candidates with the scores that a model gives to each.

    Args:
        embeddings: of all texts by a bi-encoder, where they are known, (texts, hidden).
    """
    if isinstance(teacher, BiEncoder) and embeddings is None:
        embeddings = teacher.embeddings_of(texts)
    found = []
    for start in range(0, len(candidates), BLOCK):
        some = candidates[start : start + BLOCK]
        if isinstance(teacher, BiEncoder):
            queries = teacher.embeddings_of([one.asked.text for one in some], queries=True)
            scores = [embeddings[list(one.documents)] @ query for one, query in zip(some, queries)]
        else:
            pairs = [(one.asked.text, texts[number]) for one in some for number in one.documents]
            ends = np.cumsum([len(one.documents) for one in some])[:-1]
            scores = np.split(scores_of(teacher, pairs), ends)
        found += [replace(one, teacher=tuple(own.astype(float).tolist())) for one, own in zip(some, scores)]
        done(len(some))
    return found


def by_turns(rankings: Sequence[Sequence[int]]) -> Iterator[int]:
    """Give the first of each ranking, then the second of each, and so on."""
    for place in range(max(map(len, rankings), default=0)):
        for ranking in rankings:
            if place < len(ranking):
                yield ranking[place]


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(re.findall(r"\w+", text.casefold()))


def overlap(words: frozenset[str], others: frozenset[str]) -> float:
    """Return how many of the words of two texts are in both."""
    return len(words & others) / max(1, len(words | others))
