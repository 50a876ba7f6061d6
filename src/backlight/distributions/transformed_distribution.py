"""`TransformedDistribution`: the distribution of a function of a random variable."""

from backlight.distributions import constraints
from backlight.distributions.constraints import Constraint
from backlight.distributions.distribution import Distribution, ParametricDistribution, Shape
from backlight.distributions.independent import Independent
from backlight.distributions.parameters import require, sum_rightmost
from backlight.distributions.transforms.transform import ComposeTransform, Transform
from backlight.engine.grad_mode import no_grad
from backlight.errors import ValueProblem
from backlight.sizes import Size
from backlight.tensor.tensor import Tensor

__all__ = ["TransformedDistribution"]


def _as_list(transforms: Transform | list[Transform]) -> list[Transform]:
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueProblem(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(one, Transform) for one in transforms):
        raise ValueProblem("transforms must be a Transform or a list of Transforms")
    return transforms


class TransformedDistribution(ParametricDistribution):
    """The distribution of y = t(x), where x is of a base distribution.

        log p(y) = log p(x) − log |det dy/dx|,  x = t⁻¹(y)

    Args:
        transforms: one transform, or several, which are applied in their order.

    Raises:
        ValueError: the transforms are none, or need more dims than the base distribution has.
    """

    arg_constraints: dict[str, Constraint] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ):
        self.transforms = _as_list(transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dims = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        domain_dims, codomain_dims = transform.domain.event_dim, transform.codomain.event_dim
        if len(base_shape) < domain_dims:
            raise ValueProblem(
                f"base_distribution needs to have shape with size at least {domain_dims}, but got {base_shape}."
            )
        shape = Size(transform.forward_shape(base_shape))
        expanded = Size(transform.inverse_shape(shape))  # the parameters of the transforms may have more dims
        if base_shape != expanded:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_dims])
        if domain_dims > base_dims:
            base_distribution = Independent(base_distribution, domain_dims - base_dims)
        self.base_dist = base_distribution
        event_dims = max(codomain_dims, base_dims + codomain_dims - domain_dims)
        require(len(shape) >= event_dims, f"forward_shape length {len(shape)} must be >= event_dim {event_dims}")
        cut = len(shape) - event_dims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> Distribution:
        new, batch_shape = self._with_expanded_parameters(batch_shape, _instance), Size(batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        super(TransformedDistribution, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dims, total, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(term, dims - transform.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """Return 1 − value where the transforms turn the order of numbers round."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))
