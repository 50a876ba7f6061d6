"""The words of a batch: how often each occurs, what it brings, and whether it is strong more often than is usual.

NOTE [Words that matter]
Of each text the strongest fifth of its words, by |value|, are its strong words; punctuation does not count. A frequent
word is strong often even if it rarely is when it occurs. So words are ordered by how much more often they are among the
strong words than among the others: the log-odds ratio of the two, with a Dirichlet prior of `PRIOR` occurrences that
are shared out as all words are, divided by its standard error:

    δ = ln((s + a) / (S + A − s − a)) − ln((o + a) / (O + A − o − a)),  z = δ / √(1 / (s + a) + 1 / (o + a))

with s of all S strong words and o of all O others this word, A = PRIOR and a = A · (s + o) / (S + O). A word that is
strong as often as words are has z near 0, one that is seldom strong is below, and a rare word is near 0 until there is
evidence. The page and the command list words with z from 0 on, function words of English only from `EVIDENT` on.

Source: Monroe, Colaresi, Quinn, Fightin' Words: Lexical Feature Selection and Evaluation for Identifying the Content of
Political Conflict, 2008.
"""

import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from backlight.explain.words import FUNCTION_WORDS, is_mark

STRONG = 0.2  # of the words of a text
PRIOR = 100.0  # occurrences
EVIDENT = 1.645  # z that chance reaches in 5 % of words

WORD_COLUMNS = {
    "side": "text",
    "word": "text",
    "count": "int",
    "pairs": "int",
    "strong": "int",
    "log_odds": "float",
    "z": "float",
    "total_share": "float",
    "mean_share": "float",
    "mean_value": "float",
    "mean_place": "float",
    "strongest": "int",
}


def words_of(records: Sequence[dict], side: str) -> dict[str, list]:
    """Return for each lower-cased word: count, pairs, Σ share, Σ value, Σ place, times the strongest, times strong.

    A share is |value| ÷ Σ|values| of all words of the text; a place goes from 0 (first character) to 1.
    """
    found: dict[str, list] = {}
    for record in records:
        words, total = record.get(f"{side}_words") or (), record.get(f"{side}_total") or math.inf
        seen, length = set(), len(record[side])
        most = max((abs(word["value"]) for word in words), default=0.0)
        strong = _strong(words)
        for number, word in enumerate(words):
            name, size = word["text"].lower(), abs(word["value"])
            counted = found.setdefault(name, [0, 0, 0.0, 0.0, 0.0, 0, 0])
            counted[0] += 1
            counted[1] += name not in seen
            counted[2] += size / total
            counted[3] += word["value"]
            counted[4] += word["start"] / length
            counted[5] += size == most
            counted[6] += number in strong
            seen.add(name)
    return found


def _strong(words: Sequence[dict]) -> set[int]:
    """Return the places of a text's strong words (see NOTE [Words that matter])."""
    places = [place for place, word in enumerate(words) if word["value"] and not is_mark(word["text"])]
    places.sort(key=lambda place: -abs(words[place]["value"]))
    return set(places[: math.ceil(STRONG * len(places))])


def matters(record: Mapping) -> bool:
    """Return whether a word is listed: it is strong as often as is usual or more; of a function word with evidence."""
    least = EVIDENT if record["word"] in FUNCTION_WORDS else 0.0
    return record["z"] is not None and record["z"] >= least


def log_odds(strong: int, others: int, all_strong: int, all_others: int) -> tuple[float, float]:
    """Return by how much a word is more often strong than words are: δ and z of NOTE [Words that matter].

    >>> [[round(value, 2) for value in log_odds(strong, others, 100, 400)] for strong, others in [(10, 10), (20, 80)]]
    [[0.96, 2.54], [0.0, 0.0]]
    """
    share = (strong + others) / max(all_strong + all_others, 1)
    own = PRIOR * share
    if not all_strong or not all_others or share == 1:
        return 0.0, 0.0
    ratio = math.log((strong + own) / (all_strong + PRIOR - strong - own))
    ratio -= math.log((others + own) / (all_others + PRIOR - others - own))
    return ratio, ratio / math.sqrt(1 / (strong + own) + 1 / (others + own))


def word_records(database: sqlite3.Connection, side: str, most: int = -1) -> Iterator[dict]:
    """Give the words of one side, those first that are strong more often than is usual; punctuation comes last.

    Args:
        side: "query" or "document".
        most: how many; all by default.
    """
    database.create_function("is_mark", 1, is_mark, deterministic=True)
    question = "SELECT coalesce(sum(strong), 0), coalesce(sum(count), 0) FROM word WHERE side = ? AND NOT is_mark(word)"
    strong_words, words = database.execute(question, (side,)).fetchone()
    sums = strong_words, words - strong_words

    def z(word: str, strong: int, count: int) -> float | None:
        return None if is_mark(word) else log_odds(strong, count - strong, *sums)[1]

    database.create_function("z", 3, z, deterministic=True)
    columns = "word, count, pairs, share, value, place, strongest, strong"
    order = "z(word, strong, count) DESC NULLS LAST, share DESC, word"
    found = database.execute(f"SELECT {columns} FROM word WHERE side = ? ORDER BY {order} LIMIT ?", (side, most))
    for word, count, pairs, share, value, place, strongest, strong in found:
        ratio, score = (None, None) if is_mark(word) else log_odds(strong, count - strong, *sums)
        yield {
            "side": side,
            "word": word,
            "count": count,
            "pairs": pairs,
            "strong": strong,
            "log_odds": ratio,
            "z": score,
            "total_share": share,
            "mean_share": share / count,
            "mean_value": value / count,
            "mean_place": place / count,
            "strongest": strongest,
        }
