"""Products of vectors, matrices and batches, and what is made of them."""

from case import Case, normal

MATMUL_SHAPES = {
    "mm": ((2, 3), (3, 4)),
    "mm/no rows": ((0, 3), (3, 4)),
    "mm/nothing to sum": ((2, 0), (0, 3)),
    "mm/rows of three dims": ((2, 5, 3), (3, 4)),
    "dot": ((3,), (3,)),
    "mv": ((2, 3), (3,)),
    "mv/stack": ((2, 4, 3), (3,)),
    "mv/vector and stack": ((3,), (2, 3, 4)),
    "vm": ((3,), (3, 4)),
    "bmm": ((2, 3, 4), (2, 4, 5)),
    "bmm/broadcast": ((2, 1, 3, 4), (3, 4, 2)),
    "bmm/matrix and stack": ((2, 3), (4, 3, 2)),
    "bmm/nothing to sum": ((2, 3, 0), (2, 0, 3)),
}
EQUATIONS = {
    "matrix product": ("ij,jk->ik", (2, 3), (3, 4)),
    "attention scores": ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
    "implicit output": ("ba", (2, 3)),
    "trace": ("ii", (3, 3)),
    "diagonal": ("bii->bi", (2, 3, 3)),
    "diagonal and product": ("iij,jk->ik", (3, 3, 2), (2, 4)),
    "outer product": ("i,j->ji", (2,), (3,)),
    "ellipsis that broadcasts": ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 2)),
    "ellipsis summed away": ("i...->", (2, 3)),
    "three operands": ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    "size 1 that broadcasts": ("i,i->i", (1,), (3,)),
    "all summed": ("ij,k->", (2, 3), (4,)),
    "numbers": (",->", (), ()),
}


def matmul_case(name, left, right):
    return Case(name, lambda t, a, b: t.matmul(a, b), [normal(*left), normal(*right)])


def einsum_case(name, equation, *shapes):
    return Case(f"einsum/{name}", lambda t, *a: t.einsum(equation, *a), [normal(*shape) for shape in shapes])


CASES = [
    *(matmul_case(name, *shapes) for name, shapes in MATMUL_SHAPES.items()),
    *(einsum_case(name, *given) for name, given in EQUATIONS.items()),
    Case(
        "einsum/lists of numbers", lambda t, a, b: t.einsum(a, [0, 1], b, [1, 2], [2, 0]), [normal(2, 3), normal(3, 4)]
    ),
    Case("mm/function", lambda t, a, b: t.mm(a, b), [normal(2, 3), normal(3, 4)]),
    Case("bmm/function", lambda t, a, b: t.bmm(a, b), [normal(2, 3, 4), normal(2, 4, 5)]),
    Case("mv/function", lambda t, a, b: t.mv(a, b), [normal(2, 3), normal(3)]),
    Case("dot/function", lambda t, a, b: t.dot(a, b), [normal(3), normal(3)]),
    Case("vdot", lambda t, a, b: t.vdot(a, b), [normal(3), normal(3)]),
    Case("mul/outer", lambda t, a, b: t.outer(a, b), [normal(2), normal(3)], integer=True),
    Case("mm/inner", lambda t, a, b: t.inner(a, b), [normal(2, 3), normal(4, 3)]),
    Case("mul/inner with a number", lambda t, a, b: t.inner(a, b), [normal(), normal(4, 3)]),
    Case("mm/tensordot", lambda t, a, b: t.tensordot(a, b, ([1, 2], [1, 0])), [normal(2, 3, 4), normal(4, 3, 5)]),
    Case("mm/tensordot of no dims", lambda t, a, b: t.tensordot(a, b, 0), [normal(2, 3), normal(4)]),
    Case("mm/tensordot that broadcasts", lambda t, a, b: t.tensordot(a, b, ([1], [1])), [normal(3, 1), normal(2, 3)]),
    Case("mul/kron", lambda t, a, b: t.kron(a, b), [normal(3), normal(2)], integer=True),
    Case("mm/multi_dot", lambda t, *a: t.linalg.multi_dot(a), [normal(2, 3), normal(3, 4), normal(4, 1), normal(1, 5)]),
    Case("mm/multi_dot of vectors", lambda t, *a: t.linalg.multi_dot(a), [normal(3), normal(3, 4), normal(4)]),
    Case("linalg_cross", lambda t, a, b: t.cross(a, b, dim=0), [normal(3, 2), normal(3, 2)]),
    Case("linalg_cross/broadcast", lambda t, a, b: t.linalg.cross(a, b), [normal(4, 3), normal(1, 3)]),
    Case("addmm", lambda t, c, a, b: t.addmm(c, a, b, beta=0.5, alpha=2.0), [normal(4), normal(2, 3), normal(3, 4)]),
    Case("addmm/beta 0", lambda t, c, a, b: t.addmm(c, a, b, beta=0), [normal(2, 4), normal(2, 3), normal(3, 4)]),
    Case("addmv", lambda t, c, a, b: t.addmv(c, a, b, beta=0.5, alpha=2.0), [normal(2), normal(2, 3), normal(3)]),
    Case("addr", lambda t, c, a, b: t.addr(c, a, b, beta=0.5, alpha=2.0), [normal(2, 1), normal(2), normal(3)]),
    Case("addbmm", lambda t, c, a, b: t.addbmm(c, a, b, alpha=2.0), [normal(2, 1), normal(3, 2, 4), normal(3, 4, 2)]),
    Case("baddbmm", lambda t, c, a, b: t.baddbmm(c, a, b, alpha=2.0), [normal(2, 1), normal(3, 2, 4), normal(3, 4, 2)]),
]
