"""What was found in all rows of a batch: scores, words, errors, bad rows. Read from the parts, one at a time.

Counts are kept in a database file: a million rows and all their words take disk and no memory.

Source: Järvelin, Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002 (nDCG, here with gain = grade).
"""

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path

from backlight.explain.batch.collection import AT_ONCE
from backlight.explain.batch.excerpts import SIDES, excerpt
from backlight.explain.batch.files import write_file
from backlight.explain.batch.job import SAMPLE, SUMMARY
from backlight.explain.batch.parts import Parts, line_of, write_records
from backlight.explain.batch.rows import batched
from backlight.explain.batch.settings import Settings
from backlight.explain.batch.words import WORD_COLUMNS, word_records, words_of
from backlight.models.languages import other_language

SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE scored (row INTEGER PRIMARY KEY, part INTEGER, score REAL, label REAL, query TEXT);
CREATE TABLE word (
    side TEXT, word TEXT, count INTEGER, pairs INTEGER, share REAL, value REAL, place REAL, strongest INTEGER,
    strong INTEGER, PRIMARY KEY (side, word)
) WITHOUT ROWID;
"""
ADD_WORD = """
INSERT INTO word VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (side, word) DO UPDATE SET
    count = count + excluded.count, pairs = pairs + excluded.pairs, share = share + excluded.share,
    value = value + excluded.value, place = place + excluded.place, strongest = strongest + excluded.strongest,
    strong = strong + excluded.strong
