"""A made-up data folder and made-up Debian packages, in the forms that the sources of pairs are read from."""

import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ILLNESSES = ("fever", "rash", "pain", "cough")
THINGS = ("anchor", "bellows", "candle", "drill", "engine", "funnel", "gauge", "hammer", "insulator", "jack")
PLACES = ("Aberdeen", "Bergen", "Cadiz", "Dakar", "Exeter", "Fukuoka", "Geneva", "Havana", "Izmir", "Jakarta")
HELD_OUT, VALIDATION = "Force", "Jacksonville,_Florida"  # articles of the built-in model's held_out.json
SECRET = "zeppelin"  # a word of the articles that are kept out


def write_data(folder: Path) -> Path:
    """Write every collection of the data folder."""
    squad = [_article(f"Article_{number}", number) for number in range(6)]
    squad += [_article(HELD_OUT, 7, SECRET), _article(VALIDATION, 8, SECRET)]
    _json(folder / "squad/squad-36-articles.json", {"data": squad})
    _json(folder / "covid_qa/covid_qa.json", {"data": [_article(f"Paper_{number}", number) for number in range(12)]})
    asked = [f"where was the {thing} of {place} made ?" for thing in THINGS for place in PLACES]
    lines = [f"the {thing} of {place} was made by {place[:3]} smiths ." for thing in THINGS for place in PLACES]
    _text(folder / "question_sentence/questions.txt", "\n".join(asked * 12))
    _text(folder / "question_sentence/sentences.txt", "\n".join(lines * 12))
    health = [
        {
            "source": "S",
            "focus": f"{thing} {illness}",
            "type": kind,
            "question": f"What is (are) the {kind} of {thing} {illness} ??",
            "answer": f"The {kind} of {thing} {illness} are {place}, rest, and {filler(thing + illness + kind)}.",
        }
        for thing, place in zip(THINGS, PLACES)
        for illness in ILLNESSES
        for kind in ("symptoms", "treatment")
    ]
    _lines(folder / "medquad/pairs.jsonl", health)
    commands = [
        {
            "command": f"{thing}ctl",
            "about": f"Control a {thing}.",
            "uses": [
                [f"Start the {thing}", f"{thing}ctl start"],
                [f"Paint the {thing} [r]ed", f"{thing}ctl paint {{{{red}}}}"],
            ],
        }
        for thing in THINGS
    ]
    _lines(folder / "tldr/pages.jsonl", commands)
    claims = [
        {
            "text": f"The {thing} comes from {place}.",
            "gold_evidence": [{"text": f"In {place} the {thing} was invented."}],
            "retrieved_evidence": [{"text": f"The {thing} is heavy."}, {"text": f"{place} lies by the water."}],
        }
        for thing, place in zip(THINGS, PLACES)
    ]
    _lines(folder / "fool_me_twice/dev.jsonl", claims)
    searched = [_searched(thing, place) for thing, place in zip(THINGS, PLACES)]
    _lines(folder / "qed/qed-dev.jsonlines", searched)
    return folder


def write_debian(root: Path) -> Path:
    """Write a page of a handbook in HTML, one in Mallard, and two dictionaries."""
    for number, thing in enumerate(THINGS):
        page = PAGE.format(thing=thing, Thing=thing.capitalize(), place=PLACES[number])
        _text(root / f"usr/share/doc/python3.11/html/library/{thing}.html", page)
    _text(root / "usr/share/help/C/gnome-help/net.page", MALLARD)
    nouns = "  1 the licence of the dictionary\n" + "".join(
        f"{number:08d} 06 n 02 {thing} 0 {thing}_machine 0 000 | a heavy tool that is used in {place} for old ships;"
        f' "the {thing} broke"\n'
        for number, (thing, place) in enumerate(zip(THINGS, PLACES))
    )
    _text(root / "usr/share/wordnet/data.noun", nouns)
    _text(root / "usr/share/wordnet/data.verb", "")
    _text(root / "usr/share/wordnet/data.adj", "")
    _text(root / "usr/share/wordnet/cntlist.rev", f"{THINGS[0]}%1:06:00:: 1 20\n")
    entries, index = b"", ""
    for thing in THINGS:
        entry = (
            f"{thing} bug\n /{thing}/, n.\n\n    A bug that comes back whenever the {thing} is moved by {{hackers}}.\n"
        )
        index += f"{thing} bug\t{_digits(len(entries))}\t{_digits(len(entry))}\n"
        entries += entry.encode()
    _text(root / "usr/share/dictd/jargon.index", index)
    (root / "usr/share/dictd/jargon.dict.dz").write_bytes(gzip.compress(entries))
    return root


