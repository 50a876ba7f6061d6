"""What a study is made on: questions with candidate documents, read from the formats that such data comes in.

Formats: JSON lines or CSV of pairs (query, document, and label if it is known); JSON lines of lists (query, candidates,
labels if they are known); JSON in SQuAD's format, whose paragraphs are ranked for each question by BM25 (bm25s).
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backlight.errors import InputError
from backlight.formats.strict_json import parse_json
from backlight.models.pairs import DOCUMENT
from backlight.models.retrieval.bm25 import best_by_bm25
from backlight.models.scorer import Scorer, Texts

DEPTH = 20  # candidates of a question
READ_AT_ONCE = 256  # pairs
RankScores = Callable[[str, Sequence[str]], np.ndarray]  # (query, documents) -> (documents,)


@dataclass(frozen=True)
class Question:
    """A query, the document that is explained, and the others it is ranked among.

    Args:
        labels: how relevant the document and then each rival is; None where that is not known.
    """

    text: str
    document: str
    rivals: tuple[str, ...] = ()
    labels: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Listed:
    """A query with its candidates, as data gives them; it is not yet said which is explained."""

    query: str
    candidates: tuple[str, ...]
    labels: tuple[float, ...] | None = None


@dataclass(frozen=True)
class CutDocuments:
    """Which documents of a study the model does not read to their end.

    A study watches how the score of one pair changes as its words leave, so a long document is cut there, and not read
    in windows.

    Args:
        documents: how many pairs of query and document there are.
        cut: how many of them are cut.
        max_tokens: how many tokens of a pair, or of a text, the model reads.
        most_left_out: tokens of the document that lost most.
    """

    documents: int
    cut: int
    max_tokens: int
    most_left_out: int


def cut_documents(ranker: Scorer, pairs: Sequence[Texts]) -> CutDocuments:
    """Return which documents of some pairs of texts are cut at the model's limit."""
    left_out = [
        pair.left_out[DOCUMENT]
        for start in range(0, len(pairs), READ_AT_ONCE)
        for pair in ranker.read(pairs[start : start + READ_AT_ONCE])
    ]
    return CutDocuments(len(left_out), sum(map(bool, left_out)), ranker.max_tokens, max(left_out, default=0))


def read_questions(place: Path, *, titles: Sequence[str] | None = None) -> list[Listed]:
    """Return all questions of a file or folder.

    Args:
        place: a .jsonl, .csv or .json file, or a folder that holds one such file.
        titles: of data in SQuAD's format, the articles that are used; all by default.

    Raises:
        InputError: the file cannot be read as any of the formats.
    """
    file = _file_in(Path(place))
    readers = {".jsonl": _json_lines, ".jsonlines": _json_lines, ".csv": _csv_rows, ".json": lambda f: [_json(f)]}
    if file.suffix not in readers:
        raise InputError(f"the data must be .jsonl, .csv or .json, got {file.name}")
    rows = readers[file.suffix](file)
    if file.suffix == ".json":
        return _from_squad(rows[0], file, titles)
    found = _from_rows(rows, file)
    if not found:
        raise InputError(f"{file} must hold a question at least, and holds none")
    return found


def choose(listed: Sequence[Listed], ranker_scores: RankScores, count: int, seed: int) -> list[Question]:
    """Return `count` questions in a random order, each with the document that is explained.

    That is the most relevant candidate; where no label says which, the one that the model ranks first.

    Args:
        count: fewer, if there are fewer.
    """
    return [_explained(one, ranker_scores) for one in shuffled(listed, seed)[:count]]


def shuffled(values: Sequence, seed: int) -> list:
    """Return values in a random order, which depends on the seed and their number alone."""
    return [values[place] for place in np.random.default_rng(seed).permutation(len(values)).tolist()]


def _explained(one: Listed, ranker_scores: RankScores) -> Question:
    if len(one.candidates) == 1:
        return Question(one.query, one.candidates[0])
    best = int(np.argmax(one.labels if one.labels is not None else ranker_scores(one.query, one.candidates)))
    order = [best, *(place for place in range(len(one.candidates)) if place != best)]
    labels = None if one.labels is None else tuple(one.labels[place] for place in order)
    return Question(one.query, one.candidates[best], tuple(one.candidates[place] for place in order[1:]), labels)


def _file_in(place: Path) -> Path:
    """Return the data file: the one given, or the only one in a folder."""
    if not place.is_dir():
        if not place.is_file():
            raise InputError(f"there is no data file {place}")
        return place
    files = sorted(file for file in place.iterdir() if file.suffix in (".jsonl", ".jsonlines", ".csv", ".json"))
    if len(files) != 1:
        raise InputError(
            f"the folder {place} must hold one .jsonl, .csv or .json file, got {len(files)}: name the file"
        )
    return files[0]


