"""The settings of a reranker's training, with their rules."""

import math
from dataclasses import dataclass, field, fields

from backlight.errors import InputError
from backlight.training.reranker.loss import DISTILLATIONS, KL, LossWeights


@dataclass(frozen=True)
class Optimisation:
    """The optimizer's settings.

    Args:
        learning_rate: the encoder's peak learning rate.
        head_learning_rate: the head's; by default that of the encoder, or 0.001 for a new head.
        warmup_ratio: share of the steps in which the learning rate rises linearly; then it falls linearly to zero.
        weight_decay: of the matrices.
        max_grad_norm: gradients are clipped to this norm.
        tokens_per_pass: about how many tokens run forward and backward at once: larger steps are split.
    """

    learning_rate: float = 5e-5
    head_learning_rate: float | None = None
    warmup_ratio: float = 0.1
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    tokens_per_pass: int = 8192

    def share(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0, as a share of the peak."""
        rising = max(1, round(self.warmup_ratio * steps))
        return min((step + 1) / rising, (steps - step) / max(1, steps - rising))


@dataclass(frozen=True)
class RerankerSettings:
    """The settings of `train_reranker`.

    Args:
        start: the model to start from: builtin, a folder, or an installed package that contains a model.
        seed: seed of the split, the candidates, the order of the queries and a new head.
        validation: share of the queries to hold out, unless a validation file is given.
        eval_queries: held-out queries to rank during training; all are ranked at the end.
        candidates: documents to rank for each held-out query.
        mining_model: a bi-encoder to mine hard negatives by cosine, in addition to BM25.
        hard_negatives: negatives to mine for a query that has fewer than `negatives`.
        near_duplicates: a document that shares this part of its words with a positive is not used as a negative.
        teacher: a model to distil, in place of the teacher's scores in the data.
        epochs: passes over the queries, at most.
        minutes: approximate limit on the whole run, in minutes; the number of steps is reduced to fit.
        queries: queries per step.
        negatives: negatives per positive.
        max_length: tokens of a pair, at most.
        evaluations: validations during training.
        patience: training stops after this many validations without improvement.
        checkpoint_minutes: minutes between checkpoints.
        optimisation: learning rates, clipping, weight decay.
        loss: the weights of the loss terms.
    """

    start: str = "builtin"
    seed: int = 0
    validation: float = 0.1
    eval_queries: int = 100
    candidates: int = 20
    mining_model: str | None = None
    hard_negatives: int = 12
    near_duplicates: float = 0.6
    teacher: str | None = None
    epochs: float = 2.0
    minutes: float | None = None
    queries: int = 16
    negatives: int = 3
    max_length: int = 256
    evaluations: int = 6
    patience: int = 3
    checkpoint_minutes: float = 3.0
    optimisation: Optimisation = field(default_factory=Optimisation)
    loss: LossWeights = field(default_factory=LossWeights)

    def __post_init__(self):
        for settings in (self, self.optimisation, self.loss):
            for one in fields(settings):
                _check(one.name, getattr(settings, one.name))
        if self.loss.distillation_loss not in DISTILLATIONS:
            raise InputError(f"distillation_loss must be {KL} or margin-mse, got {self.loss.distillation_loss}")
        if not (self.loss.listwise or self.loss.logistic or self.loss.distillation):
            raise InputError("listwise, logistic or distillation must be above 0: nothing would be learnt")


def _check(name: str, value: object) -> None:
    """Raise if a number is outside of its bounds."""
    if isinstance(value, (int, float)) and name in BOUNDS:
        low, high, words = BOUNDS[name]
        if not (low <= value <= high) or math.isnan(value):
            raise InputError(f"{name} must be {words}, got {value:g}")


TINY, MANY = 1e-12, 10**9
BOUNDS = {
    **dict.fromkeys(("eval_queries", "queries", "evaluations", "patience", "hard_negatives"), (1, MANY, "1 or more")),
    **dict.fromkeys(
        ("epochs", "minutes", "checkpoint_minutes", "learning_rate", "head_learning_rate"), (TINY, MANY, "above 0")
    ),
    **dict.fromkeys(("max_grad_norm", "temperature"), (TINY, MANY, "above 0")),
    **dict.fromkeys(("listwise", "logistic", "distillation", "weight_decay"), (0, MANY, "0 or more")),
    "negatives": (1, MANY, "1 or more"),
    "candidates": (2, MANY, "2 or more"),
    "max_length": (8, MANY, "8 or more"),
    "tokens_per_pass": (1, MANY, "1 or more"),
    "validation": (TINY, 0.9, "above 0 and at most 0.9"),
    "near_duplicates": (TINY, 1.0, "above 0 and at most 1"),
    "warmup_ratio": (0, 1, "from 0 to 1"),
}
