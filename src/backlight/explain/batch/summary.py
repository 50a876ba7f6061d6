"""What was found in all rows of a batch: scores, words, errors, bad rows. Read from the parts, one at a time."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from backlight.explain.batch.files import write_file
from backlight.explain.batch.job import SAMPLE, SUMMARY
from backlight.explain.batch.parts import Parts, line_of, write_records
from backlight.explain.batch.rank_quality import query_summary
from backlight.explain.batch.sample import chosen_rows, errors, records_with
from backlight.explain.batch.settings import Settings
from backlight.explain.batch.tally import SIDES, WORD_COLUMNS, Tally, label_summary, score_summary, word_records
from backlight.explain.batch.texts import groups

WORDS_LISTED = 200  # words of each side in summary.json; words.* has all
NAMED = 5  # strongest words named with an error


def summarise(
    folder: Path, parts: Parts, job: dict, settings: Settings, rows: int, ideal: Callable[[str], Sequence[float] | None]
) -> dict:
    """Write summary.json, words.*, sample.jsonl and bad_rows.jsonl, and return the summary.

    Args:
        job: what job.json says.
        rows: how many rows the input has, bad ones counted.
        ideal: all grades that are known for a query (see NOTE [A source] in explain/batch/formats.py).
    """
    tally = Tally(folder / f".{SUMMARY}.sqlite")
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
            "score": score_summary(tally),
            "labels": labels and labels | {f"{why}s": [described[row] for row in wrong[why]] for why in wrong},
            "queries": query_summary(tally, ideal) if labels else None,
            "words": {side: list(word_records(tally, side, most=WORDS_LISTED)) for side in SIDES},
            "sample": {"rows": len(chosen), "all": len(chosen) == rows - bad["count"]},
        }
        parts.join_bad_rows()
        if settings.explains:
            words = groups(word_records(tally, "%"))
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
            lines.append(line_of({"why": chosen[row], **record}))
        if row in errors:
            described[row] = _described(record)
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
