"""Whether what an explanation shows is true: take words out of the text, score again, compare.

    python benchmarks/signs.py DATA --model NAME [--method M ...] [--pairs 200] [--collection NAME ...] [--json FILE]

The judge shares no code with the explainer: it calls `explain` and `predict` as users do, cuts each word's characters
out of the text, and compares the value that was shown with what the score really lost. A pair is a query with one of
its eight candidate documents: the right one, and for every fourth query BM25's best of the others.

- signs: of the five strongest document words and three strongest query words, those whose removal moves the score by
  more than 2 % of the ranking's range (highest − lowest score of the candidates): the share whose sign is right.
- top word: the same for the strongest word of a text alone.
- known: the share of those strongest words whose effect was measured, and not estimated.
- measured, order: Spearman's correlation of shown value and true effect, pair by pair, over words drawn at random:
  over words that were measured (`Word.effect` is a number), and over the others. Where words have no such attribute,
  nothing is known to be measured, and all count under order.
- |order|: the same of sizes, |value| and |effect|: all that a method without signs can get right.

`--method default` is what `explain` does when no method is given; `--method random` is the control, and an option is
given as `integrated-gradients:steps=4`. Several methods share the true effects. Intervals hold 95 %: pairs are drawn
with replacement. `--records FILE` keeps every pair's result, and goes on from them when it is run again.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from closer import closer
from query_sets import COLLECTIONS, Query, queries_of
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from backlight.errors import BacklightError
from backlight.explain.faithfulness.records import Records
from backlight.explain.reranker import Reranker

STRONGEST = {"document": 5, "query": 3}
DECISIVE = 0.02  # of the ranking's range
OTHERS = 20  # words of each text and kind that are drawn, to see how values and effects go together
DRAWS = 2000  # of an interval
FEWEST = 4  # words that make a correlation
DEFAULT_SETS = ("squad", "covid_qa", "medquad")
COLUMNS = ("signs", "top", "known", "measured", "order", "|order|")
CLOSER = (
    *("lost", "lost_random", "missing", "missing_random"),
    *("typo", "typo_moved", "synonym", "synonym_moved"),
)


@dataclass(frozen=True)
class Figure:
    """A figure with the ends of its interval, and how many words or pairs it is of."""

    value: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}–{self.high:.2f}) of {self.count}"


def main() -> None:
    """Measure, print the table, write the figures."""
    given = _arguments()
    options = {"engine": given.engine} if given.engine else {}
    reranker = Reranker.from_pretrained(given.model, **options)
    about = {name: getattr(given, name) for name in ("model", "engine", "seed", "others", "closer")}
    with closing(Records(given.records, about, resume=True)) as records:
        measure(reranker, given, records)
        rows = rows_of(records, given)
    print("\n".join(lines_of(rows)))
    if given.json:
        given.json.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder of the collections")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--engine")
    parser.add_argument("--method", nargs="+", default=["default"], help="with :option=value where wanted")
    parser.add_argument("--pairs", type=int, default=200, help="of each collection")
    parser.add_argument("--collection", nargs="+", choices=COLLECTIONS, default=list(DEFAULT_SETS))
    parser.add_argument("--others", type=int, default=OTHERS, help="words drawn for the correlations; 0 for all")
    parser.add_argument("--closer", type=int, default=0, metavar="N", help="pairs on which closer.py measures too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--records", type=Path, metavar="FILE", help="by default out/signs-MODEL.jsonl")
    given = parser.parse_args()
    if given.records is None:
        given.records = Path("out") / f"signs-{Path(given.model).name}.jsonl"
    return given


def measure(reranker: Reranker, given: argparse.Namespace, records: Records) -> None:
    """Measure every pair by every method, but for those that the records hold."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        for collection in given.collection:
            task = bar.add_task(collection, total=given.pairs)
            for number, query in enumerate(queries_of(given.data, collection, given.pairs, given.seed)):
                todo = [method for method in given.method if key_of(collection, number, method) not in records]
                if todo:
                    rng = np.random.default_rng([given.seed, number])
                    how = {"others": given.others, "close": number < given.closer}
                    for method, found in measure_pair(reranker, query, number, todo, rng, **how).items():
                        records.add(key_of(collection, number, method), found)
                bar.advance(task)


def key_of(collection: str, number: int, method: str) -> str:
    """Return the key of a pair's record."""
    return f"{collection} {number} {method}"


