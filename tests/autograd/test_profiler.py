"""Profiles name ops and nodes as PyTorch's do, count the same calls, and print only times that were measured."""

import importlib
import json
from collections import Counter
from time import perf_counter

import pytest
import torch
from snippets import assert_shows_the_same

import backlight
from backlight.cli.run import run_script
from backlight.codegen.declaration import TABLE
from backlight.dispatch.profile_names import event_name

PROGRAM = """
w = torch.ones(5, 3, requires_grad=True)
b = torch.zeros(3, requires_grad=True)
x = torch.ones(4, 5)
def program():
    with record_function("forward"):
        h = torch.relu(x.mm(w) + b)
        y = torch.sigmoid(h * 2).mean() + torch.cat([h, h], 1).exp().sum()
        z = h.clone().add_(1).t().softmax(0).log().amax()
        loss = torch.nn.functional.cross_entropy(h, torch.tensor([0, 1, 2, 0])) + y + z
    with record_function("backward"):
        loss.backward()
"""


def counted(module):
    """Return how often each event name occurs in a profile of the program."""
    profiler = importlib.import_module(f"{module.__name__}.autograd.profiler")
    names = {"torch": module, "record_function": profiler.record_function}
    exec(PROGRAM, names)
    names["program"]()
    with profiler.profile() as prof:
        names["program"]()
    return Counter({row.key: row.count for row in prof.key_averages()}), prof


def test_ops_and_nodes_have_pytorchs_names_and_counts():
    theirs, _ = counted(torch)
    ours, _ = counted(backlight)
    nodes = {
        name for name in theirs if name.endswith(("Backward0", "Backward1", "AccumulateGrad")) and ":: " not in name
    }
    nodes = {name for name in nodes if not name.startswith("autograd::engine") and name != "LogSoftmaxBackward0"}
    assert {name: ours[name] for name in nodes} == {name: theirs[name] for name in nodes}
    called = ["mm", "relu", "sigmoid", "mean", "cat", "exp", "clone", "add_", "t", "softmax", "log", "amax"]
    called.append("cross_entropy_loss")
    assert {ours[f"aten::{name}"] for name in called} == {1}
    assert all(theirs[f"aten::{name}"] for name in called)
    assert ours.keys() <= theirs.keys()
    assert ours["forward"] == ours["backward"] == 1


def test_every_op_is_shown_under_a_name_that_pytorch_has_or_as_ours():
    for name in ("backlight.nn.functional", "backlight.models.encoders.modernbert", "backlight.ops.sparse.arithmetic"):
        importlib.import_module(name)  # where ops are declared, too
    for op in TABLE.values():
        room, _, name = event_name(op.name).partition("::")
        assert room == ("aten" if hasattr(torch.ops.aten, name) else "backlight"), op.name


def test_times_add_up():
    begin = perf_counter()
    _, prof = counted(backlight)
    passed = (perf_counter() - begin) * 1e6
    events = prof.function_events
    assert 0 < prof.self_cpu_time_total <= passed
    outermost = sum(event.cpu_time_total for event in events if event.cpu_parent is None)
    assert prof.self_cpu_time_total == pytest.approx(outermost)
    for event in events:
        assert event.self_cpu_time_total >= 0
        for child in event.cpu_children:
            assert event.start <= child.start <= child.end <= event.end
    forward, backward = (event for event in events if event.is_user_annotation)
    assert {child.name for child in forward.cpu_children} >= {"aten::mm", "aten::add_"}
    assert all("Backward" in child.name or "AccumulateGrad" in child.name for child in backward.cpu_children)


def test_results_are_the_same_under_a_profile():
    def slopes():
        x = backlight.tensor([0.3, -0.7], requires_grad=True)
        (x.sin() * x.exp()).sum().backward()
        return x.grad.tolist()

    plain = slopes()
    with backlight.autograd.profiler.profile():
        assert slopes() == plain
    assert slopes() == plain


def test_nothing_is_noted_outside_of_the_block():
    x = backlight.ones(2)
    with backlight.autograd.profiler.profile() as prof:
        x.exp()
    x.sin()
    with backlight.autograd.profiler.record_function("after"):
        x.cos()
    assert [event.name for event in prof.function_events] == ["aten::exp"]


