"""`Distribution`, the base of all distributions, and what those of parameters and exponential families share."""

import warnings
from collections.abc import Sequence

from backlight.autograd import grad
from backlight.distributions import constraints
from backlight.distributions.constraints import Constraint
from backlight.distributions.parameters import all_true, lazy_property
from backlight.engine.grad_mode import no_grad
from backlight.errors import MissingMethodError, ValueProblem
from backlight.ops.elementwise.transcendental import exp
from backlight.sizes import Size
from backlight.system.user_warnings import warn_outside
from backlight.tensor.tensor import Tensor

__all__ = ["Distribution"]

Shape = Sequence[int]


class Distribution:
    """A batch of probability distributions.

    Args:
        batch_shape: how many distributions there are, independent of each other and with parameters of their own.
        event_shape: the shape of one value of one distribution.
        validate_args: whether parameters are checked, and later values; by default as `set_default_validate_args` says.

    Raises:
        ValueError: a parameter does not satisfy its constraint.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their parameters, and values, where `validate_args` is not given."""
        if value not in [True, False]:
            raise ValueProblem(f"the default of validate_args must be True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Shape = Size(), event_shape: Shape = Size(), validate_args: bool | None = None):
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            required = self.arg_constraints
        except NotImplementedError:
            warn_outside(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation."
            )
            return
        for name, constraint in required.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # it is computed from one that is checked
            value = getattr(self, name)
            if not all_true(constraint.check(value)):
                raise ValueProblem(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Shape, _instance: "Distribution | None" = None) -> "Distribution":
        """Return the distribution with its parameters expanded to another batch shape.

        Args:
            _instance: for subclasses that override this: the new object, without parameters.
        """
        raise self._missing("expand")

    def _missing(self, name: str) -> MissingMethodError:
        return MissingMethodError(f"{type(self).__name__} does not implement {name}")

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value, without the batch."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """The constraint of each parameter, by name."""
        raise self._missing("arg_constraints")

    @property
    def support(self) -> Constraint | None:
        """Where the distribution's values lie."""
        raise self._missing("support")

    @property
    def mean(self) -> Tensor:
        """The expected values."""
        raise self._missing("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable values."""
        raise MissingMethodError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variances."""
        raise self._missing("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviations."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        """Draw values of shape sample_shape + batch_shape + event_shape, without a graph."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        """Draw values that are differentiable in the parameters, where `has_rsample`."""
        raise self._missing("rsample")

    def sample_n(self, n: int) -> Tensor:
        """Draw n values of each distribution. Deprecated: `sample((n,))` does so."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", category=FutureWarning, stacklevel=2
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, or of the probability, at a value."""
        raise self._missing("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of what lies at or below a value."""
        raise self._missing("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantiles of probabilities: the inverse of `cdf`."""
        raise self._missing("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution along a new first dim.

        Args:
            expand: whether to repeat them over the batch; else its dims have size 1.
        """
        raise self._missing("enumerate_support")

    def entropy(self) -> Tensor:
        """Return −E[log p], in nats."""
        raise self._missing("entropy")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return exp(self.entropy())

    def _extended_shape(self, sample_shape: Shape = Size()) -> Size:
        return Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        """Check a value that `log_prob` or `cdf` is given.

        Raises:
            ValueError: it is no tensor, its shape does not fit, or it lies outside of the support.
        """
        if not isinstance(value, Tensor):
            raise ValueProblem("The value argument to log_prob must be a Tensor")
        actual, expected = value.size(), self._batch_shape + self._event_shape
        if actual[len(actual) - len(self._event_shape) :] != self._event_shape:
            raise ValueProblem(f"The right-most size of value must match event_shape: {actual} vs {self._event_shape}.")
        if any(i != 1 and j != 1 and i != j for i, j in zip(reversed(actual), reversed(expected))):
            raise ValueProblem(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warn_outside(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation."
            )
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if not all_true(support.check(value)):
            raise ValueProblem(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: "Distribution | None" = None) -> "Distribution":
        """Return the object that `expand` is to fill: the given one, or a new one of a class that can be made so."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise MissingMethodError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        shown = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        parts = [f"{name}: {one if one.numel() == 1 else one.size()}" for name, one in shown.items()]
        return f"{type(self).__name__}({', '.join(parts)})"


class ParametricDistribution(Distribution):
    """A distribution whose parameters are attributes, named by `arg_constraints`: what it takes to expand it.

    Attributes:
        _inner: further attributes of the batch shape: distributions, or tensors.
        _kept: attributes that an expanded distribution has unchanged.
    """

    _inner: tuple[str, ...] = ()
    _kept: tuple[str, ...] = ()

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> Distribution:
        new = self._with_expanded_parameters(batch_shape, _instance)
        Distribution.__init__(new, Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _with_expanded_parameters(self, batch_shape: Shape, _instance: Distribution | None) -> Distribution:
        """Return the object that `expand` is to fill, with its attributes but those of `Distribution`."""
        new, batch_shape = self._get_checked_instance(self._own_class(), _instance), Size(batch_shape)
        for name, constraint in self.arg_constraints.items():
            if name in self.__dict__ and name not in new.__dict__:
                value = self.__dict__[name]
                own = value.shape[value.dim() - constraint.event_dim :]
                setattr(new, name, value.expand(batch_shape + own))
        for name in self._inner:
            setattr(new, name, getattr(self, name).expand(batch_shape))
        for name in self._kept:
            setattr(new, name, getattr(self, name))
        return new

    def _own_class(self) -> type:
        """Return the class of this package that the object is of; a subclass may be a user's."""
        package = __name__.rpartition(".")[0]
        return next(one for one in type(self).__mro__ if one.__module__.startswith(package))


class ExponentialFamily(Distribution):
    """Distributions of density exp(⟨t(x), θ⟩ − F(θ) + k(x)), with natural parameters θ and log normalizer F.

    The entropy follows from F and its gradient: F(θ) − ⟨θ, ∇F(θ)⟩ − E[k(x)].
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """The natural parameters θ."""
        raise self._missing("_natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """Return F(θ)."""
        raise self._missing("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> float:
        """E[k(x)]."""
        raise self._missing("_mean_carrier_measure")

    def entropy(self) -> Tensor:
        result = -self._mean_carrier_measure
        parameters = [one.detach().requires_grad_() for one in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        slopes = grad(normalizer.sum(), parameters, create_graph=True)
        result = normalizer + result
        for parameter, slope in zip(parameters, slopes):
            result = result - (parameter * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return result
