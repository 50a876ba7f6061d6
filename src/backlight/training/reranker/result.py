"""The result of a reranker's training."""

from dataclasses import dataclass

from backlight.training.reranker.calibration import Calibration
from backlight.training.reranker.validation import Figures


@dataclass(frozen=True)
class Result:
    """What came of a training.

    Args:
        folder: where the model is.
        steps: how many were made, and `best_step` after which the weights are.
        minutes: of training and validation.
        figures: nDCG@10 on the validation part, by domain, and of "all".
        calibration: what was folded into the model's last layer.
        counts: of rows, queries, documents and those left out.
    """

    folder: str
    steps: int
    best_step: int
    minutes: float
    figures: dict[str, Figures]
    calibration: Calibration
    counts: dict[str, int]
