"""A batch as one self-contained HTML page: scores, words, errors, and rows to browse, sort, filter and search."""

import json
from collections.abc import Iterator
from pathlib import Path

from backlight.explain.batch.job import SAMPLE, SUMMARY
from backlight.explain.batch.words import matters
from backlight.explain.methods.registry import METHODS
from backlight.explain.presentation.scales import FAILS, NO_EFFECT, PROBABILITY, activation_of_scores
from backlight.explain.presentation.scores import write_probability
from backlight.explain.presentation.verdict import FAITHFUL, MEASURED, UNFAITHFUL, WITHOUT_EFFECT
from backlight.explain.presentation.wording import count_of, figure
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
    score, unit = summary["score"], summary["job"]["model"]["score_name"]
    rows = list(_rows(folder / SAMPLE, unit))
    style = joined(TOKENS, HERE / "report.css", HERE / "batch.css")
    script = joined(THEME, HERE / "batch.js")
    return jinja_template(HERE / "batch.html.jinja", "the page").render(
        summary=summary,
        job=summary["job"],
        title=summary["job"]["input"]["files"][0]["name"],
        method=method,
        checked=any(row["check"] for row in rows),
        words={side: _words(words)[:WORDS] for side, words in summary["words"].items()},
        limit=WORDS,
        bars=_bars(score["histogram"]) if score else [],
        rows=rows,
        estimates=any(len(piece) == 3 for row in rows for piece in row["document"] if not isinstance(piece, str)),
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


def _rows(file: Path, unit: str) -> Iterator[dict]:
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
                "verdict": record.get("check_verdict"),
                "check": check_line(record, unit),
                "query": pieces(record, "query"),
                "document": pieces(record, "document"),
                "window": [record.get("window"), record["windows"]] if record.get("windows", 1) > 1 else None,
            }
            carried += len(line)
            if carried > MOST:
                return
            yield row


def check_line(record: dict, unit: str) -> str | None:
    """Return what the check of a row's explanation found, in a sentence; None if there was no check.

    >>> measured = {"check_drop": 1.1, "check_random": -0.05, "check_signs": 7, "check_counted": 8}
    >>> line = check_line({"check_verdict": "holds", **measured}, "logit")
    >>> print(line.replace("; ", ";\\n"))
    Faithful: without its strongest words the logit falls by 1.10, without as many others it rises by 0.05;
    7 of 8 words move it as shown
    """
    verdict = record.get("check_verdict")
    if verdict is None:
        return None
    if verdict == NO_EFFECT:
        return f"{WITHOUT_EFFECT}: no word that was deleted changes the {unit}"
    drop, random = record["check_drop"], record.get("check_random")
    said = f"without its strongest words the {unit} {_moves(drop, random or 0.0)}"
    if random is not None:
        said += f", without as many others it {_moves(random, drop)}"
    if record.get("check_signs") is not None and record["check_counted"]:
        moves = "moves" if record["check_counted"] == 1 else "move"
        said += f"; {record['check_signs']} of {count_of(record['check_counted'], 'word')} {moves} it as shown"
    if verdict == FAILS:
        return f"{UNFAITHFUL}, do not believe these colours: {said}"
    return f"{MEASURED if random is None else FAITHFUL}: {said}"


def _moves(drop: float, beside: float) -> str:
    return f"{'rises' if drop < 0 else 'falls'} by {figure(abs(drop), beside=[beside])}"


def pieces(record: dict, side: str) -> list:
    """Return a text as what stands between words (texts) and words ([text, value]), with … where it is an excerpt.

    A word whose value is an estimate beside measured ones is [text, value, 1].

    >>> pieces({"query": "so it is", "query_words": [{"text": "it", "start": 3, "end": 5, "value": 0.25}]}, "query")
    ['so ', ['it', 0.25], ' is']
    """
    text, done = record[side], 0
    first, length = record.get(f"{side}_from", 0), record.get(f"{side}_length", len(text))
    estimates = any(_is_measured(word) for part in ("query", "document") for word in record.get(f"{part}_words") or ())
    found: list = ["… "] * (first > 0)
    for word in record.get(f"{side}_words") or ():
        found += [text[done : word["start"]]] * (word["start"] > done)
        estimated = [1] * (estimates and not _is_measured(word))
        found.append([text[word["start"] : word["end"]], float(f"{word['value']:.4g}"), *estimated])
        done = word["end"]
    rest = text[done:] + ("…" if first + len(text) < length else "")
    return found + [rest] * bool(rest)


def _is_measured(word: dict) -> bool:
    return word.get("effect") == word["value"]


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
