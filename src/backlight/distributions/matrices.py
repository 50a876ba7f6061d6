"""Distributions of matrices: Wishart, and LKJ of Cholesky factors of correlations."""

import math

from backlight.distributions import constraints
from backlight.distributions.constraints import Constraint
from backlight.distributions.dirichlets import Beta
from backlight.distributions.distribution import Distribution, ExponentialFamily, ParametricDistribution, Shape
from backlight.distributions.gammas import Chi2
from backlight.distributions.multivariate_normals import half_log_det, precision_to_scale_tril, the_only_one
from backlight.distributions.parameters import Value, broadcast_all, lazy_property, require
from backlight.dtypes import finfo
from backlight.errors import ValueProblem
from backlight.linalg import cholesky, slogdet
from backlight.ops.linalg.cholesky import cholesky_solve
from backlight.ops.shape.expanding import broadcast_shapes
from backlight.ops.shape.joining import cat
from backlight.ops.shape.triangular import diag_embed, tril_indices
from backlight.ops.special.special_functions import mvlgamma
from backlight.sizes import Size
from backlight.system.user_warnings import warn_outside
from backlight.tensor.creation import tensor
from backlight.tensor.random_factories import randn
from backlight.tensor.ranges import arange, eye
from backlight.tensor.tensor import Tensor

__all__ = ["LKJCholesky", "Wishart"]

_MOST_CORRECTIONS = 10


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """Return the derivative of the logarithm of the gamma function of p dimensions."""
    require(x.gt((p - 1) / 2).all().item(), "Wrong domain for multivariate digamma function.")
    steps = arange(p, dtype=x.dtype).div(2).expand((*x.shape, -1))
    return (x.unsqueeze(-1) - steps).digamma().sum(-1)


class Wishart(ParametricDistribution, ExponentialFamily):
    """The Wishart distribution of positive-definite matrices Σ xᵢ · xᵢᵀ, x normal vectors, `df` of them.

    Args:
        df: the degrees of freedom, more than the size of the matrices less 1.
        covariance_matrix, precision_matrix, scale_tril: of the normal vectors; exactly one.

    Raises:
        AssertionError: not exactly one is given.
        ValueError: the shapes do not fit, or there are too few degrees of freedom.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Value,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        name = the_only_one(**matrices)
        require(
            name is not None,
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.",
        )
        matrix = matrices[name]
        if matrix.dim() < 2:
            raise ValueProblem("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Tensor):
            batch_shape = broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        else:
            batch_shape = Size(matrix.shape[:-2])
            self.df = tensor(df, dtype=matrix.dtype)
        event_shape = matrix.shape[-2:]
        self._check_df(df, event_shape[-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = scale_tril
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(precision_matrix)
        self._dist_chi2 = self._chi2()

    def _check_df(self, given: Value, size: int) -> None:
        if self.df.le(size - 1).any():
            raise ValueProblem(f"Value of df={given} expected to be greater than ndim - 1 = {size - 1}.")
        if self.df.lt(size).any():
            warn_outside(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim."
            )

    def _chi2(self) -> Chi2:
        """Return the distribution of the squares on the diagonal of Bartlett's factor."""
        count = self._event_shape[-1]
        steps = arange(count, dtype=self._unbroadcasted_scale_tril.dtype)
        return Chi2(df=self.df.unsqueeze(-1) - steps.expand((*self._batch_shape, -1)))

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> Distribution:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)
        new.df = self.df.expand(batch_shape)
        for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(shape))
        super(Wishart, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._dist_chi2 = new._chi2()
        new._validate_args = self._validate_args
        return new

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the normal vectors."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.transpose(-2, -1)).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        identity = eye(self._event_shape[-1], dtype=factor.dtype)
        return cholesky_solve(identity, factor).expand(self._batch_shape + self._event_shape)

    def _of_matrices(self, numbers: Tensor) -> Tensor:
        return numbers.view((*self._batch_shape, 1, 1))

    @property
    def mean(self) -> Tensor:
        return self._of_matrices(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor[factor <= 0] = math.nan
        return self._of_matrices(factor) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self._of_matrices(self.df) * (covariance.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Shape = Size()) -> Tensor:
        """Draw A · Aᵀ: roots of χ² numbers on A's diagonal, standard normal ones below it."""
        size = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = roots.clamp(min=finfo(roots.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = tril_indices(size, size, offset=-1)
        below = (*sample_shape, *self._batch_shape, size * (size - 1) // 2)
        noise[..., i, j] = randn(below, dtype=noise.dtype)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.transpose(-2, -1)

    def _any_of_batch(self, checks: Tensor) -> Tensor:
        return checks.amax([-1 - dim for dim in range(len(self._batch_shape))]) if self._batch_shape else checks

    def rsample(self, sample_shape: Shape = Size(), max_try_correction: int | None = None) -> Tensor:
        """Draw matrices; those of samples that are not as they should be are drawn again, `max_try_correction` times.

        As in PyTorch, the first check looks for matrices that are in the support, so most samples are drawn twice.
        """
        tries = _MOST_CORRECTIONS if max_try_correction is None else max_try_correction
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        singular = self._any_of_batch(self.support.check(sample))
        if singular.any():
            warn_outside("Singular sample detected.")
            for _ in range(tries):
                again = self._bartlett_sampling(singular[singular].shape)
                sample[singular] = again
                still = self._any_of_batch(~self.support.check(again))
                singular[singular.clone()] = still
                if not singular.any():
                    break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        solved = cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            -nu * (p * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            - mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * slogdet(value).logabsdet
            - solved.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-slogdet(-2 * x).logabsdet + math.log(2) * p) + mvlgamma(half, p=p)


class LKJCholesky(ParametricDistribution):
    """The LKJ distribution of lower Cholesky factors L of `dim` × `dim` correlation matrices.

    p(L · Lᵀ) is proportional to det(L · Lᵀ)^(concentration − 1): uniform at 1, near the identity for more.

    Raises:
        ValueError: the dim is below 2.

    Source: Lewandowski, Kurowicka and Joe, Generating random correlation matrices based on vines and extended onion
        method, 2009.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _kept = ("dim",)

    def __init__(self, dim: int, concentration: Value = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueProblem(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        marginal = self.concentration + 0.5 * (dim - 2)
        steps = arange(dim - 1, dtype=self.concentration.dtype)
        steps = cat([steps.new_zeros((1,)), steps])
        self._beta = Beta(steps + 0.5, marginal.unsqueeze(-1) - 0.5 * steps)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def _with_expanded_parameters(self, batch_shape: Shape, _instance: Distribution | None) -> Distribution:
        new = super()._with_expanded_parameters(batch_shape, _instance)
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return new

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        # each row is a point on a sphere, whose radius is Beta distributed: the onion method
        squares = self._beta.sample(sample_shape).unsqueeze(-1)
        directions = randn(self._extended_shape(sample_shape), dtype=squares.dtype).tril(-1)
        directions = directions / directions.norm(dim=-1, keepdim=True)
        directions[..., 0, :].fill_(0.0)
        rows = squares.sqrt() * directions
        rest = (1 - (rows**2).sum(dim=-1)).clamp(min=finfo(rows.dtype).tiny)
        rows += diag_embed(rest.sqrt())
        return rows

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - arange(2, self.dim + 1)
        unnormalized = (powers * diagonal.log()).sum(dim=-1)
        rows = self.dim - 1
        alpha = self.concentration + 0.5 * rows
        normalizer = 0.5 * rows * math.log(math.pi) + mvlgamma(alpha - 0.5, rows) - alpha.lgamma() * rows
        return unnormalized - normalizer
