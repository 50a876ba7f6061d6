"""The lens sees our engine through one face: what watchers are told, and that nobody pays who does not watch."""

import gc
import threading
import weakref

import numpy as np
import pytest
import torch as rival

import backlight as torch
from backlight import nn
from backlight.codegen.declaration import TABLE, op
from backlight.dispatch import dispatcher, observation
from backlight.dispatch.observers import Watcher
from backlight.errors import InputError
from backlight.kernels.native import core
from backlight.kernels.sparse_array import sparse_use
from backlight.lens.engines import engine_named, engine_of, loaded_engines
from backlight.lens.native import NATIVE
from backlight.tensor.methods.autograd import GraphMethods


class Log(Watcher):
    """Writes down all that it is told, in order."""

    def __init__(self):
        self.events = []
        self.calls = []
        self.runs = []

    def called(self, call):
        self.calls.append(call)
        self.events.append(("called", call.name))

    def wrote(self, tensor, name, code, lasti):
        self.events.append(("wrote", name, tensor._version))

    def entered(self, module, path):
        self.events.append(("entered", type(module).__name__, path))

    def left(self, module, path, out):
        self.events.append(("left", path, out is not None))

    def started(self, run):
        self.runs.append(run)
        self.events.append(("started", run.number))

    def ran(self, run, node, grad_outputs, grad_inputs):
        self.events.append(("ran", node.name(), listed(grad_outputs), listed(grad_inputs)))

    def accumulated(self, run, tensor, arrived, before):
        self.events.append(("accumulated", listed([arrived, before])))

    def changed(self, run, node, number, hook, before, after):
        self.events.append(("changed", node.name(), number, hook.__name__, listed([before, after])))

    def freed(self, run, node):
        self.events.append(("freed", node.name()))

    def ended(self, run):
        self.events.append(("ended", run.number, type(run.problem).__name__))

    def of(self, *kinds):
        return [event for event in self.events if event[0] in kinds]


def listed(tensors):
    return [None if one is None else one.tolist() for one in tensors]


def watched(program):
    log = Log()
    with NATIVE.observe(log):
        program()
    return log


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


# --- ops --------------------------------------------------------------------------------------------------------------


def test_ops_are_reported_by_the_name_their_users_know():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    log = watched(lambda: ((2 - a) * b).tanh().sum())
    assert [call.name for call in log.calls] == ["rsub", "mul", "tanh", "sum"]


def test_a_call_has_its_arguments_its_output_and_the_line_of_the_user():
    a, log = leaf(1.0, 2.0), Log()
    with NATIVE.observe(log):
        out = torch.add(a, a, alpha=3)
    (call,) = log.calls
    assert call.args == (a, a) and call.kwargs == {"alpha": 3} and call.out is out
    assert call.code.co_filename == __file__
    assert call.code.co_name == "test_a_call_has_its_arguments_its_output_and_the_line_of_the_user"


def test_an_op_first_called_while_somebody_watches_is_reported():
    @op(view=True)  # so that Python runs it
    def never_called_before(xp, input):
        return input[:1]

    del TABLE["never_called_before"]
    assert watched(lambda: never_called_before(leaf(1.0, 2.0))).events[-1] == ("called", "never_called_before")


def test_an_op_in_place_is_reported_once_with_the_version_it_counted():
    x = torch.tensor([1.0, 2.0])
    log = watched(lambda: x.add_(1).mul_(2))
    assert log.events == [("wrote", "add_", 1), ("called", "add_"), ("wrote", "mul_", 2), ("called", "mul_")]


def test_writes_through_a_view_and_by_an_optimizer_are_reported():
    weight = leaf(1.0, 2.0)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def program():
        y = weight * 1
        y[0] = 5.0
        y.sum().backward()
        optimizer.step()

    log = watched(program)
    assert log.of("wrote") == [("wrote", "fill_", 1), ("wrote", "SGD.step", 1)]
    assert ("called", "__setitem__") in log.events


def test_ways_out_of_the_graph_are_reported():
    x = leaf(1.0)

    def program():
        x.detach().numpy()
        x.sum().item()
        x.tolist()
        x.data  # noqa: B018 - a property that is watched
        torch.zeros(2)

    names = [call.name for call in watched(program).calls]
    assert names == ["detach", "numpy", "sum", "item", "tolist", "data", "zeros"]


def test_a_custom_function_is_reported_after_its_ops():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    log = watched(lambda: Double.apply(leaf(1.0)))
    assert log.of("called")[-2:] == [("called", "mul"), ("called", "Double")]
    assert log.calls[-1].out.grad_fn.name() == "DoubleBackward"


def test_a_foreign_operand_is_no_call():
    def program():
        with pytest.raises(TypeError):
            leaf(1.0) + "text"

    assert [name for _, name in watched(program).of("called")] == ["tensor"]


