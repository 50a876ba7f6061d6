"""Inputs of batches, and what their output folders hold."""

import gzip
import json
import random
import resource
from pathlib import Path

import pyarrow
import pyarrow.parquet

from backlight.explain.batch import Columns

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


def records(pairs=PAIRS) -> list[dict]:
    return [{"query": query, "document": document, "label": label} for query, document, label in pairs]


# --- ways in: each gives what a batch is given, and how it is read ---


def as_jsonl(folder):
    return write_lines(folder / "a.jsonl", records()), {}


def as_gzip(folder):
    return write_lines(folder / "a.jsonl.gz", records()), {}


def as_jsonl_with_mark_and_windows_line_ends(folder):
    (folder / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join(map(json.dumps, records())).encode())
    return folder / "a.jsonl", {}


def as_lists(folder):
    first = {"query": PAIRS[0][0], "documents": [{"text": text, "label": label} for _, text, label in PAIRS[:2]]}
    return write_lines(folder / "a.jsonl", [first, *records(PAIRS[2:])]), {}


def as_lists_with_labels_beside_them(folder):
    first = {
        "query": PAIRS[0][0],
        "documents": [text for _, text, _ in PAIRS[:2]],
        "labels": [one[2] for one in PAIRS[:2]],
    }
    rest = [{"query": query, "documents": [{"text": text}], "label": label} for query, text, label in PAIRS[2:]]
    return write_lines(folder / "a.jsonl", [first, *rest]), {}


def as_parquet_lists(folder):
    first = {
        "query": PAIRS[0][0],
        "documents": [text for _, text, _ in PAIRS[:2]],
        "labels": [one[2] for one in PAIRS[:2]],
    }
    rest = [{"query": query, "documents": [text], "labels": [label]} for query, text, label in PAIRS[2:]]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([first, *rest]), folder / "a.parquet")
    return folder / "a.parquet", {}


def as_csv(folder):
    lines = ["label;passage;query", *(f'{label};"{doc.replace(chr(34), chr(34) * 2)}";{q}' for q, doc, label in PAIRS)]
    return write_lines(folder / "a.csv", lines), {"columns": Columns(document="passage")}


def as_parquet(folder):
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records()), folder / "a.parquet")
    return folder / "a.parquet", {}


def as_folder_of_parquet(folder):
    (folder / "parquet").mkdir()
    for number in range(2):
        table = pyarrow.Table.from_pylist(records(PAIRS[2 * number : 2 * number + 2]))
        pyarrow.parquet.write_table(table, folder / "parquet" / f"{number}.parquet")
    return folder / "parquet", {}


def as_records(folder):
    return records(), {}


def as_trec(folder):
    collection_in(folder)
    run = [f"q{n if n != 1 else 0} Q0 d{n} {n + 1} {9 - n} tag" for n in range(4)]
    judged = [f"q{n if n != 1 else 0} 0 d{n} {label}" for n, (_, _, label) in enumerate(PAIRS)]
    files = {name: folder / f"{name}.jsonl" for name in ("corpus", "queries")}
    files["qrels"] = write_lines(folder / "qrels.txt", judged)
    return write_lines(folder / "run.txt", run), files


WAYS = [
    as_jsonl,
    as_gzip,
    as_jsonl_with_mark_and_windows_line_ends,
    as_lists,
    as_lists_with_labels_beside_them,
    as_csv,
    as_parquet,
    as_parquet_lists,
]
WAYS += [as_folder_of_parquet, as_records, as_beir, as_trec]


def small_files_only(limit: int):
    """Return what makes every file of a process end at some bytes, as a full disk does.

    Give Python -B: bytecode that is cut off stays, and every process after it fails.
    """
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
