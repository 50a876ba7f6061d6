"""Documents that a reranker must not fall for, each made from a query and the passages of its collection.

A trap is a function of a `Setting` and a random generator; it returns a wrong document, or None where it cannot make
one.

NOTE [Facts that are changed]
A changed fact is one that the QUERY names and the right passage repeats: a number, or a name. The passage is then
about another thing. A changed answer is no trap: that the oil crisis began in 1981 still answers when it began,
wrongly, and a reader who knows only query and passage cannot tell.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reranker_sources.forms import content_words
from reranker_sources.passages import WORD, sentences_of

REMARKS = (
    "People often ask: {}",
    "{} This is a good question.",
    "I would like to know: {}",
    "{} Nobody has told me yet.",
    "Question: {} Answer: see the other pages.",
    "Many readers wonder about this: {}",
    "{} That is what we shall look at later.",
    "Frequently asked: {} Please contact us.",
    "This page is about the question “{}” and is still empty.",
    "Re: {} Did anyone find out?",
)
LIMITS = (40, 80, 120, 200, 350)  # words of a document that repeats something, at most


@dataclass(frozen=True)
class Setting:
    """What a trap is made of.

    Args:
        wrong: other passages of the collection that do not answer, the most similar first.
        beside: passages before and after the right one that do not answer.
        questions: other queries of the collection.
        names: names and numbers that other passages hold, to replace those of the query.
    """

    query: str
    right: str
    answers: tuple[str, ...] = ()
    wrong: Sequence[str] = ()
    beside: Sequence[str] = ()
    questions: Sequence[str] = ()
    names: Sequence[str] = ()


Trap = Callable[[Setting, np.random.Generator], str | None]


def echo(given: Setting, rng: np.random.Generator) -> str:
    """Return the query itself as a document."""
    return (given.query, given.query.rstrip("?.") + ".", given.query.capitalize())[int(rng.integers(3))]


def echo_repeated(given: Setting, rng: np.random.Generator) -> str:
    """Return the query over and over."""
    return _repeated(given.query, rng)


def echo_shuffled(given: Setting, rng: np.random.Generator) -> str:
    """Return the query's words in another order."""
    words = given.query.rstrip("?").split()
    return " ".join(words[place] for place in rng.permutation(len(words)))


def echo_remarked(given: Setting, rng: np.random.Generator) -> str:
    """Return the query inside a remark that says nothing."""
    return REMARKS[int(rng.integers(len(REMARKS)))].format(given.query)


def other_question(given: Setting, rng: np.random.Generator) -> str | None:
    """Return another query of the collection, as a document."""
    return str(rng.choice(given.questions)) if len(given.questions) else None


def echo_before(given: Setting, rng: np.random.Generator) -> str | None:
    """Return the query followed by a passage that does not answer it."""
    return f"{given.query} {_any(given.wrong, rng)}" if given.wrong else None


def stuffed(given: Setting, rng: np.random.Generator) -> str | None:
    """Return a wrong passage with the query's words strewn over it."""
    words = content_words(given.query)
    if not given.wrong or not words:
        return None
    text = _any(given.wrong, rng).split()
    for word in words * int(rng.integers(1, 4)):
        text.insert(int(rng.integers(len(text) + 1)), word)
    return " ".join(text)


def keyword_list(given: Setting, rng: np.random.Generator) -> str | None:
    """Return the query's words as a list, repeated, alone or after a wrong passage."""
    words = content_words(given.query)
    if not words:
        return None
    listed = ", ".join(words * int(rng.integers(1, 8)))
    return f"{_any(given.wrong, rng)} {listed}" if given.wrong and rng.random() < 0.5 else listed


def repeated(given: Setting, rng: np.random.Generator) -> str | None:
    """Return a sentence of a wrong passage over and over."""
    if not given.wrong:
        return None
    return _repeated(_any(sentences_of(_any(given.wrong, rng)), rng), rng)


def changed_fact(given: Setting, rng: np.random.Generator) -> str | None:
    """Return the right passage with a number or name of the query replaced (see NOTE [Facts that are changed])."""
    return _with_other_fact(given.right, given, rng)


def changed_query(given: Setting, rng: np.random.Generator) -> str | None:
    """Return the query with a number or name replaced, so that the right passage no longer answers it."""
    return _with_other_fact(given.query, given, rng)


def _with_other_fact(text: str, given: Setting, rng: np.random.Generator) -> str | None:
    """Return the query or the right passage with one of their common facts replaced; None where there is none."""
    facts = facts_of(given.query, given.right, given.answers)
    if not facts:
        return None
    fact = _any(facts, rng)
    new = other_fact(fact, given, rng)
    return None if new is None else replace_word(text, fact, new)


