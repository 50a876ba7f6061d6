"""The compiled backward pass does what the Python pass does: gradients, `.grad`, errors, what is freed."""

import numpy as np
import pytest
import torch

import backlight as bl
from backlight.autograd import Function
from backlight.engine import run_backward
from backlight.engine.backward_pass import BackwardPass
from backlight.engine.node import GradientEdge

COMPILED = run_backward.core
pytestmark = pytest.mark.skipif(COMPILED is None, reason="the core is not in use here")


class TwoOutputs(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, first, second):
        x, y = ctx.saved_tensors
        return first * y + second, first * x + second


def leaves(kind):
    rng = np.random.default_rng(3)
    return [bl.tensor(rng.normal(size=(2, 3)).astype(kind), requires_grad=True) for _ in range(4)]


def chain(a, b, c, d):
    h = bl.tanh(a * b + c)
    return [a, b, c, h], (h * h).sum()


def broadcast_and_matmul(a, b, c, d):
    row = a[0]
    product = (b * row) @ c.T
    return [a, b, c, row, product], (product.exp() + 2.0).mean()


def one_leaf_many_times(a, b, c, d):
    total = a * 1.0
    for _ in range(5):
        total = total + a * b
    return [a, b, total], total.sum() + a.sum()


def several_outputs(a, b, c, d):
    first, second = (a * b).split(1)
    low, high = bl.aminmax(c * a)
    return [a, b, c, first, second, low], (first * second * low).sum() + high


def a_function_of_two_outputs(a, b, c, d):
    first, second = TwoOutputs.apply(a, b * 2)
    return [a, b, first, second], (first * c).sum() + second.sum()


def written_in_place(a, b, c, d):
    h = a * b
    h[0] = c[0]
    h.mul_(d)
    return [a, b, c, d, h], h.sum()


def scalars(a, b, c, d):
    first, second = a.sum(), b.mean()
    product = first * second
    return [a, b, first, second, product], product + product * first


def a_leaf_as_root(a, b, c, d):
    return [a, b], a[0, 0] * 1


def not_smooth(a, b, c, d):
    h = bl.relu(a) + bl.where(b > 0, b, c).abs()
    return [a, b, c, h], h.prod()


PROGRAMS = [
    chain,
    broadcast_and_matmul,
    one_leaf_many_times,
    several_outputs,
    a_function_of_two_outputs,
    written_in_place,
    scalars,
    a_leaf_as_root,
    not_smooth,
]


@pytest.fixture
def passes(monkeypatch):
    """Return what calls a function once with each pass, and checks that the compiled one ran and the Python one did."""
    ran = []
    monkeypatch.setattr(
        BackwardPass, "run", lambda own, *args, run=BackwardPass.run: (ran.append(own), run(own, *args))[1]
    )

    def with_each(function):
        found = []
        for core in (COMPILED, None):
            monkeypatch.setattr(run_backward, "core", core)
            ran.clear()
            found.append(function())
            assert bool(ran) is (core is None)
        return found

    return with_each


class Values:
    """A tensor's values, compared with a tolerance: the passes round differently."""

    def __init__(self, tensor):
        self.array = tensor.numpy()

    def __eq__(self, other):
        return np.allclose(self.array, other.array, 1e-5, 1e-6)


def shown(tensor):
    return None if tensor is None else (tensor.dtype, tensor.shape, tensor.requires_grad, Values(tensor))


def outcome(call):
    try:
        found = call()
    except Exception as problem:
        return type(problem), str(problem).split("\n")[0]
    return None if found is None else [shown(one) for one in found]


def subsets(tensors):
    """Return lists of inputs: each alone, all, the last before the first, one twice."""
    return [*([one] for one in tensors), tensors, tensors[::-1], [tensors[0], tensors[-1], tensors[0]]]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_grad_gives_the_same(program, kind, passes):
    count = len(subsets(program(*leaves(kind))[0]))
    for place in range(count):

        def run(place=place):
            given = leaves(kind)
            named, root = program(*given)
            inputs = subsets(named)[place]
            found = outcome(lambda: bl.autograd.grad(root, inputs, retain_graph=True, allow_unused=True))
            again = outcome(lambda: bl.autograd.grad(root, inputs, allow_unused=True))
            freed = outcome(lambda: bl.autograd.grad(root, inputs, allow_unused=True))
            return found, again, freed, [shown(leaf.grad) for leaf in given]

        compiled, python = passes(run)
        assert compiled == python


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_backward_with_inputs_writes_the_same(program, passes):
    for wanted in ([0], [1], [0, 1], [1, 0, 0]):

        def run(wanted=wanted):
            given = leaves("float32")
            _, root = program(*given)
            given[0].grad = bl.ones(2, 3)
            first = outcome(lambda: root.backward(inputs=[given[i] for i in wanted], retain_graph=True))
            second = outcome(lambda: root.backward(inputs=[given[i] for i in wanted]))
            third = outcome(lambda: root.backward(inputs=[given[i] for i in wanted]))
            return first, second, third, [shown(leaf.grad) for leaf in given]

        compiled, python = passes(run)
        assert compiled == python


