"""`lens.watch`, `lens.capture` and `lens.read_record`, on both engines."""

import gc
import sys
import weakref

import lens_programs as programs
import numpy as np
import pytest
import torch

import backlight
from backlight import lens
from backlight.errors import InputError
from backlight.lens.records.nodes import LEAF

ENGINES = pytest.mark.parametrize("t", [backlight, torch], ids=["backlight", "torch"])
# On these the engines' graphs differ: an op on a view of a written tensor, the order inside a recorded backward.
ALIKE = [one for one in programs.PROGRAMS if one not in (programs.view_written, programs.second_order)]


def watched(t, program):
    with lens.watch(engine=t.__name__) as watch:
        program(t)
    return watch.record


def shape_of(record):
    """Return what the records of both engines must agree in."""
    nodes = [
        (
            node.kind,
            node.type,
            node.name,
            [edge and (edge.to, edge.output) for edge in node.edges],
            [output.shape for output in node.outputs],
            (node.order, node.version, node.root, node.hooks, node.place and node.place.line),
            [(saved.name, saved.of, saved.version, saved.written) for saved in node.saved],
        )
        for node in record.nodes
    ]
    backwards = [
        (
            one.roots,
            one.place.line,
            one.into_grad,
            one.keep_graph,
            [(step.node, len(step.changes)) for step in one.steps],
        )
        for one in record.backwards
    ]
    return nodes, backwards, [(write.node, write.op, write.version) for write in record.writes]


def gradients(record):
    """Return all gradients of all steps, flat: None where none is."""
    found = []
    for backward in record.backwards:
        for step in backward.steps:
            for summary in (*step.incoming, *step.outgoing, step.grad_before, step.grad_after):
                found.append(None if summary is None else np.ravel(summary.values))
    return found


@pytest.mark.parametrize("program", ALIKE, ids=lambda program: program.__name__)
def test_both_engines_give_the_same_record(program):
    ours, theirs = watched(backlight, program), watched(torch, program)
    assert shape_of(ours) == shape_of(theirs)
    for mine, other in zip(gradients(ours), gradients(theirs), strict=True):
        assert (mine is None) == (other is None)
        if other is not None:
            np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda program: program.__name__)
@ENGINES
def test_a_record_is_read_back_as_it_was(t, program):
    record = watched(t, program)
    assert lens.read_record(record.to_json()) == record


@ENGINES
def test_the_seeds_expression_is_recorded_whole(t):
    record = watched(t, programs.seeds_expression)
    assert [(node.type, node.name, node.label) for node in record.nodes] == [
        ("AccumulateGrad", "a", "a"),
        ("AccumulateGrad", "b", "b"),
        ("AddBackward0", None, "+"),
        ("MulBackward0", None, "×"),
        ("MulBackward0", "e", "×"),
    ]
    assert [node.outputs[0].values for node in record.nodes] == [2.0, 1.0, 3.0, 2.0, 6.0]
    assert record.nodes[4].place.text == "e = (a + b) * (b * 2)"
    assert [(edge.name, edge.formula) for edge in record.nodes[4].edges] == [
        ("input", "grad · other"),
        ("other", "grad · input"),
    ]
    (backward,) = record.backwards
    arrived = {step.node: step.incoming[0].values for step in backward.steps}
    assert arrived == {4: 1.0, 3: 3.0, 2: 2.0, 0: 2.0, 1: 8.0}  # de/db = 2·(a + b) + 2·b
    assert [record.nodes[root].name for root in backward.roots] == ["e"]


@ENGINES
def test_a_model_gives_names_paths_and_modules(t):
    model = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.ReLU(), t.nn.Linear(2, 1))
    with lens.watch() as watch:
        out = model(t.ones(4, 3))
        loss = out.mean()
        loss.backward()
    record = watch.record
    assert {node.name for node in record.leaves} == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert all(leaf.parameter for leaf in record.leaves)
    named = {node.name: node for node in record.nodes}
    assert (named["out"].module, named["out"].module_type) == ("2", "Linear")
    assert (named["loss"].module, named["loss"].module_type) == ("", "")
    assert record.modules == {"": "Sequential", "0": "Linear", "1": "ReLU", "2": "Linear"}


