"""`lens.why` finds what a gradient is made of and what went wrong with it, on both engines alike."""

import pytest
import torch

import backlight
from backlight import lens
from backlight.errors import InputError
from backlight.lens.answers.answer import Answer
from backlight.lens.records.watching import Watch

ENGINES = pytest.mark.parametrize("t", [backlight, torch], ids=["backlight", "torch"])


def ones(t, *shape, value=1.0):
    return t.full(shape or (3,), value, requires_grad=True)


# --- None -------------------------------------------------------------------------------------------------------------


@ENGINES
def test_a_tensor_that_an_op_made_keeps_no_gradient(t):
    w = ones(t)
    with lens.watch():
        hidden = w * 2
        hidden.sum().backward()
        answer = lens.why(hidden)
    assert answer.question == "Why is hidden.grad None?"
    assert "hidden is not a leaf: MulBackward0 made it" in answer.verdict and "hidden = w * 2" in answer.verdict
    assert answer.finding.rule == "BL101" and "retain_grad()" in answer.cure
    assert answer.evidence == ("it was computed from the leaf w, which has a .grad of norm 3.464",)
    assert [step.split(",")[0] for step in answer.path] == ["SumBackward0", "MulBackward0 → hidden"]


@ENGINES
def test_what_was_made_without_requires_grad_has_none(t):
    x, indices = t.ones(3), t.tensor([1, 2])
    assert "does not require grad" in lens.why(x).verdict and lens.why(x).finding.rule == "BL103"
    assert "only floating point tensors" in lens.why(indices).verdict


@ENGINES
def test_a_detached_part_is_found_with_its_line(t):
    first, second = t.nn.Linear(3, 4), t.nn.Linear(4, 1)
    with lens.watch() as watch:
        hidden = first(t.ones(2, 3))
        hidden = hidden.detach()
        loss = second(hidden).sum()
        loss.backward()
        answer = lens.why(first.weight, loss)
    assert "the graph of loss does not reach first.weight: `detach` at test_lens_why.py" in answer.verdict
    assert "hidden = hidden.detach()" in answer.verdict
    assert answer.finding.rule == "BL707"
    (ends,) = (line for line in answer.evidence if line.startswith("the leaves that it does reach: "))
    assert set(ends.rpartition(": ")[2].split(", ")) == {"second.weight", "second.bias"}
    (cut,) = watch.record.cuts
    assert cut.reason == "detached" and watch.record.nodes[cut.into].module_type == "Linear"


@ENGINES
def test_a_number_for_a_loss_is_found(t):
    w = ones(t)
    with lens.watch():
        loss = t.tensor((w * 2).sum().item(), requires_grad=True)
        loss.backward()
        assert lens.why(w, loss).finding.rule == "BL212"
        assert "`item` at test_lens_why.py" in lens.why(w).verdict


@ENGINES
def test_an_op_without_a_derivative_is_found_behind_other_ops(t):
    w = ones(t)
    with lens.watch():
        chosen = (w * 2).argmax()
        loss = (chosen * t.ones(3)).sum()
        answer = lens.why(w, loss)
    assert "loss has no graph: `argmax`" in answer.verdict and "chosen = (w * 2).argmax()" in answer.verdict
    assert answer.finding.rule == "BL209"


@ENGINES
def test_what_ran_under_no_grad_is_found(t):
    w = ones(t)
    with lens.watch():
        with t.no_grad():
            scores = w * 2
        loss = scores.sum()
        answer, made = lens.why(w, loss), lens.why(loss)
    assert answer.finding.rule == "BL211" and "scores = w * 2" in answer.verdict
    assert made.verdict.startswith("loss has no graph: `mul` at")


@ENGINES
def test_an_unrelated_tensor_is_said_to_be_unrelated(t):
    w, v = ones(t), ones(t)
    loss = (v * 2).sum()
    answer = lens.why(w, loss)
    assert answer.verdict == "the graph of loss does not reach w: nothing in it was computed from this tensor"
    assert answer.evidence == ("the leaves that it does reach: v",)