def test_what_a_watcher_does_is_not_reported_to_it():
    class Busy(Log):
        def called(self, call):
            super().called(call)
            (call.out * 2).sum().backward()

    log, x = Busy(), leaf(1.0, 2.0)
    with NATIVE.observe(log):
        x * 3
    assert log.events == [("called", "mul")]


def test_nothing_is_told_of_what_is_done_unobserved():
    def program():
        with NATIVE.unobserved():
            leaf(1.0).mul(2).sum().backward()
        leaf(1.0)

    assert watched(program).events == [("called", "tensor")]


# --- modules ----------------------------------------------------------------------------------------------------------


def test_modules_are_entered_and_left_by_their_paths():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    log = watched(lambda: model(torch.ones(1, 2)))
    assert log.of("entered") == [
        ("entered", "Sequential", ""),
        ("entered", "Linear", "0"),
        ("entered", "Sequential", "1"),
        ("entered", "ReLU", "1.0"),
    ]
    assert [event[1] for event in log.of("left")] == ["0", "1.0", "1", ""]


def test_a_module_that_fails_is_left_too():
    model = nn.Sequential(nn.Linear(2, 2))

    def program():
        with pytest.raises(RuntimeError):
            model(torch.ones(1, 3))
        model(torch.ones(1, 2))

    log = watched(program)
    assert log.of("left") == [("left", "0", False), ("left", "", False), ("left", "0", True), ("left", "", True)]


def test_a_module_that_is_not_registered_has_its_class_in_the_path():
    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.ReLU()]

        def forward(self, x):
            return self.layers[0](x)

    assert watched(lambda: Hidden()(torch.ones(1))).of("entered")[-1] == ("entered", "ReLU", "(ReLU)")


# --- backward ---------------------------------------------------------------------------------------------------------


def test_the_walk_is_told_node_by_node():
    a, b = leaf(2.0), leaf(3.0)
    y = (a * b).sum()
    log = watched(y.backward)
    assert log.events == [
        ("started", 0),
        ("ran", "SumBackward0", [1.0], [[1.0]]),
        ("ran", "MulBackward0", [[1.0]], [[3.0], [2.0]]),
        ("freed", "MulBackward0"),
        ("accumulated", [[3.0], None]),
        ("ran", "torch::autograd::AccumulateGrad", [[3.0]], []),
        ("accumulated", [[2.0], None]),
        ("ran", "torch::autograd::AccumulateGrad", [[2.0]], []),
        ("ended", 0, "NoneType"),
    ]
    (run,) = log.runs
    assert run.roots == [(y.grad_fn, 0)] and run.inputs is None and run.accumulate_grad
    assert run.code.co_name == "watched" and not run.retain_graph


def test_accumulation_tells_what_was_there_before():
    a = leaf(2.0)
    a.grad = torch.tensor([5.0])
    log = watched((a * 3).sum().backward)
    assert log.of("accumulated") == [("accumulated", [[3.0], [5.0]])]
    assert a.grad.tolist() == [8.0]


def test_hooks_that_change_gradients_are_named():
    a, b = leaf(2.0), leaf(3.0)
    product = a * b

    def doubled(grad):
        return grad * 2

    def zeroed(grad):
        grad.zero_()

    def looked_at(grad):
        assert grad is not None

    product.register_hook(doubled)
    product.register_hook(looked_at)
    a.register_hook(zeroed)
    log = watched(product.sum().backward)
    assert log.of("changed") == [
        ("changed", "MulBackward0", 0, "doubled", [[1.0], [2.0]]),
        ("changed", "torch::autograd::AccumulateGrad", 0, "zeroed", [[6.0], [0.0]]),
    ]
    assert a.grad.tolist() == [0.0] and b.grad.tolist() == [4.0]


def test_node_hooks_that_change_gradients_are_named():
    a = leaf(2.0)
    product = a * 3

    def before(grads):
        return (grads[0] + 1,)

    def after(grad_inputs, grad_outputs):
        return (grad_inputs[0] * 10, None)

    product.grad_fn.register_prehook(before)
    product.grad_fn.register_hook(after)
    log = watched(product.sum().backward)
    assert log.of("changed") == [
        ("changed", "MulBackward0", 0, "before", [[1.0], [2.0]]),
        ("changed", "torch::autograd::AccumulateGrad", 0, "after", [[6.0], [60.0]]),
    ]


def test_retained_gradients_are_accumulations():
    a = leaf(2.0)
    middle = a * 3
    middle.retain_grad()
    assert watched((middle * 4).sum().backward).of("accumulated") == [
        ("accumulated", [[4.0], None]),
        ("accumulated", [[12.0], None]),
    ]