@ENGINES
def test_two_models_are_told_apart_by_their_variables(t):
    encoder, decoder = t.nn.Linear(3, 2), t.nn.Linear(2, 3)
    with lens.watch() as watch:
        decoder(encoder(t.ones(1, 3))).sum().backward()
    assert {leaf.name for leaf in watch.record.leaves} == {
        "encoder.weight",
        "encoder.bias",
        "decoder.weight",
        "decoder.bias",
    }
    assert set(watch.record.modules) == {"encoder", "decoder"}


@ENGINES
def test_names_come_from_variables_that_died_too(t):
    def objective(x):
        square = x * x
        return square.sum()

    x = t.ones(3, requires_grad=True)
    with lens.watch() as watch:
        objective(x).backward()
    assert [node.name for node in watch.record.nodes] == ["x", "square", None]


@ENGINES
def test_what_a_hook_changed_is_in_the_step(t):
    record = watched(t, programs.hooked)
    (step,) = [step for step in record.backwards[0].steps if step.changes]
    (change,) = step.changes
    assert change.hook == "halve"
    assert change.after.values == step.incoming[0].values == [value / 2 for value in change.before.values]
    exp = next(one for one in record.backwards[0].steps if record.nodes[one.node].type == "ExpBackward0")
    assert exp.outgoing[0].values == change.before.values


@ENGINES
def test_grad_before_and_after_are_recorded(t):
    first, second = (backward.steps[-1] for backward in watched(t, programs.accumulated_twice).backwards)
    assert first.grad_before is None
    assert first.grad_after.values == second.grad_before.values == [1.0, 1.0, 1.0]
    assert second.grad_after.values == [3.0, 3.0, 3.0]


@ENGINES
def test_freed_bytes_are_those_that_nothing_else_keeps(t):
    def program(t):
        x = t.ones(10, dtype=t.float64, requires_grad=True)
        h = x.exp()  # its node and the next keep the same memory
        (h * h).sum().backward()

    record = watched(t, program)
    freed = {record.nodes[step.node].type: step.freed for step in record.backwards[0].steps}
    assert freed == {"SumBackward0": 0, "MulBackward0": 0, "ExpBackward0": 80, "AccumulateGrad": 0}


@ENGINES
def test_a_write_to_a_saved_tensor_shows_in_its_versions(t):
    x = t.ones(3, requires_grad=True)
    with lens.watch() as watch:
        h = x * 1
        loss = (h * h).sum()
        h.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    record = watch.record
    saved = next(node for node in record.nodes if node.name is None and len(node.saved) == 2).saved[0]
    assert (saved.version, saved.written) == (0, 1)
    assert [(write.op, write.version, write.place.text) for write in record.writes] == [("add_", 1, "h.add_(1)")]
    assert "modified by an inplace operation" in record.backwards[0].problem


@ENGINES
def test_what_is_saved_after_an_optimizer_step_has_the_new_values(t):
    inner, outer = t.nn.Linear(2, 1), t.nn.Linear(1, 1)
    optimizer = t.optim.SGD(outer.parameters(), lr=0.5)
    weights = []
    with lens.watch() as watch:
        for _ in range(2):
            weights.append(outer.weight.tolist())
            outer(inner(t.ones(3, 2))).square().mean().backward()
            optimizer.step()
    saved = [saved.summary.values for node in watch.record.nodes for saved in node.saved]
    assert weights[0] != weights[1]
    assert all(weight in saved for weight in weights)


@ENGINES
def test_a_second_forward_is_of_second_order(t):
    record = watched(t, programs.second_order)
    orders = [(node.type, node.order) for node in record.nodes if node.kind != LEAF]
    assert orders[:3] == [("MulBackward0", 1), ("MulBackward0", 1), ("SumBackward0", 1)]
    assert {order for _, order in orders[3:-2]} == {2}
    assert orders[-2:] == [("MulBackward0", 1), ("SumBackward0", 1)]
    assert [backward.create_graph for backward in record.backwards] == [True, False]


@ENGINES
def test_nothing_is_kept_alive(t):
    with lens.watch() as watch:
        x = t.ones(3, requires_grad=True)
        h = x * 2
        h.sum().backward()
    gone = [weakref.ref(x), weakref.ref(h)]
    del x, h
    gc.collect()
    assert [one() for one in gone] == [None, None]
    assert len(watch.record.nodes) == 3


