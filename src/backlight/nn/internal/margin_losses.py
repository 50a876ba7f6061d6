"""Margin losses, each a function of `nn.functional` with its options stored."""

from collections.abc import Callable

import numpy as np

from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.loss import Flag, Loss, WeightedLoss
from backlight.tensor.tensor import Tensor

__all__ = [
    "CosineEmbeddingLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class MarginLoss(Loss):
    """Base class of losses with a margin."""

    def __init__(self, margin: float = 0.0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(MarginLoss):
    """The input where the target is 1, and max(0, margin − input) where it is −1."""

    def __init__(self, margin: float = 1.0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"):
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(MarginLoss):
    """max(0, margin − target · (input1 − input2))."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(MarginLoss):
    """1 − cos(input1, input2) where the target is 1, and max(0, cos − margin) where it is −1."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(−target · input))."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class TripletMarginLoss(MarginLoss):
    """max(0, margin + |anchor − positive| − |anchor − negative|) in the p-norm.

    Args:
        swap: use the distance from the positive to the negative if it is smaller.

    Raises:
        ValueError: the margin is not above 0.
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ):
        super().__init__(_positive("TripletMarginLoss", margin), size_average, reduce, reduction)
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(MarginLoss):
    """max(0, margin + d(anchor, positive) − d(anchor, negative)).

    Args:
        distance_function: d; `pairwise_distance` by default.
        swap: use the distance from the positive to the negative if it is smaller.

    Raises:
        ValueError: the margin is not above 0.
    """

    def __init__(
        self,
        *,
        distance_function: Callable | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ):
        super().__init__(_positive("TripletMarginWithDistanceLoss", margin), reduction=reduction)
        self.distance_function = F.pairwise_distance if distance_function is None else distance_function
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


def _positive(name: str, margin: float) -> float:
    if not isinstance(margin, (int, float, np.number, TensorState)):
        raise ArgumentError(
            f"'<=' not supported between instances of '{type(margin).__name__}' and 'int': margin must be a number"
        )
    if margin <= 0:
        raise ValueProblem(f"{name}: expected margin to be greater than 0, got {margin} instead")
    return margin


# --- several classes --------------------------------------------------------------------------------------------------


class MultiMarginLoss(WeightedLoss):
    """Σ max(0, margin − input[target] + input[other])^p over the other classes, divided by their number.

    Raises:
        ValueError: p is neither 1 nor 2, or the weight is not a vector.
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ):
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueProblem(f"only p == 1 and p == 2 supported, got {p}")
        if weight is not None and weight.ndim != 1:
            raise ValueProblem(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.ndim}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(Loss):
    """Σ max(0, 1 − input[target] + input[other]) over targets and other classes, divided by the classes."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The binary cross-entropy of sigmoid(input) for targets of 0 and 1, averaged over the last dim."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)
