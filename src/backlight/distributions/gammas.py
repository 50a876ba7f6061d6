"""Gamma distributions, and those of quotients of gamma numbers."""

import math

from backlight.distributions import constraints
from backlight.distributions.distribution import ExponentialFamily, ParametricDistribution, Shape
from backlight.distributions.parameters import Value, are_numbers, broadcast_all
from backlight.distributions.transformed_distribution import TransformedDistribution
from backlight.distributions.transforms.elementwise import PowerTransform
from backlight.dtypes import finfo
from backlight.layouts import contiguous_format
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.special.rare_functions import igamma
from backlight.ops.special.special_functions import xlogy
from backlight.sizes import Size
from backlight.tensor.creation import as_tensor
from backlight.tensor.random_factories import _standard_gamma
from backlight.tensor.tensor import Tensor

__all__ = ["Chi2", "FisherSnedecor", "Gamma", "InverseGamma"]


class Gamma(ParametricDistribution, ExponentialFamily):
    """The gamma distribution: p(x) = rate^concentration · x^(concentration − 1) · exp(−rate · x) / Γ(concentration)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Value, rate: Value, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        batch_shape = Size() if are_numbers(concentration, rate) else self.concentration.size()
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # without a trace in the graph
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = as_tensor(value, dtype=self.rate.dtype)
        if self._validate_args:
            self._validate_sample(value)
        return (
            xlogy(self.concentration, self.rate)
            + xlogy(self.concentration - 1, value)
            - self.rate * value
            - self.concentration.lgamma()
        )

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        return (
            self.concentration
            - self.rate.log()
            + self.concentration.lgamma()
            + (1.0 - self.concentration) * self.concentration.digamma()
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + 1).lgamma() + (x + 1) * (-y.reciprocal()).log()


class Chi2(Gamma):
    """The χ² distribution with `df` degrees of freedom: the sum of so many squares of standard normal numbers."""

    arg_constraints = {"df": constraints.positive}
    _inner = ("concentration", "rate")

    def __init__(self, df: Value, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x, x gamma of `concentration` and `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Value, rate: Value, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape of the gamma distribution."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        return where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        variance = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return where(self.concentration > 2, variance, math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class FisherSnedecor(ParametricDistribution):
    """The F distribution: the quotient of two χ² numbers, each over its degrees of freedom, `df1` and `df2`."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _inner = ("_gamma1", "_gamma2")

    def __init__(self, df1: Value, df2: Value, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        batch_shape = Size() if are_numbers(df1, df2) else self.df1.size()
        super().__init__(batch_shape, validate_args=validate_args)

    def _df2_above(self, least: int) -> Tensor:
        """Return df2, with NaN where it is not above `least`."""
        df2 = self.df2.clone(memory_format=contiguous_format)
        df2[df2 <= least] = math.nan
        return df2

    @property
    def mean(self) -> Tensor:
        df2 = self._df2_above(2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        mode[self.df1 <= 2] = math.nan
        return mode

    @property
    def variance(self) -> Tensor:
        df2 = self._df2_above(4)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above = self._gamma1.rsample(sample_shape).view(shape)
        below = self._gamma2.rsample(sample_shape).view(shape)
        tiny = finfo(below.dtype).tiny
        below.clamp_(min=tiny)
        quotient = above / below
        quotient.clamp_(min=tiny)
        return quotient

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, quotient = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        log_beta = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        powers = half1 * quotient.log() + (half1 - 1) * value.log()
        return log_beta + powers - (half1 + half2) * (quotient * value).log1p()
