"""What reductions, scans, sorts and norms do beside the numbers that their Cases check."""

import math

import numpy as np
import pytest
import torch

import backlight

BOTH = pytest.mark.parametrize("t", [backlight, torch], ids=["backlight", "torch"])


def node_name(tensor) -> str:
    return type(tensor.grad_fn).__name__


# --- errors ----------------------------------------------------------------------------------------------------------

WRONG = {
    "a dim out of range": lambda t: t.ones(2, 3).sum(5),
    "a dim named twice": lambda t: t.ones(2, 3).sum((0, -2)),
    "a mean of integers": lambda t: t.tensor([1, 2]).mean(),
    "a mean of integers over a dim": lambda t: t.tensor([1, 2]).mean(0),
    "a mean in an integer dtype": lambda t: t.ones(2).mean(dtype=t.int64),
    "a nanmean of integers": lambda t: t.tensor([1, 2]).nanmean(),
    "max of nothing": lambda t: t.ones(0).max(),
    "min of nothing": lambda t: t.ones(0).min(),
    "max over an empty dim": lambda t: t.ones(0, 3).max(0),
    "argmax of nothing": lambda t: t.ones(0).argmax(),
    "argmin over an empty dim": lambda t: t.ones(0, 3).argmin(0),
    "amax of nothing": lambda t: t.ones(0, 3).amax(),
    "amax over an empty dim": lambda t: t.ones(0, 3).amax(0),
    "aminmax of nothing": lambda t: t.ones(0).aminmax(),
    "std of integers": lambda t: t.tensor([1, 2]).std(),
    "median over an empty dim": lambda t: t.ones(0, 3).median(0),
    "mode over an empty dim": lambda t: t.ones(0, 3).mode(0),
    "a norm of integers": lambda t: t.tensor([1, 2]).norm(),
    "a largest size of nothing": lambda t: t.linalg.vector_norm(t.ones(0), math.inf),
    "a norm in a narrower dtype": lambda t: t.linalg.vector_norm(t.ones(2, dtype=t.float64), dtype=t.float32),
    "a matrix norm of a vector": lambda t: t.linalg.matrix_norm(t.ones(3)),
    "an unknown matrix norm": lambda t: t.linalg.matrix_norm(t.ones(3, 3), 3),
    "cdist of different widths": lambda t: t.cdist(t.ones(2, 3), t.ones(2, 4)),
    "cdist of a vector": lambda t: t.cdist(t.ones(3), t.ones(2, 3)),
    "renorm of a vector": lambda t: t.ones(3).renorm(2, 0, 1.0),
    "cumsum out of range": lambda t: t.ones(3).cumsum(1),
    "diff of a number": lambda t: t.tensor(1.0).diff(),
    "topk of more than there is": lambda t: t.ones(2, 3).topk(4),
    "kthvalue of more than there is": lambda t: t.ones(2, 3).kthvalue(4),
    "a quantile above 1": lambda t: t.ones(3).quantile(1.5),
    "a quantile of integers": lambda t: t.tensor([1, 2]).quantile(0.5),
    "an unknown interpolation": lambda t: t.ones(3).quantile(0.5, interpolation="cubic"),
    "bincount of negatives": lambda t: t.tensor([1, -1]).bincount(),
    "histc with a range turned round": lambda t: t.ones(3).histc(2, 3, 1),
    "tensordot over three lists of dims": lambda t: t.tensordot(t.ones(2, 2), t.ones(2, 2), dims=t.ones(3, 4)),
    "searchsorted on both sides": lambda t: t.searchsorted(t.ones(2), t.ones(2), side="left", right=True),
    "searchsorted in rows that differ": lambda t: t.searchsorted(t.ones(2, 2), t.ones(3, 2)),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_error_begins_with_what_pytorch_says(wrong):
    with pytest.raises(Exception) as theirs:
        wrong(torch)
    with pytest.raises(type(theirs.value)) as ours:
        wrong(backlight)
    assert str(ours.value).split("\n")[0].startswith(str(theirs.value).split("\n")[0].rstrip())


def test_an_unknown_keyword_is_refused():
    said = r"sum\(\) received an invalid combination of arguments - got \(axes=int, \)"
    for t in (torch, backlight):
        with pytest.raises(TypeError, match=said):
            t.ones(2).sum(axes=0)


def test_the_nuclear_norm_adds_the_singular_values():
    matrix = backlight.tensor([[3.0, 0.0], [0.0, -4.0]])
    assert matrix.norm("nuc").item() == pytest.approx(7)


# --- names, kinds, printing ------------------------------------------------------------------------------------------

NODES = {
    "sum": lambda x: x.sum(),
    "sum over dim": lambda x: x.sum(0),
    "mean": lambda x: x.mean(),
    "mean over dim": lambda x: x.mean(0),
    "prod": lambda x: x.prod(),
    "prod over dim": lambda x: x.prod(0),
    "nansum": lambda x: x.nansum(),
    "max": lambda x: x.max(),
    "max over dim": lambda x: x.max(0).values,
    "min": lambda x: x.min(),
    "min over dim": lambda x: x.min(0).values,
    "amax": lambda x: x.amax(),
    "aminmax": lambda x: x.aminmax().max,
    "std": lambda x: x.std(0),
    "var": lambda x: x.var(),
    "median": lambda x: x.median(),
    "median over dim": lambda x: x.median(0).values,
    "nanmedian": lambda x: x.nanmedian(),
    "nanmedian over dim": lambda x: x.nanmedian(0).values,
    "mode": lambda x: x.mode().values,
    "logsumexp": lambda x: x.logsumexp(0),
    "norm": lambda x: x.norm(),
    "renorm": lambda x: x.renorm(2, 0, 1.0),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "cummax": lambda x: x.cummax(0).values,
    "cummin": lambda x: x.cummin(0).values,
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "sort": lambda x: x.sort().values,
    "topk": lambda x: x.topk(1).values,
    "kthvalue": lambda x: x.kthvalue(1).values,
    "dist": lambda x: x.dist(x + 1),
}


@pytest.mark.parametrize("call", NODES.values(), ids=NODES)
def test_node_has_pytorch_s_name(call):
    ours, theirs = (call(t.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)) for t in (backlight, torch))
    assert node_name(ours) == node_name(theirs)


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "mode", "sort", "cummax", "cummin", "aminmax"])
def test_named_results_print_as_pytorch_prints_them(name):
    ours, theirs = (
        getattr(t, name)(t.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True), dim=0) for t in (backlight, torch)
    )
    assert repr(ours) == repr(theirs)