def measure_pair(
    reranker: Reranker,
    query: Query,
    number: int,
    methods: Sequence[str],
    rng: np.random.Generator,
    *,
    others: int = OTHERS,
    close: bool = False,
) -> dict[str, dict]:
    """Return what each method showed for a pair, and what is true of it."""
    document = query.candidates[1 if number % 4 == 3 and len(query.candidates) > 1 else 0]
    scores = Scores(reranker)
    ranking = scores([(query.text, candidate) for candidate in query.candidates])
    seed = int(rng.integers(2**31))  # of what closer.py draws, the same for all methods
    draws = rng.random(100_000)  # a number for each place of a word, so that all methods' draws are the same
    found = {}
    for method in methods:
        name, options = method_of(method)
        start = time.perf_counter()
        try:
            explained = reranker.explain(query.text, document, **name, **options)
        except BacklightError as problem:
            found[method] = {"failed": f"{type(problem).__name__}: {problem}"}
            continue
        seconds = time.perf_counter() - start
        words = [
            row
            for side, text in (("document", explained.document), ("query", explained.query))
            for row in chosen_words(side, text.words, others, draws)
        ]
        whole = scores([(query.text, document)])[0]
        without = scores([_pair_without(query.text, document, row) for row in words])
        for row, score in zip(words, without):
            row["true"] = whole - score
        again = partial(reranker.explain, **name, **options)
        more = (
            closer(query.text, explained.document.words, document, again, scores, np.random.default_rng(seed))
            if close
            else {}
        )
        found[method] = {
            "words": words,
            "closer": more,
            "range": max(ranking) - min(ranking),
            "score": whole,
            "seconds": seconds,
            "passes": explained.passes,
            "signed": explained.signed,
        }
    return found


class Scores:
    """Raw scores by plain `predict`, each text scored once."""

    def __init__(self, reranker: Reranker):
        self._reranker = reranker
        self._known: dict[tuple[str, str], float] = {}

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if new:
            self._known.update(zip(new, self._reranker.predict(new, activation="identity").tolist()))
        return [self._known[pair] for pair in pairs]


def method_of(said: str) -> tuple[dict[str, str], dict[str, int | float | str]]:
    """Return the arguments of `explain` for a method as the command line names it; none for the default."""
    name, *options = said.split(":")
    pairs = (option.split("=", 1) for option in options)
    return {} if name == "default" else {"method": name}, {key: _number(value) for key, value in pairs}


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def chosen_words(side: str, words: Sequence, others: int, draws: np.ndarray) -> list[dict]:
    """Return a row for each word that is taken out: the strongest, and some drawn at random of either kind.

    Args:
        words: with text, start, end, value, and effect where it may be measured.
        others: how many are drawn of the measured and of the others; 0 for all.
        draws: a number between 0 and 1 for each place in the text.
    """
    ranks = {id(word): rank for rank, word in enumerate(sorted(words, key=lambda word: -abs(word.value)))}
    measured = [word for word in words if getattr(word, "effect", None) is not None]
    rest = [word for word in words if getattr(word, "effect", None) is None]
    drawn = {
        id(word)
        for kind in (measured, rest)
        for word in sorted(kind, key=lambda word: draws[word.start])[: others or None]
    }
    return [
        {
            "side": side,
            "text": word.text,
            "start": word.start,
            "end": word.end,
            "value": float(word.value),
            "effect": getattr(word, "effect", None),
            "rank": ranks[id(word)],
            "drawn": id(word) in drawn,
        }
        for word in words
        if (ranks[id(word)] < STRONGEST[side] or id(word) in drawn) and len(words) > 1
    ]


def _pair_without(query: str, document: str, row: Mapping) -> tuple[str, str]:
    if row["side"] == "query":
        return cut(query, row["start"], row["end"]), document
    return query, cut(document, row["start"], row["end"])


def cut(text: str, start: int, end: int) -> str:
    """Return a text without some characters, and without the white space that is doubled or at an end then.

    >>> cut("a red fox", 2, 5), cut("a red fox", 6, 9), cut("(red) fox", 1, 4)
    ('a fox', 'a red', '() fox')
    """
    before, after = text[:start], text[end:]
    if not before or before[-1].isspace():
        after = after.lstrip()
    return (before + after).strip()


def rows_of(records: Records, given: argparse.Namespace) -> list[dict]:
    """Return a row for each collection, method and text: its figures, as data."""
    rows = []
    for collection in given.collection:
        for method in given.method:
            keys = [key_of(collection, number, method) for number in range(given.pairs)]
            found = [records[key] for key in keys if key in records]
            good = [one for one in found if "words" in one]
            for side in STRONGEST if good else ():
                row = row_of(good, side, given.seed)
                rows.append(row | {"collection": collection, "method": method, "failed": len(found) - len(good)})
            if len(good) < len(found):
                problem = next(one["failed"] for one in found if "failed" in one)
                print(f"{method} failed on {len(found) - len(good)} pairs of {collection}: {problem}", file=sys.stderr)
    return rows


