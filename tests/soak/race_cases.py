"""Ops whose indices, masks, counts or offsets another thread may write: what soak/races.py and test_races.py play."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import backlight as torch
from backlight.nn import functional as F

HUGE = 1 << 40
COUNT = 100_000  # indices: enough that kernels and NumPy work on them without the interpreter's lock


@dataclass(frozen=True)
class Case:
    """An op, `call()`, and the tensors that it reads, each with the number that is written into it."""

    call: Callable[[], object]
    written: tuple


CASES: dict[str, Callable[[np.random.Generator], Case]] = {}


def case(function: Callable) -> Callable:
    """Note a case by its function's name."""
    CASES[function.__name__] = function
    return function


def places(rng, size: int, *shape: int):
    """Return random indices below a size."""
    return torch.from_numpy(rng.integers(0, size, shape or COUNT))


def values(rng, *shape: int, grad: bool = False):
    """Return random numbers."""
    return torch.from_numpy(rng.standard_normal(shape).astype(np.float32)).requires_grad_(grad)


def huge(*tensors) -> tuple:
    """Return the tensors, each with the number that is out of every range."""
    return tuple((tensor, HUGE) for tensor in tensors)


def backward(out) -> None:
    """Run backward from the sum, and keep the graph."""
    out.sum().backward(retain_graph=True)


# --- along a dim ------------------------------------------------------------------------------------------------------


@case
def index_select(rng):
    x, index = values(rng, 1000), places(rng, 1000)
    return Case(lambda: torch.index_select(x, 0, index), huge(index))


@case
def index_select_rows(rng):
    x, index = values(rng, 3, 1000, 4), places(rng, 1000)
    return Case(lambda: torch.index_select(x, 1, index), huge(index))


@case
def index_select_of_integers(rng):
    x, index = places(rng, 9, 1000), places(rng, 1000)
    return Case(lambda: torch.index_select(x, 0, index), huge(index))


@case
def index_select_backward(rng):
    x, index = values(rng, 1000, grad=True), places(rng, 1000)
    out = torch.index_select(x, 0, index)
    return Case(lambda: backward(out), huge(index))


@case
def index_add(rng):
    x, index, source = values(rng, 1000), places(rng, 1000), values(rng, COUNT)
    return Case(lambda: x.index_add_(0, index, source), huge(index))


@case
def index_add_of_integers(rng):
    x, index, source = places(rng, 9, 1000), places(rng, 1000), places(rng, 9)
    return Case(lambda: x.index_add_(0, index, source), huge(index))


@case
def index_add_backward(rng):
    x, index, source = values(rng, 1000), places(rng, 1000), values(rng, COUNT, grad=True)
    out = x.index_add(0, index, source)
    return Case(lambda: backward(out), huge(index))


@case
def index_copy(rng):
    x, index, source = values(rng, 1000), places(rng, 1000), values(rng, COUNT)
    return Case(lambda: x.index_copy_(0, index, source), huge(index))


@case
def index_fill(rng):
    x, index = values(rng, 1000), places(rng, 1000)
    return Case(lambda: x.index_fill_(0, index, 3.0), huge(index))


@case
def index_reduce(rng):
    x, index, source = values(rng, 1000), places(rng, 1000), values(rng, COUNT)
    names = ("prod", "mean", "amax", "amin")
    return Case(lambda: [x.index_reduce(0, index, source, name) for name in names], huge(index))


@case
def gather(rng):
    x, index = values(rng, 1000), places(rng, 1000)
    return Case(lambda: torch.gather(x, 0, index), huge(index))


@case
def gather_rows(rng):
    x, index = values(rng, 300, 50), places(rng, 50, 300, 400)
    return Case(lambda: torch.gather(x, 1, index), huge(index))


@case
def gather_backward(rng):
    x, index = values(rng, 300, 50, grad=True), places(rng, 50, 300, 400)
    out = torch.gather(x, 1, index)
    return Case(lambda: backward(out), huge(index))


@case
def take_along_dim(rng):
    x, index = values(rng, 300, 50), places(rng, 50, 300, 400)
    return Case(lambda: torch.take_along_dim(x, index, 1), huge(index))


@case
def scatter(rng):
    x, index, source = values(rng, 300, 50), places(rng, 50, 300, 400), values(rng, 300, 400)
    return Case(lambda: (x.scatter(1, index, source), x.scatter_(1, index, 2.0)), huge(index))


@case
def scatter_backward(rng):
    x, index, source = values(rng, 300, 50, grad=True), places(rng, 50, 300, 400), values(rng, 300, 400, grad=True)
    out = x.scatter(1, index, source)
    return Case(lambda: backward(out), huge(index))