@ENGINES
def test_a_backward_that_has_not_run_yet_is_told_with_the_way(t):
    w = ones(t)
    loss = (w * 2).sum()
    answer = lens.why(w, loss)
    assert answer.verdict == "backward() of loss has not run; its graph reaches w"
    assert [step.split(",")[0] for step in answer.path] == ["SumBackward0 → loss", "MulBackward0", "leaf w"]


@ENGINES
def test_grad_writes_no_grad(t):
    w = ones(t)
    with lens.watch():
        loss = (w * 2).sum()
        t.autograd.grad(loss, [w])
        assert "returns gradients and does not write .grad" in lens.why(w).verdict


@ENGINES
def test_zero_grad_after_backward_is_found(t):
    w = ones(t)
    optimizer = t.optim.SGD([w], lr=0.1)
    with lens.watch():
        loss = (w * 2).sum()
        loss.backward()
        optimizer.zero_grad()
        answer = lens.why(w)
    assert answer.finding.rule == "BL704" and answer.evidence == ("a gradient had arrived: norm 3.464",)
    assert lens.why(w, loss).finding.rule == "BL704"  # without the watch: the graph was freed


@ENGINES
def test_a_backward_that_stopped_is_named(t):
    w = ones(t)

    def fails(grad):
        raise KeyError("mine")

    with lens.watch():
        hidden = w * 2
        hidden.register_hook(fails)
        with pytest.raises(KeyError):
            hidden.sum().backward()
        answer = lens.why(w)
    assert "backward stopped before it reached w: KeyError: 'mine'" in answer.verdict


@ENGINES
def test_without_a_loss_and_a_watch_it_says_what_to_ask(t):
    w = ones(t)
    assert "why(w, loss)" in lens.why(w).cure


# --- zero -------------------------------------------------------------------------------------------------------------

ZEROS = {
    "relu": (lambda t, w: (w * -2).relu(), "ReluBackward0", "all of its outputs are 0"),
    "sigmoid": (lambda t, w: (w * 200).sigmoid(), "SigmoidBackward0", "is saturated"),
    "tanh": (lambda t, w: (w * 200).tanh(), "TanhBackward0", "is saturated"),
    "softmax": (lambda t, w: w.reshape(3, 1).softmax(-1), "SoftmaxBackward0", "a dim of size 1"),
    "mul": (lambda t, w: w * t.zeros(3), "MulBackward0", "multiplies by 0"),
    "round": (lambda t, w: (w * 2).round(), "RoundBackward0", "has the derivative 0 everywhere"),
    "clamp": (lambda t, w: (w * 2).clamp(max=1.0), "ClampBackward1", "clips all of its inputs"),
    "where": (lambda t, w: t.where(w > 5, w * 2, t.zeros(3)), "WhereBackward0", "selects other values everywhere"),
    "max": (lambda t, w: t.maximum(w * 2, t.full((3,), 9.0)), "MaximumBackward0", "does not select these elements"),
}


@pytest.mark.parametrize("name", ZEROS)
@ENGINES
def test_the_op_that_makes_a_gradient_zero_is_found(t, name):
    program, node, said = ZEROS[name]
    w = ones(t)
    with lens.watch():
        out = program(t, w)
        (out + 1).pow(2).sum().backward()
        answer = lens.why(w)
    assert answer.question == "Why is w.grad 0?"
    assert node in answer.verdict and said in answer.verdict
    assert answer.cure


@ENGINES
def test_a_dead_relu_is_found_without_a_watch_while_the_graph_is_there(t):
    w = ones(t)
    loss = ((w * -2).relu() + 1).sum()
    loss.backward(retain_graph=True)
    assert "ReluBackward0" in lens.why(w, loss).verdict
    assert "no recorded node shows why" in lens.why(w).verdict


@ENGINES
def test_a_hook_that_zeroes_is_named(t):
    w = ones(t)

    def silence(grad):
        return grad * 0

    with lens.watch():
        hidden = w * 2
        hidden.register_hook(silence)
        hidden.sum().backward()
        answer = lens.why(w)
    assert "The hook `silence` at MulBackward0 → hidden" in answer.verdict


