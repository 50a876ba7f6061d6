"""Excerpts of long texts: what the page of a batch and its summary show of a row, the part that gave the score."""

from collections.abc import Mapping

LONGEST = 3000  # characters of a text that an excerpt has
BEFORE = 200  # of these, those before the first word that has a value
SIDES = ("query", "document")


def excerpt(record: Mapping) -> dict:
    """Return a row of a part with excerpts of its long texts, around the words that have values.

    Where a text was cut, `query_from` or `document_from` says at which of its characters the excerpt begins, and
    `query_length` or `document_length` how many the text has; the places of words and tokens are in the excerpt, and
    those outside it are left out.
    """
    found = dict(record)
    for side in SIDES:
        text = record[side]
        if len(text) <= LONGEST:
            continue
        words = record.get(f"{side}_words") or ()
        first = max(0, min((word["start"] for word in words), default=0) - BEFORE)
        first = 0 if first < LONGEST // 2 else first
        last = min(first + LONGEST, len(text))
        found |= {side: text[first:last], f"{side}_from": first, f"{side}_length": len(text)}
        for parts in (f"{side}_words", f"{side}_tokens"):
            if record.get(parts):
                found[parts] = [
                    {**part, "start": part["start"] - first, "end": part["end"] - first}
                    for part in record[parts]
                    if first <= part["start"] and part["end"] <= last
                ]
    return found