@case
def scatter_add(rng):
    x, index, source = values(rng, 300, 50), places(rng, 50, 300, 400), values(rng, 300, 400)
    return Case(lambda: x.scatter_add(1, index, source), huge(index))


@case
def scatter_add_of_integers(rng):
    x, index, source = places(rng, 9, 300, 50), places(rng, 50, 300, 400), places(rng, 9, 300, 400)
    return Case(lambda: x.scatter_add(1, index, source), huge(index))


@case
def scatter_reduce(rng):
    x, index, source = values(rng, 300, 50), places(rng, 50, 300, 400), values(rng, 300, 400)
    names = ("sum", "prod", "mean", "amax", "amin")
    return Case(lambda: [x.scatter_reduce(1, index, source, name) for name in names], huge(index))


@case
def scatter_reduce_backward(rng):
    x, index, source = values(rng, 300, 50, grad=True), places(rng, 50, 300, 400), values(rng, 300, 400, grad=True)
    out = x.scatter_reduce(1, index, source, "amax")
    return Case(lambda: backward(out), huge(index))


# --- by flat places and by subscripts ---------------------------------------------------------------------------------


@case
def take(rng):
    x, index = values(rng, 1000), places(rng, 1000)
    return Case(lambda: torch.take(x, index), huge(index))


@case
def take_backward(rng):
    x, index = values(rng, 1000, grad=True), places(rng, 1000)
    out = torch.take(x, index)
    return Case(lambda: backward(out), huge(index))


@case
def put(rng):
    x, index, source = values(rng, 1000), places(rng, 1000), values(rng, COUNT)
    return Case(lambda: (x.put_(index, source), x.put_(index, source, accumulate=True)), huge(index))


@case
def subscript(rng):
    x, index = values(rng, 1000), places(rng, 1000)
    return Case(lambda: x[index], huge(index))


@case
def subscript_of_rows(rng):
    x, index = values(rng, 1000, 3), places(rng, 1000)
    return Case(lambda: x[index], huge(index))


@case
def two_subscripts(rng):
    x, first, second = values(rng, 300, 50), places(rng, 300), places(rng, 50)
    return Case(lambda: x[first, second], huge(first, second))


@case
def subscripts_backward(rng):
    x, first, second = values(rng, 300, 50, grad=True), places(rng, 300), places(rng, 50)
    out = x[first, second]
    return Case(lambda: backward(out), huge(first, second))


@case
def subscript_written(rng):
    x, index, source = values(rng, 1000), places(rng, 1000), values(rng, COUNT)
    return Case(lambda: x.__setitem__(index, source), huge(index))


@case
def two_subscripts_written(rng):
    x, first, second, source = values(rng, 300, 50), places(rng, 300), places(rng, 50), values(rng, COUNT)
    return Case(lambda: x.__setitem__((first, second), source), huge(first, second))


@case
def index_put(rng):
    x, first, second, source = values(rng, 300, 50), places(rng, 300), places(rng, 50), values(rng, COUNT)
    return Case(
        lambda: (
            x.index_put((first, second), source),
            x.index_put((first, second), source, accumulate=True),
            x.index_put((first,), source[:50], accumulate=True),
        ),
        huge(first, second),
    )


@case
def index_put_backward(rng):
    x, index, source = values(rng, 1000, grad=True), places(rng, 1000), values(rng, COUNT, grad=True)
    out = x.index_put((index,), source, accumulate=True)
    return Case(lambda: backward(out), huge(index))


# --- masks ------------------------------------------------------------------------------------------------------------


def mask_of(rng, *shape):
    """Return a mask that is nearly all False."""
    return torch.from_numpy(rng.random(shape or COUNT) < 0.001)


@case
def masked_select(rng):
    x, mask = values(rng, COUNT), mask_of(rng)
    return Case(lambda: torch.masked_select(x, mask), ((mask, True),))


@case
def masked_select_backward(rng):
    x, mask = values(rng, COUNT, grad=True), mask_of(rng)
    out = torch.masked_select(x, mask)
    return Case(lambda: backward(out), ((mask, True),))


@case
def mask_as_subscript(rng):
    x, mask = values(rng, COUNT), mask_of(rng)
    return Case(lambda: x[mask], ((mask, True),))


@case
def mask_of_rows(rng):
    x, mask = values(rng, COUNT, 3), mask_of(rng)
    return Case(lambda: x[mask], ((mask, True),))


@case
def mask_as_subscript_backward(rng):
    x, mask = values(rng, COUNT, grad=True), mask_of(rng)
    out = x[mask]
    return Case(lambda: backward(out), ((mask, True),))


