"""Softmax over very many classes, most of them rare."""

from collections.abc import Sequence
from typing import NamedTuple

from backlight.dtypes import dtype
from backlight.errors import ShapeError, ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.container import ModuleList, Sequential
from backlight.nn.modules.linear import Linear
from backlight.nn.modules.module import Module
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.shape.joining import cat
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The log-probability of each target, and the mean of their negatives."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax in two steps: first among the frequent classes and clusters of rare ones, then in the cluster.

    Shapes: input (batch, in_features), target (batch,) -> output (batch,), loss (); or all without batch

    Args:
        cutoffs: the first class of each cluster; classes are sorted by frequency.
        div_value: each cluster has this many times fewer features than the previous one.
        head_bias: whether the first step has a bias.

    Raises:
        ValueError: the cutoffs are not increasing, or are not valid classes.

    Source: Edouard Grave et al.: Efficient Softmax Approximation for GPUs, 2016, arXiv:1609.04309
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__()
        cutoffs = list(cutoffs)
        _check_cutoffs(cutoffs, n_classes)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        made = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for number in range(self.n_clusters):
            hidden = int(in_features // div_value ** (number + 1))
            size = self.cutoffs[number + 1] - self.cutoffs[number]
            layers = Linear(in_features, hidden, bias=False, **made), Linear(hidden, size, bias=False, **made)
            self.tail.append(Sequential(*layers))

    def reset_parameters(self) -> None:
        """Draw new values."""
        self.head.reset_parameters()
        for narrow, wide in self.tail:
            narrow.reset_parameters()
            wide.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Return the log-probability of each target, and the loss.

        Raises:
            RuntimeError: the shapes do not fit, or a target is not a class.
        """
        _check_shapes(input_, target_)
        input, target = (input_, target_) if target_.ndim else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and not 0 <= target.min().item() <= target.max().item() < self.n_classes:
            raise ShapeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        column, within = target, input.new_zeros(target.shape[0])
        for number in range(self.n_clusters):
            first, end = self.cutoffs[number], self.cutoffs[number + 1]
            members = (target >= first) & (target < end)
            rows = members.nonzero().squeeze(1)
            if not rows.numel():
                continue
            scores = F.log_softmax(self.tail[number](input.index_select(0, rows)), dim=1)
            local = scores.gather(1, (target.index_select(0, rows) - first).unsqueeze(1)).squeeze(1)
            within = within.index_copy(0, rows, local)
            column = where(members, self.shortlist_size + number, column)
        output = within + F.log_softmax(self.head(input), dim=1).gather(1, column.unsqueeze(1)).squeeze(1)
        return _ASMoutput(output if target_.ndim else output.squeeze(0), (-output).mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes.

        Shapes: input (batch, in_features) -> (batch, n_classes)
        """
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for number, cluster in enumerate(self.tail):
            column = self.shortlist_size + number
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, column : column + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the class with the highest log-probability of each row.

        As in PyTorch, a class of the shortlist is returned if its score in the head is above that of every cluster.

        Shapes: input (batch, in_features) -> (batch,)
        """
        chosen = self.head(input).argmax(1)
        if not (chosen >= self.shortlist_size).any():
            return chosen
        return where(chosen >= self.shortlist_size, self.log_prob(input).argmax(1), chosen)


def _check_cutoffs(cutoffs: list, n_classes: int) -> None:
    if not cutoffs:
        raise ValueProblem("cutoffs should be a sequence of length larger than 0")
    increasing = all(a < b for a, b in zip(cutoffs, cutoffs[1:]))
    if not increasing or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or any(int(c) != c for c in cutoffs):
        raise ValueProblem(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
            "is between 1 and n_classes-1"
        )


def _check_shapes(input: Tensor, target: Tensor) -> None:
    if target.ndim > 1:
        raise ShapeError("0D or 1D target tensor expected, multi-target not supported")
    if target.ndim == 1 and input.shape[0] != target.shape[0]:
        raise ShapeError("Input and target should have the same size in the batch dimension.")
    if input.ndim != target.ndim + 1:
        raise ShapeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with size "
            f"{input.shape}"
        )
