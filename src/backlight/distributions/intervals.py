"""Distributions on an interval: uniform, Kumaraswamy, continuous Bernoulli."""

import math

from backlight.distributions import constraints
from backlight.distributions.constraints import Constraint
from backlight.distributions.distribution import ExponentialFamily, ParametricDistribution, Shape
from backlight.distributions.parameters import (
    BinaryProbabilities,
    Value,
    are_numbers,
    broadcast_all,
    clamp_probs,
    either,
    euler_constant,
    lazy_property,
    logits_to_probs,
)
from backlight.distributions.transformed_distribution import TransformedDistribution
from backlight.distributions.transforms.elementwise import AffineTransform, PowerTransform
from backlight.engine.grad_mode import no_grad
from backlight.errors import ValueProblem
from backlight.nn.functional import binary_cross_entropy_with_logits
from backlight.ops.elementwise.where_clamp import where
from backlight.sizes import Size
from backlight.tensor.factories import full_like, ones_like, zeros_like
from backlight.tensor.random_factories import rand
from backlight.tensor.tensor import Tensor

__all__ = ["ContinuousBernoulli", "Kumaraswamy", "Uniform"]


class Uniform(ParametricDistribution):
    """The uniform distribution on [low, high)."""

    has_rsample = True

    def __init__(self, low: Value, high: Value, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        batch_shape = Size() if are_numbers(low, high) else self.low.size()
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        units = rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + units * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = self.low.le(value).type_as(self.low).mul(self.high.gt(value).type_as(self.low))
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


def _moment(a: Tensor, b: Tensor, n: int) -> Tensor:
    """Return E[xⁿ] of Kumaraswamy's distribution."""
    start = 1 + n / a
    return b * (start.lgamma() + b.lgamma() - (start + b).lgamma()).exp()


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy's distribution on [0, 1]: F(x) = 1 − (1 − x^concentration1)^concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Value, concentration0: Value, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        low, high = full_like(self.concentration0, 0), full_like(self.concentration0, 1)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(low, high, validate_args=validate_args), transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return _moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        log_mode[(b < 1) | (a < 1)] = math.nan
        return log_mode.exp()

    @property
    def variance(self) -> Tensor:
        return _moment(self.concentration1, self.concentration0, 2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        one, zero = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = (self.concentration0 + 1).digamma() + euler_constant
        return zero + one * harmonic - self.concentration1.log() - self.concentration0.log()


class ContinuousBernoulli(BinaryProbabilities, ParametricDistribution, ExponentialFamily):
    """The continuous Bernoulli distribution on [0, 1]: p(x) is proportional to probs^x · (1 − probs)^(1 − x).

    Args:
        lims: between these probabilities Taylor series replace formulas that are unstable near ½.

    Source: Loaiza-Ganem and Cunningham, The continuous Bernoulli: fixing a pervasive error in variational
        autoencoders, arXiv:1907.06845.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True
    _kept = ("_lims",)

    def __init__(
        self,
        probs: Value | None = None,
        logits: Value | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        given = probs if either(probs, logits) == "probs" else logits
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            # validated here, since they are clamped then
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueProblem("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._lims = lims
        super().__init__(Size() if are_numbers(given) else self._param.size(), validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """Return the probabilities, and one that is not near ½ in the place of those that are."""
        return where(self._outside_unstable_region(), self.probs, self._lims[0] * ones_like(self.probs))

    def _cont_bern_log_norm(self) -> Tensor:
        """Return the logarithm of what the density is normalised by."""
        cut = self._cut_probs()
        below = where(cut <= 0.5, cut, zeros_like(cut))
        above = where(cut >= 0.5, cut, ones_like(cut))
        distance = where(cut <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log())
        log_norm = ((-cut).log1p() - cut.log()).abs().log() - distance
        x = (self.probs - 0.5).pow(2)
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return where(self._outside_unstable_region(), log_norm, series)

    @property
    def mean(self) -> Tensor:
        cut = self._cut_probs()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / ((-cut).log1p() - cut.log())
        x = self.probs - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return where(self._outside_unstable_region(), mean, series)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        cut = self._cut_probs()
        variance = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / ((-cut).log1p() - cut.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return where(self._outside_unstable_region(), variance, series)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        inside = (cut.pow(value) * (1.0 - cut).pow(1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = where(self._outside_unstable_region(), inside, value)
        return where(value <= 0.0, zeros_like(value), where(value >= 1.0, ones_like(value), inside))

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut_probs()
        above = (-cut + value * (2.0 * cut - 1.0)).log1p() - (-cut).log1p()
        return where(self._outside_unstable_region(), above / (cut.log() - (-cut).log1p()), value)

    def entropy(self) -> Tensor:
        log_zero, log_one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log_zero - log_one) - self._cont_bern_log_norm() - log_zero

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        outside = (x <= low) | (x > high)
        cut = where(outside, x, low * ones_like(x))
        log_norm = cut.expm1().abs().log() - cut.abs().log()
        series = 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0
        return where(outside, log_norm, series)
