"""Layers that normalise, drop, bend and compare start, print, save, compute and differentiate as PyTorch's do."""

import numpy as np
import pytest
import torch

import backlight

KINDS = {"float32": 1e-5, "float64": 1e-10}

LAYERS = {
    "batch norm of vectors": (lambda t: t.nn.BatchNorm1d(3), [(6, 3)]),
    "batch norm of lines": (lambda t: t.nn.BatchNorm1d(3, eps=0.1, momentum=0.3), [(4, 3, 5)]),
    "batch norm of images": (lambda t: t.nn.BatchNorm2d(3, momentum=None), [(2, 3, 4, 5)]),
    "batch norm of volumes": (lambda t: t.nn.BatchNorm3d(2), [(2, 2, 2, 3, 2)]),
    "batch norm without weight": (lambda t: t.nn.BatchNorm2d(3, affine=False), [(2, 3, 4, 5)]),
    "batch norm without bias": (lambda t: t.nn.BatchNorm2d(3, bias=False), [(2, 3, 4, 5)]),
    "batch norm without memory": (lambda t: t.nn.BatchNorm1d(3, track_running_stats=False), [(6, 3)]),
    "instance norm of lines": (lambda t: t.nn.InstanceNorm1d(3), [(2, 3, 5)]),
    "instance norm of one line": (lambda t: t.nn.InstanceNorm1d(3, affine=True), [(3, 5)]),
    "instance norm of images": (
        lambda t: t.nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
        [(2, 3, 4, 5)],
    ),
    "instance norm of volumes": (lambda t: t.nn.InstanceNorm3d(2), [(2, 2, 2, 3, 2)]),
    "group norm": (lambda t: t.nn.GroupNorm(2, 4), [(3, 4, 5)]),
    "group norm without weight": (lambda t: t.nn.GroupNorm(2, 4, eps=0.1, affine=False), [(3, 4)]),
    "rms norm": (lambda t: t.nn.RMSNorm(4), [(3, 4)]),
    "rms norm over two dims": (lambda t: t.nn.RMSNorm((3, 4), eps=0.1, elementwise_affine=False), [(2, 3, 4)]),
    "local response norm": (lambda t: t.nn.LocalResponseNorm(3, alpha=0.1), [(2, 5, 3, 3)]),
    "bilinear": (lambda t: t.nn.Bilinear(3, 4, 2), [(5, 3), (5, 4)]),
    "bilinear without bias": (lambda t: t.nn.Bilinear(3, 4, 2, bias=False), [(2, 5, 3), (2, 5, 4)]),
    "softmin": (lambda t: t.nn.Softmin(dim=1), [(2, 4)]),
    "softmax over channels": (lambda t: t.nn.Softmax2d(), [(2, 3, 2, 2)]),
    "gated linear unit": (lambda t: t.nn.GLU(1), [(2, 4, 3)]),
    "one trained slope": (lambda t: t.nn.PReLU(), [(2, 4)]),
    "trained slopes": (lambda t: t.nn.PReLU(4, init=0.1), [(2, 4, 3)]),
    "random slopes": (lambda t: t.nn.RReLU(0.2, 0.4), [(3, 4)]),
    "threshold": (lambda t: t.nn.Threshold(0.1, -2.0), [(3, 4)]),
    "hard sigmoid": (lambda t: t.nn.Hardsigmoid(), [(3, 4)]),
    "hard swish": (lambda t: t.nn.Hardswish(), [(3, 4)]),
    "hard shrink": (lambda t: t.nn.Hardshrink(0.3), [(3, 4)]),
    "soft shrink": (lambda t: t.nn.Softshrink(0.3), [(3, 4)]),
    "tanh shrink": (lambda t: t.nn.Tanhshrink(), [(3, 4)]),
    "cosine similarity": (lambda t: t.nn.CosineSimilarity(dim=0), [(3, 4), (3, 4)]),
    "pairwise distance": (lambda t: t.nn.PairwiseDistance(p=3, keepdim=True), [(3, 4), (3, 4)]),
    "dropout of lines": (lambda t: t.nn.Dropout1d(0.4), [(3, 4, 5)]),
    "dropout of images": (lambda t: t.nn.Dropout2d(0.4), [(3, 4, 2, 5)]),
    "dropout of volumes": (lambda t: t.nn.Dropout3d(0.4), [(3, 4, 2, 2, 2)]),
    "alpha dropout": (lambda t: t.nn.AlphaDropout(0.3), [(5, 6)]),
    "alpha dropout of channels": (lambda t: t.nn.FeatureAlphaDropout(0.3), [(5, 6, 2)]),
}


