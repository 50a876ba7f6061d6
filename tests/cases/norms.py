"""Norms and distances."""

from math import inf

from case import Case, away_from, given, normal

ROWS = away_from(3, 4)
LOOSE = {"float16": (1e-2, 1e-2), "bfloat16": (5e-2, 5e-2)}


def orders(*ords):
    """Return a call that takes the norms of several orders."""
    return lambda t, x: tuple(t.linalg.vector_norm(x, ord, dim) for ord in ords for dim in (None, 1))


CASES = [
    Case("linalg_vector_norm", lambda t, x: (t.norm(x), x.norm(dim=1), x.norm(2, (0, 1), True)), [ROWS]),
    Case("linalg_vector_norm/1", orders(1), [ROWS]),
    Case("linalg_vector_norm/3", orders(3, 2.5), [ROWS]),
    Case("linalg_vector_norm/1.5", orders(1.5), [ROWS]),
    Case("linalg_vector_norm/below 1", orders(0.5, -1), [ROWS], tolerance=LOOSE),
    Case("linalg_vector_norm/inf", orders(inf, -inf), [normal(3, 4)]),
    Case("linalg_vector_norm/0", orders(0), [given([[1.0, 0.0, -2.0], [0.0, 0.0, 3.0]])], differentiable=False),
    Case("linalg_vector_norm/fro", lambda t, x: (x.norm("fro"), t.norm(x, "fro", dim=(0, 1))), [ROWS]),
    Case("linalg_vector_norm/dtype", lambda t, x: t.norm(x, dtype=t.float64), [ROWS], dtypes=("float32", "float64")),
    Case("linalg_vector_norm/0-d", lambda t, x: (x.norm(), x.norm(1)), [away_from()]),
    Case("matrix_norm", lambda t, x: (t.linalg.matrix_norm(x), t.linalg.norm(x, "fro", (1, 2))), [away_from(2, 3, 4)]),
    Case("matrix_norm/1", lambda t, x: [t.linalg.matrix_norm(x, p) for p in (1, -1, inf, -inf)], [away_from(2, 3, 4)]),
    Case("norm/linalg", lambda t, x: (t.linalg.norm(x), t.linalg.norm(x, 3, 1), t.linalg.norm(x, inf)), [ROWS]),
    Case("dist", lambda t, x, y: (t.dist(x, y), x.dist(y, 3), t.dist(x, y, p=1)), [normal(3, 4), normal(4, shift=3)]),
    Case("dist/inf", lambda t, x, y: t.dist(x, y, inf), [normal(3, 4), normal(3, 4)]),
    *(
        Case(
            f"_cdist_forward/{p}",
            lambda t, x, y, p=p: t.cdist(x, y, p),
            [normal(3, 4), normal(2, 4)],
            dtypes=("float64", "float32"),
        )
        for p in (1.0, 2.0)
    ),
    Case(
        "cdist/3",
        lambda t, x, y: t.cdist(x, y, 3.0),
        [normal(2, 3, 4), normal(2, 2, 4)],
        dtypes=("float64", "float32"),
    ),
    Case("renorm", lambda t, x: (t.renorm(x, 2, 0, 1.0), x.renorm(3, -1, 1.5)), [away_from(3, 4)], tolerance=LOOSE),
]
