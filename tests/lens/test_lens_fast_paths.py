"""What the lens reads directly, to cost little, is what the public attributes show."""

import math

import numpy as np
import pytest
import torch as rival

import backlight as ours
from backlight import lens
from backlight.dispatch.observers import OF_LEAF, Watcher
from backlight.kernels.native import core
from backlight.lens.engines import engine_named, engine_of
from backlight.lens.records.summaries import plain_values, summary_of
from backlight.training.tensor_memory import array_of, is_finite

ENGINES = pytest.mark.parametrize("torch", [rival, ours], ids=["torch", "backlight"])


def leaf(torch, *shape):
    return torch.tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32) + 2.0, requires_grad=True)


class Square:
    """A user's Function, for each engine."""

    def __init__(self, torch):
        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return 2 * x * grad

        self.apply = Function.apply


def packed(torch, x):
    with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one):
        return x.exp() * x


def modified(torch, x):
    y = x * 1
    z = y.exp() + y.sin() + y * y
    y.mul_(2)
    return z


def freed(torch, x):
    y = (x * x).exp()
    y.sum().backward()
    return y


PROGRAMS = {
    "arithmetic": lambda torch, x: (x * x + 2 * x).pow(3) / x,
    "layers": lambda torch, x: torch.nn.functional.layer_norm(torch.nn.Linear(4, 4)(x).relu(), (4,)).softmax(-1),
    "lists": lambda torch, x: torch.stack([torch.cat([x, x * 2]), torch.cat([x, x])]),
    "several outputs": lambda torch, x: torch.max(torch.stack(x.chunk(3)).reshape(6, 4), 1).values,
    "indexing": lambda torch, x: x[1:, [0, 2]].unsqueeze(0).expand(3, 5, 2).transpose(0, 1),
    "losses": lambda torch, x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2, 3, 0, 1])),
    "statistics": lambda torch, x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "a Function": lambda torch, x: Square(torch).apply(x * 1),
    "packed tensors": packed,
    "modified tensors": modified,
    "freed tensors": freed,
    "numbers": lambda torch, x: x.sum() * x.mean() * x.max(),
}


def nodes_of(out):
    stack, seen = [out.grad_fn], []
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.append(node)
            stack += [inner for inner, _ in node.next_functions]
    return seen


def described(tensor):
    return tuple(tensor.shape), tensor._version, tensor.requires_grad, tensor.detach().tolist()


@ENGINES
@pytest.mark.parametrize("name", PROGRAMS)
def test_kept_tensors_are_those_that_saved_by_can_read(torch, name):
    out = PROGRAMS[name](torch, leaf(torch, 6, 4))
    engine = engine_of(out)
    for node in nodes_of(out):
        readable = [(one.name, one.tensor) for one in engine.saved_by(node) if one.tensor is not None]
        kept = engine.kept_by(node)
        assert [(what, described(one)) for what, one in kept] == [(what, described(one)) for what, one in readable]
        large = [[one for _, one in some if one.dim()] for some in (kept, readable)]  # not numbers
        assert [engine.memory_of(one) for one in large[0]] == [engine.memory_of(one) for one in large[1]]
        makers = [[engine.made_by(one) for _, one in some] for some in (kept, readable)]
        assert makers[0] == makers[1]


@ENGINES
@pytest.mark.parametrize("name", PROGRAMS)
def test_inputs_are_the_next_functions_with_leaves_in_place_of_their_accumulators(torch, name):
    out = PROGRAMS[name](torch, leaf(torch, 6, 4))
    engine = engine_of(out)
    for node in nodes_of(out):
        for (inner, number), (given, output) in zip(engine.inputs_of(node), node.next_functions, strict=True):
            if given is not None and engine.is_leaf_node(given):
                assert inner is given.variable and number == OF_LEAF
            else:
                assert (inner, number) == (given, output)


@ENGINES
def test_a_tensor_is_described_without_its_public_attributes(torch):
    x = leaf(torch, 2, 3)
    y = x * 2
    first, second = y.unbind()
    engine = engine_of(x)
    assert engine.made_by(x) is engine.made_by(x.detach()) is None
    assert engine.made_by(y) == (y.grad_fn, 0) and engine.made_by(second) == (second.grad_fn, 1)
    assert [engine.requires_grad(one) for one in (x, y, first, x.detach())] == [True, True, True, False]
    shape, dtype = engine.shape_and_dtype(y)
    assert tuple(shape) == (2, 3) and str(dtype).rpartition(".")[2] == "float32"


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf, 0.0])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "expanded"])
def test_a_small_summary_keeps_its_values_also_where_they_are_not_finite(special, dtype, layout):
    array = np.arange(12, dtype=dtype).reshape(3, 4)
    array[1, 2] = special
    array = {
        "C": array,
        "F": np.asfortranarray(array),
        "strided": array[:, ::2],
        "expanded": np.broadcast_to(array[:, None], (3, 2, 4)),
    }[layout]
    made = summary_of(array, "any", 64)
    assert made.values == plain_values(array) and made.shape == array.shape
    assert (made.nans, made.infs) == (int(np.isnan(array).sum()), int(np.isinf(array).sum()))
    assert summary_of(array, "any", 5).values is None


