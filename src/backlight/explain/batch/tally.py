"""What is counted over all rows, in a database file: a million rows and all their words take disk and no memory."""

import math
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE scored (row INTEGER PRIMARY KEY, part INTEGER, score REAL, label REAL, query TEXT);
CREATE TABLE word (
    side TEXT, word TEXT, count INTEGER, pairs INTEGER, share REAL, value REAL, place REAL, strongest INTEGER,
    PRIMARY KEY (side, word)
) WITHOUT ROWID;
"""
ADD_WORD = """
INSERT INTO word VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (side, word) DO UPDATE SET
    count = count + excluded.count, pairs = pairs + excluded.pairs, share = share + excluded.share,
    value = value + excluded.value, place = place + excluded.place, strongest = strongest + excluded.strongest
"""
SIDES = ("query", "document")
SPREAD = (
    "(row * 2654435761) % 4294967296"  # an order that looks random and is always the same (Knuth's multiplicative hash)
)


class Tally:
    """Scores, labels and words of the parts that were added.

    Args:
        file: the database; one that is there is replaced.
    """

    def __init__(self, file: Path):
        file.unlink(missing_ok=True)
        self._file = file
        self._database = sqlite3.connect(file)
        self._database.executescript(SCHEMA)
        self.read_in_part = 0

    def close(self) -> None:
        """Remove the database."""
        self._database.close()
        self._file.unlink(missing_ok=True)

    def add(self, part: int, records: Sequence[dict]) -> None:
        """Count the rows of a part."""
        scored = [
            (one["row"], part, one["score"], one.get("label"), one.get("query_id") or one["query"]) for one in records
        ]
        self._database.executemany("INSERT INTO scored VALUES (?, ?, ?, ?, ?)", scored)
        self.read_in_part += sum(bool(one["query_left_out"] or one["document_left_out"]) for one in records)
        for side in SIDES:
            words = words_of(records, side)
            self._database.executemany(ADD_WORD, ((side, word, *found) for word, found in words.items()))

    def all(self, question: str, *values) -> list[tuple]:
        """Return the answer to a question in SQL."""
        return self._database.execute(question, values).fetchall()

    def one(self, question: str, *values):
        """Return the first value of the answer."""
        return self._database.execute(question, values).fetchone()[0]

    def each(self, question: str, *values) -> Iterator[tuple]:
        """Give the answer to a question a row at a time."""
        return iter(self._database.execute(question, values))


def words_of(records: Sequence[dict], side: str) -> dict[str, list]:
    """Return for each lower-cased word: count, pairs, Σ share, Σ value, Σ place, how often it was the strongest.

    A share is |value| ÷ Σ|values| of all words of the text; a place goes from 0 (first character) to 1.
    """
    found: dict[str, list] = {}
    for record in records:
        words, total = record.get(f"{side}_words") or (), record.get(f"{side}_total") or math.inf
        seen, length = set(), len(record[side])
        most = max((abs(word["value"]) for word in words), default=0.0)
        for word in words:
            name, size = word["text"].lower(), abs(word["value"])
            counted = found.setdefault(name, [0, 0, 0.0, 0.0, 0.0, 0])
            counted[0] += 1
            counted[1] += name not in seen
            counted[2] += size / total
            counted[3] += word["value"]
            counted[4] += word["start"] / length
            counted[5] += size == most
            seen.add(name)
    return found


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


def word_records(tally: Tally, side: str, order: str = "side DESC, share DESC, word", most: int = -1) -> Iterator[dict]:
    """Give the words of one side, or of both, by default those first that the largest shares fell to.

    Args:
        side: "query", "document" or "%" for both.
        most: how many; all by default.
    """
    for side_of, word, count, pairs, share, value, place, strongest in tally.each(
        f"SELECT * FROM word WHERE side LIKE ? ORDER BY {order} LIMIT ?", side, most
    ):
        yield {
            "side": side_of,
            "word": word,
            "count": count,
            "pairs": pairs,
            "total_share": share,
            "mean_share": share / count,
            "mean_value": value / count,
            "mean_place": place / count,
            "strongest": strongest,
        }


WORD_COLUMNS = {
    "side": "text",
    "word": "text",
    "count": "int",
    "pairs": "int",
    "total_share": "float",
    "mean_share": "float",
    "mean_value": "float",
    "mean_place": "float",
    "strongest": "int",
}
