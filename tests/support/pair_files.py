"""Made-up rows to train a reranker on, in tiny_bert's words: each query names a letter and a place."""

import json
from collections.abc import Sequence
from pathlib import Path

PLACES = ("leaf", "water", "air", "food", "cell", "green", "sunlight", "plants")
LETTERS = "abcdefgh"


def rows(letters: str = LETTERS, places: Sequence[str] = PLACES) -> list[dict]:
    """Return a row for each letter and place: the query, and the only document with both."""
    return [
        {"query": f"make {letter} {place}", "positive": f"the {place} of {letter}"}
        for letter in letters
        for place in places
    ]


def write_rows(file: Path, content: Sequence[dict]) -> Path:
    """Write rows as JSON lines."""
    file.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    return file
