"""Distributions of categories: Bernoulli, categorical, one-hot, multinomial."""

import math

from backlight.distributions import constraints
from backlight.distributions.constraints import Constraint
from backlight.distributions.counts import Binomial
from backlight.distributions.distribution import Distribution, ExponentialFamily, ParametricDistribution, Shape
from backlight.distributions.parameters import (
    BinaryProbabilities,
    Value,
    are_numbers,
    broadcast_all,
    either,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from backlight.dtypes import finfo, long
from backlight.engine.grad_mode import no_grad
from backlight.errors import MissingMethodError, ValueProblem
from backlight.layouts import contiguous_format
from backlight.nn.functional import binary_cross_entropy_with_logits, one_hot
from backlight.ops.shape.expanding import broadcast_tensors
from backlight.ops.special.special_functions import logit
from backlight.sizes import Size
from backlight.tensor.creation import tensor
from backlight.tensor.factories import full, ones_like
from backlight.tensor.random_factories import bernoulli, multinomial
from backlight.tensor.ranges import arange, eye
from backlight.tensor.tensor import Tensor

__all__ = ["Bernoulli", "Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]


class Bernoulli(BinaryProbabilities, ParametricDistribution, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability `probs`, else 0; `logits` are the logarithms of the odds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Value | None = None, logits: Value | None = None, validate_args: bool | None = None):
        name = either(probs, logits)
        given = logits if probs is None else probs
        setattr(self, name, *broadcast_all(given))
        super().__init__(Size() if are_numbers(given) else self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = math.nan
        return mode

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, dtype=self._param.dtype).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp().log1p()


class Categorical(ParametricDistribution):
    """The distribution of category numbers 0, 1, …, along the last dim of `probs` or `logits`, which are normalised.

    Raises:
        ValueError: both or none are given, or one without dims.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _kept = ("_num_events",)

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        name = either(probs, logits)
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueProblem(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    def _new(self, *args, **kwargs) -> Tensor:
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._param.size()

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.nan, dtype=self.probs.dtype)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return full(self._extended_shape(), math.nan, dtype=self.probs.dtype)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, log_probs = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_probs.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)  # 0 · −∞ would be NaN
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events, dtype=long).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class OfCategories(Distribution):
    """A distribution made of a categorical one, with which it shares its parameters."""

    _categorical: Categorical

    def _new(self, *args, **kwargs) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._categorical.param_shape


class OneHotCategorical(OfCategories, ParametricDistribution):
    """The distribution of categories as vectors of one 1, and 0 elsewhere."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _inner = ("_categorical",)

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits)
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return one_hot(self.probs.argmax(dim=-1), num_classes=self.probs.shape[-1]).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        places = self._categorical.sample(Size(sample_shape))
        return one_hot(places, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self.event_shape[0]
        values = eye(count, dtype=self._param.dtype)
        values = values.view((count, *[1] * len(self.batch_shape), count))
        return values.expand((count, *self.batch_shape, count)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot categories whose gradient is that of the probabilities.

    Source: Bengio, Léonard and Courville, Estimating or propagating gradients through stochastic neurons,
        arXiv:1308.3432.
    """

    has_rsample = True

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfCategories, ParametricDistribution):
    """The multinomial distribution: how often each category is drawn among `total_count` draws.

    Raises:
        NotImplementedError: the number of draws is no int.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _inner = ("_categorical",)
    _kept = ("total_count",)

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if not isinstance(total_count, int):
            raise MissingMethodError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._count_of_each()  # checks total_count
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    def _count_of_each(self) -> Binomial:
        """Return the distribution of how often each single category is drawn."""
        return Binomial(total_count=self.total_count, probs=self.probs)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = drawn.new(self._extended_shape(sample_shape)).zero_()
        counts.scatter_add_(-1, drawn, ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        count = tensor(self.total_count)
        of_each = self._count_of_each()
        counts = of_each.enumerate_support(expand=False)[1:]
        expected = (of_each.log_prob(counts).exp() * (counts + 1).lgamma()).sum([0, -1])
        return count * self._categorical.entropy() - (count + 1).lgamma() + expected

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=contiguous_format)
        log_factorial_n, log_factorials = (value.sum(-1) + 1).lgamma(), (value + 1).lgamma().sum(-1)
        logits[(value == 0) & (logits == -math.inf)] = 0
        return log_factorial_n - log_factorials + (logits * value).sum(-1)
