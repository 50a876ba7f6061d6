"""A function from pairs of texts to scores, as a scorer: nothing is known of it but what it returns.

Its explanations are measured: words are left out of the texts, and the function scores these again. Its tokens are
words (runs of letters and digits, and each other character by itself), so that any word can be left out.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import numpy as np

from backlight.errors import InputError
from backlight.models.pairs import ADDED, DOCUMENT, QUERY, Pair, PairBatch
from backlight.models.scorer import Texts
from backlight.models.scoring import ACTIVATIONS, Activation, PairScorer, finite_scores
from backlight.models.tokens import Windows

TOKEN = re.compile(r"\w+|[^\w\s]")
LONGEST = 1 << 30  # tokens of a pair: a function has no limit of its own that is known
PAIRS_A_CALL = 64
BETWEEN = "|"  # a token between the texts, which stays where all words are left out


class WordReader:
    """Reads a pair word by word, as one sequence with a token between the texts."""

    max_length = LONGEST

    def __call__(self, pairs: Sequence[Texts]) -> list[Pair]:
        """Return each pair of texts cut into words."""
        return [self._pair(*texts) for texts in pairs]

    def windows(self, query: str, document: str, stride: int | None = None) -> Sequence[Pair]:
        """Return the pair: a function reads documents of any length."""
        return Windows(lambda number: self._pair(query, document), 1)

    def _pair(self, query: str, document: str) -> Pair:
        queries, documents = list(TOKEN.finditer(query)), list(TOKEN.finditer(document))
        spans = [found.span() for found in queries] + [(0, 0)] + [found.span() for found in documents]
        count = len(spans)
        return Pair(
            query=query,
            document=document,
            ids=np.arange(count),
            type_ids=np.zeros(count, np.int64),
            positions=np.arange(count),
            sides=np.repeat(np.array([QUERY, ADDED, DOCUMENT], np.int8), [len(queries), 1, len(documents)]),
            offsets=np.array(spans, np.int64),
            pieces=(*(found[0] for found in queries), BETWEEN, *(found[0] for found in documents)),
            lengths=(count,),
        )


class PairFunction(PairScorer):
    """Scores pairs by a function, and has no embeddings, gradients or layers.

    Args:
        function: takes a list of pairs (query, document), and returns a score for each.
        name: what to call it.
        activation: how scores are shown, a key of `ACTIVATIONS` or a function.
    """

    score_name = "score"

    def __init__(self, function: Callable[[list[Texts]], Sequence[float]], *, name: str, activation: str | Activation):
        self._function, self.name, self.activation, self.reader = function, name, activation, WordReader()

    def activate(self, scores: np.ndarray) -> np.ndarray:
        """Return raw scores after the activation."""
        shown = self.activation if callable(self.activation) else ACTIVATIONS[self.activation]
        return shown(np.asarray(scores))

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the raw score of each pair, some at a time.

        Raises:
            InputError: the function returns something else than a number for each pair, or embeddings are given.
        """
        if inputs_embeds is not None:
            self._refuse()
        texts = [(remaining_text(pair, QUERY), remaining_text(pair, DOCUMENT)) for pair in batch.pairs]
        found = [self._called(texts[start : start + PAIRS_A_CALL]) for start in range(0, len(texts), PAIRS_A_CALL)]
        return finite_scores(np.concatenate(found), batch.names)

    def _called(self, texts: list[Texts]) -> np.ndarray:
        found = self._function(texts)
        detached = found.detach().cpu() if hasattr(found, "detach") else found
        try:
            scores = np.asarray([float(score) for score in detached], np.float32)
        except (TypeError, ValueError) as problem:
            raise InputError(
                f"{self.name} must return a score for each pair, a list or an array of numbers, got "
                f"{type(found).__name__}: {problem}"
            ) from problem
        if len(scores) != len(texts):
            raise InputError(f"{self.name} must return a score for each of {len(texts)} pairs, got {len(scores)}")
        return scores

    def _refuse(self) -> NoReturn:
        raise InputError(
            f"{self.name} is a function of pairs, without embeddings and gradients: its explanations are measured, so "
            "choose leave-one-out, occlusion, occlusion-sentence, shapley or kernel-shap"
        )

    @property
    def tokenizer(self) -> NoReturn:
        """Raise: a function has none."""
        self._refuse()

    @property
    def vocab_size(self) -> NoReturn:
        """Raise: a function has none."""
        self._refuse()

    def embed_ids(self, ids: np.ndarray) -> NoReturn:
        """Raise: a function has no embeddings."""
        self._refuse()

    def first_states(self, batch: PairBatch) -> NoReturn:
        """Raise: a function has no layers."""
        self._refuse()

    def gradients(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> NoReturn:
        """Raise: a function has no gradients."""
        self._refuse()

    def pair_scores(self, batch: PairBatch, inputs_embeds: object = None, trace: object = None) -> NoReturn:
        """Raise: a function has no graph."""
        self._refuse()

    def inside(self, batch: PairBatch, *, slopes: bool = False) -> NoReturn:
        """Raise: a function has no layers."""
        self._refuse()

    def mask_gradients(self, batch: PairBatch) -> NoReturn:
        """Raise: a function has no attention."""
        self._refuse()

    def state_gradients(self, batch: PairBatch, layer: int | None = None) -> NoReturn:
        """Raise: a function has no layers."""
        self._refuse()

    def read_weights(self, batch: PairBatch) -> NoReturn:
        """Raise: a function has no layers."""
        self._refuse()


def remaining_text(pair: Pair, side: int) -> str:
    """Return a text of a pair without the words that were left out of the pair, and the space that they leave."""
    text = pair.text(side)
    kept = {start for start, _ in pair.offsets[pair.sides == side].tolist()}
    if all(found.start() in kept for found in TOKEN.finditer(text)):
        return text
    return " ".join("".join(_parts_left(text, kept)).split())


def _parts_left(text: str, kept: set[int]) -> Iterator[str]:
    done = 0
    for found in TOKEN.finditer(text):
        yield text[done : found.start()]
        if found.start() in kept:
            yield found[0]
        done = found.end()
    yield text[done:]