def test_ops_of_a_custom_backward_are_inside_its_node():
    class Double(backlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = backlight.ones(2, requires_grad=True)
    y = Double.apply(x)
    with backlight.autograd.profiler.profile() as prof:
        y.sum().backward()
    (node,) = (event for event in prof.function_events if event.name == "DoubleBackward")
    assert [child.name for child in node.cpu_children] == ["aten::mul"]
    assert node.self_cpu_time_total <= node.cpu_time_total


def test_shapes_and_stacks_are_kept_when_asked_for():
    with backlight.autograd.profiler.profile(record_shapes=True, with_stack=True) as prof:
        for rows in (2, 2, 3):
            backlight.ones(rows, 4).mm(backlight.ones(4, 5))
            backlight.cat([backlight.ones(1), backlight.ones(2)])
    products = [row for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::mm"]
    assert [(row.count, row.input_shapes) for row in products] == [(2, [[2, 4], [4, 5]]), (1, [[3, 4], [4, 5]])]
    (joined,) = (row for row in prof.key_averages(True) if row.key == "aten::cat")
    assert joined.input_shapes[0] == [[1], [2]]
    assert __file__ in prof.function_events[0].stack[0]
    assert "test_shapes_and_stacks" in prof.function_events[0].stack[0]
    assert "[[2, 4], [4, 5]]" in prof.key_averages(True).table(sort_by="count")
    assert len(prof.key_averages(group_by_stack_n=1)) == 2


def test_the_table_is_sorted_and_cut():
    _, prof = counted(backlight)
    rows = prof.key_averages()
    lines = rows.table(sort_by="self_cpu_time_total", row_limit=3).splitlines()
    first = sorted(rows, key=lambda row: row.self_cpu_time_total, reverse=True)[:3]
    assert [line.split()[0] for line in lines[3:6]] == [row.key for row in first]
    assert lines[1].split("  ")[-1] == "# of Calls"
    assert lines[-1].startswith("Self CPU time total: ")
    assert len(rows.table(row_limit=-1).splitlines()) == len(rows) + 5
    with pytest.raises(ValueError, match="sort_by must be one of cpu_time"):
        rows.table(sort_by="cuda_time_total")


def test_the_trace_is_what_browsers_read(tmp_path):
    _, prof = counted(backlight)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert Counter(event["name"] for event in events) == Counter(event.name for event in prof.function_events)
    assert {event["ph"] for event in events} == {"X"}
    assert {event["cat"] for event in events if event["name"] == "forward"} == {"user_annotation"}


@pytest.mark.parametrize(
    "options",
    [{"with_flops": True}, {"profile_memory": True}, {"use_device": "cuda"}],
    ids=lambda given: next(iter(given)),
)
def test_what_is_not_measured_is_refused(options):
    with pytest.raises(TypeError, match=f"{next(iter(options))} must be"):
        backlight.autograd.profiler.profile(**options)


def test_a_profile_is_read_after_its_block_and_entered_once():
    prof = backlight.autograd.profiler.profile()
    with prof, pytest.raises(RuntimeError, match="Profiler didn't finish running"):
        prof.key_averages()
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"), prof:
        pass


def test_profiles_may_be_nested_and_end_with_an_exception():
    with backlight.autograd.profiler.profile() as outer:
        backlight.ones(2).exp()
        inner = backlight.autograd.profiler.profile()
        with pytest.raises(KeyError), inner, backlight.autograd.profiler.record_function("fails"):
            backlight.ones(2).sin()
            raise KeyError
        backlight.ones(2).cos()
    assert [event.name for event in inner.function_events] == ["fails", "aten::sin"]
    assert [event.name for event in outer.function_events] == ["aten::exp", "fails", "aten::sin", "aten::cos"]


SCHEDULES = {
    "cycles": "wait=1, warmup=1, active=2, repeat=2",
    "after a while": "wait=0, warmup=1, active=1, skip_first=3",
    "without the first wait": "wait=2, warmup=1, active=1, skip_first=1, skip_first_wait=1",
    "always": "wait=0, warmup=0, active=1",
}


@pytest.mark.parametrize("arguments", SCHEDULES.values(), ids=SCHEDULES)
def test_a_schedule_measures_the_steps_that_pytorchs_measures(arguments):
    source = f"""
import importlib, warnings; P = importlib.import_module(torch.__name__ + ".profiler")
plan = P.schedule({arguments})
print([plan(step).name for step in range(14)])
found = []
def ready(prof): found.append((prof.step_num, [(row.key, row.count) for row in prof.key_averages()]))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # once in a process PyTorch says that a cycle's events replace the last one's
    with P.profile(activities=[P.ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready) as prof:
        for step in range(9):
            x.exp(); prof.step()
print(found)
"""
    assert assert_shows_the_same("x = torch.ones(2)\n" + source) is None


def test_a_schedule_that_measures_nothing_is_refused():
    with pytest.raises(ValueError, match=r"Invalid profiler schedule arguments. Got wait=1 \(need >= 0\)"):
        backlight.profiler.schedule(wait=1, warmup=1, active=0)


def test_other_activities_are_left_out_with_pytorchs_warning():
    kinds = backlight.profiler.ProfilerActivity
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        prof = backlight.profiler.profile(activities=[kinds.CPU, kinds.CUDA])
    assert prof.activities == backlight.profiler.supported_activities() == {kinds.CPU}


def test_a_script_finds_the_profiler_under_pytorchs_names(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text(
        """
import torch
import torch.autograd.profiler as old
from torch.profiler import ProfilerActivity, profile, record_function

with profile(activities=[ProfilerActivity.CPU]) as prof:
    with record_function("mine"):
        torch.ones(2).exp()
print([row.key for row in prof.key_averages()])

@old.record_function("named")
def function(): return torch.ones(2).exp()
with torch.autograd.profiler.profile() as prof: function()
print([event.name for event in prof.function_events])
"""
    )
    assert run_script(str(script)) == 0
    assert capsys.readouterr().out == "['mine', 'aten::exp']\n['named', 'aten::exp']\n"
