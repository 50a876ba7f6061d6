"""PyTorch's `torch.linalg`: factors, solutions, determinants, eigenvalues, norms of matrices."""

# ruff: noqa: F401 - what is imported without an underscore is exported

from backlight.dispatch.arguments.checked import public_functions as _public_functions
from backlight.dispatch.arguments.checked import with_checks as _with_checks
from backlight.errors import LinAlgError
from backlight.ops.linalg.cholesky import linalg_cholesky as cholesky
from backlight.ops.linalg.cholesky import linalg_cholesky_ex as cholesky_ex
from backlight.ops.linalg.contractions import linalg_cross as cross
from backlight.ops.linalg.contractions import multi_dot, vecdot
from backlight.ops.linalg.determinants import linalg_det as det
from backlight.ops.linalg.determinants import linalg_slogdet as slogdet
from backlight.ops.linalg.eigen import linalg_eig as eig
from backlight.ops.linalg.eigen import linalg_eigh as eigh
from backlight.ops.linalg.eigen import linalg_eigvals as eigvals
from backlight.ops.linalg.eigen import linalg_eigvalsh as eigvalsh
from backlight.ops.linalg.householder import linalg_householder_product as householder_product
from backlight.ops.linalg.ldl_factors import linalg_ldl_factor as ldl_factor
from backlight.ops.linalg.ldl_factors import linalg_ldl_factor_ex as ldl_factor_ex
from backlight.ops.linalg.ldl_factors import linalg_ldl_solve as ldl_solve
from backlight.ops.linalg.linear_systems import linalg_inv as inv
from backlight.ops.linalg.linear_systems import linalg_inv_ex as inv_ex
from backlight.ops.linalg.linear_systems import linalg_solve as solve
from backlight.ops.linalg.linear_systems import linalg_solve_ex as solve_ex
from backlight.ops.linalg.linear_systems import linalg_solve_triangular as solve_triangular
from backlight.ops.linalg.lu import linalg_lu as lu
from backlight.ops.linalg.lu import linalg_lu_factor as lu_factor
from backlight.ops.linalg.lu import linalg_lu_factor_ex as lu_factor_ex
from backlight.ops.linalg.lu import linalg_lu_solve as lu_solve
from backlight.ops.linalg.matrix_functions import linalg_diagonal as diagonal
from backlight.ops.linalg.matrix_functions import linalg_matrix_exp as matrix_exp
from backlight.ops.linalg.matrix_functions import linalg_matrix_power as matrix_power
from backlight.ops.linalg.matrix_functions import linalg_tensorinv as tensorinv
from backlight.ops.linalg.matrix_functions import linalg_tensorsolve as tensorsolve
from backlight.ops.linalg.matrix_functions import linalg_vander as vander
from backlight.ops.linalg.matrix_norms import linalg_cond as cond
from backlight.ops.linalg.matrix_norms import linalg_norm as norm
from backlight.ops.linalg.matrix_norms import matrix_norm
from backlight.ops.linalg.matrix_products import matmul
from backlight.ops.linalg.pseudoinverse import linalg_lstsq as lstsq
from backlight.ops.linalg.pseudoinverse import linalg_matrix_rank as matrix_rank
from backlight.ops.linalg.pseudoinverse import linalg_pinv as pinv
from backlight.ops.linalg.qr import linalg_qr as qr
from backlight.ops.linalg.singular_values import linalg_svd as svd
from backlight.ops.linalg.singular_values import linalg_svdvals as svdvals
from backlight.ops.out_variants import with_out as _with_out
from backlight.ops.reduction.norms import vector_norm

__all__ = ["LinAlgError", *_public_functions(globals())]

globals().update(_with_out(globals(), {*__all__} - {"LinAlgError", "diagonal", "vander"}, __name__))
globals().update(_with_checks(globals(), __all__, __name__))