class Heard(Watcher):
    """Keeps the names of calls; leaves out what is not recorded where `only_recorded` says so."""

    def __init__(self):
        self.names = []

    def called(self, call):
        if call.name != "_set_grad_enabled":
            self.names.append(call.name)


@ENGINES
def test_a_watcher_may_leave_out_what_is_done_while_recording_is_off(torch):
    engine, x = engine_named(torch.__name__), torch.ones(3)
    every, recorded = Heard(), Heard()
    recorded.only_recorded = True
    for watcher in (every, recorded):
        with engine.observe(watcher):
            torch.zeros(2)
            with torch.no_grad():
                torch.zeros(3)
                torch.zeros_like(x)
            torch.ones(2)
    assert every.names == ["zeros", "zeros", "zeros_like", "ones"]
    assert recorded.names == ["zeros", "ones"]


@ENGINES
def test_a_watcher_may_change_its_mind_between_calls(torch):
    engine, watcher = engine_named(torch.__name__), Heard()
    with engine.observe(watcher), torch.no_grad():
        torch.zeros(2)
        watcher.only_recorded = True
        engine.wants_changed()
        torch.zeros(3)
        watcher.only_recorded = False
        engine.wants_changed()
        torch.ones(2)
    assert watcher.names == ["zeros", "ones"]


@pytest.mark.skipif(core is None, reason="without the core the dispatcher is called each time")
def test_functions_that_are_not_reported_as_one_call_do_not_reach_the_dispatcher(monkeypatch):
    asked = []
    x = ours.ones(2, 3)
    with engine_named("backlight").observe(Heard()):
        core.core_dispatch(lambda *call: asked.append(call[1]), None, False, False, {})
        try:
            assert tuple(x.shape) == (2, 3) and not x.requires_grad
        finally:
            core.core_dispatch(None, None, False)
    assert asked == []


class Block(rival.nn.Module):
    """A module of the user's that a library's module calls, on several lines."""

    def __init__(self):
        super().__init__()
        self.inner = rival.nn.Sequential(rival.nn.Linear(3, 3), rival.nn.Sequential(rival.nn.Linear(3, 3)))

    def forward(self, x):
        first = self.inner(x)
        second = self.inner(first)
        return second.relu()


class OurBlock(ours.nn.Module):
    """The same on our engine."""

    def __init__(self):
        super().__init__()
        self.inner = ours.nn.Sequential(ours.nn.Linear(3, 3), ours.nn.Sequential(ours.nn.Linear(3, 3)))

    def forward(self, x):
        first = self.inner(x)
        second = self.inner(first)
        return second.relu()


@pytest.mark.parametrize(("torch", "block"), [(rival, Block), (ours, OurBlock)], ids=["torch", "backlight"])
def test_ops_of_modules_in_modules_have_the_lines_that_called_them(torch, block):
    model = torch.nn.Sequential(block(), torch.nn.Linear(3, 2))
    with lens.watch(engine=torch.__name__) as watch:
        total = model(torch.ones(2, 3)).sum()
        total.backward()
    lines = {}
    for node in watch.record.nodes:
        if node.place is not None and node.module:
            lines.setdefault(node.module, set()).add((node.place.text, tuple(one.text for one in node.stack[:1])))
    here = "total = model(torch.ones(2, 3)).sum()"
    twice = {("first = self.inner(x)", (here,)), ("second = self.inner(first)", (here,))}
    assert lines["0.inner.0"] == lines["0.inner.1.0"] == twice
    assert lines["0"] == {("return second.relu()", (here,))}
    assert {place for place, _ in lines["1"]} == {here}


@ENGINES
def test_arrays_of_tensors_share_their_memory(torch):
    x = leaf(torch, 2, 3)
    assert array_of(x).tolist() == x.tolist()
    with torch.no_grad():
        x[0, 0] = 7.0
    assert array_of(x)[0, 0] == 7.0
    assert array_of(torch.arange(3)) is None


@ENGINES
@pytest.mark.parametrize(
    ("values", "finite"), [([1.0, 3e38], True), ([1.0, math.nan], False), ([-math.inf, 0.0], False)]
)
def test_what_is_finite_is_known_without_its_square(torch, values, finite):
    assert is_finite(torch.tensor(values)) is finite
    assert not is_finite(torch.tensor(values, dtype=torch.float64))  # of which squares may be infinite


@ENGINES
def test_unrecorded_steps_of_finite_numbers_with_infinite_squares_find_nothing(torch):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    recorder = lens.Recorder(model, optimizer, every=10)
    for scale in (1.0, 1e30, 1e30):
        (model(torch.ones(4, 2)).sum() * scale).backward()
        optimizer.step()
        recorder.step()
    assert recorder.found is None and recorder.last["step"] == 1


@ENGINES
def test_an_unrecorded_step_with_a_nan_is_recorded_with_all_norms(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    recorder = lens.Recorder(model, optimizer, every=10)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 2)).sum().backward()
        if step == 2:
            with torch.no_grad():
                model[0].weight.grad[0, 0] = math.nan
        optimizer.step()
        recorder.step()
    assert recorder.found["step"] == 3 and recorder.found["layer"] == "0"
    expected = math.sqrt(sum(float((one.grad * one.grad).sum()) for one in model[1].parameters()))
    assert recorder.last["gradient_norms"]["1"] == pytest.approx(expected, rel=1e-6)
