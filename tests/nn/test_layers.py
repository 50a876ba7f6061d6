"""Layers and losses: what Cases cannot say. Expected values are PyTorch's."""

import warnings

import numpy as np
import pytest
import torch
from case import assert_same
from filled import BOTH, filled

import backlight
import backlight.nn.functional as F
from backlight.kernels.nn import softmax as rows
from backlight.kernels.reduction.sorting import sums_by_index

# --- softmax and norms ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_softmax_without_dim_warns_and_chooses_as_pytorch(name, dims):
    results = []
    for t in BOTH:
        with pytest.warns(
            UserWarning, match=f"Implicit dimension choice for {name} has been deprecated. Change the call"
        ):
            results.append(getattr(t.nn.functional, name)(filled(t, *(2,) * dims)))
    assert_same(*results, 1e-6, 1e-6)


def test_softmax_converts_first_if_told_to():
    ours, theirs = (t.nn.functional.softmax(t.tensor([1, 2, 3]), 0, dtype=t.float64) for t in BOTH)
    assert_same(ours, theirs, 1e-12, 0)


@pytest.mark.parametrize(
    "values", [[1e30, 0.0], [-1e30, -1e30], [float("-inf"), 1.0], [float("inf"), 1.0], [200.0, 201.0]]
)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_extreme_numbers_equals_pytorch(name, values):
    ours, theirs = (getattr(t, name)(t.tensor([values, [0.5, 1.0]]), 1) for t in BOTH)
    assert_same(ours, theirs, 1e-6, 1e-30)


def test_rows_that_need_no_shift_give_the_same_as_shifted_ones():
    x = np.random.default_rng(0).normal(size=(5, 33)) * 3
    shifted = rows.shifted(x, -1)
    expected = np.exp(shifted) / np.exp(shifted).sum(-1, keepdims=True)
    np.testing.assert_allclose(rows.softmax(x), expected, rtol=1e-13)
    np.testing.assert_allclose(rows.log_softmax(x), np.log(expected), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 2)])
def test_batch_norm_moves_the_running_statistics_as_pytorch(shape):
    results = []
    for t in BOTH:
        mean, variance = t.zeros(4), t.ones(4)
        t.nn.functional.batch_norm(filled(t, *shape), mean, variance, training=True, momentum=0.3)
        results.append((mean, variance))
    assert_same(*results, 1e-5, 1e-6)


def test_instance_norm_moves_the_running_statistics_as_pytorch():
    results = []
    for t in BOTH:
        mean, variance = t.zeros(4), t.ones(4)
        out = t.nn.functional.instance_norm(filled(t, 3, 4, 5), mean, variance, momentum=0.3)
        results.append((out, mean, variance))
    assert_same(*results, 1e-4, 1e-5)


def test_changing_a_bare_layer_norm_in_place_is_noticed_nowhere_and_harms_nothing():
    x = filled(backlight, 2, 4, dtype="float64").requires_grad_()
    out = F.layer_norm(x, (4,))
    out.mul_(2)
    (grad,) = backlight.autograd.grad(out[0, 0], x)
    y = torch.tensor(x.detach().numpy()).requires_grad_()
    (expected,) = torch.autograd.grad(torch.nn.functional.layer_norm(y, (4,))[0, 0] * 2, y)
    assert_same(grad, expected, 1e-9, 1e-10)


# --- tables -----------------------------------------------------------------------------------------------------------


def embedding_gradient(t, **options):
    weight = filled(t, 5, 3, dtype="float64").requires_grad_()
    out = t.nn.functional.embedding(t.tensor([[1, 2, 1], [4, 1, 2]]), weight, **options)
    (out * filled(t, 2, 3, 3, dtype="float64")).sum().backward()
    return out.detach(), weight.grad


@pytest.mark.parametrize("options", [{"padding_idx": 1}, {"padding_idx": -4}, {"scale_grad_by_freq": True}], ids=str)
def test_embedding_options_change_the_gradient_as_in_pytorch(options):
    assert_same(embedding_gradient(backlight, **options), embedding_gradient(torch, **options), 1e-12, 1e-12)