def row_of(pairs: Sequence[Mapping], side: str, seed: int) -> dict:
    """Return the figures of one method on the words of one text."""
    figures: dict[str, Figure | None] = {
        "signs": share([signs(one, side, STRONGEST[side]) for one in pairs], seed),
        "top": share([signs(one, side, 1) for one in pairs], seed),
        "known": share([known(one, side) for one in pairs], seed),
        "measured": mean([correlation(one, side, True) for one in pairs], seed),
        "order": mean([correlation(one, side, False) for one in pairs], seed),
        "|order|": mean([correlation(one, side, False, abs) for one in pairs], seed),
    }
    if side == "document" and any(one["closer"] for one in pairs):
        figures |= {name: mean([_closer_of(one, name) for one in pairs], seed) for name in CLOSER}
    return {
        "text": side,
        "pairs": len(pairs),
        **{name: figure and vars(figure) for name, figure in figures.items()},
        "seconds": float(np.median([one["seconds"] for one in pairs])),
        "passes": float(np.median([one["passes"] for one in pairs])),
    }


def _closer_of(pair: Mapping, name: str) -> float | None:
    """Return a figure of closer.py: what is in units of the score as a share of the ranking's range."""
    value = pair["closer"].get(name)
    if value is None or name in ("typo", "synonym"):
        return value
    return value / pair["range"] if pair["range"] else None


def signs(pair: Mapping, side: str, strongest: int) -> tuple[int, int]:
    """Return of how many of the strongest words the sign is right, and how many of them are decisive."""
    decisive = [
        word
        for word in pair["words"]
        if word["side"] == side and word["rank"] < strongest and abs(word["true"]) > DECISIVE * pair["range"]
    ]
    return sum(word["value"] * word["true"] > 0 for word in decisive), len(decisive)


def known(pair: Mapping, side: str) -> tuple[int, int]:
    """Return how many of the strongest words were measured, and how many there are."""
    found = [word for word in pair["words"] if word["side"] == side and word["rank"] < STRONGEST[side]]
    return sum(word["effect"] is not None for word in found), len(found)


def correlation(pair: Mapping, side: str, measured: bool, of: Callable[[float], float] = float) -> float | None:
    """Return Spearman's correlation of shown values and true effects over words drawn; None where it has none."""
    words = [
        word
        for word in pair["words"]
        if word["side"] == side and word["drawn"] and (word["effect"] is not None) == measured
    ]
    if len(words) < FEWEST:
        return None
    return spearman([of(word["value"]) for word in words], [of(word["true"]) for word in words])


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return the correlation of two lists' ranks, equal values sharing the mean rank; None where one is constant."""
    x, y = (ranks(values) for values in (a, b))
    x, y = x - x.mean(), y - y.mean()
    size = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / size) if size > 0 else None


def ranks(values: Sequence[float]) -> np.ndarray:
    """Return the rank of each value from 0, equal ones sharing their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse]


def share(counts: Sequence[tuple[int, int]], seed: int) -> Figure | None:
    """Return Σ right / Σ all over pairs; None where there is none."""
    right, everything = np.array(counts, float).reshape(-1, 2).T
    if not everything.sum():
        return None
    times = _resampled(len(right), seed)
    totals = times @ everything
    found = (times @ right)[totals > 0] / totals[totals > 0]
    return Figure(float(right.sum() / everything.sum()), *_ends(found), int(everything.sum()))


def mean(values: Sequence[float | None], seed: int) -> Figure | None:
    """Return the mean over the pairs that have a value; None where none has."""
    known = np.array([value for value in values if value is not None], float)
    if not len(known):
        return None
    return Figure(float(known.mean()), *_ends(_resampled(len(known), seed) @ known / len(known)), len(known))


def _resampled(size: int, seed: int) -> np.ndarray:
    """Return how often each pair is drawn in each draw, (draws, pairs)."""
    return np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), DRAWS).astype(float)


def _ends(found: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


def lines_of(rows: Sequence[Mapping]) -> list[str]:
    """Return the rows as Markdown: a table for each collection and text, then one of what closer.py measured."""
    tables = defaultdict(list)
    for row in rows:
        cells = [*_cells(row, COLUMNS), f"{row['passes']:.0f}", f"{row['seconds']:.3f}", str(row["failed"])]
        where = f"{row['collection']}, {row['text']} words, {row['pairs']} pairs"
        tables[where, ("method", *COLUMNS, "passes", "seconds", "failed")].append([row["method"], *cells])
        if CLOSER[0] in row:
            tables[f"{where}, shares of the range", ("method", *CLOSER)].append([row["method"], *_cells(row, CLOSER)])
    lines = []
    for (where, head), table in tables.items():
        titles = [title.replace("|", "\\|") for title in head]
        lines += [f"\n{where}", *(f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(head), *table))]
    return lines


def _cells(row: Mapping, names: Sequence[str]) -> list[str]:
    return [str(Figure(**row[name])) if row[name] else "–" for name in names]


if __name__ == "__main__":
    main()
