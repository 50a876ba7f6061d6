"""The loss of aligned texts: values, gradients, reductions and messages are PyTorch's."""

import numpy as np
import pytest
from case import assert_same
from filled import BOTH, filled
from parity import assert_same as assert_expression

import backlight
import backlight.nn.functional as F
from backlight.autograd import gradcheck, gradgradcheck

FRAMES, BATCH, CLASSES = 12, 4, 6
TARGETS = [[1, 2, 2, 5], [3, 3, 3, 1], [4, 1, 0, 0], [5, 5, 1, 2]]
INPUT_LENGTHS, TARGET_LENGTHS = (12, 9, 5, 3), (4, 4, 2, 0)


def targets_of(t, form):
    if form == "padded":
        return t.tensor(TARGETS)
    return t.tensor([label for text, length in zip(TARGETS, TARGET_LENGTHS) for label in text[:length]])


def loss_and_gradients(t, dtype="float64", form="padded", lengths=None, **options):
    scores = filled(t, FRAMES, BATCH, CLASSES, dtype=dtype).requires_grad_()
    log_probs = (scores * 2).log_softmax(2)
    log_probs.retain_grad()
    inputs, texts = lengths or (INPUT_LENGTHS, TARGET_LENGTHS)
    loss = t.nn.functional.ctc_loss(log_probs, targets_of(t, form), inputs, texts, **options)
    (loss * filled(t, *loss.shape, dtype=dtype, start=0.9)).sum().backward()
    return loss.detach(), log_probs.grad, scores.grad


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 1e-5)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("form", ["padded", "concatenated"])
def test_loss_and_gradients_equal_pytorch(form, reduction, dtype, tolerance):
    ours, theirs = (loss_and_gradients(t, dtype, form, reduction=reduction) for t in BOTH)
    assert_same(ours, theirs, tolerance, tolerance)


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_a_text_longer_than_its_signal_is_pytorchs_infinity_or_zero(zero_infinity):
    lengths = ((12, 5, 3, 1), (4, 4, 2, 2))  # the second needs two blanks between its three equal labels
    ours, theirs = (loss_and_gradients(t, lengths=lengths, reduction="none", zero_infinity=zero_infinity) for t in BOTH)
    assert_same(ours, theirs, 1e-8, 1e-8)


def test_another_blank_and_tensors_of_lengths_equal_pytorch():
    results = []
    for t in BOTH:
        log_probs = filled(t, FRAMES, BATCH, CLASSES, dtype="float64").log_softmax(2).requires_grad_()
        lengths = t.tensor(INPUT_LENGTHS), t.tensor(TARGET_LENGTHS, dtype=t.int32)
        loss = t.nn.CTCLoss(blank=4, reduction="sum")(log_probs, targets_of(t, "padded"), *lengths)
        loss.backward()
        results.append((loss.detach(), log_probs.grad))
    assert_same(*results, 1e-8, 1e-8)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_one_signal_without_a_batch_equals_pytorch(reduction):
    results = []
    for t in BOTH:
        log_probs = filled(t, 7, CLASSES, dtype="float64").log_softmax(1).requires_grad_()
        loss = t.nn.functional.ctc_loss(log_probs, t.tensor([1, 1, 3]), (7,), (3,), reduction=reduction)
        loss.backward()
        results.append((loss.detach(), log_probs.grad))
    assert_same(*results, 1e-8, 1e-8)


def test_a_signal_of_one_frame_has_the_probability_of_its_label():
    log_probs = filled(backlight, 1, 1, 3, dtype="float64").log_softmax(2)
    loss = F.ctc_loss(log_probs, backlight.tensor([[2]]), (1,), (1,), reduction="sum")
    assert loss.item() == pytest.approx(-log_probs[0, 0, 2].item())


