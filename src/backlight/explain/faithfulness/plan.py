"""What a study measures: which methods with which options, on how many pairs, and how closely."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from backlight.errors import InputError
from backlight.explain.attribution import Attribution
from backlight.explain.methods.registry import Method
from backlight.models.pairs import Pair

ALWAYS = ("random", "embedding-magnitude")  # what any explanation must beat is in every table


@dataclass(frozen=True)
class Variant:
    """A method with its options."""

    method: Method
    options: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The variant's name on the command line: the method's name, then `:option=value` for each option."""
        return "".join([self.method.name, *(f":{name}={value}" for name, value in self.options.items())])

    @property
    def title(self) -> str:
        """What the variant is called in a table."""
        values = ", ".join(str(value) for value in self.options.values())
        return f"{self.method.title}, {values}" if values else self.method.title

    def __call__(self, ranker, pairs: Sequence[Pair]) -> list[Attribution]:
        """Return the explanation of each pair."""
        return self.method.explain(ranker, pairs, **self.options)


@dataclass(frozen=True)
class Plan:
    """How much is measured. Pairs stand in a random order, so that the first of them are a sample too.

    Args:
        pairs: on how many pairs the score is watched as words leave the attention mask.
        budget: passes through the model that a method may take for its explanations in all. A method that needs more
            than `budget / pairs` a pair explains fewer pairs, the first ones, but `fewest` at least.
        close: on how many pairs words are dropped from the text too, and curves go on to the last word.
        ranked: on how many pairs the document's place among its rivals is watched.
        bounds: on how many pairs AOPC is held against its bounds.
        checked: on how many pairs company and randomisation are tried, by a costly method on fewer.
        shortcut: on how many pairs a shortcut is looked for.
        links: on how many pairs interactions are held against links.
        slow_links: on how many of them integrated Hessians are.
        seed: of the choice of pairs, of random weights and of the intervals.
    """

    pairs: int = 500
    budget: int = 2_000
    fewest: int = 12
    close: int = 40
    ranked: int = 100
    bounds: int = 12
    checked: int = 16
    shortcut: int = 16
    links: int = 60
    slow_links: int = 8
    seed: int = 0

    def __post_init__(self):
        for name, value in asdict(self).items():
            if value < (0 if name == "seed" else 1):
                raise InputError(f"{name} must be 1 or more, got {value}")

    def share_of(self, passes: float, pairs: int) -> int:
        """Return how many of the pairs there are a method explains that takes this many passes a pair."""
        return min(pairs, max(self.fewest, int(self.budget / passes))) if passes else pairs


def check_variants(variants: Sequence[Variant]) -> None:
    """Raise if a variant is there twice: results are kept by label."""
    labels = [variant.label for variant in variants]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise InputError(f"methods must differ, got {', '.join(twice)} twice")
