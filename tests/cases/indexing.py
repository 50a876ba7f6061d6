"""Square brackets, and picking by a vector of indices."""

from case import Case, booleans, given, integers, normal

CUBE = normal(3, 4, 5)
MATRIX = normal(3, 4)
ROWS = given([2, 0, 2])
COLUMNS = given([[0, 3], [-1, 1]])

CASES = [
    Case("index", lambda t, x, i: x[i], [CUBE, ROWS], integer=True),
    Case("index/list", lambda t, x: (x[[0, 2]], x[[-1, 0], [1, 1]], x[:, [0, 0, 1]]), [CUBE]),
    Case("index/two", lambda t, x, i, j: x[i[:2], j], [CUBE, ROWS, COLUMNS]),
    Case("index/apart", lambda t, x, i, j: x[i[:2], :, j], [CUBE, ROWS, COLUMNS]),
    Case("index/after an integer", lambda t, x, i: (x[0, :, i], x[0, i], x[i, 0]), [CUBE, ROWS]),
    Case("index/with None", lambda t, x, i: (x[None, i], x[i, None], x[..., i]), [CUBE, ROWS]),
    Case("index/mask", lambda t, x, m: x[m], [CUBE, booleans(3, 4, 5)], integer=True),
    Case(
        "index/short mask",
        lambda t, x, m: (x[m], x[m, 1:3], x[:, :, [True, False, True, False, True]]),
        [CUBE, booleans(3, 4)],
    ),
    Case("index/mask in the middle", lambda t, x, m: (x[1:, m], x[0, m]), [CUBE, booleans(4, 5)]),
    Case("index/True", lambda t, x: (x[True], x[False], x[True, 0]), [MATRIX]),
    Case("index/int32", lambda t, x, i: x[i.int()], [CUBE, ROWS]),
    Case("index/nothing", lambda t, x: (x[[]], x[:, []]), [MATRIX]),
    Case("index/0-d", lambda t, x: (x[True], x[False]), [normal()]),
    Case("index_put", lambda t, x, v, i: x.index_put((i,), v), [MATRIX, normal(3, 4), given([2, 0, 1])], integer=True),
    Case("index_put/accumulate", lambda t, x, v, i: t.index_put(x, (i,), v, True), [MATRIX, normal(3, 4), ROWS]),
    Case("index_put/broadcast", lambda t, x, v, i: x.index_put((i, i), v, accumulate=True), [MATRIX, normal(1), ROWS]),
    Case("index_put/mask", lambda t, x, v, m: x.index_put((m,), v), [MATRIX, normal(), booleans(3, 4)]),
    Case("index_select", lambda t, x, i: (t.index_select(x, 1, i), x.index_select(-1, i)), [CUBE, ROWS], integer=True),
    Case("index_select/0-d", lambda t, x, i: x.index_select(0, i), [normal(), given([0])]),
    Case("index_add", lambda t, x, i, s: x.index_add(1, i, s, alpha=2), [MATRIX, ROWS, normal(3, 3)], integer=False),
    Case("index_add/rows", lambda t, x, i, s: t.index_add(x, 0, i, s), [MATRIX, ROWS, normal(3, 4)], integer=True),
    Case("index_add/0-d", lambda t, x, i, s: x.index_add(0, i, s), [normal(), given([0]), normal()]),
    Case("index_copy", lambda t, x, i, s: x.index_copy(1, i, s), [MATRIX, given([2, 0]), normal(3, 2)], integer=True),
    Case("index_fill", lambda t, x, i: x.index_fill(1, i, 2), [MATRIX, ROWS], integer=True),
    Case("index_fill_tensor", lambda t, x, i, v: x.index_fill(-1, i, v), [MATRIX, ROWS, normal()]),
    Case("take", lambda t, x, i: t.take(x, i), [MATRIX, given([[0, 11], [-1, 0]])], integer=True),
    Case("put", lambda t, x, i, s: x.put(i, s), [MATRIX, given([[0, 11], [-2, 3]]), normal(2, 2)], integer=True),
    Case("put/accumulate", lambda t, x, i, s: x.put(i, s, True), [MATRIX, given([0, 0, 3]), normal(3)]),
    Case(
        "masked_fill",
        lambda t, x, m: (t.masked_fill(x, m, 2), x.masked_fill(m[0], -1)),
        [MATRIX, booleans(3, 4)],
        integer=True,
    ),
    Case("masked_fill/broadcast", lambda t, x, m: x.masked_fill(m, 0.5), [normal(4), booleans(3, 1)]),
    Case("masked_fill_tensor", lambda t, x, m, v: x.masked_fill(m, v), [MATRIX, booleans(3, 4), normal()]),
    Case("masked_select", lambda t, x, m: t.masked_select(x, m), [MATRIX, booleans(3, 4)], integer=True),
    Case("masked_select/broadcast", lambda t, x, m: x.masked_select(m), [MATRIX, booleans(2, 1, 4)]),
    Case(
        "masked_scatter",
        lambda t, x, m, s: x.masked_scatter(m, s),
        [MATRIX, booleans(3, 4), normal(4, 4)],
        integer=True,
    ),
    Case(
        "nonzero",
        lambda t, m: (t.nonzero(m), m.nonzero(as_tuple=True), t.argwhere(m)),
        [booleans(3, 4)],
        differentiable=False,
    ),
    Case("nonzero/0-d", lambda t, n: (n.nonzero(), n.nonzero(as_tuple=True)), [given(3)], differentiable=False),
    Case("take_along_dim", lambda t, x, i: t.take_along_dim(x, i, 1), [MATRIX, integers(3, 2, high=4)], integer=True),
    Case(
        "take_along_dim/flat",
        lambda t, x, i: x.contiguous().take_along_dim(i.contiguous()),
        [MATRIX, integers(2, 2, high=12)],
    ),
    Case("take_along_dim/broadcast", lambda t, x, i: x.take_along_dim(i, dim=0), [MATRIX, integers(2, 1, high=3)]),
]
