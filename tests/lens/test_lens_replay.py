"""A replay tells what happened, in the order in which it happened, with the numbers that were recorded."""

import json

import pytest
from hand_made import hooked_record, leaf, scalar, seed_backward, seed_nodes, seed_record

from backlight.lens.records.nodes import OP, Backward, Edge, Node, SavedTensor, Step, Summary
from backlight.lens.records.record import Record
from backlight.lens.replays.replay import BEGIN, END, FIRE, FORWARD, GRAD


def step_of(replay, kind, node=None, backward=0):
    return next(
        one for one in replay.steps if one.kind == kind and one.node == node and one.backward in (None, backward)
    )


def test_the_forward_comes_before_the_backward_and_each_node_has_its_turn():
    replay = seed_record().replay()
    kinds = [step.kind for step in replay.steps]
    assert kinds == [FORWARD] * 5 + [BEGIN] + [FIRE] * 3 + [GRAD] * 2 + [END]
    assert [step.number for step in replay.steps] == list(range(12))
    assert replay.firing() == [4, 3, 2, 1, 0]


def test_a_forward_step_shows_the_op_with_the_users_names_and_the_numbers():
    replay = seed_record().replay()
    assert "e = c · d = 5 · 6 = 30" in step_of(replay, FORWARD, 4).text()
    assert "d = b · 2 = 3 · 2 = 6" in step_of(replay, FORWARD, 3).text()
    assert "lesson.py:6  e = c * d" in step_of(replay, FORWARD, 4).text()


def test_a_node_that_fires_shows_its_derivatives_with_the_numbers():
    text = step_of(seed_record().replay(), FIRE, 4).text()
    assert "→ c        grad · other = grad · d = 1 · 6 = 6" in text
    assert "→ d        grad · input = grad · c = 1 · 5 = 5" in text
    assert "1, which backward began with" in text


def test_a_step_says_why_its_node_fires_now():
    replay = seed_record().replay()
    assert "backward begins here: e is the root" in step_of(replay, FIRE, 4).text()
    assert "its only user has fired: MulBackward0 of e" in step_of(replay, FIRE, 3).text()
    assert "c could fire too: what was made last goes first" in step_of(replay, FIRE, 3).text()
    assert "all 2 users have fired: MulBackward0 of d and AddBackward0 of c" in step_of(replay, GRAD, 1).text()


def test_an_order_that_the_rule_does_not_explain_is_not_explained():
    record = seed_record()
    steps = record.backwards[0].steps
    steps[1], steps[2] = steps[2], steps[1]
    assert "goes first" not in record.replay().text()


def test_a_sum_says_from_whom_it_was_added_up():
    lines = step_of(seed_record().replay(), GRAD, 1).text().splitlines()
    assert "  gradient   10 + 6 = 16" in lines
    assert "             10 from MulBackward0 of d" in lines
    assert "             6 from AddBackward0 of c" in lines


def test_pieces_that_do_not_add_up_are_not_called_a_sum():
    record = seed_record()
    record.backwards[0].steps[3].incoming = [scalar(17.0)]
    text = step_of(record.replay(), GRAD, 1).text()
    assert "10 + 6" not in text and "17, from" in text


def test_grad_is_none_before_the_first_gradient_and_added_to_after():
    assert "a.grad: None → 6" in step_of(seed_record().replay(), GRAD, 0).text()
    assert "a.grad: 1 → 1 + 6 = 7" in step_of(seed_record(before=1.0).replay(), GRAD, 0).text()


def test_a_hook_that_changes_a_gradient_is_named():
    text = step_of(hooked_record().replay(), GRAD, 1).text()
    assert "10 + 6 = 16" in text and "double changes it: 16 → 32" in text and "b.grad: None → 32" in text


def test_memory_is_held_from_the_forward_until_its_last_keeper_has_fired():
    replay = seed_record().replay()
    assert [step.held for step in replay.steps] == [0, 0, 0, 4, 12, 12, 4, 0, 0, 0, 0, 0]
    assert [step.freed for step in replay.steps if step.kind == FIRE] == [8, 4, 0]


def test_what_two_nodes_keep_is_freed_by_the_second():
    x = leaf(0, "x", 2.0)
    h = Node(
        1, OP, "ExpBackward0", "exp", "h", edges=[Edge(0, 0, "input", "grad · exp(input)")], outputs=[scalar(7.389056)]
    )
    h.saved = [SavedTensor("result", scalar(7.389056), 4, 9, of=1)]
    y = Node(
        2, OP, "MulBackward0", "×", "y", edges=[Edge(1, 0, "input", "grad · other"), None], outputs=[scalar(22.167168)]
    )
    y.saved = [SavedTensor("other", scalar(3.0), 4, 8), SavedTensor("self", scalar(7.389056), 4, 9, of=1)]
    steps = [Step(2, [scalar(1.0)], [scalar(3.0), None]), Step(1, [scalar(3.0)], [scalar(22.167168)])]
    replay = Record("torch", [x, h, y], [Backward([2], steps)]).replay()
    assert [step.freed for step in replay.steps if step.kind == FIRE] == [4, 4]
    assert "grad · exp(input) = grad · exp(x) = 3 · exp(2) ≈ 22.17" in step_of(replay, FIRE, 1).text()


