"""Linear equations, determinants and the factors that solve them: Cholesky and LU."""

import warnings

from case import Case, normal

WIDE = ("float64", "float32")
LOOSE = {"float32": (2e-4, 2e-4), "float64": (1e-9, 1e-10)}


def definite(t, x):
    """Return symmetric matrices whose eigenvalues are at least 1."""
    return x @ x.mT + t.eye(x.shape[-1], dtype=x.dtype)


def regular(t, x):
    """Return matrices far from singular ones, for which pivots need exchanged rows."""
    return x + 3 * t.eye(x.shape[-1], dtype=x.dtype).flip(0)


def factors(t, x):
    """Return Cholesky factors."""
    return t.tril(x, -1) + t.diag_embed(t.diagonal(x, 0, -2, -1).abs() + 1)


def old(call):
    """Return a call of functions that PyTorch calls deprecated, without the warnings."""

    def quiet(*given):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(*given)

    return quiet


def case(name, call, *shapes, **options):
    return Case(name, call, [normal(*shape) for shape in shapes], dtypes=WIDE, tolerance=LOOSE, **options)


CHOLESKY = [
    case("linalg_cholesky_ex", lambda t, x: t.linalg.cholesky_ex(definite(t, x)), (3, 3)),
    case("linalg_cholesky_ex/cholesky", lambda t, x: t.linalg.cholesky(definite(t, x)), (2, 3, 3)),
    case("linalg_cholesky_ex/upper", lambda t, x: t.linalg.cholesky(definite(t, x), upper=True), (2, 3, 3)),
    case("cholesky", old(lambda t, x: t.cholesky(definite(t, x))), (3, 3)),
    case("cholesky/upper", old(lambda t, x: definite(t, x).cholesky(upper=True)), (3, 3)),
    case("cholesky_solve", lambda t, b, x: t.cholesky_solve(b, factors(t, x)), (3, 2), (3, 3)),
    case("cholesky_solve/upper", lambda t, b, x: b.cholesky_solve(factors(t, x).mT, True), (2, 3, 2), (3, 3)),
    case("cholesky_inverse", lambda t, x: t.cholesky_inverse(factors(t, x)), (2, 3, 3)),
    case("cholesky_inverse/upper", lambda t, x: factors(t, x).mT.cholesky_inverse(upper=True), (3, 3)),
]

SOLVES = [
    case("linalg_solve_ex", lambda t, x, b: t.linalg.solve_ex(regular(t, x), b), (3, 3), (3, 2)),
    case("linalg_solve_ex/vector", lambda t, x, b: t.linalg.solve(regular(t, x), b), (3, 3), (3,)),
    case("linalg_solve_ex/vectors", lambda t, x, b: t.linalg.solve(regular(t, x), b), (2, 3, 3), (2, 3)),
    case("linalg_solve_ex/one vector", lambda t, x, b: t.linalg.solve(regular(t, x), b), (2, 3, 3), (3,)),
    case("linalg_solve_ex/broadcast", lambda t, x, b: t.linalg.solve(regular(t, x), b), (2, 1, 3, 3), (4, 3, 2)),
    case("linalg_solve_ex/right", lambda t, x, b: t.linalg.solve(regular(t, x), b, left=False), (3, 3), (2, 2, 3)),
    case("linalg_inv_ex", lambda t, x: t.linalg.inv_ex(regular(t, x)), (2, 3, 3)),
    case("linalg_inv_ex/inv", lambda t, x: t.linalg.inv(regular(t, x)), (3, 3)),
    case("linalg_inv_ex/inverse", lambda t, x: regular(t, x).inverse(), (3, 3)),
    case(
        "linalg_solve_triangular",
        lambda t, x, b: t.linalg.solve_triangular(regular(t, x), b, upper=True),
        (3, 3),
        (2, 3, 2),
    ),
    case(
        "linalg_solve_triangular/lower right",
        lambda t, x, b: t.linalg.solve_triangular(factors(t, x), b, upper=False, left=False),
        (2, 3, 3),
        (2, 3),
    ),
    case(
        "linalg_solve_triangular/ones on the diagonal",
        lambda t, x, b: t.linalg.solve_triangular(x, b, upper=True, unitriangular=True),
        (3, 3),
        (3, 2),
    ),
    case("triangular_solve", old(lambda t, b, x: t.triangular_solve(b, factors(t, x), upper=False)), (3, 2), (2, 3, 3)),
    case(
        "triangular_solve/transposed",
        old(lambda t, b, x: b.triangular_solve(regular(t, x), True, True)),
        (3, 2),
        (3, 3),
    ),
]

DETERMINANTS = [
    case("linalg_det", lambda t, x: t.linalg.det(x), (3, 3)),
    case("linalg_det/batch", lambda t, x: x.det(), (2, 4, 4)),
    case("linalg_det/one number", lambda t, x: t.det(x), (1, 1)),
    case("linalg_det/rank 2 of 3", lambda t, x: t.det(x @ x.mT), (3, 2)),
    case("linalg_slogdet", lambda t, x: t.linalg.slogdet(regular(t, x)), (2, 3, 3)),
    case("linalg_slogdet/slogdet", lambda t, x: x.slogdet(), (3, 3)),
    case("linalg_slogdet/logdet", lambda t, x: definite(t, x).logdet(), (2, 3, 3)),
]

LU = [
    case("linalg_lu_factor_ex", lambda t, x: t.linalg.lu_factor_ex(x), (3, 3)),
    case("linalg_lu_factor_ex/wide", lambda t, x: t.linalg.lu_factor(x), (2, 2, 4)),
    case("linalg_lu_factor_ex/tall", old(lambda t, x: t.lu(x, get_infos=True)), (4, 2)),
    case("linalg_lu", lambda t, x: t.linalg.lu(x), (2, 3, 3)),
    case("linalg_lu/wide", lambda t, x: t.linalg.lu(x), (3, 5)),
    case("linalg_lu/tall", lambda t, x: t.linalg.lu(x), (5, 3)),
    case("lu_unpack", lambda t, x: t.lu_unpack(*t.linalg.lu_factor(x)), (4, 3)),
    case("lu_unpack/wide", old(lambda t, x: t.lu_unpack(*x.lu(), unpack_pivots=False)), (2, 3, 4)),
    case("linalg_lu_solve", lambda t, x, b: t.linalg.lu_solve(*t.linalg.lu_factor(regular(t, x)), b), (3, 3), (3, 2)),
    case(
        "linalg_lu_solve/adjoint",
        lambda t, x, b: t.linalg.lu_solve(*t.linalg.lu_factor(regular(t, x)), b, adjoint=True),
        (2, 3, 3),
        (3, 2),
    ),
    case(
        "linalg_lu_solve/right",
        lambda t, x, b: t.linalg.lu_solve(*t.linalg.lu_factor(regular(t, x)), b, left=False),
        (3, 3),
        (2, 3),
    ),
    case(
        "linalg_lu_solve/right, adjoint",
        lambda t, x, b: t.linalg.lu_solve(*t.linalg.lu_factor(regular(t, x)), b, left=False, adjoint=True),
        (3, 3),
        (2, 3),
    ),
    case("linalg_lu_solve/lu_solve", old(lambda t, x, b: b.lu_solve(*regular(t, x).lu())), (3, 3), (3, 2)),
]

CASES = [*CHOLESKY, *SOLVES, *DETERMINANTS, *LU]
