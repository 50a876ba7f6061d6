"""Copies, casts, and writing a whole tensor or a part of it."""

from case import Case, booleans, given, integers, normal

MATRIX = normal(3, 4)


def written(write):
    """Return a case's call: a copy of the first input is written to, and returned."""

    def call(t, x, *rest):
        copy = x.clone()
        write(t, copy, *rest)
        return copy

    return call


def set_at(*index):
    """Return a case's call: `x[index] = value`."""

    def write(t, x, value):
        x[index] = value

    return written(write)


def set_rows(t, x, value, index):
    x[index] = value


CASES = [
    Case("clone", lambda t, x: t.clone(x), [MATRIX], integer=True),
    Case("clone/contiguous", lambda t, x: (x.t().contiguous(), x.clone(memory_format=t.contiguous_format)), [MATRIX]),
    Case(
        "to_copy",
        lambda t, x: (x.double(), x.to(t.float32), x.half(), x.bfloat16()),
        [MATRIX],
        integer=True,
        second=False,
        differentiable=False,
    ),
    Case(
        "to_format",
        lambda t, x: x.t().to(t.float64, memory_format=t.contiguous_format, copy=True) * 2,
        [MATRIX],
        dtypes=("float64", "float32"),
    ),
    Case(
        "to_format/channels last",
        lambda t, x: (y := x.to(memory_format=t.channels_last)) * y,
        [normal(2, 3, 4, 5)],
        dtypes=("float64", "float32"),
    ),
    Case("to_copy/gradient", lambda t, x: x.to(t.float64) * 2, [MATRIX], dtypes=("float64", "float32")),
    Case(
        "to_discrete",
        lambda t, x: (x.long(), x.int(), x.short(), x.char(), x.bool()),
        [normal(3, 4, scale=5)],
        integer=True,
        differentiable=False,
    ),
    Case("copy", written(lambda t, x, y: x.copy_(y)), [MATRIX, normal(1, 4)], integer=True),
    Case(
        "copy/dtype", written(lambda t, x, y: x.copy_(y.float())), [MATRIX, MATRIX], second=False, differentiable=False
    ),
    Case("copy/select", set_at(1), [MATRIX, normal(4)], integer=True),
    Case("copy/slice", set_at(slice(0, 2), slice(1, None, 2)), [MATRIX, normal(2, 1)], integer=True),
    Case("copy/element", set_at(1, 2), [MATRIX, normal()]),
    Case("copy/None", set_at(None, ..., 0), [MATRIX, normal(1, 3)]),
    Case("copy/leading ones", set_at(1), [MATRIX, normal(1, 1, 4)]),
    Case("index_put/rows", written(set_rows), [MATRIX, normal(2, 4), given([2, 0])], integer=True),
    Case("index_put/by a mask", written(set_rows), [MATRIX, normal(), booleans(3, 4)]),
    Case(
        "index_put/of a view",
        written(lambda t, x, v, i: x[:, 1:].__setitem__((slice(None), i), v)),
        [MATRIX, normal(3, 2), given([2, 0])],
    ),
    Case("filling_number", written(lambda t, x: x.fill_(2)), [MATRIX], integer=True, second=False),
    Case("filling_number/part", written(lambda t, x: x[1:].fill_(2)), [MATRIX]),
    Case("filling_number/diagonal", written(lambda t, x: x.fill_diagonal_(3)), [MATRIX], integer=True),
    Case("filling_tensor", written(lambda t, x, v: x.fill_(v)), [MATRIX, normal()]),
    Case("filling_zeros", written(lambda t, x: x.zero_()), [MATRIX], integer=True, second=False),
    Case("fill_number", lambda t, x: t.fill(x, 2.5), [MATRIX], integer=True, second=False),
    Case("fill_tensor", lambda t, x, v: t.fill(x, v), [MATRIX, normal()]),
    Case("masked_fill/in place", written(lambda t, x, m: x.masked_fill_(m, 2)), [MATRIX, booleans(3, 4)], integer=True),
    Case(
        "scatter_tensor/in place",
        written(lambda t, x, i, s: x.scatter_(1, i, s)),
        [MATRIX, integers(3, 1, high=4), normal(3, 1)],
    ),
    Case(
        "index_add/in place", written(lambda t, x, i, s: x.index_add_(0, i, s)), [MATRIX, given([1, 1]), normal(2, 4)]
    ),
]