@BOTH
def test_named_results_unpack_and_have_fields(t):
    values, indices = found = t.tensor([1.0, 3.0, 2.0]).max(dim=0)
    assert (values.item(), indices.item()) == (found.values.item(), found.indices.item()) == (3.0, 1)
    assert isinstance(found, tuple) and isinstance(found, t.return_types.max)


OF_BOOL = ("sum", "prod", "max", "min", "amax", "all", "any", "nansum")
OF_INTEGERS = (*OF_BOOL, "argmax", "median")


@pytest.mark.parametrize(
    ("kind", "name"),
    [("bool", name) for name in OF_BOOL]
    + [(kind, name) for kind in ("uint8", "int8", "int16", "int32", "int64") for name in OF_INTEGERS],
)
def test_result_of_integers_has_pytorch_s_dtype(kind, name):
    ours, theirs = (getattr(t.tensor([3, 0, 2]).to(getattr(t, kind)), name)() for t in (backlight, torch))
    assert (str(ours.dtype), ours.item()) == (str(theirs.dtype), theirs.item())


@BOTH
def test_half_precision_is_summed_in_float32(t):
    ones = t.ones(70000, dtype=t.float16)
    assert ones.mean().item() == 1.0
    assert ones[:4000].reshape(2, 2000).sum(1).tolist() == [2000.0, 2000.0]
    assert t.full((1000,), 0.01, dtype=t.bfloat16).sum().item() == pytest.approx(10.0, rel=0.01)


# --- gradients -------------------------------------------------------------------------------------------------------


def slope(t, call, values):
    x = t.tensor(values, dtype=t.float64, requires_grad=True)
    return t.autograd.grad(call(x).sum(), x)[0].tolist()