@ENGINES
def test_inside_the_block_nodes_are_not_kept_alive(t):
    with lens.watch() as watch:
        h = t.ones(3, requires_grad=True) * 2
        gone = weakref.ref(h)
        del h
        t.ones(1)  # our engine's observation holds what the latest op returned
        gc.collect()
        assert gone() is None
    assert len(watch.record.nodes) == 2


@ENGINES
def test_a_programs_own_locals_stay_as_they_are(t):
    mine = locals()
    with lens.watch():
        x = t.ones(3, requires_grad=True)
        x.sum().backward()
    assert "t" in mine
    assert "x" in mine or sys.version_info >= (3, 13)  # where a function's dict of locals is a copy


@ENGINES
def test_at_most_limit_nodes_are_recorded_and_the_rest_is_counted(t):
    with lens.watch(limit=5) as watch:
        h = t.ones(3, requires_grad=True)
        for _ in range(20):
            h = h * 2
        h.sum().backward()
    assert len(watch.record.nodes) == 5
    assert watch.record.left_out == 17
    assert watch.record.backwards == []


@ENGINES
def test_a_record_says_in_one_line_what_it_is_of(t):
    with lens.watch(title="sum.py") as watch:
        loss = t.ones(2, requires_grad=True).sum()
        loss.backward()
    expected = f"<Record of sum.py on {watch.record.engine}: 2 nodes, 1 leaves, 1 backwards; roots: loss>"
    assert repr(watch.record) == expected


@ENGINES
def test_values_can_be_left_out(t):
    with lens.watch(values="none") as watch:
        programs.shared_leaf(t)
    record = watch.record
    summaries = [output for node in record.nodes for output in node.outputs]
    assert all(one.values is None and one.norm is None and one.nans is None for one in summaries)
    assert [one.shape for one in summaries][:2] == [(3, 4), (3, 4)]
    assert all(step.incoming[0].norm is None for step in record.backwards[0].steps)


@ENGINES
def test_each_backward_of_a_loop_has_its_record(t):
    w = t.ones(3, requires_grad=True)
    with lens.watch(steps=2) as watch:
        for number in range(5):
            loss = (w * (number + 1)).sum()
            loss.backward()
    assert len(watch.records) == 2 + 1  # the last one was not followed by another step
    assert [record.backwards[0].steps[-1].incoming[0].values[0] for record in watch.records] == [3.0, 4.0, 5.0]


@ENGINES
def test_a_watch_decorates_a_function(t):
    @lens.watch()
    def step(x):
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert step(t.ones(2, requires_grad=True)).item() == 2.0
    assert [node.name for node in step.watch.record.nodes] == ["x", None, "loss"]


@ENGINES
def test_a_graph_that_is_there_already_can_be_captured(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    h = x.exp()
    loss = (h * x).sum()
    loss.backward(retain_graph=True)
    record = lens.capture(loss)
    assert [(node.type, node.name) for node in record.nodes] == [
        ("AccumulateGrad", "x"),
        ("ExpBackward0", "h"),
        ("MulBackward0", None),
        ("SumBackward0", "loss"),
    ]
    np.testing.assert_allclose(record.nodes[1].outputs[0].values, np.exp([1.0, 2.0]), rtol=1e-6)  # exp keeps it
    np.testing.assert_allclose(record.nodes[0].grad.values, x.grad.tolist())
    assert [node.root for node in record.nodes] == [False, False, False, True]
    assert record.backwards == []


@ENGINES
def test_capture_refuses_what_has_no_graph(t):
    with pytest.raises(InputError, match="output must require grad, got a tensor of shape"):
        lens.capture(t.ones(3))
    with pytest.raises(InputError, match="value must be a tensor"):
        lens.capture(3.0)


def test_options_are_checked():
    with pytest.raises(InputError, match="values must be one of"):
        lens.watch(values="all")
    with pytest.raises(InputError, match="limit must be at least 1, got 0"):
        lens.watch(limit=0)
    with pytest.raises(InputError, match="record must be of format 1"):
        lens.read_record('{"format": 0}')
    with pytest.raises(InputError, match=r"^record must be a file that can be read, got .*: No such file or dir"):
        lens.read_record("no/such/file.json")