def test_edges_of_nodes_are_inputs_too(passes):
    def run():
        a, b, c, _ = leaves("float32")
        first, second = (a * b).split(1)
        root = (first * second * c).sum()
        edges = [GradientEdge(first.grad_fn, number) for number in (1, 0)]
        found = bl.autograd.grad(root, [*edges, GradientEdge((a * b).grad_fn, 0)], allow_unused=True)
        return [shown(one) for one in found]

    compiled, python = passes(run)
    assert compiled == python and compiled[2] is None


def test_a_node_that_is_an_input_of_backward_runs_as_in_the_python_pass(passes):
    def run():
        a, b, c, _ = leaves("float32")
        product = a * b
        (product * c).sum().backward(inputs=[GradientEdge(product.grad_fn, 0), b])
        return outcome(lambda: product.sum().backward()), [shown(leaf.grad) for leaf in (a, b, c)]

    compiled, python = passes(run)
    assert compiled == python


def test_an_unused_input_is_the_same_error(passes):
    def run():
        a, b, _, _ = leaves("float32")
        return outcome(lambda: bl.autograd.grad((a * a).sum(), [a, b]))

    compiled, python = passes(run)
    assert compiled == python and "appears to not have been used in the graph" in compiled[1]


def test_only_what_leads_to_an_input_runs(passes):
    ran = []

    class Noting(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            ran.append(len(ran))
            return grad

    def run():
        ran.clear()
        a, b, _, _ = leaves("float32")
        root = (Noting.apply(a) * b).sum()
        bl.autograd.grad(root, [b], retain_graph=True)
        alone = list(ran)
        bl.autograd.grad(root, [a])
        return alone, list(ran)

    assert passes(run) == [([], [0]), ([], [0])]


def test_a_gradient_is_never_the_memory_of_another_one(passes):
    def run():
        a, b, c, _ = leaves("float32")
        weight = bl.ones(2, 3)
        found = bl.autograd.grad(a + b + c, [a, b, c, a], weight)
        for number, one in enumerate(found):
            one.fill_(number)
        return [one.tolist() for one in found], weight.tolist()

    compiled, python = passes(run)
    assert compiled == python and compiled[1] == [[1.0] * 3] * 2


def test_an_input_that_was_written_since_is_the_same_error(passes):
    def run():
        a, b, _, _ = leaves("float32")
        product = (a * b).exp()
        product.add_(1)
        return outcome(lambda: bl.autograd.grad(product.sum(), [a]))

    compiled, python = passes(run)
    assert compiled == python and "modified by an inplace operation" in compiled[1]


def test_a_failing_node_leaves_the_same_gradients(passes):
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("not today")

    def run(inputs):
        given = leaves("float32")
        a, b, c, d = given
        root = ((Failing.apply(a * b) + c) * d).sum()
        problem = outcome(lambda: root.backward(inputs=inputs and [given[i] for i in inputs]))
        return problem, [shown(leaf.grad) for leaf in given]

    for inputs in (None, [0, 2], [1], [2, 3], [3]):
        compiled, python = passes(lambda inputs=inputs: run(inputs))
        assert compiled == python


def test_with_hooks_the_python_pass_runs_and_gives_the_same():
    for inputs in ([0], [1, 0]):
        a, b, _, _ = given = leaves("float32")
        plain = [one.tolist() for one in bl.autograd.grad((a * b).tanh().sum(), [given[i] for i in inputs])]
        product = a * b
        seen = []
        product.register_hook(seen.append)
        found = bl.autograd.grad(product.tanh().sum(), [given[i] for i in inputs])
        assert [one.tolist() for one in found] == plain and len(seen) == 1


def test_a_node_that_saved_the_grad_of_a_leaf_notices_that_the_pass_added_to_it():
    for t in (torch, bl):
        x, w = t.ones(3, requires_grad=True), t.ones(3, requires_grad=True)
        x.grad = t.full((3,), 2.0)
        total = (x.grad * w).sum() + (x * 3).sum()
        with pytest.raises(
            RuntimeError, match="one of the variables needed for gradient computation has been modified"
        ):
            total.backward()
        assert x.grad.tolist() == [5.0] * 3
        assert w.grad is None


@pytest.mark.parametrize("first", [False, True], ids=["after it", "before it"])
def test_a_refused_grad_leaves_those_leaves_written_that_were_complete(first):
    for t in (torch, bl):
        leaves = [t.ones(3, requires_grad=True) for _ in range(2)]
        parts = [(leaf * 2).sum() for leaf in leaves]
        with t.inference_mode():
            leaves[first].grad = t.ones(3)
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            (parts[0] + parts[1]).backward()
        assert (leaves[not first].grad is not None) == (not first)