@case
def mask_written(rng):
    x, mask = values(rng, COUNT), mask_of(rng)
    count = int(mask.sum())
    source = values(rng, count)
    return Case(lambda: (x.__setitem__(mask, 2.0), x.__setitem__(mask, source)), ((mask, True),))


@case
def masked_scatter(rng):
    x, mask, source = values(rng, COUNT), mask_of(rng), values(rng, COUNT // 100)
    return Case(lambda: x.masked_scatter(mask, source), ((mask, True),))


@case
def masked_scatter_backward(rng):
    x, mask, source = values(rng, COUNT, grad=True), mask_of(rng), values(rng, COUNT // 100, grad=True)
    out = x.masked_scatter(mask, source)
    return Case(lambda: backward(out), ((mask, True),))


@case
def masked_fill_and_where(rng):
    x, mask = values(rng, COUNT), mask_of(rng)
    return Case(lambda: (x.masked_fill(mask, 1.0), torch.where(mask, x, 0.0)), ((mask, True),))


@case
def nonzero(rng):
    mask = mask_of(rng)
    return Case(lambda: (torch.nonzero(mask), torch.where(mask), torch.argwhere(mask)), ((mask, True),))


# --- layers and losses ------------------------------------------------------------------------------------------------


@case
def embedding(rng):
    weight, index = values(rng, 1000, 8), places(rng, 1000)
    return Case(lambda: F.embedding(index, weight), huge(index))


@case
def embedding_backward(rng):
    weight, index = values(rng, 1000, 8, grad=True), places(rng, 1000)
    out = F.embedding(index, weight)
    return Case(lambda: backward(out), huge(index))


@case
def embedding_renormalised(rng):
    weight, index = values(rng, 1000, 8), places(rng, 1000)
    return Case(lambda: F.embedding(index, weight, max_norm=1.0, scale_grad_by_freq=True), huge(index))


@case
def embedding_bag(rng):
    weight, index, offsets = values(rng, 1000, 4, grad=True), places(rng, 1000), torch.arange(0, COUNT, 10)

    def call():
        for mode in ("sum", "mean", "max"):
            F.embedding_bag(index, weight, offsets, mode=mode).sum().backward()

    return Case(call, huge(index, offsets))


@case
def one_hot(rng):
    index = places(rng, 10)
    return Case(lambda: (F.one_hot(index, 10), F.one_hot(index[:5000])), ((index, 12),))


@case
def cross_entropy(rng):
    x, target = values(rng, 20_000, 10), places(rng, 10, 20_000)
    return Case(lambda: F.cross_entropy(x, target), huge(target))


@case
def cross_entropy_weighted(rng):
    x, target, weight = values(rng, 20_000, 10), places(rng, 10, 20_000), values(rng, 10).abs()
    return Case(lambda: F.cross_entropy(x, target, weight=weight, label_smoothing=0.1), huge(target))


@case
def cross_entropy_backward(rng):
    x, target = values(rng, 20_000, 10, grad=True), places(rng, 10, 20_000)
    loss = F.cross_entropy(x, target)
    return Case(lambda: backward(loss), huge(target))


@case
def cross_entropy_of_pictures(rng):
    x, target = values(rng, 4, 10, 50, 50, grad=True), places(rng, 10, 4, 50, 50)
    return Case(lambda: backward(F.cross_entropy(x, target)), huge(target))


@case
def nll_loss(rng):
    x, target, weight = values(rng, 20_000, 10, grad=True), places(rng, 10, 20_000), values(rng, 10).abs()
    return Case(lambda: backward(F.nll_loss(x, target, weight=weight)), huge(target))


@case
def nll_loss_backward(rng):
    x, target = values(rng, 20_000, 10, grad=True), places(rng, 10, 20_000)
    loss = F.nll_loss(x, target)
    return Case(lambda: backward(loss), huge(target))


@case
def margin_losses(rng):
    x, target, many = values(rng, 5000, 10, grad=True), places(rng, 10, 5000), places(rng, 10, 5000, 10)

    def call():
        backward(F.multi_margin_loss(x, target))
        backward(F.multilabel_margin_loss(x, many))

    return Case(call, huge(target, many))


@case
def ctc_loss(rng):
    steps, batch = 30, 16
    x = torch.log_softmax(values(rng, steps, batch, 12), 2).detach().requires_grad_()
    targets = torch.from_numpy(rng.integers(1, 12, (batch, 10)))
    inputs, lengths = torch.full((batch,), steps), torch.full((batch,), 10)
    return Case(
        lambda: backward(F.ctc_loss(x, targets, inputs, lengths, zero_infinity=True)), huge(targets, inputs, lengths)
    )


@case
def max_unpool(rng):
    x, index = values(rng, 4, 8, 25, 25, grad=True), places(rng, 2500, 4, 8, 25, 25)
    return Case(lambda: backward(F.max_unpool2d(x, index, 2)), huge(index))


@case
def max_pool_backward(rng):
    x = values(rng, 4, 8, 50, 50, grad=True)
    out, index = F.max_pool2d(x, 2, return_indices=True)
    adapted, others = F.adaptive_max_pool2d(x, 7, return_indices=True)
    return Case(lambda: (backward(out), backward(adapted)), huge(index, others))


@case
def fractional_pooling(rng):
    x, samples = values(rng, 8, 8, 30, 30), torch.from_numpy(rng.random((8, 8, 2)).astype(np.float32))
    return Case(
        lambda: F.fractional_max_pool2d(x, 2, output_size=11, _random_samples=samples, return_indices=True),
        ((samples, 1e9),),
    )


@case
def grid_sample(rng):
    x, grid = values(rng, 4, 3, 30, 30, grad=True), torch.from_numpy(rng.random((4, 60, 60, 2)).astype(np.float32))
    return Case(lambda: backward(F.grid_sample(x, grid, align_corners=False)), ((grid, 1e30), (grid, float("nan"))))


@case
def packed_sequence(rng):
    x, lengths = values(rng, 64, 20, 4), torch.from_numpy(np.sort(rng.integers(1, 21, 64))[::-1].copy())
    layer = torch.nn.GRU(4, 4, batch_first=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)

    def call():
        torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        torch.nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)

    return Case(call, ((lengths, 10**6), (packed.batch_sizes, 10**6)))


# --- order and counts -------------------------------------------------------------------------------------------------


@case
def sort(rng):
    x = values(rng, COUNT, grad=True)
    out, index = torch.sort(x)
    return Case(lambda: (torch.sort(x), torch.argsort(x, stable=True), backward(out)), ((x, 7.0), *huge(index)))


@case
def sort_of_integers(rng):
    x = places(rng, 1000)
    small = torch.from_numpy(rng.integers(-100, 100, COUNT).astype(np.int8))
    return Case(
        lambda: (torch.sort(x), torch.argsort(x), torch.argsort(small, stable=True), torch.sort(small)),
        ((x, -5), (small, 7)),
    )


@case
def sort_of_doubles(rng):
    x = values(rng, COUNT).double()
    return Case(lambda: (torch.sort(x), torch.argsort(x), torch.topk(x, 1000), torch.msort(x)), ((x, 1e300),))


@case
def topk(rng):
    x = values(rng, 30, 3000, grad=True)
    out, index = torch.topk(x, 5)
    many, others = torch.topk(x, 2000)
    return Case(
        lambda: (torch.topk(x, 5), torch.topk(x, 2000), backward(out + many[:, :5])), ((x, 9.0), *huge(index, others))
    )


@case
def order_statistics(rng):
    x = values(rng, 30, 3000, grad=True)
    return Case(
        lambda: (
            torch.kthvalue(x, 1500, 1),
            torch.median(x, 1),
            torch.nanmedian(x),
            torch.mode(x[:, :300], 1),
            torch.quantile(x, 0.3),
        ),
        ((x, 9.0), (x, float("nan"))),
    )


@case
def order_statistics_backward(rng):
    x = values(rng, 30, 3000, grad=True)
    found = [torch.kthvalue(x, 1500, 1), torch.median(x, 1), torch.max(x, 1), torch.mode(x, 1), torch.cummax(x, 1)]
    found = [tuple(pair) for pair in found]
    return Case(lambda: [backward(out) for out, _ in found], huge(*(index for _, index in found)))


@case
def unique(rng):
    x = places(rng, 1000)
    return Case(
        lambda: (
            torch.unique(x, return_inverse=True, return_counts=True),
            torch.unique_consecutive(x, return_inverse=True, return_counts=True),
            torch.unique(x.reshape(-1, 2)[:5000], dim=0, return_inverse=True),
        ),
        huge(x),
    )


@case
def bincount(rng):
    x, weight = places(rng, 1000), values(rng, COUNT)
    return Case(lambda: (torch.bincount(x), torch.bincount(x, weight, minlength=2000)), ((x, 3000), (x, -1)))


@case
def histograms(rng):
    x = values(rng, COUNT)
    edges = torch.linspace(-3, 3, 100)

    def call():
        torch.histc(x, 50, -3.0, 3.0)
        torch.histogram(x, edges)
        torch.histogram(x, 50, range=(-3.0, 3.0))
        torch.histogramdd(x.reshape(-1, 2), [5, 5])

    return Case(call, ((x, 1e30), (x, float("nan")), (edges, 1e30)))


@case
def searchsorted(rng):
    edges, x = torch.linspace(-3, 3, 10_000), values(rng, COUNT)
    sorter = torch.arange(10_000)
    return Case(
        lambda: (torch.searchsorted(edges, x), torch.bucketize(x, edges), torch.searchsorted(edges, x, sorter=sorter)),
        ((edges, 1e30), (x, float("nan")), *huge(sorter)),
    )


@case
def repeat_interleave(rng):
    x, repeats = values(rng, 10_000, grad=True), torch.from_numpy(rng.integers(0, 3, 10_000))
    out = torch.repeat_interleave(x, repeats)
    return Case(
        lambda: (backward(torch.repeat_interleave(x, repeats)), torch.repeat_interleave(repeats), backward(out)),
        ((repeats, 20), (repeats, -1)),
    )


@case
def segment_reduce(rng):
    x, lengths = values(rng, COUNT, grad=True), torch.full((1000,), 100)
    names = ("sum", "mean", "max", "min")
    return Case(lambda: [torch.segment_reduce(x, name, lengths=lengths) for name in names], huge(lengths))


@case
def split_by_tensor(rng):
    x, at = values(rng, 1000), torch.tensor([10, 20, 900])
    return Case(lambda: torch.tensor_split(x, at), huge(at))


@case
def drawn(rng):
    weights, rates = values(rng, 100, 200).abs(), values(rng, COUNT).abs()
    return Case(
        lambda: (
            torch.multinomial(weights, 50),
            torch.multinomial(weights, 500, replacement=True),
            torch.poisson(rates),
        ),
        ((weights, float("nan")), (weights, 0.0), (rates, -1.0)),
    )


# --- factors ----------------------------------------------------------------------------------------------------------


@case
def lu(rng):
    x, b = values(rng, 20, 40, 40), values(rng, 20, 40, 3)
    factors, pivots = torch.linalg.lu_factor(x)
    return Case(
        lambda: (
            torch.linalg.lu_solve(factors, pivots, b),
            torch.lu_unpack(factors, pivots),
            torch.linalg.lu_factor(x),
            torch.linalg.solve(x, b),
        ),
        ((pivots, 1 << 30), (x, float("nan"))),
    )


@case
def ldl(rng):
    x, b = values(rng, 20, 20, 20), values(rng, 20, 20, 3)
    factors, pivots = torch.linalg.ldl_factor(x + x.mT)
    return Case(lambda: torch.linalg.ldl_solve(factors, pivots, b), ((pivots, 1 << 30), (pivots, -(1 << 30))))


# --- values that steer nothing, in memory that goes -------------------------------------------------------------------


@case
def arithmetic(rng):
    x, y = values(rng, COUNT, grad=True), values(rng, COUNT)
    return Case(lambda: backward((x * y + 1.0).tanh() / 2), ((x, 3.0), (y, 2.0)))


@case
def small_arithmetic(rng):
    x, y = values(rng, 100, grad=True), values(rng, 100)
    return Case(lambda: backward((x * y + 1.0).tanh() / 2), ((x, 3.0), (y, 2.0)))


@case
def products(rng):
    x, y = values(rng, 200, 300, grad=True), values(rng, 300, 100)
    return Case(lambda: (backward(x @ y), F.linear(x, y.mT), torch.bmm(x[None], y[None])), ((x, 3.0), (y, 2.0)))


@case
def rows(rng):
    x, weight = values(rng, 300, 200, grad=True), values(rng, 200)
    return Case(
        lambda: (backward(torch.softmax(x, 1)), backward(F.layer_norm(x, (200,), weight)), torch.cumsum(x, 1)),
        ((x, 3.0), (weight, 2.0)),
    )


@case
def pictures(rng):
    x, weight = values(rng, 4, 3, 20, 20, grad=True), values(rng, 6, 3, 3, 3)
    return Case(
        lambda: (backward(F.conv2d(x, weight)), backward(F.avg_pool2d(x, 2)), F.interpolate(x, scale_factor=2)),
        ((x, 3.0), (weight, 2.0)),
    )


@case
def steps(rng):
    x = values(rng, COUNT, grad=True)
    x.grad = values(rng, COUNT)
    optimizer = torch.optim.Adam([x])
    return Case(optimizer.step, ((x, 3.0), (x.grad, 2.0)))