def _from_rows(rows: Sequence[Mapping], file: Path) -> list[Listed]:
    """Return questions from rows of pairs or lists; pairs of one query become one list."""
    found: list[Listed] = []
    together: dict[str, list[tuple[str, float | None]]] = {}
    for number, row in enumerate(rows, 1):
        where = f"{file.name}, row {number}"
        query = _text(row, "query", where)
        if "candidates" in row:
            found.append(_list_of(row, query, where))
        else:
            label = row.get("label")
            together.setdefault(query, []).append((_text(row, "document", where), _label(label, where)))
    for query, pairs in together.items():
        documents, labels = zip(*pairs)
        found.append(Listed(query, documents, None if None in labels else labels))
    return found


def _list_of(row: Mapping, query: str, where: str) -> Listed:
    """Return a question from a row with candidates: texts, or objects with a text and a label."""
    given = row["candidates"]
    if not isinstance(given, list) or not given:
        raise InputError(f"{where}: candidates must be a list of documents, got {given!r}")
    objects = [one if isinstance(one, Mapping) else {"text": one} for one in given]
    labels = row.get("labels", [one.get("label") for one in objects])
    if len(labels) != len(objects):
        raise InputError(f"{where}: there must be a label for each of {len(objects)} candidates, got {len(labels)}")
    labels = [_label(label, where) for label in labels]
    return Listed(query, tuple(_text(one, "text", where) for one in objects), None if None in labels else tuple(labels))


def _label(label: object, where: str) -> float | None:
    """Return a label as a number; None where there is none."""
    if label is None or label == "":
        return None
    try:
        return float(label)
    except (TypeError, ValueError) as problem:
        raise InputError(f"{where}: label must be a number, got {label!r}") from problem


def _text(row: Mapping, key: str, where: str) -> str:
    text = row.get(key)
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{where}: {key} must be a text that is not empty, got {text!r}")
    return text.strip()


def _from_squad(content: object, file: Path, titles: Sequence[str] | None) -> list[Listed]:
    """Return the questions of SQuAD's articles whose paragraph is among BM25's best."""
    if not isinstance(content, Mapping) or not isinstance(content.get("data"), list):
        raise InputError(f"{file} must be in SQuAD's format, an object with data, and is not")
    try:
        questions = list(_paragraphs(content["data"], None if titles is None else set(titles)))
    except (KeyError, TypeError, AttributeError) as problem:
        raise InputError(
            f"{file} must be in SQuAD's format: articles, paragraphs, qas; it lacks {problem}"
        ) from problem
    if not questions:
        raise InputError(f"{file} must hold questions on {', '.join(titles or ['some article'])}, and holds none")
    documents = list(dict.fromkeys(paragraph for _, paragraph in questions))
    numbers = {paragraph: number for number, paragraph in enumerate(documents)}
    found = []
    for (query, paragraph), best in zip(questions, best_by_bm25(documents, [query for query, _ in questions], DEPTH)):
        if numbers[paragraph] in best:
            labels = tuple(float(number == numbers[paragraph]) for number in best)
            found.append(Listed(query, tuple(documents[number] for number in best), labels))
    return found


def _paragraphs(articles: Sequence[Mapping], titles: set[str] | None) -> Iterator[tuple[str, str]]:
    for article in articles:
        if titles is None or article["title"] in titles:
            for paragraph in article["paragraphs"]:
                for entry in paragraph["qas"]:
                    yield entry["question"].strip(), paragraph["context"].strip()


def _json_lines(file: Path) -> list[Mapping]:
    rows = []
    for number, line in enumerate(_read(file).split("\n"), 1):
        if line.strip():
            try:
                rows.append(parse_json(line))
            except ValueError as problem:
                raise InputError(f"{file.name}, line {number} is not JSON: {problem}") from problem
            if not isinstance(rows[-1], dict):
                raise InputError(f"{file.name}, line {number} must be an object, got {type(rows[-1]).__name__}")
    return rows


def _csv_rows(file: Path) -> list[Mapping]:
    return list(csv.DictReader(io.StringIO(_read(file), newline="")))


def _json(file: Path) -> object:
    try:
        return parse_json(_read(file))
    except ValueError as problem:
        raise InputError(f"{file} is not JSON: {problem}") from problem


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read {file}: {problem}") from problem
