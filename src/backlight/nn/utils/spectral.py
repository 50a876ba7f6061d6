"""`spectral_norm` as a parametrization: a weight whose largest singular value is one."""

from backlight.engine.grad_mode import no_grad
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, ValueProblem
from backlight.nn.functional import normalize
from backlight.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from backlight.nn.modules.module import Module
from backlight.nn.utils.parametrize import register_parametrization
from backlight.tensor.tensor import Tensor


def require_iterations(count: int) -> None:
    """Raise unless the power iteration has a step."""
    if count <= 0:
        raise ValueProblem(f"Expected n_power_iterations to be positive, but got n_power_iterations={count}")


def rows_of(module: Module) -> int:
    """Return the dim of a module's weight that becomes the rows of its matrix."""
    return int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


def as_matrix(weight: Tensor, rows: int) -> Tensor:
    """Return a weight as a matrix: `dim` as rows, all other dims as columns."""
    if rows:
        weight = weight.permute(rows, *(dim for dim in range(weight.ndim) if dim != rows))
    return weight.reshape((weight.shape[0], -1))


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which a power iteration follows while the weight is trained."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise DimError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        require_iterations(n_power_iterations)
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            for name, length in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(name, normalize(matrix.new_empty(length).normal_(0, 1), dim=0, eps=eps))
            self._power_method(matrix, 15)

    @no_grad()
    def _power_method(self, matrix: Tensor, iterations: int) -> None:
        """Bring u and v nearer to the first singular vectors, in place."""
        for _ in range(iterations):
            self._u.copy_(normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(normalize(matrix.mT.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """Return weight / uᵀ W v; u and v are copied, for the next call changes them before this one's backward."""
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        return weight / self._u.clone().dot(matrix.mv(self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the value itself: it is what is trained."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value whenever it is accessed.

    Args:
        dim: the dim of the weight that becomes the rows of its matrix; 1 for transposed convolutions, else 0.

    Raises:
        ValueError: the module has no such tensor.

    Source: Takeru Miyato, Toshiki Kataoka, Masanori Koyama, Yuichi Yoshida: Spectral Normalization for Generative
    Adversarial Networks, 2018, arXiv:1802.05957
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, TensorState):
        raise ValueProblem(f"Module '{module}' has no parameter or buffer with name '{name}'")
    dim = rows_of(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
