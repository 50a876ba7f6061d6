"""The loss of a reranker's training, held to PyTorch's; calibration and measures, held to their formulas."""

import numpy as np
import pytest
import torch

import backlight
from backlight.training.reranker.calibration import Platt, calibrate, fit_platt, sigmoid
from backlight.training.reranker.loss import Group, LossWeights, ranking_loss
from backlight.training.reranker.measures import calibration_error, graded_ndcg

F = torch.nn.functional
SIZES = (4, 2, 5)


def group(labels, teacher=None, weight=1.0):
    teacher = (np.nan,) * len(labels) if teacher is None else tuple(teacher)
    return Group("q", ("d",) * len(labels), tuple(labels), teacher, weight)


def drawn(seed: int = 0) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return scores of all documents and a teacher's of each group."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=sum(SIZES)).astype(np.float32), [rng.normal(size=size) for size in SIZES]


def ours(scores, groups, **parts):
    """Return our loss and its gradient."""
    leaf = backlight.tensor(scores, requires_grad=True)
    loss = ranking_loss(leaf, groups, LossWeights(**{"listwise": 0.0, "logistic": 0.0, "distillation": 0.0} | parts))
    loss.backward()
    return loss.item(), leaf.grad.numpy()


def check(scores, groups, expected, **parts):
    """Hold loss and gradient to those of a function of PyTorch's on the scores of each group."""
    leaf = torch.tensor(scores, requires_grad=True)
    sizes = [len(one.documents) for one in groups]
    loss = sum(expected(own, number) for number, own in enumerate(leaf.split(sizes)))
    loss.backward()
    value, gradient = ours(scores, groups, **parts)
    assert value == pytest.approx(loss.item(), rel=1e-5)
    np.testing.assert_allclose(gradient, leaf.grad.numpy(), atol=1e-6)


def test_one_right_document_gives_cross_entropy_and_weights_are_shares():
    scores, _ = drawn()
    groups = [group((1.0,) + (0.0,) * (size - 1), weight=size) for size in SIZES]
    check(
        scores,
        groups,
        lambda own, number: F.cross_entropy(own[None], torch.tensor([0])) * SIZES[number] / sum(SIZES),
        listwise=1.0,
    )


def test_graded_documents_share_the_softmax():
    scores, _ = drawn()
    shares = torch.tensor([4, 1, 0, 1.0]) / 6
    check(scores[:4], [group((1.0, 0.25, 0.0, 0.25))], lambda own, _: -(own.log_softmax(0) @ shares), listwise=1.0)


def test_right_and_wrong_documents_count_as_much_in_the_logistic_part():
    scores, _ = drawn()
    groups = [group((1.0,) + (0.0,) * (size - 1)) for size in SIZES]
    check(
        scores,
        groups,
        lambda own, _: 0.3 * 0.5 * (F.softplus(-own[0]) + F.softplus(own[1:]).mean()) / 3,
        logistic=0.3,
    )


def test_a_query_that_nothing_answers_has_the_logistic_part_alone():
    scores, _ = drawn()
    parts = {"listwise": 1.0, "logistic": 1.0, "distillation": 1.0}
    check(scores[:4], [group((0.0,) * 4)], lambda own, _: 0.5 * F.softplus(own).mean(), **parts)


def test_a_teacher_is_followed_over_the_documents_that_it_scored():
    scores, teacher = drawn()
    teacher[0][0] = np.nan  # of the first query all but the right one, of the second one alone: nothing to follow
    teacher[1][1] = np.nan
    groups = [group((1.0,) + (0.0,) * (size - 1), own) for size, own in zip(SIZES, teacher)]

    def expected(own, number):
        known = ~torch.isnan(torch.tensor(teacher[number]))
        wanted = (torch.tensor(teacher[number])[known] / 0.5).softmax(0).float()
        return 0.7 * F.kl_div(own[known].log_softmax(0), wanted, reduction="sum") / 3

    check(scores, groups, expected, distillation=0.7, temperature=0.5)


