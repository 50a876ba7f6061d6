"""Words and what they mean: WordNet, and dictionaries in the format of DICT (RFC 2229's servers)."""

import gzip
import re
from collections import Counter
from pathlib import Path

from reranker_sources.passages import STOPWORDS, sentences_of, words_of
from reranker_sources.source import Collector, Source, digest

WORDNET, JARGON = "usr/share/wordnet", "usr/share/dictd/jargon"
KINDS = {"data.noun": "n", "data.verb": "v", "data.adj": "a"}
SENSES = 10_000  # synsets at most, the commonest first
CLEAR = 2  # senses of a word, at most, that a question is made of: among more no reader can tell which one is meant
ASKED = ("what is {}", "what does {} mean?", "{}", "meaning of {}", "define {}")


def wordnet(root: Path) -> Source:
    """Return words with their definitions: asked for by the word, by a synonym, or by the definition."""
    found = Collector()
    folder = root / WORDNET
    counts = _counts(folder / "cntlist.rev")
    synsets = [
        one for name in KINDS for one in _synsets(folder / name) if len(words_of(one[1])) >= 6 and len(one[1]) < 600
    ]
    synsets.sort(key=lambda one: (-counts.get(one[0][0].casefold(), 0), one[0], one[1]))
    often = Counter(lemma.casefold() for lemmas, _ in synsets for lemma in lemmas)
    clear = [one for one in synsets if all(often[lemma.casefold()] <= CLEAR for lemma in one[0])]
    senses: dict[str, set[int]] = {}
    asked = []
    for lemmas, gloss in clear[:SENSES]:
        chosen = digest(gloss)
        definition, *examples = [part.strip(' "') for part in re.split(r';\s*(?=")', gloss)]
        shown = lemmas[chosen % len(lemmas)]
        texts = f"{shown}: {gloss}", f"{shown} means {definition}.", f"{', '.join(lemmas)}. {definition}"
        numbers = [found.passage(texts[chosen % 3], lemmas[0])]
        others = [lemma for lemma in lemmas if lemma != shown]
        word = others[chosen % len(others)] if others else shown
        asked.append((ASKED[chosen // 7 % len(ASKED)].format(word), numbers[0], "definition", lemmas))
        if examples and chosen % 3 == 0:
            numbers.append(found.passage(f"{', '.join(lemmas)}. {examples[0]}", lemmas[0]))
            asked.append((definition, numbers[1], "definition", lemmas))
        for lemma in lemmas:
            senses.setdefault(lemma.casefold(), set()).update(numbers)
    for query, number, form, lemmas in asked:
        also = frozenset().union(*(senses[lemma.casefold()] for lemma in lemmas))
        found.ask(query, number, form, also=also)
    files = tuple(folder / name for name in [*KINDS, "cntlist.rev"])
    return found.source("wordnet", "words", "WordNet 3.0 (Princeton; free use with notice)", files)


def jargon(root: Path) -> Source:
    """Return the words of hackers' slang with what they mean."""
    found = Collector()
    for word, entry in _dict_entries(root / JARGON):
        text = re.sub(r"^\s*(/[^/]*/,?\s*)+(?:\w{1,4}\.,?\s*)*", "", entry).replace("{", "").replace("}", "")
        text = re.sub(r"^\s*(?:\w{1,4}\.\s*)+(?=[A-Z\[])", "", " ".join(text.split()))
        sentences = sentences_of(text)
        if len(text.split()) < 10 or not word[0].isalnum():
            continue
        chosen = digest(text)
        passage = " ".join(text.split()[: (60, 120, 200)[chosen % 3]])
        number = found.passage(f"{word}: {passage}" if chosen % 2 else passage, word)
        found.ask(ASKED[chosen % len(ASKED)].format(word), number, "definition")
        if len(sentences) > 2 and 6 <= len(words_of(sentences[0])) <= 20 and chosen % 3 == 0:
            rest = found.passage(f"{word}: {' '.join(sentences[1:])}"[:900], word)
            found.ask(sentences[0], rest, "sentence", also=frozenset({number}))
    files = tuple(root / f"{JARGON}{ending}" for ending in (".index", ".dict.dz"))
    return found.source("jargon", "words", "public domain", files)


def synonyms(root: Path) -> dict[str, str]:
    """Return words that have one sense alone in WordNet, each with another word of that sense."""
    often: dict[str, int] = {}
    single: dict[str, str] = {}
    for name in KINDS:
        for lemmas, _ in _synsets(root / WORDNET / name):
            plain = [lemma.casefold() for lemma in lemmas]
            for place, lemma in enumerate(plain):
                often[lemma] = often.get(lemma, 0) + 1
                if len(plain) > 1 and lemma.isalpha() and len(lemma) > 3 and lemma not in STOPWORDS:
                    single[lemma] = plain[place - 1]
    return {word: other for word, other in single.items() if often[word] == 1 and _unlike(word, other)}


def _unlike(word: str, other: str) -> bool:
    """Return whether two words are more than two spellings of one."""
    return word[:4] != other[:4] and not other[0].isdigit()


def _counts(file: Path) -> dict[str, int]:
    """Return how often each word was found in the texts that WordNet's writers tagged."""
    counts: dict[str, int] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        key, _, count = line.split()
        word = key.split("%")[0].replace("_", " ")
        counts[word] = counts.get(word, 0) + int(count)
    return counts


def _synsets(file: Path) -> list[tuple[tuple[str, ...], str]]:
    """Return the words of each sense, and the sense's gloss."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            continue  # the licence
        head, gloss = line.split(" | ", 1)
        parts = head.split()
        count = int(parts[3], 16)
        lemmas = [re.sub(r"\(\w+\)$", "", parts[4 + 2 * place]).replace("_", " ") for place in range(count)]
        found.append((tuple(lemmas), gloss.strip()))
    return found


def _dict_entries(place: Path) -> list[tuple[str, str]]:
    """Return the words and entries of a dictionary in DICT's format."""
    whole = gzip.decompress(Path(f"{place}.dict.dz").read_bytes())
    found = []
    for line in Path(f"{place}.index").read_text(encoding="utf-8").splitlines():
        word, start, length = line.split("\t")[:3]
        if not word.startswith("00"):
            start, length = _number(start), _number(length)
            entry = whole[start : start + length].decode(errors="replace")
            found.append((word, entry.split("\n", 1)[1] if "\n" in entry else entry))
    return found


def _number(coded: str) -> int:
    """Return a number from DICT's digits to the base of 64."""
    value = 0
    for digit in coded:
        value = value * 64 + BASE_64.index(digit)
    return value


BASE_64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
