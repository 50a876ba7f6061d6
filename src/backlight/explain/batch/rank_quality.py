"""How well scores rank the documents of each query, where labels say which are relevant.

Source: Järvelin, Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002 (nDCG, here with gain = grade).
"""

import math
from collections.abc import Callable, Sequence
from itertools import groupby

from backlight.explain.batch.tally import Tally

DEPTH = 10
WORST = 20


def ndcg(grades: Sequence[float], ideal: Sequence[float], depth: int = DEPTH) -> float:
    """Return nDCG of grades in the order of the ranking.

    Args:
        ideal: the grades of all documents that are known for the query, best first.
    """
    best = gain(ideal, depth)
    return gain(grades, depth) / best if best else 0.0


def gain(grades: Sequence[float], depth: int) -> float:
    """Return the discounted gain Σ grade ÷ log₂(1 + rank) of the first `depth`.

    >>> gain([1.0, 0.0, 1.0], 10)
    1.5
    """
    return sum(max(0.0, grade) / math.log2(1 + rank) for rank, grade in enumerate(grades[:depth], 1))


def reciprocal_rank(grades: Sequence[float], depth: int = DEPTH) -> float:
    """Return 1 ÷ the rank of the first relevant document; 0 if none is among the first `depth`."""
    return next((1 / rank for rank, grade in enumerate(grades[:depth], 1) if grade > 0), 0.0)


def query_summary(tally: Tally, ideal: Callable[[str], Sequence[float] | None]) -> dict | None:
    """Return the mean nDCG@10 and MRR@10 over queries with a relevant document and another; None if there is none.

    Documents without a label count as not relevant. Queries without a relevant document are left out, and counted.

    Args:
        ideal: all grades that are known for a query, best first; None if those of the rows are all.
    """
    tally.all("CREATE INDEX IF NOT EXISTS by_query ON scored (query, score DESC, row)")
    count, without, gains, ranks = 0, 0, 0.0, 0.0
    worst: list[tuple[float, str]] = []
    ordered = tally.each("SELECT query, coalesce(label, 0) FROM scored ORDER BY query, score DESC, row")
    for query, rows in groupby(ordered, key=lambda row: row[0]):
        grades = [grade for _, grade in rows]
        known = ideal(query) or sorted(grades, reverse=True)
        if len(grades) == 1 and len(known) == 1:
            continue  # one document is always ranked first
        if not any(grade > 0 for grade in known):
            without += 1
            continue
        found = ndcg(grades, known)
        count, gains, ranks = count + 1, gains + found, ranks + reciprocal_rank(grades)
        worst = sorted([*worst, (found, query)])[:WORST]
    if not count:
        return None
    return {
        "queries": count,
        "without_relevant": without,
        f"ndcg@{DEPTH}": gains / count,
        f"mrr@{DEPTH}": ranks / count,
        "worst": [{"query": query, f"ndcg@{DEPTH}": found} for found, query in worst],
    }
