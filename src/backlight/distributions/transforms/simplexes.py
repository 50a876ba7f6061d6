"""Transforms of vectors of numbers to vectors of shares, which sum to 1."""

from collections.abc import Sequence

from backlight.distributions import constraints
from backlight.distributions.transforms.elementwise import clipped_sigmoid
from backlight.distributions.transforms.transform import TOO_FEW, Transform
from backlight.dtypes import finfo
from backlight.errors import ValueProblem
from backlight.nn.functional import logsigmoid, pad
from backlight.sizes import Size
from backlight.tensor.tensor import Tensor


class SoftmaxTransform(Transform):
    """y = softmax(x). It is not bijective: adding a number to all of x changes nothing."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    def _call(self, x: Tensor) -> Tensor:
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 1:
            raise ValueProblem(TOO_FEW)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.forward_shape(shape)


def _left(x: Tensor, count: int) -> Tensor:
    """Return how many shares are left before each step, the last one not counted: count − 1, count − 2, …"""
    return count - x.new_ones(x.shape[-1]).cumsum(-1)


class StickBreakingTransform(Transform):
    """Break a stick of length 1: each number says, through a sigmoid, which part of the rest is broken off.

    Bijective, with one number less than shares; the sigmoids are shifted so that 0 gives equal shares.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    def _call(self, x: Tensor) -> Tensor:
        parts = clipped_sigmoid(x - _left(x, x.shape[-1] + 1).log())
        rest = (1 - parts).cumprod(-1)
        return pad(parts, [0, 1], value=1) * pad(rest, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        broken = y[..., :-1]
        rest = (1 - broken.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return broken.log() - rest.log() + _left(broken, y.shape[-1]).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - _left(x, x.shape[-1] + 1).log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 1:
            raise ValueProblem(TOO_FEW)
        return Size(shape[:-1]) + (shape[-1] + 1,)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 1:
            raise ValueProblem(TOO_FEW)
        return Size(shape[:-1]) + (shape[-1] - 1,)
