"""Layers of which each has its own family: adaptive softmax, and PyTorch's older names."""

import pytest
from case import assert_same
from filled import BOTH, filled
from parity import assert_same as assert_expression


def adaptive(t, dtype="float64", **options):
    t.manual_seed(0)
    return t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [3, 9], div_value=2.0, dtype=getattr(t, dtype), **options)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 1e-5)])
@pytest.mark.parametrize("targets", [[0, 5, 19, 2, 9, 8], [0, 1, 2], [12, 13], 7, 1], ids=str)
@pytest.mark.parametrize("head_bias", [False, True])
def test_adaptive_softmax_and_its_gradients_equal_pytorch(targets, head_bias, dtype, tolerance):
    results = []
    for t in BOTH:
        layer = adaptive(t, dtype, head_bias=head_bias)
        target = t.tensor(targets)
        x = filled(t, *target.shape, 8, dtype=dtype).requires_grad_()
        output, loss = layer(x, target)
        loss.backward()
        grads = [p.grad for p in layer.parameters() if p.grad is not None and p.grad.abs().sum().item()]
        results.append((output.detach(), loss.detach(), x.grad, grads))
    assert_same(*results, tolerance, tolerance)


def test_adaptive_softmax_prints_predicts_and_keeps_state_as_pytorchs():
    ours, theirs = (adaptive(t) for t in BOTH)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    inputs = [filled(t, 12, 8, dtype="float64") * 9 for t in BOTH]
    assert_same(ours.log_prob(inputs[0]), theirs.log_prob(inputs[1]), 1e-8, 1e-8)
    assert_same(ours.predict(inputs[0]), theirs.predict(inputs[1]), 0, 0)
    result = ours(inputs[0], inputs[0].argmax(1))
    assert result.loss is result[1] and result.output is result[0]


def test_all_log_probabilities_of_adaptive_softmax_sum_to_one():
    layer = adaptive(BOTH[0])
    total = layer.log_prob(filled(BOTH[0], 5, 8, dtype="float64")).exp().sum(1)
    assert total.tolist() == pytest.approx([1.0] * 5)


LAYER = "torch.nn.AdaptiveLogSoftmaxWithLoss"


@pytest.mark.parametrize(
    "expression",
    [
        f"{LAYER}(8, 20, [])",
        f"{LAYER}(8, 20, [3, 3])",
        f"{LAYER}(8, 20, [0, 3])",
        f"{LAYER}(8, 20, [3, 20])",
        f"{LAYER}(8, 20, [3.5])",
        f"{LAYER}(8, 20, [3])(torch.ones(2, 8), torch.tensor([1]))",
        f"{LAYER}(8, 20, [3])(torch.ones(8), torch.tensor([[1]]))",
        f"{LAYER}(8, 20, [3])(torch.ones(2, 1, 8), torch.tensor([1, 2]))",
        f"{LAYER}(8, 20, [3])(torch.ones(2, 8), torch.tensor(1))",
        f"{LAYER}(8, 20, [3])(torch.ones(2, 8), torch.tensor([1, 20]))",
    ],
)
def test_messages_are_pytorchs(expression):
    assert_expression(expression)


def test_old_names_warn_and_work():
    results = []
    for t in BOTH:
        with pytest.warns(FutureWarning, match="`NLLLoss2d` has been deprecated"):
            loss = t.nn.NLLLoss2d(reduction="sum")
        results.append(loss(filled(t, 1, 3, 2, 2), t.tensor([[[0, 2], [1, 1]]])))
        with pytest.warns(FutureWarning, match="`nn.Container` is deprecated"):
            assert repr(t.nn.Container(a=t.nn.ReLU())) == "Container(\n  (a): ReLU()\n)"
    assert_same(*results, 1e-6, 1e-6)


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ("", [1, 3]),
        ("bias=True, label_smoothing=0.2", [0, 2]),
        ("out_features=(2,), reduction='sum'", [[1, 0], [3, 2]]),
    ],
)
def test_cross_entropy_of_a_linear_layer_equals_pytorch(options, target):
    results, texts = [], []
    for t in BOTH:
        t.manual_seed(0)
        layer = eval(f"t.nn.LinearCrossEntropyLoss(5, 4, {options})").double()
        loss = layer(filled(t, 2, 5, dtype="float64"), t.tensor(target))
        loss.backward()
        texts.append((repr(layer), list(layer.state_dict())))
        results.append([loss.detach(), *(parameter.grad for parameter in layer.parameters())])
    assert texts[0] == texts[1]
    assert_same(*results, 1e-6, 1e-7)


@pytest.mark.parametrize("pad", [0, 1, 2])
def test_convolution_over_time_first_equals_pytorch(pad):
    results = []
    for t in BOTH:
        parts = [filled(t, *shape, dtype="float64").requires_grad_() for shape in ((6, 2, 3), (3, 3, 4), (4,))]
        out = t.nn.functional.conv_tbc(*parts, pad)
        (out * out).sum().backward()
        results.append([out.detach(), *(part.grad for part in parts)])
    assert_same(*results, 1e-8, 1e-8)


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (3, 3, 4), (4,)),
        ((5, 2, 3), (3, 4), (4,)),
        ((5, 2, 3), (3, 3, 4), (1, 4)),
        ((5, 2, 2), (3, 3, 4), (4,)),
    ],
    ids=str,
)
def test_convolution_over_time_first_says_what_pytorch_says(shapes):
    assert_expression(f"torch.conv_tbc(*[torch.ones(shape) for shape in {shapes}])")