def test_grad_accumulates_nothing_and_says_what_was_asked_for():
    a = leaf(2.0)
    y = (a * 3).sum()
    log = Log()
    with NATIVE.observe(log):
        torch.autograd.grad(y, [a])
    (run,) = log.runs
    assert not run.accumulate_grad and run.inputs == [NATIVE.node_of(a)]
    assert not log.of("accumulated")


def test_a_backward_that_fails_has_ended():
    a = leaf(2.0)
    y = (a * a).sum()

    def program():
        y.backward()
        with pytest.raises(RuntimeError):
            y.backward()

    assert watched(program).of("ended") == [("ended", 0, "NoneType"), ("ended", 1, "GraphError")]


def test_a_hook_that_raises_ends_the_run():
    a = leaf(2.0)
    y = a * 3

    def fails(grad):
        raise KeyError("mine")

    def program():
        y.register_hook(fails)
        with pytest.raises(KeyError):
            y.sum().backward()

    assert watched(program).events[-1] == ("ended", 0, "KeyError")


def test_a_backward_inside_a_hook_is_a_run_of_its_own():
    a, b = leaf(2.0), leaf(3.0)
    y = a * 3

    def another(grad):
        with torch.enable_grad():
            (b * b).sum().backward()

    y.register_hook(another)
    log = watched(y.sum().backward)
    kinds = [event[:2] for event in log.of("started", "ended")]
    assert kinds == [("started", 0), ("started", 1), ("ended", 1), ("ended", 0)]
    assert b.grad.tolist() == [6.0]


def test_a_recorded_backward_reports_its_own_ops():
    a = leaf(2.0)
    y = (a * a * a).sum()
    log = Log()
    with NATIVE.observe(log):
        (first,) = torch.autograd.grad(y, [a], create_graph=True)
    assert log.runs[0].create_graph
    inner = [call.out for call in log.calls if call.out.grad_fn is not None]
    assert first.grad_fn in [out.grad_fn for out in inner]


def random_program(seed):
    """Return leaves and a scalar made of them by random ops, views and writes."""
    rng = np.random.default_rng(seed)
    leaves = [torch.tensor(rng.normal(size=(3, 3)).astype("float32"), requires_grad=True) for _ in range(4)]
    values = list(leaves)
    two = [torch.add, torch.mul, torch.matmul, torch.sub, torch.maximum]
    one = [
        torch.tanh,
        torch.sigmoid,
        torch.relu,
        lambda x: x.t(),
        lambda x: torch.softmax(x, 1),
        lambda x: x.exp() * 0.1,
    ]
    for _ in range(25):
        a, b = (values[rng.integers(len(values))] for _ in range(2))
        made = two[rng.integers(len(two))](a, b) if rng.random() < 0.5 else one[rng.integers(len(one))](a)
        if rng.random() < 0.1:
            made = made.clone().mul_(0.5)
        if rng.random() < 0.1:
            first, second = made.unbind(0)[:2]
            made = torch.stack([first, second, first])
        values.append(made)
    return leaves, sum(value.sum() for value in values[-6:])


@pytest.mark.parametrize("seed", range(30))
def test_watching_changes_neither_values_nor_gradients(seed):
    leaves, y = random_program(seed)
    y.backward()
    with NATIVE.observe(Log()):
        others, z = random_program(seed)
        z.backward()
    assert z.item() == y.item()
    for one, other in zip(leaves, others):
        assert (one.grad is None) == (other.grad is None)
        assert one.grad is None or one.grad.tolist() == other.grad.tolist()


@pytest.mark.parametrize("seed", range(30))
def test_the_order_and_the_gradients_are_those_that_hooks_report(seed):
    _, y = random_program(seed)
    seen = []
    for node in torch.autograd.graph.nodes(y):
        node.register_hook(
            lambda inputs, outputs, node=node: seen.append((node.name(), listed(outputs), listed(inputs)))
        )
    log = watched(y.backward)
    assert [event[1:] for event in log.of("ran")] == seen


# --- threads, nesting, cost -------------------------------------------------------------------------------------------


def test_only_the_watching_thread_is_reported():
    def elsewhere():
        x = leaf(1.0)
        (x.detach() * x).add_(1).sum().backward()

    log = Log()
    with NATIVE.observe(log):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert log.events == []


def test_blocks_may_be_nested_and_each_is_told():
    outer, inner, x = Log(), Log(), leaf(1.0)
    with NATIVE.observe(outer):
        x * 1
        with NATIVE.observe(inner):
            x + 1
        x - 1
    assert [call.name for call in outer.calls] == ["mul", "add", "sub"]
    assert [call.name for call in inner.calls] == ["add"]


def test_a_block_that_ends_inside_a_backward_hears_no_more():
    log, x = Log(), leaf(1.0)
    block = NATIVE.observe(log)
    hidden = x * 2
    hidden.register_hook(lambda grad: block.__exit__())
    block.__enter__()
    hidden.sum().backward()
    assert [event[0] for event in log.events] == ["called", "started", "ran"] and x.grad.tolist() == [2.0]


