"""The settings of a reranker's training, with their rules."""

import math
from dataclasses import dataclass, field, fields

from backlight.errors import InputError
from backlight.training.reranker.loss import IMITATIONS, KL, LossWeights


@dataclass(frozen=True)
class Optimisation:
    """How weights follow their gradients.

    Args:
        rate: the encoder's highest learning rate.
        head_rate: the head's; by default that of the encoder, or 0.001 for a new head.
        warm_up: share of the steps in which rates rise; then they fall, as straight, to zero.
        weight_decay: of the matrices.
        clip: the gradient's greatest norm.
        tokens: how many tokens run forward and backward at once, about: a step that has more is run in parts.
    """

    rate: float = 5e-5
    head_rate: float | None = None
    warm_up: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    tokens: int = 8192

    def share(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0, as a share of the highest."""
        rising = max(1, round(self.warm_up * steps))
        return min((step + 1) / rising, (steps - step) / max(1, steps - rising))


@dataclass(frozen=True)
class RerankerSettings:
    """What `train_reranker` does, apart from the data.

    Args:
        start: what training starts from: builtin, a folder, or an installed package that carries a model.
        seed: of the split, the candidates, the order of the queries and a new head.
        validation: the share of the queries that is held out, where no file of their own is given.
        looked_at: how many of these are ranked to see how training goes; all are in the end.
        candidates: documents that are ranked for a query in validation.
        miner: a bi-encoder whose cosine finds wrong documents, beside BM25.
        mined: how many wrong documents are found for a query that has fewer than `negatives`.
        alike: a document that shares more of its words with a right one is left out as a version of it.
        teacher: a model whose scores are imitated, in place of those in the data.
        epochs: how often each query is seen at most.
        minutes: how long all of it may take, about; fewer steps are made then.
        queries: how many queries a step sees.
        negatives: how many wrong documents stand against the right one.
        max_length: tokens of a pair that are read.
        looks: how often the validation part is ranked on the way.
        patience: training ends after so many looks without a better one.
        checkpoint_minutes: how long training runs between two checkpoints.
        optimisation: rates, clipping, decay.
        loss: the weights of the parts of the loss.
    """

    start: str = "builtin"
    seed: int = 0
    validation: float = 0.1
    looked_at: int = 100
    candidates: int = 20
    miner: str | None = None
    mined: int = 12
    alike: float = 0.6
    teacher: str | None = None
    epochs: float = 2.0
    minutes: float | None = None
    queries: int = 16
    negatives: int = 3
    max_length: int = 256
    looks: int = 6
    patience: int = 3
    checkpoint_minutes: float = 3.0
    optimisation: Optimisation = field(default_factory=Optimisation)
    loss: LossWeights = field(default_factory=LossWeights)

    def __post_init__(self):
        for settings in (self, self.optimisation, self.loss):
            for one in fields(settings):
                _check(one.name, getattr(settings, one.name))
        if self.loss.imitation_loss not in IMITATIONS:
            raise InputError(f"imitation_loss must be {KL} or margin-mse, got {self.loss.imitation_loss}")
        if not (self.loss.listwise or self.loss.logistic or self.loss.imitation):
            raise InputError("listwise, logistic or imitation must be above 0: nothing would be learnt")


def _check(name: str, value: object) -> None:
    """Raise if a number is outside of its bounds."""
    if isinstance(value, (int, float)) and name in BOUNDS:
        low, high, words = BOUNDS[name]
        if not (low <= value <= high) or math.isnan(value):
            raise InputError(f"{name} must be {words}, got {value:g}")


TINY, MANY = 1e-12, 10**9
BOUNDS = {
    **dict.fromkeys(("looked_at", "queries", "looks", "patience", "mined"), (1, MANY, "1 or more")),
    **dict.fromkeys(("epochs", "minutes", "checkpoint_minutes", "rate", "head_rate"), (TINY, MANY, "above 0")),
    **dict.fromkeys(("clip", "temperature"), (TINY, MANY, "above 0")),
    **dict.fromkeys(("listwise", "logistic", "imitation", "weight_decay"), (0, MANY, "0 or more")),
    "negatives": (1, MANY, "1 or more"),
    "candidates": (2, MANY, "2 or more"),
    "max_length": (8, MANY, "8 or more"),
    "tokens": (1, MANY, "1 or more"),
    "validation": (TINY, 0.9, "above 0 and at most 0.9"),
    "alike": (TINY, 1.0, "above 0 and at most 1"),
    "warm_up": (0, 1, "from 0 to 1"),
}
