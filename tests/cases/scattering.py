"""Gather, scatter and their kin."""

from case import Case, distinct, given, integers, normal, uniform

MATRIX = normal(3, 4)
INDEX = given([[0, 2, 1], [3, 1, 0]])
REPEATED = given([[0, 2, 0], [3, 3, 0]])
SOURCE = normal(2, 3)
TIES = given([[1.0, 2.0, 2.0, 0.0], [3.0, 3.0, 1.0, 1.0], [0.0, 0.0, 5.0, 4.0]], differentiable=True)
ZEROS = given([[2.0, 0.0, 3.0, 0.5], [0.0, 4.0, 0.0, 5.0], [1.5, 2.5, -1.0, 3.0]], differentiable=True)
ZERO_SOURCE = given([[0.0, 2.0, 1.5], [0.0, 0.0, 3.0]], differentiable=True)


def reducing(kind: str, include_self: bool = True):
    return lambda t, x, i, s: t.scatter_reduce(x, 1, i, s, kind, include_self=include_self)


# grad_parity=False where PyTorch's own backward fails: of a source that is larger than the index.
CASES = [
    Case("gather", lambda t, x, i: t.gather(x, 1, i), [MATRIX, REPEATED], integer=True),
    Case("gather/first dim", lambda t, x, i: x.gather(0, i), [MATRIX, integers(2, 4, high=3)]),
    Case("gather/0-d", lambda t, x, i: x.gather(0, i), [normal(), given(0)]),
    Case("gather/nothing", lambda t, x, i: x.gather(1, i), [MATRIX, integers(3, 0)]),
    Case("gather/three dims", lambda t, x, i: x.gather(-2, i), [normal(2, 3, 4), integers(2, 5, 3, high=3)]),
    Case("scatter_tensor", lambda t, x, i, s: x.scatter(1, i, s), [MATRIX, INDEX, SOURCE], integer=True),
    Case(
        "scatter_tensor/part of the source",
        lambda t, x, i, s: x.scatter(1, i, s),
        [MATRIX, INDEX, normal(3, 4)],
        grad_parity=False,
    ),
    Case(
        "scatter_number",
        lambda t, x, i: (x.scatter(1, i, 2), t.scatter(x, 1, i, value=3)),
        [MATRIX, REPEATED],
        integer=True,
    ),
    Case("scatter_add", lambda t, x, i, s: t.scatter_add(x, 1, i, s), [MATRIX, REPEATED, SOURCE], integer=True),
    Case(
        "scatter_add/part of the source",
        lambda t, x, i, s: x.scatter_add(1, i, s),
        [MATRIX, REPEATED, normal(3, 4)],
        grad_parity=False,
    ),
    Case("scatter_add/0-d", lambda t, x, i, s: x.scatter_add(0, i, s), [normal(), given(0), normal()]),
    Case("scatter_reduce", reducing("sum"), [MATRIX, REPEATED, SOURCE], integer=True),
    Case("scatter_reduce/sum without self", reducing("sum", False), [MATRIX, REPEATED, SOURCE]),
    Case("scatter_reduce/mean", reducing("mean"), [MATRIX, REPEATED, SOURCE]),
    Case("scatter_reduce/mean without self", reducing("mean", False), [MATRIX, REPEATED, SOURCE]),
    Case("scatter_reduce/prod", reducing("prod"), [uniform(3, 4, low=0.5, high=2), REPEATED, SOURCE]),
    Case("scatter_reduce/prod without self", reducing("prod", False), [MATRIX, REPEATED, SOURCE]),
    Case("scatter_reduce/prod of zeros", reducing("prod"), [ZEROS, INDEX, ZERO_SOURCE], second=False),
    Case("scatter_reduce/amax", reducing("amax"), [distinct(3, 4), REPEATED, SOURCE], second=False),
    Case("scatter_reduce/amin without self", reducing("amin", False), [distinct(3, 4), REPEATED, SOURCE], second=False),
]

# Ties share a gradient equally, which finite differences do not see: PyTorch's gradient is the only reference.
TIED = Case("scatter_reduce/ties", reducing("amax"), [TIES, REPEATED, given([[1.0, 2.0, 3.0], [3.0, 1.0, 3.0]], True)])
