"""Gradients that never change, under create_graph: they belong to the graph, and their own are zeros."""

from itertools import chain, combinations, islice

import numpy as np
import opinfo_run
import pytest
import torch
from paths import TESTS

import backlight

RNG = np.random.default_rng(0)
X, IMAGE, WEIGHT, BIAS = (
    RNG.normal(size=(3, 4)),
    RNG.normal(size=(2, 3, 5, 5)),
    RNG.normal(size=(3, 3, 2, 2)),
    np.ones(3),
)

FLAT = {
    "relu": lambda nn, x: nn.relu(x),
    "leaky_relu": lambda nn, x: nn.leaky_relu(x, 0.2),
    "hardtanh": lambda nn, x: nn.hardtanh(x),
    "relu6": lambda nn, x: nn.relu6(x),
    "threshold": lambda nn, x: nn.threshold(x, 0.1, 5),
    "softshrink": lambda nn, x: nn.softshrink(x),
    "hardshrink": lambda nn, x: nn.hardshrink(x),
    "prelu": lambda nn, x: nn.prelu(x, x.new_ones(1)),
    "max_pool": lambda nn, x: nn.max_pool2d(x[None], 2),
    "max_pool1d": lambda nn, x: nn.max_pool1d(x, 2),
    "avg_pool": lambda nn, x: nn.avg_pool2d(x[None], 2),
    "adaptive": lambda nn, x: nn.adaptive_avg_pool2d(x[None], 2),
    "adaptive max": lambda nn, x: nn.adaptive_max_pool2d(x[None], 2),
    "twice": lambda nn, x: nn.relu(nn.leaky_relu(x)),
}
LAYERS = {
    "conv": lambda nn, x, w, b: nn.conv2d(x, w, b),
    "conv_transpose": lambda nn, x, w, b: nn.conv_transpose2d(x, w, b),
    "batch_norm": lambda nn, x, w, b: nn.batch_norm(x, b.detach() * 0, b.detach() * 2, w[0, 0, 0, :1].expand(3), b),
    "layer_norm": lambda nn, x, w, b: nn.layer_norm(x, (5,), w.flatten()[:5], b[0].expand(5)),
}


def second(m, program, arrays, wanted):
    """Return whether first gradients require grad, and what a second backward gives."""
    given = [m.from_numpy(array.copy()).requires_grad_(place in wanted) for place, array in enumerate(arrays)]
    leaves = [given[place] for place in wanted]
    found = m.autograd.grad(program(m.nn.functional, *given).sum(), leaves, create_graph=True)
    roots = [one for one in found if one.requires_grad]
    again = m.autograd.grad([one.sum() for one in roots], leaves, allow_unused=True) if roots else []
    arrays = [one.detach().numpy() for one in found] + [None if one is None else one.numpy() for one in again]
    return [one.requires_grad for one in found], arrays


def agree(program, arrays, wanted):
    (theirs, expected), (ours, got) = (second(m, program, arrays, wanted) for m in (torch, backlight))
    assert ours == theirs
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_allclose(0 if b is None else b, 0 if a is None else a, atol=1e-9)


@pytest.mark.parametrize("name", FLAT)
def test_a_gradient_that_never_changes_is_part_of_the_graph(name):
    agree(FLAT[name], [X], [0])


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("wanted", [[0], [1], [0, 1], [0, 1, 2]], ids=str)
def test_a_layer_s_gradients_belong_to_the_graph_where_pytorch_s_do(name, wanted):
    agree(LAYERS[name], [IMAGE, WEIGHT, BIAS], wanted)


def test_a_second_backward_of_relu_gives_zeros():
    x = backlight.ones(2, requires_grad=True)
    (first,) = backlight.autograd.grad(x.relu().sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_without_create_graph_nothing_is_added():
    x = backlight.ones(2, requires_grad=True)
    (first,) = backlight.autograd.grad(x.relu().sum(), x)
    assert not first.requires_grad


def test_a_margin_s_target_is_not_differentiated():
    said = []
    for m in (torch, backlight):
        with pytest.raises(RuntimeError) as problem:
            m.nn.functional.soft_margin_loss(m.ones(2), m.ones(2, requires_grad=True))
        said.append(str(problem.value))
    assert said[1].startswith(said[0])


# --- PyTorch's own samples --------------------------------------------------------------------------------------------

PASSING = (TESTS / "data" / "opinfo_passing.txt").read_text().split()

# Where PyTorch takes another way for what has one element or none, or has no second derivative: ours is in the graph.
OURS_GO_FURTHER = {
    "cumprod",
    "linalg.det",
    "linalg.householder_product",
    "linalg.vander",
    "masked.cumprod",
    "nn.functional.linear_cross_entropy.chunked",
    "nn.functional.linear_cross_entropy.chunked_none",
    "ormqr",
    "prod",
}
FUSED_IN_PYTORCH = {"nn.functional.scaled_dot_product_attention"}  # its kernel's backward rests on all three inputs
INTEGERS = {"nn.functional.one_hot"}  # no input of it has a gradient
ENTRIES = {opinfo_run.full_name(entry): entry for entry in opinfo_run.entries()}
SAMPLES, SUBSETS, ELEMENTS = 3, 7, 2_000


def in_graph(m, outputs, leaves) -> list[bool]:
    """Return for each leaf whether its gradient requires grad under create_graph."""
    outputs = opinfo_run.floats_of(outputs, m.Tensor)
    return [one is not None and one.requires_grad for one in opinfo_run.gradients(m, outputs, leaves, 1, True)]


def subsets(count: int):
    """Yield the subsets of so many places, the smaller ones first."""
    return chain.from_iterable(combinations(range(count), size + 1) for size in range(count))


def differences(entry) -> list:
    """Return where gradients are in the graph for one engine only: sample, inputs that require grad, both answers."""
    function, found = opinfo_run.our_function(entry), []
    for sample in islice(entry.sample_inputs("cpu", opinfo_run.dtype_of(entry), requires_grad=True), SAMPLES):
        arguments = (sample.input, sample.args, sample.kwargs)
        leaves = opinfo_run.leaves_of(arguments, torch.Tensor)
        if opinfo_run.elements_of(sample) > ELEMENTS:
            continue
        for wanted in islice(subsets(len(leaves)), SUBSETS):
            for place, leaf in enumerate(leaves):
                leaf.requires_grad_(place in wanted)
            mine = opinfo_run.converted(arguments, {})
            results = opinfo_run.both_results(entry, function, arguments, mine)
            if results is None:
                continue
            ours, theirs = (sample.output_process_fn_grad(one) for one in results)
            if not opinfo_run.floats_of(theirs, torch.Tensor):
                continue
            ours = in_graph(backlight, ours, opinfo_run.leaves_of(mine, backlight.Tensor))
            theirs = in_graph(torch, theirs, [leaves[place] for place in wanted])
            if ours != theirs:
                found.append((sample, wanted, ours, theirs))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*PASSING} - OURS_GO_FURTHER - FUSED_IN_PYTORCH - INTEGERS))
def test_gradients_are_in_the_graph_where_pytorch_s_are_whatever_inputs_require_grad(name):
    assert not differences(ENTRIES[name])