@ENGINES
def test_gradients_that_cancel_are_told_apart(t):
    w = ones(t)
    with lens.watch():
        (w - w).sum().backward()
        answer = lens.why(w)
    assert answer.verdict == "The gradients that meet at leaf w cancel" and len(answer.evidence) == 2


@ENGINES
def test_padding_rows_get_nothing(t):
    table = t.nn.Embedding(4, 2, padding_idx=0)
    with lens.watch():
        table(t.tensor([0, 0])).sum().backward()
        answer = lens.why(table.weight)
    assert "EmbeddingBackward0" in answer.verdict and "padding_idx" in answer.cure


@ENGINES
def test_a_module_with_padding_may_be_made_while_watched(t):
    with lens.watch():
        table = t.nn.Embedding(4, 2, padding_idx=0)
        table(t.tensor([1])).sum().backward()
    assert table.weight.grad[1].tolist() == [1.0, 1.0]


# --- NaN, infinity, huge ----------------------------------------------------------------------------------------------


@ENGINES
def test_the_first_node_that_hands_on_a_nan_is_found(t):
    w = t.zeros(3, requires_grad=True)
    with lens.watch():
        t.where(w > 0, w.sqrt(), w * 0).sum().backward()
        answer = lens.why(w)
    assert answer.question == "Why are all 3 elements of w.grad NaN?" and answer.finding.rule == "BL802"
    assert "SqrtBackward0" in answer.verdict and "from a finite gradient" in answer.verdict
    assert "of 3 values that it read, 3 are 0" in answer.evidence


@ENGINES
def test_a_nan_of_the_forward_is_blamed_on_the_forward(t):
    w = t.zeros(3, requires_grad=True)
    with lens.watch():
        (w.log() * 0).sum().backward()
        answer = lens.why(w)
    assert "LogBackward0" in answer.verdict and "from finite numbers" in answer.verdict
    assert answer.finding.rule == "BL805"


@ENGINES
def test_a_question_about_some_elements_counts_them(t):
    w = t.tensor([0.0, 1.0], requires_grad=True)
    with lens.watch():
        (w.sqrt() * 0).sum().backward()
        answer = lens.why(w)
    assert answer.question == "Why is 1 of the 2 elements of w.grad NaN?"
    assert "of 2 values that it read, 1 is 0" in answer.evidence


@ENGINES
def test_a_single_value_is_not_counted(t):
    w = t.tensor(0.0, requires_grad=True)
    with lens.watch():
        (w.sqrt() * 0).backward()
        answer = lens.why(w)
    assert answer.question == "Why is w.grad NaN?"
    assert "the only value that it read is 0" in answer.evidence


@ENGINES
@pytest.mark.parametrize(("kind", "word"), [("std", "standard deviation"), ("var", "variance")])
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_a_spread_of_too_few_values_is_told_from_one_of_equal_values(t, kind, word):
    w = t.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    with lens.watch():
        getattr(w, kind)(0, correction=2).sum().backward()
        answer = lens.why(w)
    assert answer.cause.startswith(f"The {word} divides by") and "(2 and 2)" in answer.cause
    large = t.tensor([1e30, -1e30], requires_grad=True)
    with lens.watch():
        getattr(large, kind)(0).backward()
        answer = lens.why(large)
    assert "correction" not in answer.cause


@ENGINES
def test_a_parameter_has_one_name_in_question_and_evidence(t):
    net = t.nn.ModuleDict({"a": t.nn.Linear(3, 1), "b": t.nn.Linear(3, 1)})
    with lens.watch():
        loss = net["a"](t.ones(2, 3)).sum()
        loss.backward()
        answers = lens.why(net["b"].weight), lens.why(net["b"].weight, loss)
    for answer in (*answers, lens.why(net["b"].weight, loss)):
        assert answer.question == "Why is net.b.weight.grad None?"
        (ends,) = (line for line in answer.evidence if line.startswith("the leaves that it does reach: "))
        assert set(ends.rpartition(": ")[2].split(", ")) == {"net.a.weight", "net.a.bias"}


@ENGINES
def test_a_parameter_that_is_nan_itself_is_named(t):
    w = t.tensor([float("nan"), 1.0], requires_grad=True)
    with lens.watch():
        (w * w).sum().backward()
        answer = lens.why(w)
    assert answer.verdict == "Leaf w itself holds 1 NaN of 2"