def test_embedding_shortens_long_rows_in_the_table():
    tables = [filled(t, 5, 3) * 4 for t in BOTH]
    for t, table in zip(BOTH, tables):
        t.nn.functional.embedding(t.tensor([1, 2]), table, max_norm=1.0)
    assert_same(*tables, 1e-6, 1e-6)


def test_embedding_with_padding_has_a_second_derivative():
    weight = filled(backlight, 4, 2, dtype="float64").requires_grad_()
    out = F.embedding(backlight.tensor([0, 1, 1]), weight, padding_idx=0)
    (grad,) = backlight.autograd.grad((out * out).sum(), weight, create_graph=True)
    (second,) = backlight.autograd.grad(grad.sum(), weight)
    assert second[:, 0].tolist() == [0.0, 4.0, 0.0, 0.0]


@pytest.mark.parametrize("count", [0, 1, 50])
def test_sums_by_index_equals_adding_one_by_one(count):
    rng = np.random.default_rng(0)
    index, values = rng.integers(0, 8, count), rng.normal(size=(count, 3))
    expected = np.zeros((8, 3))
    np.add.at(expected, index, values)
    np.testing.assert_allclose(sums_by_index(values, index, 8), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_may_be_empty(mode):
    results = []
    for t in BOTH:
        weight = filled(t, 5, 3, dtype="float64").requires_grad_()
        offsets = t.tensor([0, 2, 2, 4])
        out = t.nn.functional.embedding_bag(
            t.tensor([1, 2, 1, 4]), weight, offsets, mode=mode, include_last_offset=True
        )
        (out * out).sum().backward()
        results.append((out.detach(), weight.grad))
    assert_same(*results, 1e-12, 1e-12)


# --- dropout ----------------------------------------------------------------------------------------------------------

DROPOUTS = ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")
DROPOUT_SHAPES = {"dropout1d": (40, 50, 2), "dropout2d": (40, 50, 2, 2), "dropout3d": (40, 50, 2, 2, 1)}


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_keeps_the_mean(name):
    backlight.manual_seed(0)
    x = backlight.ones(*DROPOUT_SHAPES.get(name, (100, 200)))
    if "alpha" in name:
        x = backlight.randn(100, 200)
    out = getattr(F, name)(x, 0.3, training=True)
    assert abs(out.mean().item() - x.mean().item()) < 0.05


@pytest.mark.parametrize("name", ["dropout1d", "dropout2d", "dropout3d"])
def test_feature_dropout_drops_whole_channels(name):
    backlight.manual_seed(0)
    out = getattr(F, name)(backlight.ones(*DROPOUT_SHAPES[name]), 0.5).reshape(2000, -1)
    assert {tuple(channel) for channel in out.tolist()} == {(0.0,) * out.shape[1], (2.0,) * out.shape[1]}


@pytest.mark.parametrize("name", DROPOUTS)
@pytest.mark.parametrize("options", [{"p": 0.0, "training": True}, {"training": False}], ids=str)
def test_idle_dropout_returns_its_input(name, options):
    x = backlight.ones(*DROPOUT_SHAPES.get(name, (3, 4)))
    assert getattr(F, name)(x, **options) is x


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout"])
def test_dropout_of_everything_gives_zeros_and_a_zero_gradient(name):
    x = backlight.ones(3).requires_grad_()
    out = getattr(F, name)(x, 1.0, training=True)
    out.sum().backward()
    assert out.tolist() == x.grad.tolist() == [0.0, 0.0, 0.0]


def test_dropout_in_place_writes_to_its_input():
    x = backlight.ones(50)
    assert F.dropout(x, 0.5, inplace=True) is x
    assert set(x.tolist()) == {0.0, 2.0}


def test_gumbel_softmax_may_be_hard_and_keeps_its_gradient():
    backlight.manual_seed(0)
    logits = filled(backlight, 4, 3).requires_grad_()
    draw = F.gumbel_softmax(logits, hard=True)
    assert np.allclose(np.sort(draw.detach().numpy(), 1), [[0, 0, 1]] * 4)
    (draw * filled(backlight, 4, 3)).sum().backward()
    assert logits.grad.abs().sum() > 0


# --- attention --------------------------------------------------------------------------------------------------------


def attended(t, dtype="float32", mask=None, lead=(2, 3), keys=5, **options):
    query, key, value = (
        filled(t, *lead, size, 4, dtype=dtype, start=start).requires_grad_()
        for size, start in ((6, 0.1), (keys, 0.7), (keys, 1.9))
    )
    out = t.nn.functional.scaled_dot_product_attention(query, key, value, mask, **options)
    (out * filled(t, *out.shape, dtype=dtype)).sum().backward()
    return out.detach(), query.grad, key.grad, value.grad


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_and_its_gradients_equal_pytorch(dtype, causal):
    tolerance = {"float64": 1e-11, "float32": 1e-5, "float16": 4e-3, "bfloat16": 4e-2}[dtype]
    ours, theirs = (attended(t, dtype, is_causal=causal) for t in BOTH)
    assert_same(ours, theirs, tolerance, tolerance)


def masks(t):
    """Masks of all kinds: rows that see nothing, one value a key, numbers small and huge."""
    sees = (t.arange(30).reshape(6, 5) % 3) != 1
    nothing = t.zeros(6, 5, dtype=t.bool)
    numbers = filled(t, 2, 1, 6, 5) * 5
    infinite = t.where(sees, 0.0, float("-inf"))
    lowest = t.where(sees, 0.0, t.finfo(t.float32).min)
    return [sees, sees[:1], nothing, numbers, infinite, lowest, sees.float() - 300, numbers * 100]


@pytest.mark.parametrize("number", range(8))
def test_masked_attention_equals_pytorch(number):
    ours, theirs = (attended(t, mask=masks(t)[number]) for t in BOTH)
    assert_same(ours, theirs, 1e-4, 1e-5)


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_attention_weights_equal_their_definition(scale):
    rng = np.random.default_rng(0)
    scores, mask = rng.normal(size=(3, 7, 9)) * scale, rng.random((7, 9)) < 0.7
    mask[2] = False
    shifted = np.where(mask, scores, -np.inf)
    weights = np.exp(shifted - np.where(mask, scores, -1e9).max(-1, keepdims=True))
    total = weights.sum(-1, keepdims=True)
    expected = np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)
    np.testing.assert_allclose(rows.attention_weights(scores.copy(), mask), expected, rtol=1e-12)
    numbers = np.where(mask, 0.0, -np.inf)
    np.testing.assert_allclose(rows.attention_weights(scores.copy(), numbers), expected, rtol=1e-12)


