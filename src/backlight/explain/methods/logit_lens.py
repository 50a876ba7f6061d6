"""How a score builds up from layer to layer: what it would be if each layer were the last.

The head that reads the last layer's states is given those of each layer before. It was never trained on them, so an
early score says what the head makes of them, not what the model had understood by then.

Source: nostalgebraist, interpreting GPT: the logit lens, 2020 (for language models); Belrose, Furman, Smith, Halawi,
Ostrovsky, McKinney, Biderman, Steinhardt, Eliciting Latent Predictions from Transformers with the Tuned Lens, 2023,
arXiv:2303.08112.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backlight.explain.checks import check_same_scores
from backlight.models.misspellings import Misspelling
from backlight.models.pairs import Pair, PairBatch
from backlight.models.scorer import GraphScorer
from backlight.models.scoring import passes


@dataclass(frozen=True)
class BuildUp:
    """The score of a pair after each layer.

    Args:
        model: the model's name.
        score_name: the kind of score, such as "logit".
        query, document: the texts.
        score: the raw score.
        after: the score if each layer were the last, (layers + 1,): the first entry uses the input of the first layer,
            the last is the raw score.
        passes: how many times the pair went through the model.
    """

    model: str
    score_name: str
    query: str
    document: str
    score: float
    after: tuple[float, ...]
    passes: float = 2
    read_as: tuple[Misspelling, ...] = ()  # words of the query that were read as others

    @property
    def steps(self) -> tuple[float, ...]:
        """What each layer adds to the score, (layers,)."""
        return tuple(later - sooner for sooner, later in zip(self.after, self.after[1:]))


def build_up(ranker: GraphScorer, pairs: Sequence[Pair]) -> list[BuildUp]:
    """Return how the score of each pair builds up, in units of the score.

    Args:
        pairs: as returned by `ranker.read`.

    Raises:
        RuntimeError: the last layer's score differs from that of the ordinary call.
    """
    done = []
    for some in passes(pairs):
        batch = PairBatch.of(some)
        layers, ordinary = ranker.build_up(batch), ranker.score(batch)
        check_same_scores(layers[-1], ordinary, some)
        for pair, score, after in zip(some, ordinary.tolist(), layers.T.tolist()):
            made = BuildUp(ranker.name, ranker.score_name, pair.query, pair.document, score, tuple(after))
            done.append(replace(made, read_as=pair.read_as))
    return done
