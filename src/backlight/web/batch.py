"""A batch as one self-contained HTML page: scores, words, errors, and rows to browse, sort, filter and search."""

import json
from collections.abc import Iterator
from pathlib import Path

from backlight.explain.batch.job import SAMPLE, SUMMARY
from backlight.explain.batch.words import matters
from backlight.explain.methods.registry import METHODS
from backlight.explain.presentation.scales import PROBABILITY, activation_of_scores
from backlight.explain.presentation.scores import write_probability
from backlight.report.page import THEME, TOKENS, jinja_template, joined, json_island, policy_element
from backlight.report.text import number

HERE = Path(__file__).parent
WORDS = 100  # of each side in the tables
MOST = 12_000_000  # characters of rows that the page carries


def batch_page(folder: Path, version: str) -> str:
    """Return the page of a batch that is done.

    Args:
        folder: the batch's (see NOTE [A batch's folder] in explain/batch/job.py).
        version: backlight's, for the foot of the page.
    """
    summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    method = METHODS.get(summary["job"]["settings"]["method"])
    rows = list(_rows(folder / SAMPLE))
    score, unit = summary["score"], summary["job"]["model"]["score_name"]
    style = joined(TOKENS, HERE / "report.css", HERE / "batch.css")
    script = joined(THEME, HERE / "batch.js")
    return jinja_template(HERE / "batch.html.jinja", "the page").render(
        summary=summary,
        job=summary["job"],
        title=summary["job"]["input"]["files"][0]["name"],
        method=method,
        words={side: _words(words)[:WORDS] for side, words in summary["words"].items()},
        limit=WORDS,
        bars=_bars(score["histogram"]) if score else [],
        rows=rows,
        data=json_island({"rows": rows, "signed": bool(method and method.signed), "unit": unit}),
        number=_number,
        version=version,
        policy=policy_element(scripts=[script], styles=[style], style_attributes=True),
        style=style,
        script=script,
    )


def _number(value: float | None, digits: int = 3) -> str:
    """Return a number for the eye, with a real minus sign."""
    return "–" if value is None else number(value, f"z,.{digits}f")


def _rows(file: Path) -> Iterator[dict]:
    """Give the rows that the page carries, short names for short pages; no more than `MOST` characters of them."""
    carried = 0
    with open(file, encoding="utf-8", newline="\n") as content:
        for line in content:
            record = json.loads(line)
            scores = record["score"], record["activated"]
            likely = activation_of_scores([scores]) == PROBABILITY
            row = {
                "line": record["line"],
                "id": record["id"],
                "score": record["score"],
                "probability": write_probability(scores[1]) if likely else None,
                "label": record.get("label"),
                "why": record["why"],
                "unread": record["query_left_out"] + record["document_left_out"],
                "query": pieces(record, "query"),
                "document": pieces(record, "document"),
                "window": [record.get("window"), record["windows"]] if record.get("windows", 1) > 1 else None,
            }
            carried += len(line)
            if carried > MOST:
                return
            yield row


def pieces(record: dict, side: str) -> list:
    """Return a text as what stands between words (texts) and words ([text, value]), with … where it is an excerpt.

    >>> pieces({"query": "so it is", "query_words": [{"text": "it", "start": 3, "end": 5, "value": 0.25}]}, "query")
    ['so ', ['it', 0.25], ' is']
    """
    text, done = record[side], 0
    first, length = record.get(f"{side}_from", 0), record.get(f"{side}_length", len(text))
    found: list = ["… "] * (first > 0)
    for word in record.get(f"{side}_words") or ():
        found += [text[done : word["start"]]] * (word["start"] > done)
        found.append([text[word["start"] : word["end"]], float(f"{word['value']:.4g}")])
        done = word["end"]
    rest = text[done:] + ("…" if first + len(text) < length else "")
    return found + [rest] * bool(rest)


def _words(words: list[dict]) -> list[dict]:
    """Return the words that are strong more often than is usual, with the width of their bars in percent."""
    kept = [word for word in words if matters(word)]
    most = max((word["z"] for word in kept), default=0) or 1
    return [word | {"width": 100 * word["z"] / most} for word in kept]


def _bars(histogram: dict) -> list[dict]:
    """Return the histogram's bars, in percent of its width and height, with the part of each that is relevant."""
    counts = histogram["counts"]
    most, width = max(counts), 100 / len(counts)
    return [
        {
            "left": place * width,
            "width": width,
            "height": 100 * count / most,
            "relevant": 100 * good / count if count else 0,
            "title": f"{count:,} pairs" + (f", {good:,} of them relevant" if any(histogram["relevant"]) else ""),
        }
        for place, (count, good) in enumerate(zip(counts, histogram["relevant"]))
    ]
