"""What a study is made on: questions with candidate documents, read from the formats that such data comes in.

Formats: what `backlight batch` reads as pairs (query, document, and label if it is known) or lists (query, candidates,
labels if they are known), by the same code; JSON in SQuAD's format, whose paragraphs are ranked for each question by
BM25 (bm25s).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backlight.errors import InputError
from backlight.explain.batch.files import suffix_of
from backlight.explain.batch.inputs import FORMATS, Reading, open_input
from backlight.explain.batch.rows import BadRow, Place, Row
from backlight.formats.strict_json import parse_json
from backlight.models.pairs import DOCUMENT
from backlight.models.retrieval.bm25 import best_by_bm25
from backlight.models.scorer import Scorer, Texts

DEPTH = 20  # candidates of a question
READ_AT_ONCE = 256  # pairs
ENDINGS = (".jsonlines", *(ending for endings in FORMATS.values() for ending in endings))  # .json: SQuAD's format
ENDINGS_SAID = ".jsonl, .csv, .tsv, .parquet or .json"
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


def read_questions(
    place: Path, *, titles: Sequence[str] | None = None, left_out: Callable[[Sequence[BadRow]], None] | None = None
) -> list[Listed]:
    """Return all questions of a file or folder.

    Args:
        place: a file of one of the formats, or a folder that holds one such file.
        titles: of data in SQuAD's format, the articles that are used; all by default.
        left_out: called with the rows that cannot be used, if there are any.

    Raises:
        InputError: the file cannot be read as any of the formats, or holds no question.
    """
    file = _file_in(Path(place))
    if suffix_of(file) not in ENDINGS:
        raise InputError(f"the data must be {ENDINGS_SAID}, got {file.name}")
    if suffix_of(file) == ".json":
        return _from_squad(_json(file), file, titles)
    format = "jsonl" if suffix_of(file) == ".jsonlines" else None
    found, bad = _from_records(open_input(file, file.parent, Reading(format=format)).records())
    if not found:
        reason = f"; line {bad[0].line}: {bad[0].reason}" if bad else ""
        raise InputError(f"{file} must hold a question at least, and holds none{reason}")
    if bad and left_out is not None:
        left_out(bad)
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
    files = sorted(file for file in place.iterdir() if suffix_of(file) in ENDINGS)
    if len(files) != 1:
        raise InputError(f"the folder {place} must hold one {ENDINGS_SAID} file, got {len(files)}: name the file")
    return files[0]


def _from_records(records: Iterable[tuple[Place, Iterable[Row | BadRow]]]) -> tuple[list[Listed], list[BadRow]]:
    """Return questions, and rows that are none: a record's list is a question, pairs of one query become one."""
    lists: list[list[Row]] = []
    together: dict[str, list[Row]] = {}
    bad: list[BadRow] = []
    for _, some in records:
        rows = list(some)
        bad += [one for one in rows if isinstance(one, BadRow)]
        good = [one for one in rows if isinstance(one, Row)]
        if len(rows) > 1 and good:
            lists.append(good)
        for one in good if len(rows) == 1 else ():
            together.setdefault(one.query.strip(), []).append(one)
    return [_listed(rows) for rows in (*lists, *together.values())], bad


def _listed(rows: Sequence[Row]) -> Listed:
    labels = tuple(row.label for row in rows)
    documents = tuple(row.document.strip() for row in rows)
    return Listed(rows[0].query.strip(), documents, None if None in labels else labels)


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
