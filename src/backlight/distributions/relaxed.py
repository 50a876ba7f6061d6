"""Relaxed distributions: continuous ones that approach discrete ones as their temperature falls.

Sources: Maddison, Mnih and Teh, The concrete distribution, arXiv:1611.00712; Jang, Gu and Poole, Categorical
reparameterization with Gumbel-softmax, arXiv:1611.01144.
"""

from backlight.distributions import constraints
from backlight.distributions.categoricals import Categorical, OfCategories
from backlight.distributions.distribution import ParametricDistribution, Shape
from backlight.distributions.parameters import (
    BinaryProbabilities,
    Value,
    are_numbers,
    broadcast_all,
    clamp_probs,
    either,
)
from backlight.distributions.transformed_distribution import TransformedDistribution
from backlight.distributions.transforms.elementwise import ExpTransform, SigmoidTransform
from backlight.sizes import Size
from backlight.tensor.factories import full_like
from backlight.tensor.random_factories import rand
from backlight.tensor.tensor import Tensor

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


class LogitRelaxedBernoulli(BinaryProbabilities, ParametricDistribution):
    """The distribution of the logits of relaxed Bernoulli numbers."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Tensor,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ):
        self.temperature = temperature
        name = either(probs, logits)
        given = logits if probs is None else probs
        setattr(self, name, *broadcast_all(given))
        super().__init__(Size() if are_numbers(given) else self._param.size(), validate_args=validate_args)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        units = clamp_probs(rand(shape, dtype=probs.dtype))
        return (units.log() - (-units).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class _Relaxed(TransformedDistribution):
    """A relaxed distribution on top of one of logarithms."""

    has_rsample = True

    @property
    def temperature(self) -> Tensor:
        """The temperature: towards 0, samples become discrete."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logits of the discrete distribution."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the discrete distribution."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """Numbers in (0, 1) that approach Bernoulli numbers as the temperature falls."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Tensor,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


class ExpRelaxedCategorical(OfCategories, ParametricDistribution):
    """The distribution of the logarithms of relaxed one-hot categories."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    _inner = ("_categorical",)
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        units = clamp_probs(rand(self._extended_shape(sample_shape), dtype=self.logits.dtype))
        gumbels = -((-(units.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        count = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_scale = full_like(self.temperature, float(count)).lgamma() - self.temperature.log().mul(-(count - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(_Relaxed):
    """Vectors of shares that approach one-hot categories as the temperature falls."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
