"""The collections of the data folder: articles in SQuAD's form, health questions, commands, sentences.

fool_me_twice and QED are read here for tests alone; no row of training is made of them.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from backlight.models.checkpoint import BUILTIN, find_model, read_settings
from reranker.texts import as_written
from reranker_sources.passages import passages_of
from reranker_sources.source import Collector, Source, digest

SQUAD, COVID = "squad/squad-36-articles.json", "covid_qa/covid_qa.json"
MEDQUAD, TLDR = "medquad/pairs.jsonl", "tldr/pages.jsonl"
CLAIMS, QED = "fool_me_twice/dev.jsonl", "qed/qed-dev.jsonlines"
SENTENCES = ("question_sentence/questions.txt", "question_sentence/sentences.txt")
WIKIPEDIA = "CC BY-SA 4.0 (Wikipedia)"
BLOCK = 200  # lines of question_sentence, whose articles are not marked, that count as a group
ABOUT = ("{}", "what does the command {} do?", "command {}", "what is {} for")


def kept_out() -> tuple[frozenset[str], frozenset[str]]:
    """Return the titles of SQuAD's articles that are held out for the test, and those for validation."""
    settings = read_settings(find_model(BUILTIN) / "held_out.json")
    return frozenset(settings["articles"]), frozenset(settings["validation"])


def squad(data: Path) -> Source:
    """Return the questions on SQuAD's articles that may be trained on."""
    return _squad(data, frozenset().union(*kept_out()), inside=False)


def squad_test(data: Path) -> Source:
    """Return the questions on the articles that are held out."""
    return _squad(data, kept_out()[0], inside=True)


def squad_validation(data: Path) -> Source:
    """Return the questions on the articles for validation."""
    return _squad(data, kept_out()[1], inside=True)


def _squad(data: Path, titles: frozenset[str], *, inside: bool) -> Source:
    found = Collector()
    for article in _json(data / SQUAD)["data"]:
        if (article["title"] in titles) == inside:
            for paragraph in article["paragraphs"]:
                number = found.passage(paragraph["context"], article["title"])
                for entry in paragraph["qas"]:
                    found.ask(entry["question"], number, "question", answers=_answers(entry))
    return found.source("squad", "encyclopedia", WIKIPEDIA, (data / SQUAD,))


def covid_qa(data: Path) -> Source:
    """Return experts' questions on scientific articles; the right passage holds the answer's beginning."""
    found = Collector()
    for place, article in enumerate(_json(data / COVID)["data"]):
        for paragraph in article["paragraphs"]:
            passages = passages_of(paragraph["context"], (60, 120, 120, 180))
            numbers = [found.passage(passage, f"article {place}") for passage in passages]
            for entry in paragraph["qas"]:
                answer = " ".join(entry["answers"][0]["text"].split())
                start = " ".join(answer.split()[:8])
                holding = [number for number in numbers if start in found.passages[number].text]
                if answer and holding:
                    also = frozenset(holding)
                    found.ask(entry["question"], holding[0], "question", answers=(answer,), also=also)
    return found.source("covid_qa", "science", "Apache-2.0; articles CC BY", (data / COVID,))


def medquad(data: Path) -> Source:
    """Return health questions, and the beginnings of their answers."""
    found = Collector()
    same: dict[tuple[str, str], set[int]] = {}
    rows = []
    for row in _json_lines(data / MEDQUAD):
        text = re.sub(r"^(Key Points|Summary)\s*[-:]\s*", "", row["answer"].strip())
        if len(text.split()) < 8 or text.startswith(("These resources", "Frequently Asked")):
            continue
        focus = row["focus"].casefold()
        numbers = [found.passage(passage, focus) for passage in passages_of(text, (60, 100, 150, 200, 300))]
        same.setdefault((focus, row["type"]), set()).update(numbers)
        rows.append((row, focus, numbers[0]))
    for row, focus, number in rows:
        also = frozenset(same[focus, row["type"]])
        found.ask(_asked_plainly(row["question"]), number, "question", also=also)
        if digest(row["question"]) % 4 == 0 and row["type"] != "information":
            found.ask(f"{row['focus']} {row['type']}", number, "title", also=also)
    return found.source("medquad", "health", "CC BY 4.0", (data / MEDQUAD,))


def _asked_plainly(question: str) -> str:
    """Return a question without the marks of the templates that it was made by."""
    question = question.replace(" (are)", "")
    question = re.sub(r"\s+([?.,])", r"\1", " ".join(question.split()))
    return re.sub(r"\?+$", "?", question)