def arrays_of(module) -> dict:
    """Return the state of a module of either side as arrays."""
    return {name: tensor.detach().numpy().copy() for name, tensor in module.state_dict().items()}


def other_numbers(layer) -> dict:
    """Return numbers for a layer's state that are neither all ones nor all zeros; counts stay as they are."""
    rng = np.random.default_rng(8)
    return {
        name: array if array.dtype.kind == "i" else rng.uniform(0.5, 1.5, array.shape).astype(array.dtype)
        for name, array in arrays_of(layer).items()
    }


def run(t, layer, arrays: list, seed: int = 5):
    """Return the output of a layer, the gradients of inputs and parameters, and its state afterwards."""
    t.manual_seed(seed)
    inputs = [t.tensor(array, requires_grad=True) for array in arrays]
    out = layer(*inputs)
    (out * out).sum().backward()
    grads = [tensor.grad.numpy() for tensor in [*inputs, *layer.parameters()]]
    return out.detach().numpy(), grads, arrays_of(layer)


def assert_close(ours, theirs, tolerance: float) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, strict=True)


def assert_same_run(ours, theirs, tolerance: float) -> None:
    assert_close(ours[0], theirs[0], tolerance)
    for mine, other in zip(ours[1], theirs[1], strict=True):
        assert_close(mine, other, tolerance * 10)
    assert list(ours[2]) == list(theirs[2])
    for name, array in ours[2].items():
        assert_close(array, theirs[2][name], tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_pytorchs(name, kind):
    make, shapes = LAYERS[name]
    rng = np.random.default_rng(3)
    layers = {}
    for t in (torch, backlight):
        t.manual_seed(5)
        layers[t] = make(t).to(getattr(t, kind))
    theirs, ours = layers[torch], layers[backlight]
    assert repr(ours) == repr(theirs)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert mine.tolist() == other.tolist()
    state = other_numbers(theirs)
    theirs.load_state_dict({key: torch.tensor(array) for key, array in state.items()})
    ours.load_state_dict(arrays_of(theirs))
    for training in (True, True, False):
        arrays = [rng.normal(size=shape).astype(kind) for shape in shapes]
        ours.train(training).zero_grad()
        theirs.train(training).zero_grad()
        tolerance = 1e-8 if name == "hard sigmoid" else KINDS[kind]  # PyTorch rounds 1/6 to float32
        assert_same_run(run(backlight, ours, arrays), run(torch, theirs, arrays), max(tolerance, KINDS[kind]))
    back = {key: torch.from_numpy(array) for key, array in arrays_of(ours).items()}
    assert str(theirs.load_state_dict(back)) == "<All keys matched successfully>"


MISTAKES = {
    "batch norm of too many dims": lambda t: t.nn.BatchNorm2d(3)(t.ones(2, 3)),
    "batch norm of vectors or lines": lambda t: t.nn.BatchNorm1d(3)(t.ones(2, 3, 4, 5)),
    "batch norm of one number": lambda t: t.nn.BatchNorm1d(3)(t.ones(1, 3)),
    "instance norm of too few dims": lambda t: t.nn.InstanceNorm2d(3)(t.ones(2, 3)),
    "instance norm of other channels": lambda t: t.nn.InstanceNorm1d(3, affine=True)(t.ones(2, 4, 5)),
    "channels that do not fall into groups": lambda t: t.nn.GroupNorm(3, 4),
    "softmax2d of a matrix": lambda t: t.nn.Softmax2d()(t.ones(2, 3)),
    "no probability": lambda t: t.nn.Dropout2d(2),
    "bilinear of nothing": lambda t: t.nn.Bilinear(0, 1, 1),
    "margin below 0": lambda t: t.nn.TripletMarginLoss(margin=-1.0),
    "power of 3": lambda t: t.nn.MultiMarginLoss(p=3),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_pytorchs_words(mistake):
    with pytest.raises(ValueError) as theirs:
        MISTAKES[mistake](torch)
    with pytest.raises(ValueError) as ours:
        MISTAKES[mistake](backlight)
    assert str(ours.value).startswith(str(theirs.value))


def test_a_state_from_before_batches_were_counted_loads():
    layer = backlight.nn.BatchNorm1d(2)
    state = arrays_of(layer)
    del state["num_batches_tracked"]
    assert str(layer.load_state_dict(state)) == "<All keys matched successfully>"


def test_a_buffer_registers_itself():
    for t in (torch, backlight):
        module = t.nn.Module()
        module.scale = t.nn.Buffer(t.ones(2))
        module.hidden = t.nn.Buffer(t.ones(1))
        module.hidden = t.nn.Buffer(t.zeros(1), persistent=False)
        assert [name for name, _ in module.named_buffers()] == ["scale", "hidden"]
        assert list(module.state_dict()) == ["scale"]
        assert list(module.parameters()) == []
        assert (module.scale * 2).tolist() == [2.0, 2.0]


# --- bags -------------------------------------------------------------------------------------------------------------

BAGS = {
    "mean": ({}, False),
    "sum, weighted": ({"mode": "sum"}, True),
    "max": ({"mode": "max", "padding_idx": 2}, False),
    "padded": ({"padding_idx": -1, "mode": "sum"}, False),
    "ends given": ({"include_last_offset": True}, False),
    "short rows": ({"max_norm": 1.0}, False),
}


@pytest.mark.parametrize("name", BAGS)
def test_embedding_bag_is_pytorchs(name):
    options, weighted = BAGS[name]
    offsets = [0, 2, 5] if options.get("include_last_offset") else [0, 2]
    found = []
    for t in (backlight, torch):
        t.manual_seed(5)
        bags = t.nn.EmbeddingBag(6, 3, **options)
        factors = t.tensor([1.0, 2.0, 3.0, 4.0, 5.0]) if weighted else None
        out = bags(t.tensor([1, 4, 5, 2, 1]), t.tensor(offsets), factors)
        (out * out).sum().backward()
        found.append((repr(bags), out.detach().numpy(), bags.weight.grad.numpy()))
    assert found[0][0] == found[1][0]
    assert_close(found[0][1], found[1][1], 1e-5)
    assert_close(found[0][2], found[1][2], 1e-5)


def test_embedding_bag_over_given_rows_is_frozen_unless_told_otherwise():
    rows = backlight.arange(6.0).reshape(3, 2)
    bags = backlight.nn.EmbeddingBag.from_pretrained(rows)
    assert bags(backlight.tensor([[0, 2]])).tolist() == [[2.0, 3.0]]
    assert not bags.weight.requires_grad
    assert backlight.nn.EmbeddingBag.from_pretrained(rows, freeze=False).weight.requires_grad


# --- losses -----------------------------------------------------------------------------------------------------------

SIGNS = [1.0, -1.0, 1.0, -1.0]
CLASSES = [0, 2, 1, 2]
LOSSES = {
    "hinge": (lambda t: t.nn.HingeEmbeddingLoss(0.7), 1, [SIGNS], (4,)),
    "ranking": (lambda t: t.nn.MarginRankingLoss(0.3), 2, [SIGNS], (4,)),
    "cosine": (lambda t: t.nn.CosineEmbeddingLoss(0.1, reduction="sum"), 2, [SIGNS], (4, 3)),
    "soft margin": (lambda t: t.nn.SoftMarginLoss(), 1, [SIGNS], (4,)),
    "triplet": (lambda t: t.nn.TripletMarginLoss(p=1, swap=True), 3, [], (4, 3)),
    "triplet with a distance": (
        lambda t: t.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1)),
        3,
        [],
        (4, 3),
    ),
    "several classes": (lambda t: t.nn.MultiMarginLoss(p=2, margin=0.5), 1, [CLASSES], (4, 3)),
    "labels": (lambda t: t.nn.MultiLabelMarginLoss(), 1, [[[0, -1, 1], [2, 1, -1], [1, 0, 2], [-1, 0, 0]]], (4, 3)),
    "soft labels": (lambda t: t.nn.MultiLabelSoftMarginLoss(), 1, [[[1.0, 0.0, 1.0]] * 4], (4, 3)),
    "counts": (lambda t: t.nn.PoissonNLLLoss(full=True), 1, [[1.0, 2.0, 0.0, 3.0]], (4,)),
    "normal": (lambda t: t.nn.GaussianNLLLoss(full=True), 1, [[1.0, 2.0, 0.0, 3.0], [0.5, 1.0, 2.0, 1.0]], (4,)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOSSES)
def test_loss_is_pytorchs(name, kind):
    make, count, targets, shape = LOSSES[name]
    arrays = [np.random.default_rng(seed).normal(size=shape).astype(kind) for seed in range(count)]
    found = []
    for t in (backlight, torch):
        given = [t.tensor(values) for values in targets]
        given = [values.to(getattr(t, kind)) if values.is_floating_point() else values for values in given]
        loss, inputs = make(t), [t.tensor(array, requires_grad=True) for array in arrays]
        out = loss(*inputs, *given)
        out.backward()
        found.append((repr(loss), out.detach().numpy(), [tensor.grad.numpy() for tensor in inputs]))
    assert found[0][0] == found[1][0]
    assert_close(found[0][1], found[1][1], KINDS[kind])
    for mine, other in zip(found[0][2], found[1][2], strict=True):
        assert_close(mine, other, KINDS[kind])
