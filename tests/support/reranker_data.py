"""A made-up data folder for the reranker's recipe: articles on letters, whose words tiny_bert's vocabulary has."""

import json
from collections.abc import Sequence
from pathlib import Path

PLACES = ("leaf", "water", "air", "food", "cell", "green", "sunlight", "plants")


TITLES = tuple(f"Article_{number}" for number in range(8))


def write_data(folder: Path, titles: Sequence[str] = TITLES) -> Path:
    """Write SQuAD-like articles of four paragraphs, sentences with their questions, and QED's lines."""
    data = [{"title": title, "paragraphs": _paragraphs(number)} for number, title in enumerate(titles)]
    _write(folder / "squad" / "squad-36-articles.json", json.dumps({"data": data}))
    searched = [
        {"question_text": paragraph["qas"][0]["question"].lower(), "paragraph_text": paragraph["context"]}
        for article in data
        for paragraph in article["paragraphs"]
    ]
    _write(folder / "qed" / "qed-dev.jsonlines", "\n".join(map(json.dumps, searched)))
    asked = [f"what is {letter} {place} ?" for letter in "abcdef" for place in PLACES]
    answers = [f"the {letter} {place} is a {letter} of {place} ." for letter in "abcdef" for place in PLACES]
    _write(folder / "question_sentence" / "questions.txt", "\n".join(asked) + "\n")
    _write(folder / "question_sentence" / "sentences.txt", " \n".join(answers) + " \n")
    return folder


def _paragraphs(number: int) -> list[dict]:
    found = []
    for letter in "ghij":
        text = f"In {PLACES[number % 8]} the {letter} of plants make {letter} {number} and food."
        answer = {"text": f"{letter} {number}", "answer_start": text.index(f"{letter} {number}"), "occurrences": 1}
        asked = f"What do the {letter} of plants make in {PLACES[number % 8]}?"
        found.append({"context": text, "qas": [{"question": asked, "answers": [answer]}]})
    return found


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
