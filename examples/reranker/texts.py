"""The questions and documents that the reranker is trained, validated and tested on.

NOTE [Held out by article]
SQuAD's questions are split by article, so that no paragraph of a tested article, and none about its subject, was seen
in training. The split depends on the seed and the articles' titles alone.
"""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from backlight.errors import InputError

SQUAD, SENTENCES, QED = "squad/squad-36-articles.json", "question_sentence", "qed/qed-dev.jsonlines"


@dataclass(frozen=True)
class Question:
    """A question, the number of the document that answers it, and the answers' texts where they are known."""

    text: str
    positive: int
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Collection:
    """Documents, and questions that some of them answer."""

    name: str
    documents: tuple[str, ...]
    questions: tuple[Question, ...]

    def with_questions(self, count: int, seed: int, skipped: int = 0) -> "Collection":
        """Return the same documents with at most `count` of the questions, drawn by the seed, in their order.

        Args:
            skipped: how many of those drawn are left to others.
        """
        mixed = np.random.default_rng(seed).permutation(len(self.questions))
        chosen = np.sort(mixed[skipped : skipped + count])
        return replace(self, questions=tuple(self.questions[number] for number in chosen))


@dataclass(frozen=True)
class Split:
    """Titles of SQuAD's articles (see NOTE [Held out by article])."""

    training: tuple[str, ...]
    validation: tuple[str, ...]
    held_out: tuple[str, ...]


def split_articles(data: Path, held_out: int, validation: int, seed: int) -> Split:
    """Choose which articles are held out for the test and which are for validation.

    Raises:
        InputError: that leaves none for training.
    """
    titles = sorted(_articles(data))
    if held_out + validation >= len(titles):
        raise InputError(f"held_out and validation must leave articles for training, got {held_out} and {validation}")
    mixed = [titles[place] for place in np.random.default_rng(seed).permutation(len(titles))]
    ends = held_out, held_out + validation
    return Split(*(tuple(sorted(part)) for part in (mixed[ends[1] :], mixed[ends[0] : ends[1]], mixed[: ends[0]])))


def read_paragraphs(data: Path, titles: tuple[str, ...]) -> Collection:
    """Return the paragraphs of these articles of SQuAD, each once, with their questions.

    Raises:
        InputError: there is no such article.
    """
    articles = _articles(data)
    missing = sorted(set(titles) - set(articles))
    if missing:
        raise InputError(f"{data / SQUAD} has no article {', '.join(missing)}: give the data set that it was made with")
    documents: dict[str, int] = {}
    questions = []
    for title in titles:
        for paragraph in articles[title]:
            number = documents.setdefault(paragraph["context"].strip(), len(documents))
            for asked in paragraph["qas"]:
                answers = tuple(sorted({answer["text"] for answer in asked["answers"]}))
                questions.append(Question(asked["question"].strip(), number, answers))
    return Collection("paragraphs", tuple(documents), tuple(questions))


def read_sentences(data: Path) -> Collection:
    """Return the sentences of the question_sentence data set, each once, with their questions."""
    asked, answers = (_lines(data / SENTENCES / f"{name}.txt") for name in ("questions", "sentences"))
    if len(asked) != len(answers):
        raise InputError(f"questions.txt and sentences.txt must have as many lines, got {len(asked)}, {len(answers)}")
    documents: dict[str, int] = {}
    questions = [
        Question(as_written(question), documents.setdefault(as_written(sentence), len(documents)))
        for question, sentence in zip(asked, answers)
    ]
    return Collection("sentences", tuple(documents), tuple(questions))


def read_searched(data: Path) -> Collection:
    """Return QED's paragraphs, each once, with questions that people asked a search engine."""
    documents: dict[str, int] = {}
    questions = []
    for line in _lines(data / QED):
        found = json.loads(line)
        number = documents.setdefault(as_written(found["paragraph_text"]), len(documents))
        questions.append(Question(found["question_text"], number))
    return Collection("searched", tuple(documents), tuple(questions))


def as_written(tokenised: str) -> str:
    """Return a text tokenised as the Penn treebank does, as a person writes it.

    >>> as_written("the `` grotto '' -lrb- 1858 -rrb- , mary 's , does n't cost $ 5 .")
    'the "grotto" (1858), mary\\'s, doesn\\'t cost $5.'
    """
    text = f" {tokenised} "
    for token, sign in _BRACKETS.items():
        text = text.replace(f" {token} ", f" {sign} ")
    text = re.sub(r"(?:``|(?<= )`(?= )) *", "“", text)  # opening: no space after it
    text = re.sub(r" *''", "”", text)  # closing: none before it
    text = re.sub(r" +(n't|'(?:s|re|ve|d|ll|m)\b|[,.;:?!%)\]}…]|\.\.\.|')(?= )", r"\1", text)
    text = re.sub(r"([(\[{$£#]) +", r"\1", text)
    return re.sub(r" +", " ", text).strip().replace("“", '"').replace("”", '"')


_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}


def _articles(data: Path) -> dict[str, list]:
    """Return the paragraphs of each article by its title."""
    found = json.loads(_read(data / SQUAD))
    return {article["title"]: article["paragraphs"] for article in found["data"]}


def _lines(file: Path) -> list[str]:
    return [line.strip() for line in _read(file).splitlines() if line.strip()]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as problem:
        where = "give the folder that holds squad and question_sentence"
        raise InputError(f"cannot read {file}: {problem.strerror}: {where}") from problem
