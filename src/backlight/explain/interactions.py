"""How strongly each word of the query and each word of the document work together on the score."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from backlight.explain.attribution import Word


@dataclass(frozen=True)
class Link:
    """A word of the query, a word of the document, and what the two bring together."""

    query: Word
    document: Word
    value: float


@dataclass(frozen=True)
class Interactions:
    """What each word of the query and each word of the document bring together, beyond what each brings alone.

    Args:
        method: the method's name, a key of `MATRICES`.
        meaning: what the values are, in words or as a formula.
        model: the model's name.
        score: the raw score that is explained.
        query_text, document_text: the texts.
        query: the query's words; the value of each is the sum of its row.
        document: the document's words, as far as the model read it; the value of each is the sum of its column.
        values: in units of the score, (query words, document words).
        signed: whether a value says by its sign if the two words together help (+) or harm (−) the score.
        baseline: what the inputs were compared with; None for methods that compare with nothing.
        gap: by how much the values of all tokens with all tokens miss the sum that the method promises, in units of the
            score; None for methods that promise no sum.
        passes: how many times the pair went through the model, forward or backward.
        settings: the options of the method by name.
    """

    method: str
    meaning: str
    model: str
    score: float
    query_text: str
    document_text: str
    query: tuple[Word, ...]
    document: tuple[Word, ...]
    values: tuple[tuple[float, ...], ...]
    signed: bool = True
    baseline: str | None = None
    gap: float | None = None
    passes: float = 1
    settings: Mapping[str, int | float | str] = field(default_factory=dict)

    def strongest(self, count: int | None = None) -> list[Link]:
        """Return the links of the largest value, whatever its sign, largest first; all by default."""
        links = [
            Link(word, other, value)
            for word, row in zip(self.query, self.values)
            for other, value in zip(self.document, row)
        ]
        return sorted(links, key=lambda link: -abs(link.value))[:count]