def tldr(data: Path) -> Source:
    """Return tasks, and pages of commands that do not name the task itself, or the line that does it."""
    found = Collector()
    pages = _json_lines(data / TLDR)
    named: dict[str, set[int]] = {}
    asked = []
    for page in pages:
        if len(page["uses"]) < 2:
            continue
        command, group = page["command"], page["command"].split()[0].split("-")[0]
        left_out = digest(command) % len(page["uses"])
        others = [_line(use) if digest(command) % 3 == 0 else use[0] for use in page["uses"]]
        del others[left_out]
        about = page["about"].split("More information")[0].strip()
        number = found.passage(f"{command}: {about} {'. '.join(others)}.", group)
        named.setdefault(command, set()).add(number)
        task, line = page["uses"][left_out]
        task = task.replace("[", "").replace("]", "")
        asked.append((task, number, "task", command))
        if digest(command + "line") % 2:
            alone = found.passage(f"{_typed(line)} ({command}: {about})", group)
            named[command].add(alone)
            asked.append((f"how to {task[0].lower()}{task[1:]}", alone, "task", command))
        if digest(command + "about") % 5 == 0:
            form = ABOUT[digest(command + "form") % len(ABOUT)]
            asked.append((form.format(command), number, "definition", command))
    for query, number, form, command in asked:
        found.ask(query, number, form, also=frozenset(named[command]))
    return found.source("tldr", "commands", "CC BY 4.0", (data / TLDR,))


def _line(use: Sequence[str]) -> str:
    return f"{use[0]}: {_typed(use[1])}"


def _typed(line: str) -> str:
    """Return a command line without the braces around what the reader puts in."""
    return line.replace("{{", "").replace("}}", "")


def question_sentence(data: Path) -> Source:
    """Return questions, and the sentences that answer them."""
    found = Collector()
    questions, sentences = ((data / name).read_text(encoding="utf-8").splitlines() for name in SENTENCES)
    for place, (question, sentence) in enumerate(zip(questions, sentences, strict=True)):
        number = found.passage(as_written(sentence), f"lines {place // BLOCK}")
        found.ask(as_written(question), number, "question")
    files = tuple(data / name for name in SENTENCES)
    return found.source("question_sentence", "encyclopedia", "MIT; text CC BY-SA 4.0 (Wikipedia)", files)


def fool_me_twice(data: Path) -> Source:
    """Return claims, and the sentences retrieved as evidence for or against them: a test, never trained on."""
    found = Collector()
    for place, row in enumerate(_json_lines(data / CLAIMS)):
        gold = [found.passage(one["text"], f"claim {place}") for one in row["gold_evidence"] if one["text"].strip()]
        for one in row["retrieved_evidence"]:
            if one["text"].strip():
                found.passage(one["text"], f"claim {place}")
        if gold:
            found.ask(row["text"], gold[0], "claim", also=frozenset(gold))
    return found.source("fool_me_twice", "claims", "Apache-2.0; text CC BY-SA (Wikipedia)", (data / CLAIMS,))


def qed(data: Path) -> Source:
    """Return questions put to a search engine, and sentences of Wikipedia: a test, never trained on."""
    found = Collector()
    for place, row in enumerate(_json_lines(data / QED)):
        answers = tuple(one["string"] for one in row["original_nq_answers"][0]) if row["original_nq_answers"] else ()
        chosen = row.get("annotation", {}).get("selected_sentence")
        if not chosen:
            continue
        paragraph, starts = row["paragraph_text"], [*row["sentence_starts"], len(row["paragraph_text"])]
        numbers = {}
        for start, end in zip(starts, starts[1:]):
            if paragraph[start:end].strip():
                numbers[start] = found.passage(as_written(paragraph[start:end]), f"paragraph {place}")
        right = numbers.get(max((start for start in numbers if start <= chosen["start"]), default=-1))
        if right is not None:
            also = frozenset(
                one for one in numbers.values() if any(text in found.passages[one].text for text in answers)
            )
            found.ask(row["question_text"], right, "question", answers=answers, also=also)
    return found.source("qed", "searches", "CC BY-SA 3.0 (Wikipedia)", (data / QED,))


def _answers(entry: dict) -> tuple[str, ...]:
    return tuple(dict.fromkeys(answer["text"] for answer in entry["answers"]))


def _json(file: Path) -> dict:
    return json.loads(file.read_text(encoding="utf-8"))


def _json_lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
