"""PyTorch's named parametrizations: orthogonal, spectral_norm, weight_norm."""

from collections.abc import Sequence

from backlight.dispatch.arguments.checked import with_checks
from backlight.dtypes import finfo
from backlight.engine.grad_mode import no_grad
from backlight.engine.tensor_state import TensorState
from backlight.errors import MissingMethodError, ValueProblem
from backlight.linalg import householder_product, solve
from backlight.nn.modules.module import Module
from backlight.nn.utils.parametrize import register_parametrization
from backlight.nn.utils.spectral import spectral_norm
from backlight.ops.linalg.matrix_functions import matrix_exp
from backlight.ops.linalg.qr import geqrf
from backlight.ops.reduction.norms import vector_norm
from backlight.ops.shape.joining import cat
from backlight.tensor.factories import zeros_like
from backlight.tensor.random_factories import randn
from backlight.tensor.ranges import eye
from backlight.tensor.tensor import Tensor

MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """Maps an unconstrained matrix to an orthogonal one."""

    def __init__(self, shape: Sequence[int], orthogonal_map: str, use_trivialization: bool):
        super().__init__()
        self.shape = shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, weight: Tensor) -> Tensor:
        """Return the orthogonal matrix; the weight of a wide one is the transpose of a tall one's."""
        wide = weight.shape[-2] < weight.shape[-1]
        tall = weight.mT if wide else weight
        found = _reflected(tall) if self.orthogonal_map == "householder" else self._turned(tall)
        if hasattr(self, "base"):
            found = self.base @ found
        return found.mT if wide else found

    def _turned(self, weight: Tensor) -> Tensor:
        """Return exp(A), or (I + A/2)(I − A/2)⁻¹, of the skew-symmetric matrix below the weight's diagonal."""
        rows, columns = weight.shape[-2:]
        lower = weight.tril()
        if rows != columns:
            rest = lower.new_zeros(rows, rows - columns).expand(*lower.shape[:-2], -1, -1)
            lower = cat([lower, rest], dim=-1)
        skew = lower - lower.mT
        if self.orthogonal_map == "matrix_exp":
            found = matrix_exp(skew)
        else:
            one = eye(rows, dtype=skew.dtype)
            found = solve(one - 0.5 * skew, one + 0.5 * skew)
        return found if rows == columns else found[..., :columns]

    @no_grad()
    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the unconstrained matrix for the weight `value`, which is made orthogonal first.

        Raises:
            ValueError: `value` has another shape.
            NotImplementedError: there is no base, and the map has no inverse.
        """
        if value.shape != self.shape:
            raise ValueProblem(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {value.shape}."
            )
        wide = value.shape[-2] < value.shape[-1]
        tall = value.mT if wide else value
        if hasattr(self, "base"):
            self.base = _completed(tall)
            minus_one = zeros_like(value)
            minus_one.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return minus_one
        if self.orthogonal_map != "householder":
            raise MissingMethodError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        reflectors, scales = geqrf(tall)
        diagonal = reflectors.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        diagonal[scales == 0.0] *= -1
        return reflectors.mT if wide else reflectors


def _reflected(weight: Tensor) -> Tensor:
    """Return the product of the Householder reflectors below the weight's diagonal, with signs from the diagonal."""
    below = weight.tril(diagonal=-1)
    scales = 2.0 / (1.0 + (below * below).sum(dim=-2))
    return householder_product(below, scales) * weight.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)


def _completed(matrix: Tensor) -> Tensor:
    """Return a square orthogonal matrix that begins with the columns of a tall one, made orthogonal."""
    rows, columns = matrix.shape[-2:]
    if rows != columns:
        more = randn(*matrix.shape[:-2], rows, rows - columns, dtype=matrix.dtype)
        return _made_orthogonal(cat([matrix, more], dim=-1))
    return matrix.clone() if _is_orthogonal(matrix) else _made_orthogonal(matrix)


def _is_orthogonal(matrix: Tensor) -> bool:
    near = 10.0 * matrix.shape[-2] * finfo(matrix.dtype).eps
    return (matrix.mT @ matrix).allclose(eye(matrix.shape[-1], dtype=matrix.dtype), atol=near)


def _made_orthogonal(matrix: Tensor) -> Tensor:
    """Return Q of QR, with R's diagonal positive."""
    reflectors, scales = geqrf(matrix)
    signs = reflectors.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return householder_product(reflectors, scales) * signs


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a weight orthogonal: an unconstrained matrix is trained, and the weight is computed from it.

    Args:
        orthogonal_map: "matrix_exp" (of square matrices, the default), "cayley", or "householder" (of others).
        use_trivialization: multiply by a fixed orthogonal matrix, which is set when the weight is assigned to.

    Raises:
        ValueError: the module has no such tensor, the tensor is not a matrix, or there is no such map.

    Source: Mario Lezcano-Casado: Trivializations for Gradient-Based Optimization on Manifolds, 2019, arXiv:1909.09501
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, TensorState):
        raise ValueProblem(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueProblem(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in MAPS:
        raise ValueProblem(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    part = _Orthogonal(weight.shape, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, part, unsafe=True)


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """A weight of length g along v: g · v / ‖v‖."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """Return the weight."""
        return weight_v * (weight_g / self._lengths(weight_v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return norm and direction of a weight."""
        return self._lengths(weight), weight

    def _lengths(self, weight: Tensor) -> Tensor:
        if self.dim is None or self.dim == -1:
            return vector_norm(weight)
        return vector_norm(weight, 2, tuple(dim for dim in range(weight.ndim) if dim != self.dim), True)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train a weight's norms along `dim` separately from its direction; `dim=None` uses one norm for the whole weight.

    Source: Tim Salimans, Diederik P. Kingma: Weight Normalization, 2016, arXiv:1602.07868
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


globals().update(with_checks(globals(), __all__, __name__))