def test_the_loss_sums_over_all_alignments():
    probs = filled(backlight, 3, 1, 3, dtype="float64").softmax(2)
    p = probs[:, 0].numpy()
    paths = [(1, 1, 1), (0, 1, 1), (0, 0, 1), (1, 1, 0), (1, 0, 0), (0, 1, 0)]
    expected = -np.log(sum(np.prod([p[frame, label] for frame, label in enumerate(path)]) for path in paths))
    loss = F.ctc_loss(probs.log(), backlight.tensor([[1]]), (3,), (1,), reduction="sum")
    assert loss.item() == pytest.approx(expected)


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_first_and_second_derivatives_behind_log_softmax_agree_with_finite_differences(zero_infinity):
    scores = filled(backlight, 5, 2, 4, dtype="float64").requires_grad_()

    def loss(scores):
        log_probs = scores.log_softmax(2)
        return F.ctc_loss(log_probs, backlight.tensor([[1, 1], [3, 2]]), (5, 4), (2, 1), zero_infinity=zero_infinity)

    assert gradcheck(loss, [scores])
    assert gradgradcheck(loss, [scores])


@pytest.mark.parametrize("options", ["", "blank=2", "reduction='sum', zero_infinity=True"])
def test_printed_form_is_pytorchs(options):
    ours, theirs = (repr(eval(f"t.nn.CTCLoss({options})")) for t in BOTH)
    assert ours == theirs


LOG_PROBS = "torch.zeros(5, 2, 4).double().log_softmax(2)"


@pytest.mark.parametrize(
    "arguments",
    [
        "torch.tensor([[1, 2], [3, 3]]), [6, 5], [2, 2]",
        "torch.tensor([[1, 2], [3, 3]]), [5], [2, 2]",
        "torch.tensor([[1, 2], [3, 3]]), [5, 5], [2]",
        "torch.tensor([[1, 2], [3, 3]]), [5, 5], [3, 2]",
        "torch.tensor([[1, 2], [3, 3]]), [5, 5], [2, 2], blank=4",
        "torch.tensor([1, 2, 3]), [5, 5], [2, 2]",
        "torch.tensor([[1, 2], [3, 3]]), [5, 5], [-1, 2]",
        "torch.tensor([[1, 2], [3, 3]]), [-1, 5], [2, 2]",
        "torch.tensor([[1, 2]]), [5, 5], [2, 2]",
        "torch.tensor(1), [5, 5], [2, 2]",
        "torch.tensor([[1, 2], [3, 3]]), [5, 5], [2, 2], reduction='x'",
        "torch.tensor([[1, 2], [3, 3]]), [5, 5], [0, 0]",
        "torch.tensor([[1, 2], [3, 3]]), [2, 2], [2, 2]",
        "torch.tensor([[1., 2], [3, 3]]), [5, 5], [2, 2]",
    ],
)
def test_values_and_messages_are_pytorchs(arguments):
    assert_expression(f"torch.nn.functional.ctc_loss({LOG_PROBS}, {arguments})")


def test_empty_and_half_inputs_say_what_pytorch_says():
    assert_expression("torch.nn.functional.ctc_loss(torch.zeros(0, 2, 4), torch.tensor([1, 2]), [0, 0], [1, 1])")
    assert_expression("torch.nn.functional.ctc_loss(torch.zeros(5, 1, 4).half(), torch.tensor([1]), [5], [1])")
    assert_expression("torch.nn.functional.ctc_loss(torch.zeros(4), torch.tensor([1]), [5], [1])")


def test_a_label_that_is_no_class_is_an_error():
    with pytest.raises(RuntimeError, match="targets must be classes from 0 to 3; they go from 7 to 7"):
        F.ctc_loss(backlight.zeros(5, 1, 4), backlight.tensor([[7]]), [5], [1])


def test_node_names_are_pytorchs():
    names = []
    for t in BOTH:
        log_probs = t.zeros(5, 1, 4, requires_grad=True)
        loss = t.nn.functional.ctc_loss(log_probs, t.tensor([[1]]), [5], [1], reduction="none")
        names.append(type(loss.grad_fn).__name__)
    assert names[0] == names[1] == "CtcLossBackward0"