def test_nothing_is_left_behind():
    x = leaf(1.0)
    x.view(1)  # an op in Python
    with NATIVE.observe(Log()):
        x.detach()
    detach, log = GraphMethods.detach, Log()
    with NATIVE.observe(log):
        x.detach()
        assert GraphMethods.detach is detach and dispatcher.dispatching.active
    assert log.events and dispatcher.dispatching.active == sparse_use.begun
    assert core is None or bool(core.core_intercepts()) == sparse_use.begun
    assert not observation.observers.active and observation.local.observation is None
    assert x.sum().backward() is None


def test_a_leaf_that_was_watched_runs_as_fast_as_before():
    a = leaf(2.0, 3.0)
    watched((a * 3).sum().backward)
    root, no_inputs = (a * 3).sum(), (None, False, -1)
    assert core is None or core.core_backward_pass([root.grad_fn], [np.ones(())], False, None, None, *no_inputs) == []
    assert a._accumulator is None or a._accumulator.__class__ is weakref.ref


def test_an_exception_in_the_block_switches_watching_off():
    with pytest.raises(KeyError), NATIVE.observe(Log()):
        raise KeyError
    assert not observation.observers.active and observation.local.observation is None


def test_watching_holds_no_tensor_afterwards():
    class Held(Watcher):
        def called(self, call):
            self.last = weakref.ref(call.out)

    held = Held()
    with NATIVE.observe(held):
        leaf(1.0) * 2
    gc.collect()
    assert held.last() is None


# --- the face ---------------------------------------------------------------------------------------------------------


def test_the_engine_tells_what_a_tensor_and_its_node_are():
    a = leaf(2.0, 3.0)
    y = a * a
    node, number = NATIVE.node_of(y)
    assert (node, number) == (y.grad_fn, 0) and NATIVE.node_of(a)[0].variable is a
    assert NATIVE.is_leaf_node(NATIVE.node_of(a)[0]) and not NATIVE.is_leaf_node(node)
    assert NATIVE.node_of(a.detach()) is None
    assert NATIVE.array(y).tolist() == [4.0, 9.0]
    assert NATIVE.formulas_of(node) == {"input": "grad · other", "other": "grad · input"}
    assert NATIVE.line_of(node).text == "y = a * a" and NATIVE.line_of(NATIVE.node_of(a)[0]) is None
    assert [(kept.name, kept.tensor.tolist()) for kept in NATIVE.saved_by(node)] == [
        ("other", [2.0, 3.0]),
        ("self", [2.0, 3.0]),
    ]
    assert NATIVE.memory_of(a) == NATIVE.memory_of(a.detach()[:1]) and NATIVE.memory_of(a)[1] == 8
    assert NATIVE.key_of(node) != NATIVE.key_of((a + a).grad_fn)


def test_what_is_freed_or_modified_is_kept_with_the_problem():
    a = leaf(2.0, 3.0)
    y = a.exp()
    (kept,) = NATIVE.saved_by(y.grad_fn)
    assert kept.name == "result" and kept.problem is None
    y.sum().backward()
    (kept,) = NATIVE.saved_by(y.grad_fn)
    assert kept.tensor is None and "freed" in kept.problem
    z = a.exp()
    z.detach().add_(1)
    (kept,) = NATIVE.saved_by(z.grad_fn)
    assert kept.tensor is None and "modified by an inplace operation" in kept.problem


def test_hooks_have_names():
    a = leaf(2.0)
    y = a * 2

    def mine(grad):
        return None

    y.register_hook(mine)
    a.register_post_accumulate_grad_hook(mine)
    assert [name.split(".")[-1] for name in NATIVE.hooks_of(y) + NATIVE.hooks_of(a)] == ["mine", "mine"]


def test_bfloat16_is_read_as_float32():
    assert NATIVE.array(torch.tensor([1.5], dtype=torch.bfloat16)).dtype == np.float32


def test_engines_are_found_by_what_they_made():
    a = leaf(1.0)
    assert engine_of(a) is engine_of((a * 2).grad_fn) is engine_of(nn.ReLU()) is engine_named("backlight") is NATIVE
    assert NATIVE.module is torch and loaded_engines()[0] is NATIVE
    with pytest.raises(InputError, match="value must be a tensor"):
        engine_of(3.0)
    with pytest.raises(InputError, match="engine must be backlight or torch, got jax"):
        engine_named("jax")


def test_pytorchs_tensors_nodes_and_modules_are_found_too():
    x = rival.tensor([1.0], requires_grad=True)
    found = engine_named("torch")
    assert engine_of(x) is engine_of((x * 2).grad_fn) is engine_of(rival.nn.ReLU()) is found
    assert loaded_engines() == [NATIVE, found]
