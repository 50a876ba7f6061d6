"""Normal distributions of vectors, by a full covariance or by one of low rank."""

import math

from backlight.distributions import constraints
from backlight.distributions.distribution import ParametricDistribution, Shape
from backlight.distributions.parameters import lazy_property, standard_normal
from backlight.errors import ValueProblem
from backlight.linalg import cholesky, solve_triangular
from backlight.ops.linalg.cholesky import cholesky_inverse
from backlight.ops.shape.expanding import broadcast_shapes, broadcast_tensors
from backlight.ops.shape.flipping import flip
from backlight.ops.shape.triangular import diag_embed
from backlight.sizes import Size
from backlight.tensor.ranges import eye
from backlight.tensor.tensor import Tensor

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


def matrix_times_vector(matrix: Tensor, vector: Tensor) -> Tensor:
    """Return products of matrices and vectors, in batches."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """Return xᵀ · (L · Lᵀ)⁻¹ · x of vectors x and lower triangular L. Batches of x may repeat those of L.

    Each L is solved with all its vectors at once. Shapes: L (*, n, n), x (…, *, n), with multiples of * for *.
    """
    count = x.size(-1)
    batch = x.shape[:-1]
    inner = factor.dim() - 2
    outer = len(batch) - inner
    # each dim of x that L has too becomes two: how often it repeats L's, and L's
    pairs = [(size // own, own) for own, size in zip(factor.shape[:-2], batch[outer:])]
    x = x.reshape((*batch[:outer], *[size for pair in pairs for size in pair], count))
    end = outer + 2 * inner
    x = x.permute([*range(outer), *range(outer, end, 2), *range(outer + 1, end, 2), end])
    flat_factor = factor.reshape(-1, count, count)
    flat_x = x.reshape(-1, flat_factor.size(0), count).permute(1, 2, 0)
    squares = solve_triangular(flat_factor, flat_x, upper=False).pow(2).sum(-2).t()
    squares = squares.reshape(x.shape[:-1])
    order = [place for i in range(inner) for place in (outer + i, outer + inner + i)]
    return squares.permute([*range(outer), *order]).reshape(batch)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Return the Cholesky factor of the inverse of positive-definite matrices."""
    flipped = cholesky(flip(precision, (-2, -1)))
    inverse = flip(flipped, (-2, -1)).transpose(-2, -1)
    return solve_triangular(inverse, eye(precision.shape[-1], dtype=precision.dtype), upper=False)


def half_log_det(factor: Tensor) -> Tensor:
    """Return the sum of the logarithms on the diagonal of Cholesky factors."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def the_only_one(**matrices: Tensor | None) -> str | None:
    """Return the name of the only argument that is given; None if not exactly one is."""
    given = [name for name, matrix in matrices.items() if matrix is not None]
    return given[0] if len(given) == 1 else None


class MultivariateNormal(ParametricDistribution):
    """The normal distribution of vectors of mean `loc`, by exactly one of covariance, precision and scale_tril.

    Args:
        precision_matrix: the inverse of the covariance.
        scale_tril: the lower triangular factor of the covariance, with a positive diagonal; the cheapest to give.

    Raises:
        ValueError: not exactly one is given, or the shapes do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if loc.dim() < 1:
            raise ValueProblem("loc must be at least one-dimensional.")
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        name = the_only_one(**matrices)
        if name is None:
            raise ValueProblem("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        matrix = matrices[name]
        if matrix.dim() < 2:
            called = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueProblem(f"{called} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = scale_tril
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(precision_matrix)

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape + self._event_shape

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape())

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc.dtype)
        return self.loc + matrix_times_vector(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = constant + half_log_det(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy


def capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """Return the Cholesky factor of the capacitance matrix I + Wᵀ · D⁻¹ · W."""
    capacitance = (factor.mT / diagonal.unsqueeze(-2)) @ factor
    return cholesky(_plus_identity(capacitance))


def _plus_identity(matrix: Tensor) -> Tensor:
    size = matrix.size(-1)
    matrix = matrix.contiguous()
    matrix.view(-1, size * size)[:, :: size + 1] += 1
    return matrix


def low_rank_log_det(diagonal: Tensor, capacitance: Tensor) -> Tensor:
    """Return log det(W · Wᵀ + D) by the matrix determinant lemma."""
    return 2 * half_log_det(capacitance) + diagonal.log().sum(-1)


def low_rank_mahalanobis(factor: Tensor, diagonal: Tensor, x: Tensor, capacitance: Tensor) -> Tensor:
    """Return xᵀ · (W · Wᵀ + D)⁻¹ · x by Woodbury's identity."""
    projected = matrix_times_vector(factor.mT / diagonal.unsqueeze(-2), x)
    return (x.pow(2) / diagonal).sum(-1) - mahalanobis(capacitance, projected)


class LowRankMultivariateNormal(ParametricDistribution):
    """The normal distribution of vectors whose covariance is W · Wᵀ + D.

    Args:
        loc: the mean, (..., n).
        cov_factor: W, (..., n, rank).
        cov_diag: the diagonal of D, positive, (..., n).

    Raises:
        ValueError: the shapes do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueProblem("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueProblem("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueProblem(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueProblem(f"cov_diag must be a batch of vectors with shape {event_shape}")
        columns = loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
        try:
            locs, self.cov_factor, diagonals = broadcast_tensors(*columns)
        except RuntimeError as problem:
            raise ValueProblem(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from problem
        self.loc, self.cov_diag = locs[..., 0], diagonals[..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape + self._event_shape

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_cov_factor.pow(2).sum(-1)
        return (squares + self._unbroadcasted_cov_diag).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        # √D · L, where L · Lᵀ = I + (√D⁻¹ · W) · (√D⁻¹ · W)ᵀ
        roots = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / roots
        return (roots * cholesky(_plus_identity(scaled @ scaled.mT))).expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return (factor @ factor.mT + diag_embed(self._unbroadcasted_cov_diag)).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        solved = solve_triangular(self._capacitance_tril, scaled, upper=False)
        inverse = diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - solved.mT @ solved
        return inverse.expand(self._matrix_shape())

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        of_factor = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc.dtype)
        of_diagonal = standard_normal(shape, self.loc.dtype)
        moved = self.loc + matrix_times_vector(self._unbroadcasted_cov_factor, of_factor)
        return moved + self._unbroadcasted_cov_diag.sqrt() * of_diagonal

    def _log_det(self) -> Tensor:
        return low_rank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        parts = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc
        distance = low_rank_mahalanobis(*parts, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Tensor:
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
