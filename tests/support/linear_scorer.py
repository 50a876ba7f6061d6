"""A scorer whose every word has a known worth: the ground truth that measures of faithfulness are held against."""

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tiny_bert import write_tokenizer

from backlight.explain.attribution import Recipe, words_of
from backlight.explain.parts import attribute_parts, word_parts
from backlight.models.pairs import DOCUMENT, QUERY, PairReader
from backlight.models.tokens import Tokenizer


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """The score is the sum of what each token is worth, wherever it stands; see NOTE [A scorer].

    Args:
        worth: of each id of the vocabulary.
    """

    reader: PairReader
    worth: np.ndarray
    name: str = "linear"
    score_name: str = "sum"
    max_tokens: int = 32
    tokens_a_pass: int = 2048
    rounding: float = 1e-5
    highest_score: float | None = None

    def read(self, pairs):
        return self.reader(pairs)

    def score(self, batch, inputs_embeds=None):
        return np.array([self.worth[part].sum() for part in batch.by_pair(batch.ids)])


def linear_scorer(folder: Path, seed: int = 0) -> LinearScorer:
    """Return a scorer with worths drawn at random."""
    write_tokenizer(folder)
    return LinearScorer(PairReader(Tokenizer(folder, 32)), np.random.default_rng(seed).normal(size=100))


def explained(scorer: LinearScorer, pair, values=None, *, signed: bool = True):
    """Return the true explanation of a pair, or one with other values for the document's words."""
    own = {side: [scorer.worth[pair.ids[list(word.tokens)]].sum() for word in words_of(pair, side)] for side in (0, 1)}
    found = own | ({} if values is None else {DOCUMENT: values})
    assert set(own) == {QUERY, DOCUMENT}
    recipe = Recipe("truth", "worth", signed=signed)
    worths = [*found[QUERY], *found[DOCUMENT]]
    return attribute_parts(pair, word_parts(pair), worths, recipe, scorer.name, scorer.worth[pair.ids].sum())


def truth(ranker, pairs, *, progress=lambda done: None):
    """Explain by the worth of each word: as a method is called."""
    return [explained(ranker, pair) for pair in pairs]


def noise(ranker, pairs, *, seed: int = 0, progress=lambda done: None):
    """Explain by a number drawn for each word: as a method is called."""
    found = []
    for pair in pairs:
        rng = np.random.default_rng([seed, zlib.crc32(pair.document.encode())])
        found.append(explained(ranker, pair, rng.normal(size=len(words_of(pair, DOCUMENT))).tolist()))
    return found