TIES = {
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "amax": lambda x: x.amax(0),
    "amin": lambda x: x.amin(),
    "aminmax": lambda x: x.aminmax().max,
    "median": lambda x: x.median(),
    "the largest size": lambda x: x.norm(math.inf),
    "max over a dim": lambda x: x.max(0).values,
    "cummax": lambda x: x.cummax(0).values,
}


@pytest.mark.parametrize("call", TIES.values(), ids=TIES)
def test_ties_share_the_gradient_as_in_pytorch(call):
    values = [3.0, 1.0, 3.0, 1.0, 1.0, 3.0, 3.0]
    assert slope(backlight, call, values) == slope(torch, call, values)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, math.inf, -math.inf])
def test_the_gradient_of_a_norm_at_zero_is_zero(p):
    assert slope(backlight, lambda x: x.norm(p), [0.0, 0.0]) == [0.0, 0.0]


@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_gradient_of_a_distance_at_zero_is_zero(p):
    here = [[1.0, 2.0], [3.0, 4.0]]
    other = backlight.tensor(here, dtype=backlight.float64)
    assert slope(backlight, lambda x: x.dist(other, p), here) == [[0.0, 0.0], [0.0, 0.0]]
    assert slope(backlight, lambda x: backlight.cdist(x[:1], other[:1], p), here) == [[0.0, 0.0], [0.0, 0.0]]


def test_a_number_gets_a_number_as_gradient_of_its_distance():
    number = backlight.tensor(3.0, requires_grad=True)
    backlight.dist(backlight.ones(3, 4), number).backward()
    assert number.grad.shape == () and number.grad.item() == pytest.approx(math.sqrt(12))


def test_the_gradient_of_a_standard_deviation_of_equals_is_zero():
    assert slope(backlight, lambda x: x.std(), [3.0, 3.0]) == [0.0, 0.0]


@pytest.mark.parametrize("values", [[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [0.0], []])
@pytest.mark.parametrize("call", [lambda x: x.prod(), lambda x: x.prod(0), lambda x: x.cumprod(0)])
def test_products_with_zeros_have_the_gradients_of_pytorch(call, values):
    assert slope(backlight, call, values) == pytest.approx(slope(torch, call, values))


def test_a_third_derivative_of_a_product_with_zeros():
    x = backlight.tensor([2.0, 0.0, 3.0, 5.0], dtype=backlight.float64, requires_grad=True)
    (first,) = backlight.autograd.grad(x.prod(), x, create_graph=True)
    (second,) = backlight.autograd.grad(first[0], x, create_graph=True)
    (third,) = backlight.autograd.grad(second[1], x)
    assert third.tolist() == [0.0, 0.0, 5.0, 3.0]  # ∂³(abcd)/∂a∂b∂(c, d)


def test_a_row_of_minus_infinity_has_logsumexp_minus_infinity():
    x = backlight.tensor([[-math.inf, -math.inf], [0.0, -math.inf]], requires_grad=True)
    assert x.logsumexp(1).tolist() == [-math.inf, 0.0]
    assert x[1:].logsumexp(1).grad_fn is not None
    assert slope(backlight, lambda x: x.logsumexp(0), [0.0, -math.inf]) == [1.0, 0.0]


def test_logcumsumexp_starts_after_minus_infinity():
    values = [-math.inf, 1.0, 3.0]
    ours = slope(backlight, lambda x: x.logcumsumexp(0), values)
    assert ours[0] == 0.0  # PyTorch: nan
    assert ours[1:] == pytest.approx(slope(torch, lambda x: x.logcumsumexp(0), values)[1:])


def test_writing_to_the_values_of_max_leaves_its_gradient_right():
    x = backlight.tensor([[1.0, 3.0], [4.0, 2.0]], requires_grad=True)
    largest = (x * 1).max(1)
    largest.values.mul_(2)
    largest.indices.zero_()
    largest.values.sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0], [2.0, 0.0]]


def test_the_gradient_of_a_large_sum_may_be_written_to():
    x = backlight.ones(200, 200, requires_grad=True)
    x.sum().backward()
    x.grad.mul_(3)
    assert x.grad[0, :2].tolist() == [3.0, 3.0]