def test_margins_are_those_of_the_teacher():
    scores, teacher = drawn()
    teacher[0][2] = np.nan
    teacher[2][0] = np.nan  # without the right one's score there is no margin
    groups = [group((1.0,) + (0.0,) * (size - 1), own) for size, own in zip(SIZES, teacher)]

    def expected(own, number):
        known = ~np.isnan(teacher[number][1:])
        theirs = torch.tensor(np.nan_to_num(teacher[number])).float()
        if number == 2:
            return own.sum() * 0
        gaps = ((own[0] - own[1:]) - (theirs[0] - theirs[1:]) / 2) ** 2
        return gaps[torch.tensor(known)].mean() / 3

    check(scores, groups, expected, distillation=1.0, temperature=2.0, distillation_loss="margin-mse")


def test_a_step_in_parts_has_the_gradient_of_the_whole():
    scores, teacher = drawn()
    groups = [group((1.0,) + (0.0,) * (size - 1), own, size) for size, own in zip(SIZES, teacher)]
    _, whole = ours(scores, groups, listwise=1.0, logistic=0.3, distillation=0.5)
    leaf = backlight.tensor(scores, requires_grad=True)
    for part, own in zip(groups, leaf.split(SIZES)):
        ranking_loss(own, [part], LossWeights(), sum(SIZES)).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), whole, atol=1e-6)


def test_platt_finds_the_scale_and_offset_that_labels_were_drawn_with():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, 20_000)
    labels = (rng.random(20_000) < sigmoid(0.5 * logits - 2)).astype(float)
    found = fit_platt(logits, labels)
    assert found.scale == pytest.approx(0.5, abs=0.03) and found.offset == pytest.approx(-2, abs=0.06)


def test_platt_changes_nothing_where_it_cannot_help():
    assert fit_platt(np.array([1.0, 2.0]), np.ones(2)) == Platt()
    worse = fit_platt(np.array([2.0, 1.0, -1.0, -2.0]), np.array([0.0, 0.0, 1.0, 1.0]))
    assert worse == Platt()


def test_calibration_is_measured_on_the_other_half_of_the_queries():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, 4000)
    labels = (rng.random(4000) < sigmoid(0.5 * logits - 2)).astype(float)
    found = calibrate(logits, labels, np.repeat(np.arange(400), 10), np.array(["a", "b"] * 200))
    assert found.before["all"] > 0.2 and found.after["all"] < 0.03
    assert set(found.after) == {"all", "a", "b"} and found.after["a"] < found.before["a"]
    right = np.where(np.arange(4000) % 20 < 10, labels, 1 - labels)  # what one half teaches is wrong of the other
    turned = calibrate(logits, right, np.repeat(np.arange(400), 10), np.array(["a"] * 400))
    assert turned.after["all"] > 0.2


def test_the_calibration_error_is_the_mean_gap_of_the_bins():
    probabilities, labels = np.array([0.05, 0.05, 0.95, 0.95, 1.0]), np.array([0, 1, 1, 1, 0])
    expected = (2 * abs(0.05 - 0.5) + 3 * abs(2.9 / 3 - 2 / 3)) / 5
    assert calibration_error(probabilities, labels) == pytest.approx(expected)


def test_graded_ndcg_is_that_of_the_formula_and_ties_share():
    discounts = 1 / np.log2(np.arange(2, 5))
    labels = [0.0, 1.0, 0.5]
    expected = (discounts[0] * 0.5 + discounts[1] * 1.0) / (discounts[0] + 0.5 * discounts[1])
    assert graded_ndcg([0.1, 0.2, 0.3], labels) == pytest.approx(expected)
    assert graded_ndcg([1.0, 1.0, 1.0], [1, 0, 0]) == pytest.approx(discounts.mean())
    assert graded_ndcg(-np.arange(12.0), [0.0] * 10 + [1.0, 0.0]) == 0