@ENGINES
def test_growth_is_put_down_to_the_nodes_that_grow(t):
    w = ones(t)
    with lens.watch():
        hidden = w
        for _ in range(3):
            hidden = hidden * 300
        hidden.sum().backward()
        answer = lens.why(w)
    assert answer.question.startswith("Why is w.grad huge")
    assert "hidden = hidden * 300" in answer.verdict and "multiplies by 300" in answer.verdict


@ENGINES
def test_backwards_that_add_up_are_counted(t):
    w = ones(t)
    with lens.watch():
        for _ in range(3):
            (w * 2).sum().backward()
        answer = lens.why(w)
    assert answer.finding.rule == "BL703"
    assert answer.evidence[-1] == "it was added to 2 times: it contains the gradients of 3 backwards"


# --- nothing wrong ----------------------------------------------------------------------------------------------------


@ENGINES
def test_a_healthy_gradient_is_taken_apart(t):
    w = ones(t)
    with lens.watch():
        loss = (w * 2 + w.tanh()).sum()
        loss.backward()
        answer = lens.why(w)
    assert answer.question == "What is w.grad made of?" and answer.finding is None and not answer.cure
    assert answer.verdict == "norm 4.192 over 3 elements: the sum of 2 gradients"
    assert ["MulBackward0" in answer.evidence[0], "TanhBackward0" in answer.evidence[1]] == [True, True]


@ENGINES
def test_a_record_answers_by_name_and_number(t):
    w = ones(t)
    with lens.watch() as watch:
        hidden = w * 2
        loss = hidden.relu().sum()
        loss.backward()
    record = lens.read_record(watch.record.to_json())
    assert record.why("w").verdict == "norm 3.464 over 3 elements, from one use"
    assert record.why(0) == record.why("w")
    assert record.why("hidden").question == "What is hidden.grad made of?"
    assert lens.why("w", record=watch) == lens.why("w", record=record) == lens.why(w, record=watch)
    with pytest.raises(InputError, match="name_or_id must be a name in the record, got 'v': it has w, hidden, loss"):
        record.why("v")
    with pytest.raises(InputError, match="number below"):
        record.why(99)


@ENGINES
def test_a_path_is_found_or_said_to_end(t):
    w, v = ones(t), ones(t)
    loss = (w * 2).sum()
    way = lens.path(loss, w)
    assert way and str(way).splitlines()[-1].strip() == "leaf w"
    none = lens.path(loss, v)
    assert not none and str(none) == "the graph of loss does not reach v: nothing in it was computed from this tensor"
    assert "does not require grad" in lens.path(loss, t.ones(3)).reason


def test_what_is_no_tensor_is_refused():
    with pytest.raises(InputError, match="value must be a tensor"):
        lens.why(3.0)
    with pytest.raises(InputError, match="tensor must be a tensor, got Linear"):
        lens.why(backlight.nn.Linear(1, 1))
    with pytest.raises(InputError, match="the same engine"):
        lens.path(ones(backlight), ones(torch))
    with pytest.raises(InputError, match="loss must be a tensor of the same engine, got Tensor"):
        lens.why(ones(backlight), ones(torch))


def test_an_answer_shows_itself_as_text_and_as_html_that_escapes_everything():
    answer = Answer("Why?", "<b>bold</b>", ("a & b",), "cause", "cure", ("loss", "w < 0"))
    assert str(answer).splitlines() == [
        "Why?",
        "  <b>bold</b>",
        "  · a & b",
        "  loss",
        "    w < 0",
        "  Cause: cause",
        "  Try: cure",
    ]
    assert repr(answer) == "<Answer: Why? <b>bold</b>>"
    page = answer._repr_html_()
    assert "&lt;b&gt;bold" in page and "a &amp; b" in page and "w &lt; 0" in page and "<b>bold" not in page


@ENGINES
def test_asking_leaves_nothing_behind(t):
    w = ones(t)
    loss = (w * 2).sum()
    lens.why(w, loss)
    loss.backward()
    assert w.grad.tolist() == [2.0, 2.0, 2.0] and not Watch.open