def test_attention_drops_probabilities():
    backlight.manual_seed(0)
    eye = backlight.eye(200)
    shares = F.scaled_dot_product_attention(backlight.zeros(200, 200), eye, eye, dropout_p=0.25)
    dropped = (shares == 0).float().mean().item()
    assert abs(dropped - 0.25) < 0.02
    assert np.allclose(shares[shares != 0].numpy(), 1 / 200 / 0.75)


def test_attention_without_dropout_draws_nothing():
    backlight.manual_seed(0)
    before = backlight.get_rng_state()
    attended(backlight)
    assert backlight.equal(before, backlight.get_rng_state())


# --- losses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_of_unequal_sizes_warn_and_broadcast(name):
    results = []
    for t in BOTH:
        with pytest.warns(
            UserWarning, match=r"Using a target size \(torch.Size\(\[4\]\)\) that is different to the input"
        ):
            results.append(getattr(t.nn.functional, name)(filled(t, 3, 1), filled(t, 4)))
    assert_same(*results, 1e-6, 1e-6)


@pytest.mark.parametrize("options", [{"size_average": False}, {"reduce": False}, {"size_average": True}], ids=str)
def test_old_names_of_reductions_warn_and_work(options):
    results = []
    for t in BOTH:
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated, please use reduction="):
            results.append(t.nn.functional.cross_entropy(filled(t, 3, 4), t.tensor([0, 1, 2]), **options))
    assert_same(*results, 1e-6, 1e-6)


