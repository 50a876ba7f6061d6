"""`MixtureSameFamily`: a mixture of distributions of one family."""

from backlight.distributions import constraints
from backlight.distributions.categoricals import Categorical
from backlight.distributions.constraints import Constraint, MixtureSameFamilyConstraint
from backlight.distributions.distribution import Distribution, Shape
from backlight.engine.grad_mode import no_grad
from backlight.errors import ValueProblem
from backlight.ops.indexing.gather_scatter import gather
from backlight.ops.reduction.reductions import logsumexp
from backlight.sizes import Size
from backlight.tensor.tensor import Tensor

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """p(x) = Σ wₖ · pₖ(x): the components are the last batch dim of one distribution, the weights a categorical one.

    Raises:
        ValueError: one of the two is of another kind, or their shapes do not fit.
    """

    arg_constraints: dict[str, Constraint] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueProblem(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueProblem("The Component distribution needs to be an instance of torch.distributions.Distribution")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        own, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        if any(i != 1 and j != 1 and i != j for i, j in zip(reversed(own), reversed(batch))):
            raise ValueProblem(
                f"`mixture_distribution.batch_shape` ({own}) is not compatible with "
                f"`component_distribution.batch_shape`({batch})"
            )
        weights, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if weights != components:
            raise ValueProblem(
                f"`mixture_distribution component` ({weights}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )
        self._num_component = weights
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape=batch, event_shape=event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> Distribution:
        new, batch_shape = self._get_checked_instance(MixtureSameFamily, _instance), Size(batch_shape)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        super(MixtureSameFamily, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Constraint:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of the components' numbers."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dim."""
        return self._component_distribution

    def _expected(self, values: Tensor) -> Tensor:
        """Return the mean of values over the components."""
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return (probs * values).sum(dim=-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._expected(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        within = self._expected(self.component_distribution.variance)
        between = self._expected((self.component_distribution.mean - self._pad(self.mean)).pow(2.0))
        return within + between

    def cdf(self, value: Tensor) -> Tensor:
        below = self.component_distribution.cdf(self._pad(value))
        return (below * self.mixture_distribution.probs).sum(dim=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        of_components = self.component_distribution.log_prob(self._pad(value))
        return logsumexp(of_components + self.mixture_distribution.logits.log_softmax(dim=-1), dim=-1)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        with no_grad():
            dim, event_dims = len(sample_shape) + len(self.batch_shape), len(self.event_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            places = chosen.reshape((*chosen.shape, *[1] * (event_dims + 1)))
            places = places.repeat((*[1] * chosen.dim(), 1, *self.event_shape))
            return gather(values, dim, places).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        """Return values with a dim for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Return weights with dims for the events, and for batch dims that they lack."""
        own = len(self.mixture_distribution.batch_shape)
        more = 0 if own == 1 else len(self.batch_shape) - own
        return x.reshape((*x.shape[:-1], *[1] * more, x.shape[-1], *[1] * self._event_ndims))

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
