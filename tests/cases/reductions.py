"""Sums, means, products, truth, counts, variances."""

from case import Case, booleans, given, normal

GAPS = given([[1.0, float("nan"), 2.0], [float("nan"), 4.0, 8.0]])
ZEROS = given([[2.0, 0.0, 3.0, 0.5], [0.0, 4.0, 0.0, 5.0], [1.5, 2.5, -1.0, 3.0]], differentiable=True)
LOOSE = {"float16": (1e-2, 1e-2), "bfloat16": (5e-2, 5e-2)}

CASES = [
    Case("sum_all", lambda t, x: t.sum(x), [normal(3, 4)], integer=True),
    Case("sum_all/0-d", lambda t, x: x.sum(), [normal()], integer=True),
    Case("sum_all/empty", lambda t, x: x.sum(), [normal(0, 3)]),
    Case(
        "sum_all/large", lambda t, x: x.sum(), [normal(200, 100)], tolerance=LOOSE, second=False, differentiable=False
    ),
    Case("sum", lambda t, x: t.sum(x, 1), [normal(3, 4, 2)], integer=True),
    Case("sum/several dims", lambda t, x: x.sum((0, -1), keepdim=True), [normal(3, 4, 2)], integer=True),
    Case("sum/axis", lambda t, x: x.sum(axis=1, keepdims=True), [normal(3, 4)], integer=True),
    Case("sum/dtype", lambda t, x: x.sum(0, dtype=t.float64), [normal(3, 4)], integer=True),
    Case("sum/0-d", lambda t, x: x.sum(-1), [normal()]),
    Case("sum/empty dim", lambda t, x: x.sum(0), [normal(0, 3)]),
    Case(
        "nansum", lambda t, x: (t.nansum(x), t.nansum(x, 1, keepdim=True)), [GAPS], integer=True, differentiable=False
    ),
    Case("nansum/gradient", lambda t, x: x.nansum(0), [normal(3, 4)]),
    Case("nanmean", lambda t, x: (t.nanmean(x), t.nanmean(x, 0)), [GAPS], differentiable=False),
    Case("nanmean/gradient", lambda t, x: x.nanmean((0, 1), keepdim=True), [normal(3, 4)]),
    Case("mean_all", lambda t, x: t.mean(x), [normal(3, 4)]),
    Case("mean_all/0-d", lambda t, x: x.mean(), [normal()]),
    Case("mean", lambda t, x: x.mean(-1), [normal(3, 4)]),
    Case("mean/several dims", lambda t, x: x.mean((0, 2), True), [normal(3, 4, 2)]),
    Case("mean/dtype", lambda t, x: x.mean(0, dtype=t.float64), [normal(3, 4)], integer=True),
    Case("prod_all", lambda t, x: t.prod(x), [normal(2, 3, shift=1.0)], integer=True),
    Case("prod_all/zeros", lambda t, x: x[:2, 1:].prod(), [ZEROS]),
    Case("prod_all/0-d", lambda t, x: x.prod(), [normal()]),
    Case("prod_all/empty", lambda t, x: x.prod(), [normal(0)]),
    Case("prod", lambda t, x: t.prod(x, 1), [normal(3, 4)], integer=True),
    Case("prod/zeros", lambda t, x: x.prod(-1, keepdim=True), [ZEROS]),
    Case("prod/0-d", lambda t, x: x.prod(0), [normal()]),
    Case("prod/dtype", lambda t, x: x.prod(0, dtype=t.float64), [normal(3, 4)], integer=True),
    Case("all", lambda t, x: (t.all(x), t.all(x, 1), x.all(0, keepdim=True)), [booleans(3, 4)], differentiable=False),
    Case("all/numbers", lambda t, x: (x.all(), x.all(dim=(0, 1))), [normal(3, 4)], integer=True, differentiable=False),
    Case("any", lambda t, x: (t.any(x), t.any(x, 1), x.any(0, keepdim=True)), [booleans(3, 4)], differentiable=False),
    Case("any/numbers", lambda t, x: (x.any(), x.any(dim=(0, 1))), [normal(3, 4)], integer=True, differentiable=False),
    Case(
        "count_nonzero",
        lambda t, x: (t.count_nonzero(x), x.count_nonzero(1), x.count_nonzero((0, 1))),
        [given([[1.0, 0.0, 2.0], [0.0, 0.0, float("nan")]])],
        differentiable=False,
    ),
    Case("logsumexp", lambda t, x: t.logsumexp(x, 1), [normal(3, 4)], integer=True),
    Case("logsumexp/large values", lambda t, x: x.logsumexp((0, 1), keepdim=True), [normal(3, 4, scale=20)]),
    Case("logsumexp/0-d", lambda t, x: x.logsumexp(0), [normal()]),
    Case(
        "logsumexp/infinite rows",
        lambda t, x: x.logsumexp(1),
        [given([[float("-inf")] * 2, [float("-inf"), 1.0], [float("inf"), 1.0]])],
        differentiable=False,
    ),
    Case("var", lambda t, x: (t.var(x), t.var(x, 1), x.var((0, 1), correction=0, keepdim=True)), [normal(3, 4)]),
    Case("var/unbiased", lambda t, x: (x.var(False), x.var(1, False, True), x.var(unbiased=True)), [normal(3, 4)]),
    Case("std", lambda t, x: (t.std(x), t.std(x, 1), x.std(0, correction=2, keepdim=True)), [normal(4, 4)]),
    Case("std/unbiased", lambda t, x: (x.std(False), x.std(1, False, True)), [normal(3, 4)]),
    Case("var_mean", lambda t, x: (t.var_mean(x), t.var_mean(x, 1, keepdim=True)), [normal(3, 4)]),
    Case("std_mean", lambda t, x: (t.std_mean(x, 0), t.std_mean(x, unbiased=False)), [normal(3, 4)]),
    Case("cov", lambda t, x: x.cov(), [normal(3, 5)]),
    Case("cov/weights", lambda t, x, w: t.cov(x, correction=0, aweights=w), [normal(3, 5), given([0.2, 1, 0.5, 2, 1])]),
    Case("corrcoef", lambda t, x: t.corrcoef(x), [normal(3, 5)]),
]