def other_fact(fact: str, given: Setting, rng: np.random.Generator) -> str | None:
    """Return another number, or another name that the right passage does not hold."""
    return other_number(fact, rng) if fact[0].isdigit() else _other_name(given, rng)


def answer_cut(given: Setting, rng: np.random.Generator) -> str | None:
    """Return the right passage without the sentences that hold the answer."""
    if not given.answers:
        return None
    return without_answer(given.right, given.answers)


def neighbour(given: Setting, rng: np.random.Generator) -> str | None:
    """Return the passage before or after the right one."""
    return _any(given.beside, rng) if given.beside else None


FAMILIES: dict[str, dict[str, Trap]] = {
    "echo": {
        "echo": echo,
        "echo_repeated": echo_repeated,
        "echo_shuffled": echo_shuffled,
        "echo_remarked": echo_remarked,
        "echo_before": echo_before,
        "other_question": other_question,
    },
    "stuffing": {"stuffed": stuffed, "keyword_list": keyword_list},
    "repetition": {"repeated": repeated},
    "fact": {"changed_fact": changed_fact},
    "topic": {"answer_cut": answer_cut, "neighbour": neighbour},
}
TRAPS: dict[str, Trap] = {name: trap for family in FAMILIES.values() for name, trap in family.items()}
WEIGHTS = {"echo": 3.0, "stuffing": 1.5, "repetition": 0.8, "fact": 2.0, "topic": 3.5}


def make_traps(given: Setting, count: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return up to `count` traps, each of another family, as pairs of kind and text."""
    weights = np.array([WEIGHTS[family] for family in FAMILIES])
    order = rng.choice(list(FAMILIES), size=len(FAMILIES), replace=False, p=weights / weights.sum())
    found: list[tuple[str, str]] = []
    for family in order.tolist():
        kinds = list(FAMILIES[family])
        places = rng.permutation(len(kinds)).tolist()
        if family == "topic" and rng.random() < 0.5:
            places.sort()  # the answer is cut out wherever that is possible
        for place in places:
            made = FAMILIES[family][kinds[place]](given, rng)
            if made and made != given.right:
                found.append((kinds[place], made))
                break
        if len(found) == count:
            break
    return found


def facts_of(query: str, right: str, answers: Sequence[str]) -> list[str]:
    """Return the numbers, and the names in capitals, that a query and its right passage share and no answer holds."""
    answered = {word.casefold() for answer in answers for word in WORD.findall(answer)}
    held = {word.casefold() for word in WORD.findall(right)}
    capitals = {word.casefold() for word in re.findall(r"(?<=[a-z,;] )[A-Z][a-z]{3,}", right)}
    found = []
    for word in dict.fromkeys(WORD.findall(query)):
        small = word.casefold()
        if small in held and small not in answered and (word.isdigit() or small in capitals):
            found.append(word)
    return found


def replace_word(text: str, word: str, other: str) -> str:
    """Return a text with a word replaced wherever it stands."""
    return re.sub(rf"\b{re.escape(word)}\b", lambda _: other, text, flags=re.IGNORECASE)


def other_number(number: str, rng: np.random.Generator) -> str:
    """Return another number of as many digits."""
    value = int(number)
    low, high = 10 ** (len(number) - 1), 10 ** len(number) - 1
    if len(number) == 4 and 1000 <= value <= 2100:  # a year
        low, high = max(1000, value - 60), value + 40
    drawn = int(rng.integers(low, high))
    return str(drawn if drawn != value else high)


def without_answer(text: str, answers: Sequence[str]) -> str | None:
    """Return a text without the sentences in which an answer occurs; None where too little is left."""
    small = [answer.casefold() for answer in answers]
    sentences = sentences_of(text)
    kept = [one for one in sentences if not any(answer in one.casefold() for answer in small)]
    left = " ".join(kept)
    gone = not any(answer in left.casefold() for answer in small)
    return left if gone and len(kept) < len(sentences) and len(left.split()) >= 8 else None


def names_of(texts: Sequence[str]) -> list[str]:
    """Return the names in capitals inside the sentences of texts, each once."""
    return list(dict.fromkeys(name for text in texts for name in re.findall(r"(?<=[a-z,;] )[A-Z][a-z]{3,}", text)))


def _other_name(given: Setting, rng: np.random.Generator) -> str | None:
    right = given.right.casefold()
    fit = [name for name in given.names if name.casefold() not in right]
    return _any(fit, rng) if fit else None


def _repeated(text: str, rng: np.random.Generator) -> str:
    """Return a text twice at least, up to one of `LIMITS`."""
    return " ".join([text] * max(2, LIMITS[int(rng.integers(len(LIMITS)))] // max(1, len(text.split()))))


def _any(values: Sequence[str], rng: np.random.Generator) -> str:
    return values[int(rng.integers(len(values)))]