def filler(seed: str, count: int = 12) -> str:
    """Return made-up words that depend on the seed."""
    return " ".join(
        f"{THINGS[number % 10][:3]}{zlib.crc32(f'{seed}{number}'.encode()) % 997}" for number in range(count)
    )


def letters(texts: Sequence[str]) -> np.ndarray:
    """Return an embedding of each text by its words alone, of length one."""
    found = np.zeros((len(texts), 64), np.float32)
    for row, text in zip(found, texts):
        for word in text.casefold().split():
            row[zlib.crc32(word.encode()) % 64] += 1
    return found / np.maximum(1e-6, np.linalg.norm(found, axis=1, keepdims=True))


def _article(title: str, number: int, word: str = "old") -> dict:
    paragraphs = []
    for place, thing in zip(PLACES, THINGS):
        year = 1900 + 7 * number + PLACES.index(place)
        text = (
            f"The {word} {thing} stood in {place} for a long time, and many came to {place} to see it. "
            f"It weighed {number + 3} tons, {filler(title + place)}. The {thing} was sold to {title} in {year}."
        )
        answer = {"text": str(year), "answer_start": text.index(str(year)), "occurrences": 1}
        asked = f"When was the {word} {thing} of {place} sold by number {number}?"
        paragraphs.append({"context": text, "qas": [{"question": asked, "answers": [answer]}]})
    return {"title": title, "paragraphs": paragraphs}


def _searched(thing: str, place: str) -> dict:
    first, second = f"The {thing} was invented in {place} . ", "It is still in use ."
    return {
        "question_text": f"where was the {thing} invented",
        "paragraph_text": first + second,
        "sentence_starts": [0, len(first)],
        "original_nq_answers": [[{"string": place}]],
        "annotation": {"selected_sentence": {"start": 0, "end": len(first), "string": first}},
    }


def _digits(number: int) -> str:
    """Return a number in DICT's digits."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return (_digits(number // 64) if number >= 64 else "") + alphabet[number % 64]


def _json(file: Path, content: dict):
    _text(file, json.dumps(content))


def _lines(file: Path, rows: list[dict]):
    _text(file, "\n".join(map(json.dumps, rows)))


def _text(file: Path, text: str):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


PAGE = """<html><head><title>{Thing} control — Python 3</title><style>p {{}}</style></head><body>
<div class="sphinxsidebar"><h3>Table of Contents</h3><p>This text is no part of the page.</p></div>
<div class="body"><h1>Controlling the old {thing}<a class="headerlink" href="#x">¶</a></h1>
<p>The {thing} module controls a {thing} from {place} over a serial line, and reads its state.</p>
<h2>2.1. Is the {thing} safe to touch?</h2>
<p>It is safe once the lamp is out. Wait a minute before the {thing} is opened, or longer where the room is warm. The
lid stays locked until then in every model sold in {place}, so nothing can go wrong with the {thing} there at all.</p>
<dl><dt>{thing}.start(speed=3)</dt><dd><p>Set the {thing} in motion at a given speed and return at once. The speed is
in turns a second; the {thing} keeps it until another call changes it or until the power of {place} fails.</p></dd></dl>
</div></body></html>"""
MALLARD = """<page xmlns="http://projectmallard.org/1.0/" type="topic"><info><credit><name>Ann Author</name></credit>
<desc>Get on the internet without any cable.</desc></info><title>Connect to a wireless network</title>
<p>Open the system menu from the right side of the top bar, choose the network, and enter its password.</p></page>"""
