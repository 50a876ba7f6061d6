"""Words of a batch are ordered by how much more often they are strong; its sample has excerpts of long texts."""

import json
import math
import random

import pytest

from backlight.explain.batch.excerpts import LONGEST, excerpt
from backlight.explain.batch.summary import Tally
from backlight.explain.batch.words import PRIOR, log_odds, matters, word_records
from backlight.web.batch import pieces


def record(words: dict[str, float], row: int = 0) -> dict:
    text, found = "", []
    for name, value in words.items():
        found.append({"text": name, "start": len(text), "end": len(text) + len(name), "value": value})
        text += f"{name} "
    total = sum(map(abs, words.values()))
    own = {"row": row, "document": text, "document_words": found, "document_total": total}
    return own | {"query": "x", "score": 0.0, "query_left_out": 0, "document_left_out": 0}


def ordered(records: list[dict], folder) -> dict[str, dict]:
    tally = Tally(folder / "words.sqlite")
    try:
        tally.add(0, records)
        return {one["word"]: one for one in word_records(tally.database, "document")}
    finally:
        tally.close()


def test_a_frequent_word_that_is_rarely_strong_comes_after_a_rare_one_that_is_strong(tmp_path):
    rng, records = random.Random(0), []
    for row in range(200):
        words = {name: rng.uniform(0.2, 0.4) for name in ("the", "is", "a", "of", "in", "?", "on", "or")}
        words["?"] = 2.0
        if row % 10 == 0:
            words["photosynthesis"] = 1.0
        records.append(record(words, row))
    found = ordered(records, tmp_path)
    assert next(iter(found)) == "photosynthesis"
    assert found["photosynthesis"]["z"] > 3
    assert found["the"]["total_share"] > found["photosynthesis"]["total_share"]
    assert abs(found["the"]["z"]) < 3
    assert list(found)[-1] == "?"
    assert (found["?"]["z"], found["?"]["strong"]) == (None, 0)
    listed = [word for word, one in found.items() if matters(one)]
    assert "photosynthesis" in listed
    assert not {"?", "the", "is"} & set(listed)


def test_the_order_is_by_z_and_each_word_is_counted(tmp_path):
    first = record({"sun": 3.0, "warms": 1.0, "earth": 2.0, ".": 0.5, "sea": 0.0})
    found = ordered([first, record({"sun": 1.0}, 1)], tmp_path)
    values = [one["z"] for one in found.values() if one["z"] is not None]
    assert values == sorted(values, reverse=True)
    assert (found["sun"]["count"], found["sun"]["strong"], found["sun"]["strongest"]) == (2, 2, 2)
    assert (found["earth"]["strong"], found["sea"]["strong"]) == (0, 0)


def test_log_odds_are_those_of_the_paper_and_shrink_what_is_rare():
    s, o, all_strong, all_others = 12, 30, 200, 800
    a = PRIOR * (s + o) / (all_strong + all_others)
    delta = math.log((s + a) / (all_strong + PRIOR - s - a)) - math.log((o + a) / (all_others + PRIOR - o - a))
    assert log_odds(s, o, all_strong, all_others) == pytest.approx(
        (delta, delta / math.sqrt(1 / (s + a) + 1 / (o + a)))
    )
    assert log_odds(20, 80, all_strong, all_others) == pytest.approx((0.0, 0.0), abs=1e-12)
    once, often = log_odds(1, 0, all_strong, all_others), log_odds(10, 0, all_strong, all_others)
    assert 0 < once[1] < 2.6 < often[1]
    assert log_odds(0, 0, 0, 0) == (0.0, 0.0)


def test_an_excerpt_is_around_the_words_that_count_and_says_where_it_is():
    text = "x " * 10_000 + "plants make food" + " y" * 10_000
    start = text.index("plants")
    words = [{"text": "plants", "start": start, "end": start + 6, "value": 0.5}]
    found = excerpt({"query": "food", "document": text, "document_words": words, "query_words": []})
    assert len(found["document"]) == LONGEST
    assert found["document_length"] == len(text)
    (word,) = found["document_words"]
    assert found["document"][word["start"] : word["end"]] == "plants"
    assert text[found["document_from"] :].startswith(found["document"])
    shown = pieces(found, "document")
    assert (shown[0], ["plants", 0.5] in shown, shown[-1][-1]) == ("… ", True, "…")
    short = {"query": "food", "document": "plants make food", "document_words": []}
    assert excerpt(short) == short
    assert json.dumps(excerpt({**short, "query": "q" * (LONGEST + 1)})).count('"query_length"') == 1
