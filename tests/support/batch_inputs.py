"""Inputs of batches, and what their output folders hold."""

import gzip
import json
import random
from pathlib import Path

import pyarrow
import pyarrow.parquet

PAIRS = [
    ("what do plants eat", "Plants make food from sunlight, water and air.", 1),
    ("what do plants eat", 'The "green" leaf\nof a cell', 0),
    ("ä leaf 東京", "un-like 🌿 air, 京 (water)!", 1),
    ("food", "water", 0),
]


WORDS = [
    "plants",
    "make",
    "food",
    "from",
    "sunlight",
    "water",
    "and",
    "air",
    "the",
    "leaf",
    "of",
    "a",
    "green",
    "cell",
    "ä",
    "東",
]


def write_lines(file: Path, lines) -> Path:
    content = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file


def parts_of(folder: Path) -> list[dict]:
    found = []
    for file in sorted((folder / "parts").iterdir()):
        if file.suffix == ".parquet":
            found += pyarrow.parquet.read_table(file).to_pylist()
        else:
            found += [json.loads(line) for line in file.read_text().splitlines()]
    return found


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return all that a batch wrote; the lock's files are no output."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".lock")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def many(count: int, seed: int = 0) -> list[dict]:
    rng = random.Random(seed)
    return [
        {"query": " ".join(rng.choices(WORDS, k=3)), "document": " ".join(rng.choices(WORDS, k=rng.randint(1, 30)))}
        for _ in range(count)
    ]


def collection_in(folder):
    """Write a BEIR folder: queries 0, 2 and 3, documents 0 to 3 and one that nobody asks for."""
    (folder / "qrels").mkdir()
    write_lines(folder / "queries.jsonl", [{"_id": f"q{n}", "text": PAIRS[n][0]} for n in (0, 2, 3)])
    texts = [{"_id": f"d{n}", "title": "", "text": text} for n, (_, text, _) in enumerate(PAIRS)]
    write_lines(folder / "corpus.jsonl", [*texts, {"_id": "d9", "text": "air"}])
    return folder


def as_beir(folder):
    collection_in(folder)
    judged = [f"q{n if n != 1 else 0}\td{n}\t{label}" for n, (_, _, label) in enumerate(PAIRS)]
    write_lines(folder / "qrels" / "test.tsv", ["query-id\tcorpus-id\tscore", *judged])
    return folder, {}