def test_retain_graph_frees_nothing():
    replay = seed_record(keep_graph=True).replay()
    assert all(step.freed == 0 for step in replay.steps) and replay.steps[-1].held == 12
    assert "retain_graph" in step_of(replay, BEGIN).text()


def test_several_backwards_follow_each_other_each_after_its_forward():
    nodes = seed_nodes()
    extra = Node(
        5, OP, "MulBackward0", "×", "f", edges=[Edge(0, 0, "input", "grad · other"), None], outputs=[scalar(6.0)]
    )
    extra.saved = [SavedTensor("other", scalar(3.0), 4, 7)]
    steps = [Step(5, [scalar(1.0)], [scalar(3.0), None]), Step(0, [scalar(3.0)], [], scalar(6.0), scalar(9.0))]
    replay = Record("torch", [*nodes, extra], [seed_backward(), Backward([5], steps)]).replay()
    order = [(step.kind, step.node) for step in replay.steps]
    assert order.index((END, None)) < order.index((FORWARD, 5)) < order.index((FIRE, 5))
    assert "a.grad: 6 → 6 + 3 = 9" in step_of(replay, GRAD, 0, backward=1).text()


def test_autograd_grad_returns_and_writes_nothing():
    record = seed_record(into_grad=False)
    for step in record.backwards[0].steps:
        step.grad_after = None
    text = step_of(record.replay(), GRAD, 0).text()
    assert "a.grad is not touched" in text and "None →" not in text


def test_a_backward_that_failed_ends_with_its_error():
    replay = seed_record(problem="RuntimeError: Trying to backward through the graph a second time").replay()
    assert "second time" in replay.steps[-1].text() and "error" in replay.steps[-1].title


def test_no_gradient_is_never_a_zero():
    record = seed_record()
    record.backwards[0].steps[0].outgoing[1] = None
    text = step_of(record.replay(), FIRE, 4).text()
    assert "→ d        grad · input: no gradient" in text
    assert "0" not in text.partition("→ d")[2].partition("\n")[0]


def test_large_tensors_are_told_by_shape_and_norm():
    grad = Summary((32, 10), "float32", norm=2.5)
    node = Node(
        1,
        OP,
        "MmBackward0",
        "@",
        "h",
        edges=[None, Edge(0, 0, "mat2", "inputᵀ · grad")],
        outputs=[Summary((32, 10), "float32")],
    )
    node.saved = [SavedTensor("self", Summary((32, 20), "float32"), 2560, 1)]
    weight = Node(0, "leaf", "AccumulateGrad", "w", "w", outputs=[Summary((20, 10), "float32")])
    step = Step(1, [grad], [None, Summary((20, 10), "float32", norm=4.0)])
    text = step_of(Record("torch", [weight, node], [Backward([1], [step])]).replay(), FIRE, 1).text()
    assert "input (32×20)ᵀ @ grad (32×10) → (20×10)" in text and "(32×10) of norm 2.5" in text


def test_a_prose_formula_stands_with_the_gradient_and_no_equation():
    x = Node(0, "leaf", "AccumulateGrad", "x", "x", outputs=[Summary((3,), "float32", values=[1.0, 5.0, 2.0])])
    y = Node(
        1, OP, "MaxBackward1", "max", "y", edges=[Edge(0, 0, "input", "grad at the largest elements, 0 elsewhere")]
    )
    y.outputs = [scalar(5.0)]
    step = Step(1, [scalar(4.0)], [Summary((3,), "float32", values=[0.0, 4.0, 0.0])])
    text = step_of(Record("torch", [x, y], [Backward([1], [step])]).replay(), FIRE, 1).text()
    assert "grad at the largest elements, 0 elsewhere: 4 → [0, 4, 0]" in text


def test_nan_and_inf_are_told():
    record = seed_record()
    record.backwards[0].steps[4].incoming = [scalar("nan")]
    record.backwards[0].steps[4].grad_after = scalar("nan")
    assert "a.grad: None → nan" in record.replay().text()


def test_a_replay_is_plain_data():
    replay = seed_record().replay()
    again = json.loads(replay.to_json())
    assert again["steps"][6]["flows"][0] == {
        "start": 4, "end": 2, "output": 0, "name": "input", "formula": "grad · other",
        "gradient": "6", "total": "6", "waiting": 0,
    }  # fmt: skip
    with pytest.raises(AttributeError):
        replay.steps[0].title = "another"


def test_flows_say_how_much_has_arrived_and_who_has_still_to_fire():
    flows = [flow for step in seed_record().replay().steps for flow in step.flows if flow.end == 1]
    assert [(flow.gradient, flow.total, flow.waiting) for flow in flows] == [("10", "10", 1), ("6", "16", 0)]