"""
SPREAD = (
    "(row * 2654435761) % 4294967296"  # an order that looks random and is always the same (Knuth's multiplicative hash)
)


class Tally:
    """Scores, labels, words and languages of the parts that were added.

    Args:
        file: the database; one that is there is replaced.
        english_only: whether texts in other languages are counted. Parts that an older version wrote do not name them,
            so every text is looked at again.
    """

    def __init__(self, file: Path, *, english_only: bool = False):
        file.unlink(missing_ok=True)
        self._file = file
        self.database = sqlite3.connect(file)
        self.database.executescript(SCHEMA)
        self.read_in_part = 0
        self.checks: Counter[str] = Counter()
        self.english_only = english_only
        self.languages: dict[str, Counter[str]] = {side: Counter() for side in SIDES}
        self.in_other_languages = 0
        self.windows: Counter[str] = Counter()

    def close(self) -> None:
        """Remove the database."""
        self.database.close()
        self._file.unlink(missing_ok=True)

    def add(self, part: int, records: Sequence[dict]) -> None:
        """Count the rows of a part."""
        scored = [
            (one["row"], part, one["score"], one.get("label"), one.get("query_id") or one["query"]) for one in records
        ]
        self.database.executemany("INSERT INTO scored VALUES (?, ?, ?, ?, ?)", scored)
        self.read_in_part += sum(bool(one["query_left_out"] or one["document_left_out"]) for one in records)
        for one in records:
            self._count_languages(one)
            count = one.get("windows", 1)
            self.windows.update({"rows": count > 1, "preselected": count > (one.get("windows_read") or count)})
            if verdict := one.get("check_verdict"):
                self.checks.update({"rows": 1, verdict: 1, "counted": one["check_counted"]})
                self.checks.update({name: one.get(f"check_{name}") or 0 for name in ("signs", "drop", "random")})
        for side in SIDES:
            words = words_of(records, side)
            self.database.executemany(ADD_WORD, ((side, word, *found) for word, found in words.items()))

    def _count_languages(self, record: dict) -> None:
        if not self.english_only:
            return
        found = {side: other_language(record[side]) for side in SIDES}
        self.in_other_languages += any(found.values())
        for side, language in found.items():
            if language:
                self.languages[side][language] += 1

    def all(self, question: str, *values) -> list[tuple]:
        """Return the answer to a question in SQL."""
        return self.database.execute(question, values).fetchall()

    def one(self, question: str, *values):
        """Return the first value of the answer."""
        return self.database.execute(question, values).fetchone()[0]

    def each(self, question: str, *values) -> Iterator[tuple]:
        """Give the answer to a question a row at a time."""
        return iter(self.database.execute(question, values))


def score_summary(tally: Tally, bars: int = 40) -> dict | None:
    """Return how scores are spread; None if there is none."""
    count = tally.one("SELECT count(*) FROM scored")
    if not count:
        return None
    mean, low, high = tally.all("SELECT avg(score), min(score), max(score) FROM scored")[0]
    variance = tally.one("SELECT avg((score - ?) * (score - ?)) FROM scored", mean, mean)
    tally.all("CREATE INDEX IF NOT EXISTS by_score ON scored (score)")
    quantiles = {
        f"{percent} %": tally.one(
            "SELECT score FROM scored ORDER BY score LIMIT 1 OFFSET ?", round(percent / 100 * (count - 1))
        )
        for percent in (5, 25, 50, 75, 95)
    }
    width = (high - low) / bars or 1.0
    counts, relevant = [0] * bars, [0] * bars
    question = "SELECT CAST((score - ?) / ? AS INTEGER), count(*), coalesce(sum(label > 0), 0) FROM scored GROUP BY 1"
    for place, many, good in tally.all(question, low, width):
        counts[min(place, bars - 1)] += many
        relevant[min(place, bars - 1)] += good
    return {
        "count": count,
        "mean": mean,
        "standard_deviation": math.sqrt(variance),
        "lowest": low,
        "quantiles": quantiles,
        "highest": high,
        "histogram": {"from": low, "to": low + bars * width, "counts": counts, "relevant": relevant},
    }


def check_summary(found: Counter[str]) -> dict | None:
    """Return what came of the explanations that were held to the score; None if there were none."""
    rows = found["rows"]
    if not rows:
        return None
    counts = {name: found[name] for name in ("rows", "holds", "fails", "no effect", "counted", "signs")}
    return counts | {name: found[name] / rows for name in ("drop", "random")}


def language_summary(tally: Tally) -> dict | None:
    """Return how many rows have a text that looks other than English, and in which languages; None if none was sought.

    They are sought where the model's card says that it reads English only (see NOTE [The rule] in models/languages.py).
    """
    if not tally.english_only:
        return None
    by_side = {side: dict(found.most_common()) for side, found in tally.languages.items()}
    return {"rows": tally.in_other_languages, **by_side}


def label_summary(tally: Tally) -> dict | None:
    """Return how scores agree with labels; None without labels.

    A row is relevant if its label is above 0. ROC-AUC is the chance that a relevant row has a higher score than one
    that is not, ties counted half.
    """
    labelled, relevant = tally.all("SELECT count(label), coalesce(sum(label > 0), 0) FROM scored")[0]
    if not labelled:
        return None
    below, wins = 0, 0.0
    ordered = tally.each("SELECT score, label > 0 FROM scored WHERE label IS NOT NULL ORDER BY score")
    for _, same in groupby(ordered, key=lambda pair: pair[0]):
        marks = [mark for _, mark in same]
        good = sum(marks)
        wins += good * (below + (len(marks) - good) / 2)
        below += len(marks) - good
    pairs = relevant * (labelled - relevant)
    return {"labelled": labelled, "relevant": relevant, "roc_auc": wins / pairs if pairs else None}


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


SHOWN = 2000
OF_EACH = 250  # of the best, the worst and each kind of error
ERRORS = 20  # that the summary tells


def chosen_rows(tally: Tally) -> dict[int, list[str]]:
    """Return the numbers of the rows to show, each with why: "best", "worst", "false positive", "false negative", …"""
    if tally.one("SELECT count(*) FROM scored") <= SHOWN:
        return {row: [] for (row,) in tally.each("SELECT row FROM scored")}
    found: dict[int, list[str]] = {}
    for why, question in REASONS.items():
        for (row,) in tally.each(f"SELECT row FROM scored {question} LIMIT ?", OF_EACH):
            found.setdefault(row, []).append(why)
    for (row,) in tally.each(f"SELECT row FROM scored ORDER BY {SPREAD} LIMIT ?", SHOWN):
        if len(found) == SHOWN:
            break
        found.setdefault(row, []).append("sampled")
    return found


REASONS = {
    "best": "ORDER BY score DESC, row",
    "worst": "ORDER BY score, row",
    "false positive": "WHERE label <= 0 ORDER BY score DESC, row",
    "false negative": "WHERE label > 0 ORDER BY score, row",
}


def errors(tally: Tally) -> dict[str, list[int]]:
    """Return the rows without relevance that score highest, and the relevant ones that score lowest."""
    return {
        why: [row for (row,) in tally.each(f"SELECT row FROM scored {REASONS[why]} LIMIT ?", ERRORS)]
        for why in ("false positive", "false negative")
    }


def records_with(tally: Tally, parts: Parts, rows: set[int]) -> Iterator[dict]:
    """Give the records of some rows, in the order of the input, from the parts that hold them."""
    wanted: dict[int, set[int]] = {}
    for row, part in tally.each("SELECT row, part FROM scored"):
        if row in rows:
            wanted.setdefault(part, set()).add(row)
    for part in sorted(wanted):
        for record in parts.part(part):
            if record["row"] in wanted[part]:
                yield record


WORDS_LISTED = 200  # words of each side in summary.json; words.* has all
NAMED = 5  # strongest words named with an error


def summarise(
    folder: Path,
    parts: Parts,
    job: dict,
    settings: Settings,
    rows: int,
    *,
    ideal: Callable[[str], Sequence[float] | None],
    english_only: bool = False,
) -> dict:
    """Write summary.json, words.*, sample.jsonl and bad_rows.jsonl, and return the summary.

    Args:
        job: what job.json says.
        rows: how many rows the input has, bad ones counted.
        ideal: all grades that are known for a query (see NOTE [A source] in explain/batch/inputs.py).
        english_only: whether the model reads English only, so that other languages are counted.
    """
    tally = Tally(folder / f".{SUMMARY}.sqlite", english_only=english_only)
    try:
        for number in sorted(parts.done):
            tally.add(number, list(parts.part(number)))
        chosen, wrong = chosen_rows(tally), errors(tally)
        lines, described = _lines_and_descriptions(tally, parts, chosen, wrong)
        labels, bad = label_summary(tally), bad_summary(parts)
        summary = {
            "job": job,
            "rows": rows,
            "bad": bad,
            "read_in_part": tally.read_in_part,
            "windows": {name: tally.windows[name] for name in ("rows", "preselected")},
            "languages": language_summary(tally),
            "score": score_summary(tally),
            "labels": labels and labels | {f"{why}s": [described[row] for row in wrong[why]] for why in wrong},
            "queries": query_summary(tally, ideal) if labels else None,
            "check": check_summary(tally.checks),
            "words": {side: list(word_records(tally.database, side, WORDS_LISTED)) for side in SIDES},
            "sample": {"rows": len(chosen), "all": len(chosen) == rows - bad["count"]},
        }
        parts.join_bad_rows()
        if settings.explains:
            words = batched(chain.from_iterable(word_records(tally.database, side) for side in SIDES), AT_ONCE)
            write_records(folder / f"words.{settings.format}", words, WORD_COLUMNS)
        write_file(folder / SAMPLE, b"".join(lines))
        write_file(folder / SUMMARY, (json.dumps(summary, ensure_ascii=False, indent=1) + "\n").encode())
    finally:
        tally.close()
    return summary


def _lines_and_descriptions(
    tally: Tally, parts: Parts, chosen: dict[int, list[str]], wrong: dict[str, list[int]]
) -> tuple[list[bytes], dict[int, dict]]:
    """Return the lines of sample.jsonl, and what summary.json says about the rows that the labels contradict."""
    errors = {row for some in wrong.values() for row in some}
    lines, described = [], {}
    for record in records_with(tally, parts, errors | set(chosen)):
        row = record["row"]
        if row in chosen:
            lines.append(line_of({"why": chosen[row], **excerpt(record)}))
        if row in errors:
            described[row] = _described(excerpt(record))
    return lines, described


def bad_summary(parts: Parts) -> dict:
    """Return how many bad rows there are of each kind, the most frequent first, and the first of each."""
    counts: Counter[str] = Counter()
    first: dict[str, dict] = {}
    for row in parts.bad_rows():
        counts[row["kind"]] += 1
        first.setdefault(row["kind"], row)
    kinds = {kind: {"count": count, "first": first[kind]} for kind, count in counts.most_common()}
    return {"count": counts.total(), "kinds": kinds}


def _described(record: dict) -> dict:
    """Return a row as the summary names it, with its strongest words."""
    found = {name: record.get(name) for name in ("row", "line", "id", "score", "label", "query", "document")}
    words = sorted(record.get("document_words") or (), key=lambda word: -abs(word["value"]))
    return found | {"strongest": [word["text"] for word in words[:NAMED]]}
