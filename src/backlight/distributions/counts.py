"""Distributions of counts: Poisson, binomial, negative binomial, geometric."""

from backlight.distributions import constraints
from backlight.distributions.constraints import Constraint
from backlight.distributions.distribution import ExponentialFamily, ParametricDistribution, Shape
from backlight.distributions.gammas import Gamma
from backlight.distributions.parameters import (
    BinaryProbabilities,
    Value,
    are_numbers,
    broadcast_all,
    either,
    lazy_property,
)
from backlight.dtypes import finfo
from backlight.engine.grad_mode import no_grad
from backlight.errors import MissingMethodError, ValueProblem
from backlight.layouts import contiguous_format
from backlight.nn.functional import binary_cross_entropy_with_logits, logsigmoid
from backlight.ops.elementwise.activations import sigmoid
from backlight.sizes import Size
from backlight.tensor.binomial import binomial
from backlight.tensor.factories import zeros_like
from backlight.tensor.random_factories import poisson
from backlight.tensor.ranges import arange
from backlight.tensor.tensor import Tensor

__all__ = ["Binomial", "Geometric", "NegativeBinomial", "Poisson"]


class Poisson(ParametricDistribution, ExponentialFamily):
    """The Poisson distribution: p(k) = rate^k · exp(−rate) / k!"""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Value, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        batch_shape = Size() if are_numbers(rate) else self.rate.size()
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()


class _CountOfTrials(BinaryProbabilities, ParametricDistribution):
    """What distributions of a number of trials share: it is brought to the shape and dtype of the probabilities."""

    def __init__(
        self,
        total_count: Value = 1,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ):
        name = either(probs, logits)
        count, given = broadcast_all(total_count, logits if probs is None else probs)
        setattr(self, name, given)
        self.total_count = count.type_as(given)
        super().__init__(given.size(), validate_args=validate_args)


def _clamp_by_zero(x: Tensor) -> Tensor:
    """Return the positive part of x, whose gradient at 0 is ½."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(_CountOfTrials):
    """The binomial distribution: how many of `total_count` trials succeed, each with probability `probs`."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        log_factorial_n, log_factorial_k = (n + 1).lgamma(), (value + 1).lgamma()
        log_factorial_rest = (n - value + 1).lgamma()
        # n · log(1 + exp(logits)), which does not overflow
        normalizer = n * _clamp_by_zero(self.logits) + n * (-self.logits.abs()).exp().log1p() - log_factorial_n
        return value * self.logits - log_factorial_k - log_factorial_rest - normalizer

    def _one_count(self, name: str) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise MissingMethodError(f"Inhomogeneous total count not supported by `{name}`.")
        return count

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(1 + self._one_count("enumerate_support"), dtype=self._param.dtype)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class NegativeBinomial(_CountOfTrials):
    """The negative binomial distribution: how many trials succeed, each with `probs`, before `total_count` fail."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Value,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ):
        super().__init__(total_count, probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        """The distribution of the rates of which the counts are Poisson numbers."""
        return Gamma(concentration=self.total_count, rate=(-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        powers = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        normalizer = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return powers - normalizer.masked_fill(n + value == 0.0, 0.0)


class Geometric(BinaryProbabilities, ParametricDistribution):
    """The geometric distribution: how many trials fail before the first that succeeds, each with probability `probs`.

    Raises:
        ValueError: a probability is 0.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Value | None = None, logits: Value | None = None, validate_args: bool | None = None):
        name = either(probs, logits)
        given = logits if probs is None else probs
        setattr(self, name, *broadcast_all(given))
        super().__init__(Size() if are_numbers(given) else given.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            self._check_positive(self.probs)

    def _check_positive(self, value: Tensor) -> None:
        valid = value > 0
        if not valid.all():
            raise ValueProblem(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to be positive but found invalid values:\n{value.data[~valid]}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            u = self.probs.new(shape).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone(memory_format=contiguous_format)
        probs[(probs == 1) & (value == 0)] = 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
