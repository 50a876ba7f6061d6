"""Dirichlet and Beta distributions.

NOTE [Gradients of Dirichlet numbers]
A share x of concentration α, of a total α₀, is a Beta number: with g = −(∂F / ∂α) / f of Beta(α, α₀ − α) at x, more
concentration moves it by g, and the other shares in proportion to their own. `_dirichlet_grad` gives g / (1 − x).
"""

from backlight.autograd.function import Function, FunctionCtx, once_differentiable
from backlight.distributions import constraints
from backlight.distributions.distribution import ExponentialFamily, ParametricDistribution, Shape
from backlight.distributions.parameters import Value, are_numbers, broadcast_all
from backlight.errors import ValueProblem
from backlight.ops.indexing.index_selection import one_hot
from backlight.ops.random.gammas import _dirichlet_grad
from backlight.ops.shape.joining import stack
from backlight.ops.special.special_functions import xlogy
from backlight.sizes import Size
from backlight.tensor.creation import tensor
from backlight.tensor.random_factories import _sample_dirichlet
from backlight.tensor.tensor import Tensor

__all__ = ["Beta", "Dirichlet"]


class _Dirichlet(Function):
    """Dirichlet numbers, differentiable in their concentrations (NOTE [Gradients of Dirichlet numbers])."""

    @staticmethod
    def forward(ctx: FunctionCtx, concentration: Tensor) -> Tensor:
        """Draw the numbers."""
        x = _sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        """Return the gradient of the concentrations."""
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        return _dirichlet_grad(x, concentration, total) * (grad - (x * grad).sum(-1, True))


class Dirichlet(ParametricDistribution, ExponentialFamily):
    """The Dirichlet distribution of vectors of shares: p(x) is proportional to Π xᵢ^(concentrationᵢ − 1)."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ValueProblem("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        powers = xlogy(self.concentration - 1.0, value).sum(-1)
        return powers + self.concentration.sum(-1).lgamma() - self.concentration.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        corners = (self.concentration < 1).all(dim=-1)
        mode[corners] = one_hot(mode[corners].argmax(dim=-1), above.shape[-1]).to(mode)
        return mode

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        count, total = self.concentration.size(-1), self.concentration.sum(-1)
        return (
            self.concentration.lgamma().sum(-1)
            - total.lgamma()
            - (count - total) * total.digamma()
            - ((self.concentration - 1.0) * self.concentration.digamma()).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


class Beta(ParametricDistribution, ExponentialFamily):
    """The Beta distribution on [0, 1], of the concentrations a at 1 and b at 0.

    p(x) is proportional to x^(a − 1) · (1 − x)^(b − 1).
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _inner = ("_dirichlet",)

    def __init__(self, concentration1: Value, concentration0: Value, validate_args: bool | None = None):
        if are_numbers(concentration1, concentration0):
            both = tensor([float(concentration1), float(concentration0)])
        else:
            both = stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """The concentration at 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The concentration at 0."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
