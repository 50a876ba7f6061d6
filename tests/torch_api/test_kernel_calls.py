"""Layers and losses under torch.*, which take the positional arguments of PyTorch's kernels."""

import numpy as np
import pytest
import torch
from case import as_array, flat

import backlight

RNG = np.random.default_rng(3)
IMAGE = RNG.normal(size=(3, 4, 5))
LOGITS, OTHER = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
VECTOR = RNG.normal(size=4)
STEPS = RNG.normal(size=(5, 2, 3))  # (time, batch, size)


def log_softmax(t, x):
    return t.log_softmax(x, -1)


CALLS = {
    "batch_norm": (lambda t, x, w: t.batch_norm(x, w, None, None, None, True, 0.1, 1e-5, True), [IMAGE, VECTOR]),
    "batch_norm in evaluation": (
        lambda t, x, w: t.batch_norm(x, w, w, t.zeros(4).double(), t.ones(4).double(), False, 0.1, 1e-5, True),
        [IMAGE, VECTOR],
    ),
    "instance_norm": (lambda t, x, w: t.instance_norm(x, w, w, None, None, True, 0.1, 1e-5, True), [IMAGE, VECTOR]),
    "binary_cross_entropy_with_logits": (
        lambda t, x, y: t.binary_cross_entropy_with_logits(x, y.sigmoid(), None, None, 2),
        [LOGITS, OTHER],
    ),
    "cosine_embedding_loss": (
        lambda t, x, y: t.cosine_embedding_loss(x, y, t.tensor(SIGNS), 0.1, 0),
        [LOGITS, OTHER],
    ),
    "hinge_embedding_loss": (lambda t, x: t.hinge_embedding_loss(x, t.tensor(SIGNS), 1.0, 2), [VECTOR]),
    "kl_div": (lambda t, x, y: t.kl_div(log_softmax(t, x), log_softmax(t, y), 1, log_target=True), [LOGITS, OTHER]),
    "kl_div of probabilities": (lambda t, x, y: t.kl_div(log_softmax(t, x), y.exp(), 2), [LOGITS, OTHER]),
    "margin_ranking_loss": (lambda t, x: t.margin_ranking_loss(x, x.flip(0), t.tensor(SIGNS), 0.2), [VECTOR]),
    "poisson_nll_loss": (lambda t, x, y: t.poisson_nll_loss(x, y.exp(), True, False, 1e-8, 1), [LOGITS, OTHER]),
    "triplet_margin_loss": (
        lambda t, x, y: t.triplet_margin_loss(x, y, x * y, 1.0, 2.0, 1e-6, True, 0),
        [LOGITS, OTHER],
    ),
    "ctc_loss": (
        lambda t, x: t.ctc_loss(
            log_softmax(t, x), t.tensor([[1, 2], [2, 1]]), t.tensor([5, 5]), t.tensor([2, 1]), 0, 2, True
        ),
        [STEPS],
    ),
    "norm_except_dim": (
        lambda t, x: [t.norm_except_dim(x, 2, dim) for dim in (-1, 0, 1, 2)],
        [IMAGE],
    ),
    "unsafe_split_with_sizes": (lambda t, x: t.unsafe_split_with_sizes(x, [1, 3], 1), [IMAGE]),
    "rrelu": (lambda t, x: t.rrelu(x, 0.1, 0.3, False), [LOGITS]),
    "rrelu_": (lambda t, x: t.rrelu_(x * 2, 0.1, 0.3), [LOGITS]),
}


def tensors(module, arrays):
    return [module.tensor(array.tolist(), dtype=module.float64, requires_grad=True) for array in arrays]


def results(module, call, arrays):
    """Return what a call returns and the gradients of a sum with uneven weights over it."""
    inputs = tensors(module, arrays)
    found = flat(call(module, *inputs))
    floats = [one for one in found if one.requires_grad]
    total = sum((one.double() * (one.detach().double() + 0.5).cos()).sum() for one in floats)
    gradients = module.autograd.grad(total, inputs, allow_unused=True) if floats else []
    return found, [one for one in gradients if one is not None]