def test_a_sum_whose_digits_are_rounded_is_not_called_exact():
    record = seed_record(before=1 / 3)
    step = record.backwards[0].steps[4]
    step.incoming, step.grad_after = [scalar(1 / 3)], scalar(2 / 3)
    assert "0.3333 → 0.3333 + 0.3333 ≈ 0.6667, added" in step_of(record.replay(), GRAD, 0).text()


def test_norms_are_not_added_up():
    record = seed_record()
    for step, gradient in zip(record.backwards[0].steps, (None, None, None, 2.0, None)):
        if gradient is not None:
            step.incoming = [Summary((9, 9), "float32", norm=gradient)]
    text = step_of(record.replay(), GRAD, 1).text()
    assert " + " not in text and "of norm 2, from" in text


def test_a_shortened_number_shows_all_its_digits_and_never_looks_like_an_integer():
    record = seed_record()
    step = record.backwards[0].steps[4]
    step.incoming, step.grad_after = [scalar(287.9633687)], scalar(287.9633687)
    text = record.replay().text()
    assert "a.grad: None → 288.0\n" in text and "a.grad ≈ 288.0\n" in text and "b.grad = 16\n" in text


def test_an_equals_sign_stands_before_exact_numbers_only():
    record = seed_record()
    a, b, c = record.nodes[:3]
    a.outputs, b.outputs, c.outputs = [scalar(1 / 3)], [scalar(0.25)], [scalar(1 / 3 + 0.25)]
    assert "c = a + b ≈ 0.3333 + 0.25 ≈ 0.5833" in step_of(record.replay(), FORWARD, 2).text()


def test_a_result_that_only_happens_to_end_after_the_shown_digits_is_not_exact():
    whole = Summary((2,), "float32", values=[1.0112, 1.0112])
    record = Record("torch", [Node(0, "leaf", "AccumulateGrad", "x", "x", outputs=[whole])])
    record.nodes.append(Node(1, OP, "SoftmaxBackward0", "softmax", "y", edges=[Edge(0)], outputs=[whole]))
    assert "y = softmax(x) ≈ [1.011, 1.011]" in record.replay().text()
    terms = [Summary((2,), "float32", values=[one, one]) for one in (1.0, 0.0112)]
    step = Step(0, terms[:1], grad_before=terms[1], grad_after=whole)
    record.backwards = [Backward([0], [step])]
    assert "[0.0112, 0.0112] + [1, 1] ≈ [1.011, 1.011], added" in record.replay().text().replace("\n" + " " * 13, " ")


def test_minus_a_negative_number_is_in_brackets():
    x = leaf(0, "x", -3.5)
    y = Node(1, OP, "NegBackward0", "−x", "y", edges=[Edge(0, 0, "input", "−grad")], outputs=[scalar(3.5)])
    text = Record("torch", [x, y], [Backward([1], [Step(1, [scalar(-3.25)], [scalar(3.25)])])]).replay().text()
    assert "y = −x = −(−3.5) = 3.5" in text and "−grad = −(−3.25) = 3.25" in text


def test_what_a_node_keeps_is_told_by_its_part():
    x = leaf(0, "x", 2.0)
    y = Node(1, OP, "MulBackward0", "×", "y", edges=[Edge(0, 0, "input", ""), None], outputs=[scalar(10.0)])
    y.saved = [SavedTensor("other", scalar(5.0), 4, 3), SavedTensor("self", scalar(2.0), 4, 2, of=0)]
    z = Node(2, OP, "PowBackward0", "xⁿ", "z", edges=[Edge(1, 0, "input", "")], outputs=[scalar(1000.0)])
    z.saved, z.options = [SavedTensor("self", scalar(10.0), 4, 1, of=1)], {"exponent": 3}
    loss = Node(3, OP, "NllLossBackward0", "nll_loss", "loss", edges=[Edge(2)], outputs=[scalar(1.5)])
    loss.saved = [SavedTensor("target", Summary((9,), "int64"), 72, 4), SavedTensor("total_weight", scalar(64), 4, 5)]
    text = Record("torch", [x, y, z, loss]).replay().text()
    assert "its input x and its other input (5); " in text
    assert "its input y and the exponent 3; " in text
    assert "the target and the total weight (64); " in text


def test_a_result_that_nobody_was_shown_is_worked_out_and_called_so():
    x = leaf(0, "x", 2.0)
    power = Node(1, OP, "PowBackward0", "xⁿ", edges=[Edge(0, 0, "input", "")], outputs=[Summary((), "float32")])
    power.options = {"exponent": 2}
    sine = Node(2, OP, "SinhBackward0", "sinh", edges=[Edge(1, 0, "input", "")], outputs=[Summary((), "float32")])
    text = Record("torch", [x, power, sine]).replay().text()
    assert "x^2 = 2^2 = 4\n             (worked out: its result was not recorded)" in text
    assert "sinh(#1); its values were not recorded" in text
