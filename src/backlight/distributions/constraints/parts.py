"""Constraints of parts of a tensor, or of slices of it, each of its own."""

from collections.abc import Sequence
from itertools import accumulate

from backlight.distributions.constraints.constraint import Constraint
from backlight.distributions.parameters import require
from backlight.ops.shape.joining import cat as joined
from backlight.ops.shape.joining import stack as stacked
from backlight.tensor.tensor import Tensor


class _Several(Constraint):
    """Constraints for parts of a value along a dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        require(all(isinstance(one, Constraint) for one in cseq), "All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return any(one.is_discrete for one in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(one.event_dim for one in self.cseq)

    def _check_dim(self, value: Tensor) -> None:
        require(
            -value.dim() <= self.dim < value.dim(),
            f"dim {self.dim} out of range for value with {value.dim()} dimensions",
        )


class _Cat(_Several):
    """Constraints for parts that are joined along a dim, of the given lengths."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        require(
            len(self.lengths) == len(self.cseq), f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
        )

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        starts = accumulate(self.lengths, initial=0)
        parts = [value.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths)]
        return joined([one.check(part) for one, part in zip(self.cseq, parts)], self.dim)


class _Stack(_Several):
    """Constraints for the slices along a dim."""

    @property
    def event_dim(self) -> int:
        most = super().event_dim
        return most + 1 if self.dim + most < 0 else most

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        slices = value.unbind(self.dim)
        return stacked([one.check(part) for part, one in zip(slices, self.cseq)], self.dim)


cat = _Cat
stack = _Stack