def test_kl_div_warns_of_its_mean():
    with pytest.warns(UserWarning, match="reduction: 'mean' divides the total loss by both"):
        ours = F.kl_div(filled(backlight, 2, 3), filled(backlight, 2, 3).softmax(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.nn.functional.kl_div(filled(torch, 2, 3), filled(torch, 2, 3).softmax(1))
    assert_same(ours, theirs, 1e-6, 1e-6)


def test_cross_entropy_of_nothing_but_ignored_targets_is_nan():
    assert F.cross_entropy(filled(backlight, 2, 3), backlight.tensor([-100, -100])).isnan()


def test_cross_entropy_takes_bytes_as_classes():
    ours, theirs = (t.nn.functional.cross_entropy(filled(t, 2, 3), t.tensor([0, 2], dtype=t.uint8)) for t in BOTH)
    assert_same(ours, theirs, 1e-6, 1e-6)


def test_cross_entropy_is_log_softmax_then_nll():
    logits, target = filled(backlight, 5, 4, dtype="float64").requires_grad_(), backlight.tensor([0, 3, 1, 2, 2])
    fused = F.cross_entropy(logits, target)
    apart = F.nll_loss(F.log_softmax(logits, 1), target)
    assert_same(fused.detach(), torch.tensor(apart.item(), dtype=torch.float64), 1e-14, 0)
    (a,), (b,) = backlight.autograd.grad(fused, logits), backlight.autograd.grad(apart, logits)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("target", [0.0, 1.0])
@pytest.mark.parametrize("logit", [-800.0, 0.0, 800.0])
def test_bce_with_logits_never_overflows(logit, target):
    results = []
    for t in BOTH:
        x = t.tensor([logit], requires_grad=True)
        loss = t.nn.functional.binary_cross_entropy_with_logits(x, t.tensor([target]))
        loss.backward()
        results.append((loss.detach(), x.grad))
    assert_same(*results, 1e-6, 1e-6)


@pytest.mark.parametrize(
    ("name", "input", "target"),
    [
        ("binary_cross_entropy_with_logits", [0.0, 0.0, 2.0, -3.0], [0.0, 1.0, 1.0, 0.0]),
        ("soft_margin_loss", [0.0, 0.0, 2.0], [1.0, -1.0, 1.0]),
        ("smooth_l1_loss", [0.0, 0.3, 1.0, -1.0, -2.0], [0.0] * 5),
        ("huber_loss", [0.0, 0.3, 1.0, -1.0, -2.0], [0.0] * 5),
    ],
)
def test_losses_have_pytorchs_derivatives_at_their_joints_also_with_a_graph(name, input, target):
    results = []
    for t in BOTH:
        x, y = t.tensor(input, dtype=t.float64, requires_grad=True), t.tensor(target, dtype=t.float64)
        loss = getattr(t.nn.functional, name)
        (first,) = t.autograd.grad(loss(x, y), x, create_graph=True)
        (second,) = t.autograd.grad(first.sum(), x)
        results.append((first.detach(), second, t.func.grad(loss)(x.detach(), y)))
    assert_same(*results, 1e-12, 1e-12)


@pytest.mark.parametrize(
    "name", ["elu", "selu", "celu", "softplus", "gelu", "silu", "logsigmoid", "softsign", "hardswish"]
)
def test_activations_have_pytorchs_second_derivative_at_zero(name):
    results = []
    for t in BOTH:
        x = t.tensor([0.0, 0.5, -0.5], dtype=t.float64, requires_grad=True)
        (first,) = t.autograd.grad(getattr(t.nn.functional, name)(x).sum(), x, create_graph=True)
        results.append((first.detach(), *t.autograd.grad(first.sum(), x)))
    assert_same(*results, 1e-12, 1e-12)


def test_gradient_of_a_distance_of_zero_is_zero():
    x = backlight.zeros(2, 3, dtype=backlight.float64).requires_grad_()
    backlight.cdist(x, x.detach()).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 2


def test_cosine_similarity_of_zero_is_zero_and_its_gradient_finite():
    x = backlight.zeros(3).requires_grad_()
    similarity = F.cosine_similarity(x, backlight.ones(3), dim=0)
    similarity.backward()
    assert similarity.item() == 0
    assert np.isfinite(x.grad.numpy()).all()
