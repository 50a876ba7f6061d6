"""Ops that vmap once ran one element after the other have rules: no loop, and the values of a loop."""

import warnings

import pytest
import torch as pytorch

import backlight

CASES = {
    "index_add": lambda t, x, s, i: x.index_add(0, i, s, alpha=3),
    "index_add inner": lambda t, x, s, i: x.t().index_add(1, i, s.t()),
    "index_copy": lambda t, x, s, i: x.index_copy(0, i, s),
    "index_fill": lambda t, x, s, i: x.index_fill(0, i, 7.0),
    "index_add of numbers": lambda t, x, s, i: x[:, 0].index_add(0, i, s[:, 0]),
    "fill": lambda t, x, s, i: x.clone().fill_(s[0, 0]) + t.zeros_like(x).fill_(s[1, 1]),
}


def given(t, dtype="float64"):
    rng = pytorch.Generator().manual_seed(0)
    x, s = (pytorch.randn(3, n, 5, generator=rng, dtype=pytorch.float64).tolist() for n in (4, 2))
    kind = getattr(t, dtype)
    return t.tensor(x, dtype=kind), t.tensor(s, dtype=kind), t.tensor([[0, 2], [1, 3], [3, 0]])


@pytest.mark.parametrize("name", CASES)
def test_writes_at_indices_that_differ_run_for_the_whole_batch(name):
    def run(t, strict):
        x, s, i = given(t)
        with warnings.catch_warnings():
            warnings.simplefilter("error" if strict else "ignore")
            values = t.vmap(lambda x, s, i: CASES[name](t, x, s, i))(x, s, i)
            slopes = t.vmap(t.func.grad(lambda x, s, i: (CASES[name](t, x, s, i) ** 2).sum(), argnums=(0, 1)))(x, s, i)
        return [one.tolist() for one in (values, *slopes)]

    for found, wanted in zip(run(backlight, True), run(pytorch, False), strict=True):
        assert pytorch.allclose(pytorch.tensor(found), pytorch.tensor(wanted))


LOSSES = {
    "none": lambda t, x, y: t.nn.functional.cross_entropy(x, y, reduction="none"),
    "mean": lambda t, x, y: t.nn.functional.cross_entropy(x, y, reduction="mean"),
    "sum": lambda t, x, y: t.nn.functional.nll_loss(x.log_softmax(1), y, reduction="sum", ignore_index=2),
    "weighted": lambda t, x, y: t.nn.functional.cross_entropy(x, y, t.arange(1.0, 6.0, dtype=t.float64)),
    "one row": lambda t, x, y: t.nn.functional.cross_entropy(x[0], y[0]),
    "pictures": lambda t, x, y: t.nn.functional.nll_loss(x.reshape(2, 5, 2), y.reshape(2, 2), reduction="none"),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("transform", ["jacrev", "hessian", "jacfwd", "jacrev of jacrev"])
def test_losses_of_classes_are_differentiated_without_a_loop(transform, name):
    def run(t, strict):
        x, _, _ = given(t)
        y = t.tensor([0, 2, 4, 1])

        def function(x):
            loss = LOSSES[name](t, x, y)
            return loss.sum() ** 2 if transform == "hessian" else loss**2

        with warnings.catch_warnings():
            warnings.simplefilter("error" if strict else "ignore")
            if transform == "jacrev of jacrev":
                return t.func.jacrev(t.func.jacrev(function))(x[0]).tolist()
            return getattr(t.func, transform)(function)(x[0]).tolist()

    assert pytorch.allclose(pytorch.tensor(run(backlight, True)), pytorch.tensor(run(pytorch, False)))