# --- order -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("descending", [False, True])
def test_sort_keeps_equals_in_order_and_puts_nan_above_all(descending):
    values = np.random.default_rng(0).integers(0, 4, (3, 40)).astype(np.float32)
    values[0, ::7] = np.nan
    ours = backlight.from_numpy(values).sort(descending=descending)
    theirs = torch.from_numpy(values).sort(stable=True, descending=descending)
    assert ours.indices.tolist() == theirs.indices.tolist()
    np.testing.assert_array_equal(ours.values.numpy(), theirs.values.numpy())


@BOTH
@pytest.mark.parametrize("kind", ["float32", "int64", "bool"])
def test_sorting_leaves_the_input_alone(t, kind):
    x = t.tensor([3, 0, 2]).to(getattr(t, kind))
    before = x.tolist()
    x.sort().values.zero_()
    assert x.tolist() == before


@BOTH
@pytest.mark.parametrize("name", ["sort", "max", "min", "median", "nanmedian", "mode", "topk", "kthvalue", "cummax"])
def test_the_values_of_a_number_are_a_copy(t, name):
    number = t.tensor(3.0)
    number.add_(0)  # what was written to is held as an array
    arguments = (1,) if name in ("topk", "kthvalue") else () if name == "sort" else (0,)
    getattr(number, name)(*arguments).values.zero_()
    assert number.item() == 3.0


@BOTH
def test_nothing_can_be_sorted_and_reduced_over_a_dim_that_has_size(t):
    empty = t.ones(0, 3)
    assert [tuple(part.shape) for part in empty.sort()] == [(0, 3), (0, 3)]
    assert tuple(empty.topk(2).values.shape) == (0, 2)
    assert tuple(empty.max(1).indices.shape) == (0,)
    assert tuple(empty.cummax(0).values.shape) == (0, 3)
    assert empty.sum().item() == 0.0 and empty.prod().item() == 1.0
    assert math.isnan(empty.mean().item()) and math.isnan(empty.median().item())


@BOTH
def test_argsort_is_not_part_of_the_graph(t):
    indices = t.tensor([3.0, 1.0], requires_grad=True).argsort()
    assert indices.tolist() == [1, 0] and not indices.requires_grad


EXTREMES = {
    "smallest": lambda t, x: t.aminmax(x)[0],
    "largest": lambda t, x: t.aminmax(x)[1],
    "largest over a dim": lambda t, x: t.aminmax(x, dim=0)[1],
    "amax": lambda t, x: x.amax(),
    "max": lambda t, x: x.max(),
    "norm": lambda t, x: x.norm(float("inf")),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_an_extreme_that_was_written_to_after_it_was_packed_gives_what_it_gives_in_pytorch(name):
    found = []
    for t in (torch, backlight):
        x = t.tensor([[1.0, 2.0], [3.0, 0.7]], requires_grad=True)
        with t.autograd.graph.save_on_cpu():
            y = EXTREMES[name](t, x)
            y.detach().mul_(2)
        y.sum().backward()
        found.append(x.grad.flatten().tolist())
    assert found[1] == pytest.approx(found[0], nan_ok=True)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
def test_scans_lie_row_by_row_whatever_the_order_of_the_input(name):
    strides = []
    for module in (backlight, torch):
        found = getattr(module.ones(3, 4).t(), name)(0)
        strides += [found.stride()] if not isinstance(found, tuple) else [one.stride() for one in found]
    assert set(strides) == {(3, 1)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histc_puts_edges_into_the_bins_that_pytorch_puts_them_into(dtype):
    draw = np.random.default_rng(0)
    for _ in range(200):
        low = np.float32(draw.normal() * 10.0 ** draw.integers(-3, 4))
        high = np.float32(low + abs(draw.normal()) * 10.0 ** draw.integers(-7, 4))
        bins = int(draw.integers(1, 60))
        if low < high:
            values = np.clip(np.concatenate([np.linspace(low, high, bins + 1), draw.uniform(low, high, 30)]), low, high)
            values = values.astype(dtype)
            ours = backlight.histc(backlight.tensor(values), bins, float(low), float(high))
            theirs = torch.histc(torch.tensor(values), bins, float(low), float(high))
            assert np.array_equal(ours.numpy(), theirs.numpy()), (low, high, bins)
