"""Validation: how well a model ranks held-out queries, and how well its probabilities are calibrated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.models.retrieval.bm25 import BM25
from backlight.report.intervals import Mean, difference, mean_of
from backlight.system.fork_safety import cached_property
from backlight.training.reranker.candidates import Candidates
from backlight.training.reranker.measures import graded_ndcg

Scores = Callable[[Sequence[tuple[str, str]]], np.ndarray]  # of pairs, (pairs,)


@dataclass(frozen=True)
class Validation:
    """Queries with the documents that are ranked for them.

    Args:
        candidates: of each query.
        texts: of all documents.
    """

    candidates: tuple[Candidates, ...]
    texts: tuple[str, ...]

    def sample(self, count: int) -> np.ndarray:
        """Return the numbers of about `count` queries, evenly from the domains and within each; all, if not more."""
        by_domain: dict[str, list[int]] = {}
        for number, one in enumerate(self.candidates):
            by_domain.setdefault(one.asked.domain, []).append(number)
        chosen: list[int] = []
        for left, numbers in zip(range(len(by_domain), 0, -1), sorted(by_domain.values(), key=len)):
            own = min(len(numbers), max(1, -(-(count - len(chosen)) // left)))
            chosen += [numbers[place * len(numbers) // own] for place in range(own)]
        return np.sort(chosen)

    def part(self, numbers: np.ndarray) -> "Validation":
        """Return some of the queries."""
        return Validation(tuple(self.candidates[number] for number in numbers.tolist()), self.texts)

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Each query with each of its documents."""
        return [(one.asked.text, self.texts[number]) for one in self.candidates for number in one.documents]

    @cached_property
    def labels(self) -> np.ndarray:
        """How right the document of each pair is, (pairs,)."""
        return np.array([label for one in self.candidates for label in one.labels])

    @cached_property
    def units(self) -> np.ndarray:
        """The number of the query of each pair, (pairs,)."""
        return np.repeat(np.arange(len(self.candidates)), [len(one.documents) for one in self.candidates])

    @cached_property
    def domains(self) -> np.ndarray:
        """The domain of each query."""
        return np.array([one.asked.domain for one in self.candidates])

    @property
    def answered(self) -> np.ndarray:
        """Whether each query has a right document: the others cannot be ranked well or badly."""
        return np.array([one.asked.answered for one in self.candidates])

    def bm25_scores(self, index: BM25) -> np.ndarray:
        """Return BM25's score of each pair, (pairs,)."""
        return np.concatenate([index.scores(one.asked.text)[list(one.documents)] for one in self.candidates])

    def ndcg(self, scores: np.ndarray) -> np.ndarray:
        """Return nDCG@10 of each query; (pairs,) -> (queries,), NaN for those that nothing answers."""
        ends = np.cumsum([len(one.documents) for one in self.candidates])[:-1]
        parts = zip(self.candidates, np.split(scores, ends), np.split(self.labels, ends))
        return np.array([graded_ndcg(own, labels) if one.asked.answered else np.nan for one, own, labels in parts])


@dataclass(frozen=True)
class Figures:
    """nDCG@10 of the model before and after training and of BM25, of one domain or all.

    Args:
        queries: how many there are with a right document.
        before: of the model that training started from; of a bi-encoder, by its cosine.
        after: of the trained model.
        gain: after − before, query by query.
        bm25: of BM25.
        over_bm25: after − BM25, query by query.
    """

    queries: int
    before: Mean
    after: Mean
    gain: Mean
    bm25: Mean
    over_bm25: Mean


def figures_of(validation: Validation, before: np.ndarray, after: np.ndarray, bm25: np.ndarray) -> dict[str, Figures]:
    """Return the figures of all queries ("all") and, if there are several, of each domain; from nDCG@10, (queries,)."""
    ranked, domains = validation.answered, validation.domains
    found = {}
    for name in ["all", *(sorted(set(domains)) if len(set(domains)) > 1 else ())]:
        own = ranked if name == "all" else ranked & (domains == name)
        if own.any():
            b, a, words = before[own], after[own], bm25[own]
            means = mean_of(b), mean_of(a), difference(a, b), mean_of(words), difference(a, words)
            found[name] = Figures(int(own.sum()), *means)
    return found


def by_domain(validation: Validation, ndcg: np.ndarray) -> dict[str, float]:
    """Return the mean nDCG@10 of each domain, and of the domains ("ndcg")."""
    found = {
        name: float(ndcg[(validation.domains == name) & validation.answered].mean())
        for name in sorted(set(validation.domains[validation.answered]))
    }
    return {"ndcg": float(np.mean(list(found.values()))), **({} if len(found) == 1 else found)}
