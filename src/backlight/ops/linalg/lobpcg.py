"""`lobpcg`: the largest or smallest eigenvalues of symmetric matrices."""

from backlight.engine.tensor_state import TensorState
from backlight.errors import UnsupportedError, ValueProblem
from backlight.ops.linalg.cholesky import linalg_cholesky
from backlight.ops.linalg.eigen import linalg_eigh
from backlight.ops.linalg.linear_systems import linalg_solve_triangular
from backlight.ops.shape.flipping import flip


def lobpcg(
    A: TensorState,
    k=None,
    B: TensorState | None = None,
    X=None,
    n=None,
    iK=None,
    niter=None,
    tol=None,
    largest=None,
    method=None,
    tracker=None,
    ortho_iparams=None,
    ortho_fparams=None,
    ortho_bparams=None,
):
    """Return the k largest (or smallest) eigenvalues λ and their vectors, A · x = λ · B · x.

    PyTorch approaches them by iteration, for matrices that are known as products only. Here matrices are dense, and
    all eigenvalues are found at once, to the last digits: X, iK, niter, tol and the options of the steps change
    nothing. Derivatives are those of linalg.eigh.

    Args:
        k: how many; as many as X has columns by default, else one.
        B: symmetric and positive; the identity by default.
        largest: False for the smallest.

    Shapes: A (…, m, m), B (…, m, m) -> (…, k), (…, m, k)

    Raises:
        ValueError: A has not three times as many rows as requested, as PyTorch requires.
        NotImplementedError: a tracker is given: there are no steps to show it.
    """
    if tracker is not None:
        raise UnsupportedError("lobpcg(): there are no steps that a tracker could see; leave tracker out")
    size = A.shape[-1]
    count = (1 if X is None else X.shape[-1]) if k is None else k
    if size < 3 * count:
        raise ValueProblem(
            f"LOBPCG algorithm is not applicable when the number of A rows (={size}) is smaller than 3 x the number of "
            f"requested eigenpairs (={count})"
        )
    if B is None:
        values, vectors = linalg_eigh(A)
    else:
        lower = linalg_cholesky(B)
        half = linalg_solve_triangular(lower, A, upper=False)
        values, turned = linalg_eigh(linalg_solve_triangular(lower, half.mT, upper=False))
        vectors = linalg_solve_triangular(lower.mT, turned, upper=True)
    if largest is not False:
        values, vectors = flip(values, (-1,)), flip(vectors, (-1,))
    return values[..., :count], vectors[..., :count]
