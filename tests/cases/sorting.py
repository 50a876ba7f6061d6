"""Order, distinct values, searching, counting."""

import numpy as np
from case import FLOATS, Case, distinct, given, integers, normal, uniform

TIES = given([[1.0, 3.0, 3.0, 2.0], [5.0, 0.0, 5.0, 0.0]])
NANS = given([[1.0, float("nan"), 3.0], [float("nan"), 2.0, float("nan")]])
EDGES = given([0.1, 0.5, 0.9, 2.0])
ROWS_OF_EDGES = given([[0.1, 0.5, 0.9], [-1.0, 0.0, 1.0]])
WIDE = ("float64", "float32")
DUPLICATES = given([[1, 2, 1], [1, 2, 1], [0, 2, 2], [1, 2, 1]])


CASES = [
    Case("sort", lambda t, x: (t.sort(x), x.sort(0, descending=True)), [distinct(3, 4)], integer=True),
    Case(
        "sort/stable", lambda t, x: (t.sort(x, stable=True), t.sort(x, 1, True)), [TIES], FLOATS, differentiable=False
    ),
    Case("sort/nan", lambda t, x: (x.sort(), x.sort(1, True)), [NANS], FLOATS, differentiable=False),
    Case("sort/0-d", lambda t, x: x.sort(), [normal()]),
    Case("sort/msort", lambda t, x: t.msort(x), [distinct(3, 4)]),
    Case("sort/argsort", lambda t, x: (t.argsort(x, stable=True), x.argsort(0, True)), [TIES], differentiable=False),
    Case("topk", lambda t, x: (t.topk(x, 2), x.topk(2, 0, largest=False)), [distinct(3, 4)]),
    Case("topk/0-d", lambda t, x: x.topk(1), [normal()]),
    Case("kthvalue", lambda t, x: (t.kthvalue(x, 2), x.kthvalue(3, 0, True)), [distinct(3, 4)]),
    Case("kthvalue/0-d", lambda t, x: x.kthvalue(1), [normal()]),
    Case(
        "unique",
        lambda t, x: (t.unique(x), t.unique(x, return_inverse=True, return_counts=True), x.unique(dim=0)),
        [DUPLICATES],
        differentiable=False,
    ),
    Case("unique/dim", lambda t, x: x.unique(True, True, True, 1), [DUPLICATES], differentiable=False),
    Case("unique/nan", lambda t, x: t.unique(x, return_counts=True), [NANS], WIDE, differentiable=False),
    Case(
        "unique_consecutive",
        lambda t, x: (t.unique_consecutive(x), x.unique_consecutive(True, True), x.unique_consecutive(True, True, 0)),
        [DUPLICATES],
        differentiable=False,
    ),
    Case(
        "isin",
        lambda t, x, y: (t.isin(x, y), t.isin(x, 2, invert=True), t.isin(2, y)),
        [integers(3, 4), integers(2)],
        differentiable=False,
    ),
    Case(
        "searchsorted",
        lambda t, s, x: (
            t.searchsorted(s, x.contiguous()),
            t.searchsorted(s, x.contiguous(), right=True, out_int32=True),
            t.searchsorted(s, 0.5),
        ),
        [EDGES, uniform(2, 3, low=0.0, high=1.0)],
        dtypes=WIDE,
        differentiable=False,
    ),
    Case(
        "searchsorted/rows",
        lambda t, s, x: t.searchsorted(s.contiguous(), x.contiguous(), side="right"),
        [ROWS_OF_EDGES, given([[0.5, 0.6], [0.0, 2.0]])],
        dtypes=WIDE,
        differentiable=False,
    ),
    Case(
        "searchsorted/bucketize",
        lambda t, s, x: (t.bucketize(x.contiguous(), s), t.bucketize(x.contiguous(), s, right=True)),
        [EDGES, given([[0.5, 0.6], [0.0, 2.0]])],
        dtypes=WIDE,
        differentiable=False,
    ),
    Case(
        "histc",
        lambda t, x: (t.histc(x, 5), x.histc(4, min=-1, max=1)),
        [normal(30)],
        dtypes=WIDE,
        differentiable=False,
    ),
    Case(
        "bincount",
        lambda t, x, w: (t.bincount(x), x.bincount(w), t.bincount(x, minlength=9)),
        [integers(10), given(np.linspace(0, 1, 10))],
        dtypes=WIDE,
        differentiable=False,
    ),
]
