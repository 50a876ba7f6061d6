"""PyTorch's `torch.linalg`: factors, solutions, determinants, eigenvalues, norms of matrices."""

from backlight.errors import LinAlgError
from backlight.ops.cholesky import linalg_cholesky as cholesky
from backlight.ops.cholesky import linalg_cholesky_ex as cholesky_ex
from backlight.ops.contractions import linalg_cross as cross
from backlight.ops.contractions import multi_dot, vecdot
from backlight.ops.determinants import linalg_det as det
from backlight.ops.determinants import linalg_slogdet as slogdet
from backlight.ops.lu import linalg_lu as lu
from backlight.ops.lu import linalg_lu_factor as lu_factor
from backlight.ops.lu import linalg_lu_factor_ex as lu_factor_ex
from backlight.ops.lu import linalg_lu_solve as lu_solve
from backlight.ops.norms import linalg_norm as norm
from backlight.ops.norms import matrix_norm, vector_norm
from backlight.ops.products import matmul
from backlight.ops.solves import linalg_inv as inv
from backlight.ops.solves import linalg_inv_ex as inv_ex
from backlight.ops.solves import linalg_solve as solve
from backlight.ops.solves import linalg_solve_ex as solve_ex
from backlight.ops.solves import linalg_solve_triangular as solve_triangular

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cross",
    "det",
    "inv",
    "inv_ex",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_norm",
    "multi_dot",
    "norm",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "vecdot",
    "vector_norm",
]
