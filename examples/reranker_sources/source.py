"""What every reader makes: passages in groups, and queries with the passage that is right for each.

NOTE [Held out by group]
A group is what is about one thing: an article, a page, a disease, a command. A tenth of the groups of each source,
chosen by a hash of their names alone, is never trained on, neither as right passages nor as wrong ones: models are
tested there.
"""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

TEST_SHARE = 10  # one group of so many is held out
LONGEST = 2_000  # words of a passage; longer ones are cut


@dataclass(frozen=True)
class Passage:
    """A text that may answer a query; neighbours in a source's list with the same group follow each other."""

    text: str
    group: str


@dataclass(frozen=True)
class Asked:
    """A query and the number of the passage that is right for it.

    Args:
        form: what the query is: question, title, task, definition, faq, sentence, claim.
        answers: the answer's text, where it is known.
        also_right: numbers of other passages that may answer it: they are never called wrong.
    """

    query: str
    right: int
    form: str
    answers: tuple[str, ...] = ()
    also_right: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Source:
    """A collection of texts of one origin.

    Args:
        name: of the collection; domain: the kind of text, which several collections may share.
        files: what was read; their SHA-256 goes into the manifest.
    """

    name: str
    domain: str
    licence: str
    passages: tuple[Passage, ...]
    asked: tuple[Asked, ...]
    files: tuple[Path, ...] = ()

    def part(self, *, test: bool) -> "Source":
        """Return the groups that are held out for tests, or all others (see NOTE [Held out by group])."""
        kept = [number for number, one in enumerate(self.passages) if is_test(self.name, one.group) == test]
        places = {number: place for place, number in enumerate(kept)}
        asked = tuple(
            replace(
                one,
                right=places[one.right],
                also_right=frozenset(places[other] for other in one.also_right if other in places),
            )
            for one in self.asked
            if one.right in places
        )
        return replace(self, passages=tuple(self.passages[number] for number in kept), asked=asked)

    def neighbours(self, number: int) -> list[int]:
        """Return the passages before and after one in the same group."""
        group = self.passages[number].group
        beside = [place for place in (number - 1, number + 1) if 0 <= place < len(self.passages)]
        return [place for place in beside if self.passages[place].group == group]


@dataclass
class Collector:
    """Gathers passages and queries while a reader reads; a passage that occurs twice has one number."""

    passages: list[Passage] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def passage(self, text: str, group: str) -> int:
        """Return the number of a passage, added if it is new."""
        text = " ".join(text.split()[:LONGEST])
        if text not in self.numbers:
            self.numbers[text] = len(self.passages)
            self.passages.append(Passage(text, group))
        return self.numbers[text]

    def ask(
        self, query: str, right: int, form: str, *, answers: tuple[str, ...] = (), also: frozenset[int] = frozenset()
    ):
        """Add a query, unless it is empty."""
        query = " ".join(query.split())
        if query:
            self.asked.append(Asked(query, right, form, answers, also - {right}))

    def source(self, name: str, domain: str, licence: str, files: tuple[Path, ...]) -> Source:
        """Return what was gathered; of queries that occur twice none, since nothing says which passage is right."""
        often: dict[str, set[int]] = {}
        for one in self.asked:
            often.setdefault(one.query.casefold(), set()).add(one.right)
        asked = []
        for one in dict.fromkeys(self.asked):
            rights = often[one.query.casefold()]
            if len(rights) == 1 or rights <= one.also_right | {one.right}:
                asked.append(one)
        return Source(name, domain, licence, tuple(self.passages), tuple(asked), files)


def is_test(name: str, group: str) -> bool:
    """Return whether a group of a source is held out (see NOTE [Held out by group])."""
    return digest(f"{name}/{group}") % TEST_SHARE == 0


def digest(text: str) -> int:
    """Return a number that depends on a text alone, the same in every run and on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")
