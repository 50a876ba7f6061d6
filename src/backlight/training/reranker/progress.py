"""Progress of a reranker's training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingProgress:
    """How far a training is.

    Args:
        doing: what is being done: "embedding", "mining", "teaching", "validating" or "training".
        done: how many queries, or steps.
        total: of how many; 0 where that is not known.
        loss: of the last step.
        pairs_per_second: of this process.
        seconds_left: of training.
        validation: nDCG@10 of the last look, of all ("ndcg") and of each domain.
    """

    doing: str
    done: int = 0
    total: int = 0
    loss: float | None = None
    pairs_per_second: float | None = None
    seconds_left: float | None = None
    validation: Mapping[str, float] | None = None


Watch = Callable[[TrainingProgress], None]
