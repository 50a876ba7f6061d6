"""Functions that PyTorch has removed: they raise, and name the replacement."""

from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]

GONE = "This function was deprecated since version 1.9 and is now removed."


def eig(self, eigenvectors: bool = False, *, e: TensorState | None = None, v: TensorState | None = None):
    """Raise: `linalg.eigh` is for symmetric matrices; other eigenvalues are complex."""
    raise GraphError(
        f"{GONE} `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors "
        "mimicking complex tensors.\n\nL, _ = torch.eig(A) should be replaced with:\n"
        "L_complex = torch.linalg.eigvals(A)\n\nand\n\nL, V = torch.eig(A, eigenvectors=True) should be replaced "
        "with:\nL_complex, V_complex = torch.linalg.eig(A)\n  For symmetric matrices "
        "there is torch.linalg.eigh"
    )


def lstsq(input: TensorState, A: TensorState):  # noqa: N803 - PyTorch's name
    """Raise: use `linalg.lstsq`."""
    raise GraphError(
        f"{GONE} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n`torch.linalg.lstsq` has reversed "
        "arguments and does not return the QR decomposition in the returned tuple (although it returns other "
        "information about the problem).\n\nTo get the QR decomposition consider using `torch.linalg.qr`.\n\nThe "
        "returned solution in `torch.lstsq` stored the residuals of the solution in the last m - n columns of the "
        "returned value whenever m > n. In torch.linalg.lstsq, the residuals are in the field 'residuals' of the "
        "returned named tuple.\n\nThe unpacking of the solution, as in\nX, _ = torch.lstsq(B, A).solution[:A.size(1)]\n"
        "should be replaced with:\nX = torch.linalg.lstsq(A, B).solution"
    )


def matrix_rank(input: TensorState, tol: float | None = None, symmetric: bool = False):
    """Raise: use `linalg.matrix_rank`."""
    raise GraphError(
        f"{GONE}\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' was renamed in "
        "`torch.linalg.matrix_rank()` to 'hermitian'."
    )


def solve(input: TensorState, A: TensorState):  # noqa: N803 - PyTorch's name
    """Raise: use `linalg.solve`."""
    raise GraphError(
        f"{GONE} `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments "
        "reversed and does not return the LU factorization.\n\nTo get the LU factorization see `torch.lu`, which can "
        "be used with `torch.lu_solve` or `torch.lu_unpack`.\nX = torch.solve(B, A).solution should be replaced with:\n"
        "X = torch.linalg.solve(A, B)"
    )


def symeig(input: TensorState, eigenvectors: bool = False, upper: bool = True):
    """Raise: use `linalg.eigh`."""
    raise GraphError(
        f"{GONE} The default behavior has changed from using the upper triangular portion of the matrix by default to "
        "using the lower triangular portion.\n\nL, _ = torch.symeig(A, upper=upper) should be replaced with:\n"
        "L = torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')\n\nand\n\n"
        "L, V = torch.symeig(A, eigenvectors=True) should be replaced with:\n"
        "L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')"
    )
