"""The compiled parts of recording leave the same record as the Python that they stand for."""

import json

import numpy as np
import pytest
import torch as rival

import backlight as ours
from backlight import lens
from backlight.adapters import torch_calls
from backlight.dispatch.observers import Watcher
from backlight.kernels.native import core
from backlight.lens import engines
from backlight.lens.engines import engine_named
from backlight.lens.records import building

pytestmark = pytest.mark.skipif(core is None, reason="the compiled core is not there")
ENGINES = pytest.mark.parametrize("torch", [rival, ours], ids=["torch", "backlight"])


def leaf(torch, *shape):
    return torch.tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32) + 2.0, requires_grad=True)


def trained(torch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = torch.nn.functional.cross_entropy(model(torch.ones(5, 4)), torch.tensor([0, 1, 2, 0, 1]))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def attended(torch):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    layer(leaf(torch, 2, 3, 8)).mean().backward()


def written(torch):
    x = leaf(torch, 3, 4)
    y = x * 2
    y.add_(1)
    y[0].mul_(3)
    (y * y).sum().backward()


def several_outputs(torch):
    x = leaf(torch, 4, 4)
    first, second = x.split(2)
    values, _ = torch.sort(first)
    (values * second).sum().backward()


def shared(torch):
    x = leaf(torch, 3)
    y = x.exp()
    (y * y + y * x).sum().backward(retain_graph=True)
    (y * 3).sum().backward()


def second_order(torch):
    x = leaf(torch, 3)
    (slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    slope.sum().backward()


def out_of_the_graph(torch):
    x = leaf(torch, 3)
    y = x * 2
    scale = y.detach().sum().item()
    with torch.no_grad():
        z = y * 2
    (y * scale + z).sum().backward()


def packed(torch):
    x = leaf(torch, 3)
    with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one):
        y = x.exp() * x
    y.sum().backward()


def hooked(torch):
    x = leaf(torch, 3)
    y = x * 2
    y.register_hook(lambda grad: grad * 2)
    y.sum().backward()


def batched(torch):
    x = leaf(torch, 4, 3)
    torch.func.vmap(lambda row: (row * row).sum())(x).sum().backward()


def options(torch):
    x = leaf(torch, 3, 4)
    torch.nn.functional.leaky_relu(x, 0.2).clamp(min=-float("inf")).sum(dim=-1).norm(3).backward()


PROGRAMS = [
    trained, attended, written, several_outputs, shared, second_order, out_of_the_graph, packed, hooked, batched,
    options,
]  # fmt: skip


def record_of(torch, program, **how) -> dict:
    with lens.watch(engine=torch.__name__, **how) as watch:
        program(torch)
    plain = json.loads(watch.record.to_json())
    for backward in plain["backwards"]:
        for step in backward["steps"]:
            del step["seconds"]
    for saved in (saved for node in plain["nodes"] for saved in node["saved"]):
        del saved["memory"]  # where PyTorch's allocator puts a tensor differs from run to run
    return plain


def records_before_and_after(change, torch, program, **how) -> list[dict]:
    """Return two records that were made by calls of the same line."""
    records = []
    for prepare in (lambda: None, change):
        prepare()
        records.append(record_of(torch, program, **how))
    return records


@ENGINES
@pytest.mark.parametrize("how", [{"values": "none"}, {}, {"values": "full"}, {"limit": 5}], ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_record_is_the_same_with_and_without_the_compiled_builder(torch, program, how, monkeypatch):
    def without():
        monkeypatch.setattr(building, "core", None)
        monkeypatch.setattr(engines, "guarded", engines._python_guarded)

    compiled, plain = records_before_and_after(without, torch, program, **how)
    assert compiled == plain


@pytest.mark.parametrize("program", PROGRAMS)
def test_record_is_the_same_with_and_without_the_compiled_mode(program, monkeypatch):
    def without():
        hub = engine_named("torch").hubs.hub
        assert isinstance(hub.mode, core.CallsMode)
        with monkeypatch.context() as patch:
            patch.setattr(torch_calls, "core", None)
            mode = torch_calls.mode_class.__wrapped__(rival)(hub)
        assert isinstance(mode, torch_calls.PythonCallsMode)
        monkeypatch.setattr(hub, "mode", mode)

    compiled, plain = records_before_and_after(without, rival, program)
    assert compiled == plain


class Recorded(Watcher):
    only_recorded = True

    def __init__(self):
        self.calls, self.writes = [], []

    def called(self, call):
        self.calls.append(call.name)

    def wrote(self, tensor, name, code, lasti):
        self.writes.append(name)


@pytest.mark.parametrize("compiled", [True, False])
def test_who_wants_recorded_calls_gets_of_the_others_their_writes_and_what_leaves_the_graph(compiled, monkeypatch):
    watcher, engine = Recorded(), engine_named("torch")
    with engine.observe(watcher):
        hub = engine.hubs.hub
    if not compiled:
        with monkeypatch.context() as patch:
            patch.setattr(torch_calls, "core", None)
            monkeypatch.setattr(hub, "mode", torch_calls.mode_class.__wrapped__(rival)(hub))
    x, w = rival.ones(2), rival.ones(2, requires_grad=True)
    with engine.observe(watcher):
        rival.relu(x)
        with rival.no_grad():
            rival.tanh(x)
            x.add_(1)
            w.mul(2)
            assert w.grad is None
        rival.neg(x)
    assert [name for name in watcher.calls if not name.startswith("_")] == ["relu", "mul", "neg"]
    assert watcher.writes == ["add_"]


@pytest.mark.parametrize("guarded", [engines._python_guarded, core and core.GuardedCall], ids=["python", "compiled"])
def test_a_listener_that_fails_is_called_no_more(guarded):
    seen, problems = [], []
    guard = engines._Guard(problems.append)

    def fails(one):
        seen.append(one)
        raise ValueError("a mistake")

    first, second = guarded(fails, guard), guarded(seen.append, guard)
    for listener in (first, second, first):
        assert listener(1) is None
    assert seen == [1]
    assert [str(one) for one in problems] == ["a mistake"]


def test_an_interrupt_is_no_mistake_of_a_listener():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        core.GuardedCall(interrupted, engines._Guard(lambda problem: None))()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: core.RecordBuilder((int, int, int, int), 10, True, {}), "classes with slots"),
        (lambda: core.RecordBuilder(1), "takes exactly 4 arguments"),
        (lambda: core.CallsMode.__torch_function__(core.CallsMode.__new__(core.CallsMode), len, ()), "was not called"),
        (lambda: core.RecordBuilder.__new__(core.RecordBuilder).add(rival.ones(1)), "was not called"),
        (lambda: core.CallsMode({}, len, len, int), "missing required argument 'records'"),
        (lambda: core.GuardedCall(), "takes exactly 2 arguments"),
    ],
)
def test_what_is_not_whole_is_refused(make, says):
    with pytest.raises((TypeError, RuntimeError), match=says):
        make()
