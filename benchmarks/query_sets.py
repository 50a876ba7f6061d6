"""Queries with candidate documents from the collections that models and explanations are tried on.

A folder DATA holds one folder for each collection: `squad`, `covid_qa` (both in SQuAD's form), `medquad`,
`question_sentence`, `fool_me_twice`, `tldr`. Long documents are cut at the end of a sentence into passages, as search
engines index them: an explanation of ten thousand words is another task.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backlight.models.checkpoint import BUILTIN, find_model, read_settings
from backlight.models.retrieval.bm25 import best_by_bm25

CANDIDATES = 8  # documents of a query, the right one among them
PASSAGE = 120  # words of a passage, about
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class Query:
    """A query and its candidate documents; the first is the right one, the others are BM25's best."""

    text: str
    candidates: tuple[str, ...]


@dataclass(frozen=True)
class Texts:
    """Documents, and queries with the number of the document that is right for each."""

    documents: tuple[str, ...]
    queries: tuple[tuple[str, int], ...]


def queries_of(data: Path, collection: str, count: int, seed: int) -> list[Query]:
    """Return `count` queries of a collection, drawn by the seed, each with its candidates.

    Args:
        collection: a key of `COLLECTIONS`.
        count: fewer, if there are fewer.
    """
    if collection == "fool_me_twice":
        found = _claims(data)
        return [found[place] for place in _drawn(len(found), count, seed)]
    texts = COLLECTIONS[collection](data)
    asked = [texts.queries[place] for place in _drawn(len(texts.queries), count, seed)]
    rankings = best_by_bm25(texts.documents, [text for text, _ in asked], CANDIDATES)
    return [
        Query(text, tuple(texts.documents[one] for one in [right, *(one for one in best if one != right)][:CANDIDATES]))
        for (text, right), best in zip(asked, rankings)
    ]


def _drawn(size: int, count: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).permutation(size)[:count].tolist()


def passages_of(text: str, words: int = PASSAGE) -> list[str]:
    """Return a text in passages of whole sentences: each ends with the sentence that brings it to `words` words."""
    passages, held = [], ""
    for sentence in SENTENCE_END.split(text.strip()):
        held = f"{held} {sentence}".strip()
        if len(held.split()) >= words:
            passages, held = [*passages, held], ""
    return [*passages, held] if held else passages


def squad(data: Path, titles: Sequence[str] | None = None) -> Texts:
    """Return the questions and paragraphs of SQuAD's articles: by default those that the built-in model never saw."""
    titles = read_settings(find_model(BUILTIN) / "held_out.json")["articles"] if titles is None else titles
    articles = [one for one in _json(data / "squad/squad-36-articles.json")["data"] if one["title"] in titles]
    paragraphs = [one for article in articles for one in article["paragraphs"]]
    return _numbered((entry["question"], one["context"]) for one in paragraphs for entry in one["qas"])


def covid_qa(data: Path) -> Texts:
    """Return experts' questions, and the passages of scientific articles; the right one holds the answer's start."""
    documents, queries = [], []
    for article in _json(data / "covid_qa/covid_qa.json")["data"]:
        for one in article["paragraphs"]:
            passages = passages_of(one["context"])
            for entry in one["qas"]:
                answer = entry["answers"][0]["text"].strip()
                holding = [number for number, passage in enumerate(passages) if answer in passage]
                if holding:
                    queries.append((entry["question"].strip(), len(documents) + holding[0]))
            documents += passages
    return Texts(tuple(documents), tuple(queries))


def medquad(data: Path) -> Texts:
    """Return health questions and the first passage of their answers."""
    rows = _json_lines(data / "medquad/pairs.jsonl")
    return _numbered((one["question"], passages_of(one["answer"])[0]) for one in rows if one["answer"].strip())


def question_sentence(data: Path) -> Texts:
    """Return questions, and the sentences that answer them."""
    folder = data / "question_sentence"
    lines = [(folder / name).read_text(encoding="utf-8").splitlines() for name in ("questions.txt", "sentences.txt")]
    return _numbered(zip(*lines, strict=True))


def tldr(data: Path) -> Texts:
    """Return tasks, and the pages of the commands that do them: what each is for, and its other tasks."""
    documents, queries = [], []
    for page in _json_lines(data / "tldr/pages.jsonl"):
        if len(page["uses"]) > 1:
            task, *others = [task for task, _ in page["uses"]]
            queries.append((task, len(documents)))
            documents.append(f"{page['command']}: {page['about']} {'. '.join(others)}.")
    return Texts(tuple(documents), tuple(queries))


def fool_me_twice(data: Path) -> Texts:
    """Return claims, and the sentences that are evidence for or against them."""
    return _numbered((one.text, one.candidates[0]) for one in _claims(data))


def _claims(data: Path) -> list[Query]:
    """Return claims with the sentences that were retrieved for them, a gold one first."""
    found = []
    for row in _json_lines(data / "fool_me_twice/dev.jsonl"):
        gold = row["gold_evidence"][0]["text"].strip()
        rest = dict.fromkeys(one["text"].strip() for one in row["retrieved_evidence"])
        candidates = [gold, *(text for text in rest if text and text != gold)][:CANDIDATES]
        if gold and len(candidates) > 2:
            found.append(Query(row["text"].strip(), tuple(candidates)))
    return found


def _numbered(pairs: Iterable[tuple[str, str]]) -> Texts:
    """Return texts from pairs of a query and its document; a document that occurs twice has one number."""
    pairs = [(query.strip(), document.strip()) for query, document in pairs]
    numbers = {document: number for number, document in enumerate(dict.fromkeys(document for _, document in pairs))}
    return Texts(tuple(numbers), tuple(dict.fromkeys((query, numbers[document]) for query, document in pairs)))


def _json(file: Path) -> dict:
    return json.loads(file.read_text(encoding="utf-8"))


def _json_lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


COLLECTIONS: dict[str, Callable[[Path], Texts]] = {
    "squad": squad,
    "covid_qa": covid_qa,
    "medquad": medquad,
    "question_sentence": question_sentence,
    "fool_me_twice": fool_me_twice,
    "tldr": tldr,
}
