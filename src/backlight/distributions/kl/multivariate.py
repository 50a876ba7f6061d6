"""Divergences of two normal distributions of vectors."""

from backlight.distributions.multivariate_normals import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_log_det,
    low_rank_log_det,
    low_rank_mahalanobis,
    mahalanobis,
)
from backlight.errors import ValueProblem
from backlight.linalg import solve_triangular
from backlight.ops.shape.expanding import broadcast_shapes
from backlight.ops.shape.triangular import diag_embed
from backlight.tensor.tensor import Tensor

Low, Full = LowRankMultivariateNormal, MultivariateNormal


def _check_shapes(p: Low | Full, q: Low | Full, kind: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueProblem(
            f"KL-divergence between two {kind} with                          different event shapes cannot be computed"
        )


def _squares(matrix: Tensor) -> Tensor:
    """Return the trace of X · Xᵀ: the sum of the squares."""
    return matrix.pow(2).flatten(-2).sum(-1)


def _low_rank_terms(q: Low, loc: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return q's log determinant, the distance of a mean from its own, and L⁻¹ · Wᵀ · D⁻¹, L of its capacitance."""
    factor, diagonal, capacitance = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril
    distance = low_rank_mahalanobis(factor, diagonal, q.loc - loc, capacitance)
    solved = solve_triangular(capacitance, factor.mT / diagonal.unsqueeze(-2), upper=False)
    return low_rank_log_det(diagonal, capacitance), distance, solved


def _low_low(p: Low, q: Low) -> Tensor:
    _check_shapes(p, q, "Low Rank Multivariate Normals")
    factor, diagonal = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    log_det, distance, solved = _low_rank_terms(q, p.loc)
    log_dets = log_det - low_rank_log_det(diagonal, p._capacitance_tril)
    trace = (
        (diagonal / q._unbroadcasted_cov_diag).sum(-1)
        + _squares(factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1))
        - _squares(solved * diagonal.sqrt().unsqueeze(-2))
        - _squares(solved @ factor)
    )
    return 0.5 * (log_dets + trace + distance - p.event_shape[0])


def _full_low(p: Full, q: Low) -> Tensor:
    _check_shapes(p, q, "(Low Rank) Multivariate Normals")
    factor = p._unbroadcasted_scale_tril
    log_det, distance, solved = _low_rank_terms(q, p.loc)
    trace = _squares(factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)) - _squares(solved @ factor)
    return 0.5 * (log_det - 2 * half_log_det(factor) + trace + distance - p.event_shape[0])


def _solved_squares(factor: Tensor, *matrices: Tensor) -> list[Tensor]:
    """Return the squares of L⁻¹ · X for matrices X, in a common batch."""
    batch = broadcast_shapes(factor.shape[:-2], *[one.shape[:-2] for one in matrices])
    factor = factor.expand(batch + factor.shape[-2:])
    wide = [one.expand(batch + one.shape[-2:]) for one in matrices]
    return [_squares(solve_triangular(factor, one, upper=False)) for one in wide]


def _low_full(p: Low, q: Full) -> Tensor:
    _check_shapes(p, q, "(Low Rank) Multivariate Normals")
    factor = q._unbroadcasted_scale_tril
    log_dets = 2 * half_log_det(factor) - low_rank_log_det(p._unbroadcasted_cov_diag, p._capacitance_tril)
    roots = diag_embed(p._unbroadcasted_cov_diag.sqrt())
    of_factor, of_diagonal = _solved_squares(factor, p._unbroadcasted_cov_factor, roots)
    distance = mahalanobis(factor, q.loc - p.loc)
    return 0.5 * (log_dets + (of_factor + of_diagonal) + distance - p.event_shape[0])


def _full_full(p: Full, q: Full) -> Tensor:
    _check_shapes(p, q, "Multivariate Normals")
    factor = q._unbroadcasted_scale_tril
    half_log_dets = half_log_det(factor) - half_log_det(p._unbroadcasted_scale_tril)
    (trace,) = _solved_squares(factor, p._unbroadcasted_scale_tril)
    return half_log_dets + 0.5 * (trace + mahalanobis(factor, q.loc - p.loc) - p.event_shape[0])


MULTIVARIATE = {(Low, Low): _low_low, (Full, Low): _full_low, (Low, Full): _low_full, (Full, Full): _full_full}