def assert_equal(call, arrays):
    ours, theirs = results(backlight, call, arrays), results(torch, call, arrays)
    for mine, other in zip(ours, theirs):
        assert len(mine) == len(other)
        for a, b in zip(mine, other):
            assert tuple(a.shape) == tuple(b.shape)
            np.testing.assert_allclose(as_array(a), as_array(b), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_pytorchs(name):
    assert_equal(*CALLS[name])


BAGS = [(mode, padding) for mode in (0, 1, 2) for padding in (None, 4)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("mode", "padding"), BAGS)
def test_embedding_bag_returns_its_tables(mode, padding, dtype):
    def call(t, table):
        table = table.to(getattr(t, dtype))
        rows, offsets = t.tensor([1, 2, 4, 5, 4]), t.tensor([0, 2, 2])
        more = () if padding is None else (padding,)
        return t.embedding_bag(table, rows, offsets, False, mode, False, None, False, *more)

    assert_equal(call, [RNG.normal(size=(6, 2))])


def weights_of(
    kind: str, directions: int, biases: bool, layers: int = 2, size: int = 3, hidden: int = 4, proj: int = 0
):
    rows = {"lstm": 4, "gru": 3}.get(kind, 1) * hidden
    shapes = []
    for layer in range(layers):
        for _ in range(directions):
            shapes += [(rows, size if layer == 0 else (proj or hidden) * directions), (rows, proj or hidden)]
            shapes += [(rows,), (rows,)] * biases + [(proj, hidden)] * bool(proj)
    return [RNG.normal(size=shape) * 0.4 for shape in shapes]


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize(("directions", "biases"), [(1, True), (2, True), (2, False)])
def test_recurrent_layers_take_padded_and_packed_input(kind, directions, biases):
    first = [RNG.normal(size=(2 * directions, 2, 4)) for _ in range(2 if kind == "lstm" else 1)]
    arrays = [STEPS, *first, *weights_of(kind, directions, biases)]

    def padded(t, x, *rest):
        hx, params = list(rest[: len(first)]), list(rest[len(first) :])
        run, hx = getattr(t, kind), hx if kind == "lstm" else hx[0]
        return run(x, hx, params, biases, 2, 0.0, False, directions == 2, False)

    def batch_first(t, x, *rest):
        hx, params = list(rest[: len(first)]), list(rest[len(first) :])
        run, hx = getattr(t, kind), hx if kind == "lstm" else hx[0]
        return run(x.transpose(0, 1), hx, params, biases, 2, 0.5, False, directions == 2, batch_first=True)

    def packed(t, x, *rest):
        hx, params = list(rest[: len(first)]), list(rest[len(first) :])
        run, hx = getattr(t, kind), hx if kind == "lstm" else hx[0]
        return run(x.reshape(10, 3)[:8], t.tensor([2, 2, 2, 1, 1]), hx, params, biases, 2, 0.0, False, directions == 2)

    for call in (padded, batch_first, packed):
        assert_equal(call, arrays)


def test_lstm_projects():
    arrays = [STEPS, RNG.normal(size=(2, 2, 2)), RNG.normal(size=(2, 2, 4)), *weights_of("lstm", 1, True, proj=2)]
    assert_equal(lambda t, x, h, c, *w: t.lstm(x, [h, c], list(w), True, 2, 0.0, True, False, False), arrays)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("biases", [True, False])
def test_cells_take_one_step(kind, biases):
    states = [RNG.normal(size=(2, 4)) for _ in range(2 if kind == "lstm" else 1)]
    weights = weights_of(kind, 1, biases, layers=1)

    def call(t, x, *rest):
        hx = list(rest[: len(states)]) if kind == "lstm" else rest[0]
        return getattr(t, f"{kind}_cell")(x, hx, *rest[len(states) :])

    assert_equal(call, [STEPS[0], *states, *weights])


def test_wrong_arguments_say_which_forms_there_are():
    with pytest.raises(TypeError, match=r"gru\(\) received an invalid combination of arguments"):
        backlight.gru(backlight.zeros(1, 1, 1))
    with pytest.raises(RuntimeError, match="lstm expects two hidden states"):
        backlight.lstm(backlight.zeros(1, 1, 1), [], [], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="3 is not a valid value for reduction"):
        backlight.kl_div(backlight.zeros(2), backlight.ones(2), 3)


@pytest.mark.parametrize("name", ["dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_", "rrelu_"])
def test_what_draws_writes_into_its_input(name):
    def call(t, draws):
        t.manual_seed(5)
        x = t.ones(40, 6) * -2
        return x, getattr(t, name)(x, *draws)

    draws = (0.1, 0.3, True) if name == "rrelu_" else (0.5, True)
    x, out = call(backlight, draws)
    assert out is x
    np.testing.assert_allclose(x.numpy(), call(torch, draws)[0].numpy(), rtol=1e-5)


def test_rrelu_draws_from_a_generator_of_its_own():
    own = [module.Generator().manual_seed(7) for module in (backlight, torch)]
    ours, theirs = (
        module.rrelu(-module.ones(50).double(), 0.1, 0.3, True, one) for module, one in zip((backlight, torch), own)
    )
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_embedding_renorm_writes_into_its_table():
    for module in (backlight, torch):
        x = module.tensor([[3.0, 4.0], [0.3, 0.4]], requires_grad=True)
        copied = x.detach().clone()
        assert module.embedding_renorm_(copied, module.tensor([0, 1]), 1.0, 2.0) is copied
        np.testing.assert_allclose(copied.tolist(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-5)
