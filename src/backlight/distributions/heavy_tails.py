"""Distributions with heavy tails: Cauchy, half Cauchy, Student's t, Pareto and its generalisation."""

import math

from backlight.distributions import constraints
from backlight.distributions.constraints import Constraint
from backlight.distributions.distribution import ParametricDistribution, Shape
from backlight.distributions.exponentials import Exponential
from backlight.distributions.gammas import Chi2
from backlight.distributions.parameters import Value, are_numbers, broadcast_all, standard_normal
from backlight.distributions.transformed_distribution import TransformedDistribution
from backlight.distributions.transforms.elementwise import AbsTransform, AffineTransform, ExpTransform
from backlight.layouts import contiguous_format
from backlight.ops.elementwise.comparisons import isclose
from backlight.ops.elementwise.where_clamp import where
from backlight.sizes import Size
from backlight.tensor.creation import as_tensor
from backlight.tensor.factories import full, ones_like, zeros_like
from backlight.tensor.random_factories import rand
from backlight.tensor.tensor import Tensor

__all__ = ["Cauchy", "GeneralizedPareto", "HalfCauchy", "Pareto", "StudentT"]


class Cauchy(ParametricDistribution):
    """The Cauchy distribution of median `loc` and half width `scale`; it has no mean.

    p(x) = 1 / (π · scale · (1 + ((x − loc) / scale)²))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        batch_shape = Size() if are_numbers(loc, scale) else self.loc.size()
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.nan, dtype=self.loc.dtype)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return full(self._extended_shape(), math.inf, dtype=self.loc.dtype)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        noise = self.loc.new(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(TransformedDistribution):
    """The distribution of |x|, x of the Cauchy distribution of median 0 and half width `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Value, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The half width of the Cauchy distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.inf, dtype=self.scale.dtype)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = as_tensor(value, dtype=self.base_dist.scale.dtype)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class StudentT(ParametricDistribution):
    """Student's t distribution with `df` degrees of freedom, moved by `loc` and stretched by `scale`.

    A normal number divided by the root of an independent Chi2(df) number over df.
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _inner = ("_chi2",)

    def __init__(self, df: Value, loc: Value = 0.0, scale: Value = 1.0, validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        mean = self.loc.clone(memory_format=contiguous_format)
        mean[self.df <= 1] = math.nan
        return mean

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = self.df.clone(memory_format=contiguous_format)
        finite = self.df > 2
        variance[finite] = self.scale[finite].pow(2) * self.df[finite] / (self.df[finite] - 2)
        variance[(self.df <= 2) & (self.df > 1)] = math.inf
        variance[self.df <= 1] = math.nan
        return variance

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.df.dtype)
        spread = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (noise * (spread / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + (0.5 * self.df).lgamma()
            - (0.5 * (self.df + 1.0)).lgamma()
        )
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - normalizer

    def entropy(self) -> Tensor:
        half, next_half = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - next_half.lgamma()
        slopes = next_half.digamma() - half.digamma()
        return self.scale.log() + next_half * slopes + 0.5 * self.df.log() + log_beta


class Pareto(TransformedDistribution):
    """The Pareto distribution: p(x) = alpha · scale^alpha / x^(alpha + 1) from `scale` on."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Value, alpha: Value, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # infinite up to 1
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)  # infinite up to 2
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class GeneralizedPareto(ParametricDistribution):
    """The generalised Pareto distribution, of what exceeds a threshold `loc`.

    1 − F(x) = (1 + concentration · z)^(−1 / concentration), z = (x − loc) / scale; exp(−z) for a concentration of 0
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Value, scale: Value, concentration: Value, validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        batch_shape = Size() if are_numbers(loc, scale, concentration) else self.loc.size()
        super().__init__(batch_shape, validate_args=validate_args)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def _apart(self) -> tuple[Tensor, Tensor]:
        """Return where the concentration is 0, and the concentration with 1 there."""
        zero = isclose(self.concentration, zeros_like(self.concentration))
        return zero, where(zero, ones_like(self.concentration), self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, concentration = self._apart()
        y = 1 / concentration + ones_like(z)
        otherwise = where(y == 0, y, y * (concentration * z).log1p())
        return -self.scale.log() - where(zero, z, otherwise)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return log(1 − F(x))."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, concentration = self._apart()
        return where(zero, -z, -(concentration * z).log1p() / concentration)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return log F(x)."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, concentration = self._apart()
        rest = (-value).log1p()
        otherwise = self.loc + self.scale / concentration * (-concentration * rest).expm1()
        return where(zero, self.loc - self.scale * rest, otherwise)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    @property
    def mean(self) -> Tensor:
        valid = self.concentration < 1
        concentration = where(valid, self.concentration, 0.5)
        return where(valid, self.loc + self.scale / (1 - concentration), math.nan)

    @property
    def variance(self) -> Tensor:
        valid = self.concentration < 0.5
        concentration = where(valid, self.concentration, 0.25)
        return where(valid, self.scale**2 / ((1 - concentration) ** 2 * (1 - 2 * concentration)), math.nan)

    def entropy(self) -> Tensor:
        return (self.scale.log() + self.concentration + 1).broadcast_to(self._batch_shape)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        end = where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, end)
