"""Transforms to matrices: Cholesky factors, of covariances and of correlations, and positive-definite matrices."""

import math
from collections.abc import Sequence

from backlight.distributions import constraints
from backlight.distributions.parameters import tril_matrix_to_vec, vec_to_tril_matrix
from backlight.distributions.transforms.transform import TOO_FEW, Transform
from backlight.dtypes import finfo
from backlight.errors import ValueProblem
from backlight.linalg import cholesky
from backlight.nn.functional import pad, softplus
from backlight.sizes import Size
from backlight.tensor.ranges import eye
from backlight.tensor.tensor import Tensor


class CorrCholeskyTransform(Transform):
    """Map vectors of D·(D − 1) / 2 numbers to Cholesky factors of D × D correlation matrices.

    tanh(x) fills what is below the diagonal, row after row; each row is then made a vector of length 1 by stick
    breaking of its square.

    Source: Lewandowski, Kurowicka and Joe, Generating random correlation matrices based on vines and extended onion
        method, 2009; Stan's reference manual, Cholesky factors of correlation matrices.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        below = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - below**2).sqrt().cumprod(-1)
        filled = below + eye(below.shape[-1], dtype=below.dtype)
        return filled * pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = pad((1 - (y * y).cumsum(dim=-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2  # artanh

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: object = None) -> Tensor:
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        of_tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return 0.5 * rest.log().sum(-1) + of_tanh

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 1:
            raise ValueProblem(TOO_FEW)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueProblem("Input is not a flattened lower-diagonal number")
        return Size(shape[:-1]) + (size, size)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 2:
            raise ValueProblem(TOO_FEW)
        if shape[-2] != shape[-1]:
            raise ValueProblem("Input is not square")
        return Size(shape[:-2]) + (shape[-1] * (shape[-1] - 1) // 2,)


class LowerCholeskyTransform(Transform):
    """Map square matrices to lower triangular ones with a positive diagonal: the exponential of theirs."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Map square matrices to positive-definite ones, through their Cholesky factors."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(cholesky(y))
