"""Edits of a document: each gives the text that it makes of another, and says in a few words what it did."""

from collections.abc import Sequence
from dataclasses import dataclass

from backlight.errors import InputError
from backlight.explain.attribution import Word
from backlight.explain.methods.ablation import text_without
from backlight.explain.words import word_spans

PLACES = ("end", "start")


@dataclass(frozen=True)
class Remove:
    """Remove a phrase wherever it occurs as whole words.

    >>> Remove("red").apply("The red fox and the tired dog.")
    'The fox and the tired dog.'
    """

    phrase: str

    def apply(self, text: str) -> str:
        """Return the text without the phrase.

        Raises:
            InputError: the phrase is not in the text.
        """
        return text_without(text, places_of(self.phrase, text))

    def __str__(self) -> str:
        return f"without “{self.phrase}”"


@dataclass(frozen=True)
class Replace:
    """Replace a phrase wherever it occurs as whole words.

    >>> Replace("fox", "hare").apply("A fox, a foxglove, a fox.")
    'A hare, a foxglove, a hare.'
    """

    phrase: str
    by: str

    def apply(self, text: str) -> str:
        """Return the text with the other words in it.

        Raises:
            InputError: the phrase is not in the text.
        """
        made, done = "", 0
        for start, end in places_of(self.phrase, text):
            made, done = made + text[done:start] + self.by, end
        return made + text[done:]

    def __str__(self) -> str:
        return f"“{self.by}” for “{self.phrase}”"


@dataclass(frozen=True)
class Cut:
    """Remove single words at given positions, such as those of an explanation or of a `Swap`."""

    words: Sequence[Word]

    def apply(self, text: str) -> str:
        """Return the text without the words.

        Raises:
            InputError: the text has another word at one of the places.
        """
        for word in self.words:
            if text[word.start : word.end] != word.text:
                raise InputError(
                    f"the words of a Cut must be those of the text, got {word.text} where it has "
                    f"{text[word.start : word.end]!r}: cut before other edits"
                )
        return text_without(text, [(word.start, word.end) for word in self.words])

    def __str__(self) -> str:
        return f"without {', '.join(f'“{word.text}”' for word in self.words)} at their places"


@dataclass(frozen=True)
class Add:
    """Put a sentence at the end or at the start of the text."""

    sentence: str
    place: str = "end"

    def apply(self, text: str) -> str:
        """Return the text with the sentence.

        Raises:
            InputError: the place is neither end nor start.
        """
        if self.place not in PLACES:
            raise InputError(f"place must be one of {', '.join(PLACES)}, got {self.place}")
        return " ".join((text.rstrip(), self.sentence) if self.place == "end" else (self.sentence, text.lstrip()))

    def __str__(self) -> str:
        return f"with “{self.sentence}” at the {self.place}"


@dataclass(frozen=True)
class Rewrite:
    """Replace the full text."""

    text: str

    def apply(self, text: str) -> str:
        """Return the other text."""
        return self.text

    def __str__(self) -> str:
        return "rewritten"


Edit = Remove | Replace | Cut | Add | Rewrite


def label_of(edit: Edit, text: str) -> str:
    """Describe an edit of a text in a few words, with the number of places if there are several.

    >>> label_of(Remove("days"), "In 3 days, or 5 days.")
    'without “days” (2 places)'

    Raises:
        InputError: the phrase is not in the text.
    """
    places = len(places_of(edit.phrase, text)) if isinstance(edit, (Remove, Replace)) else 1
    return f"{edit} ({places} places)" if places > 1 else str(edit)


def places_of(phrase: str, text: str) -> list[tuple[int, int]]:
    """Return start and end character of each occurrence of a phrase as whole words.

    Raises:
        InputError: it does not occur.
    """
    spans = word_spans(text)
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    found, place = [], text.find(phrase) if phrase.strip() else -1
    while place >= 0:
        end = place + len(phrase)
        is_word = place in starts and end in ends
        found += [(place, end)] if is_word else []
        place = text.find(phrase, end if is_word else place + 1)
    if not found:
        raise InputError(f"an edit must name words that the document holds, as they are written there, got {phrase!r}")
    return found
