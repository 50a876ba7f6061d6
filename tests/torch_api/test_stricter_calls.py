"""Calls that PyTorch refuses, or answers in another dtype: same values, or PyTorch's error and its first line."""

import pytest
import torch
from parity import assert_same

import backlight

LOSSES = (
    "mse_loss",
    "l1_loss",
    "huber_loss",
    "soft_margin_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
)
KINDS = ("float32 int64", "int64 float32", "float32 float64", "float64 float32", "float16 float32")
CALLS = """
F.cross_entropy(torch.ones(1, 2), torch.tensor([0]), weight=torch.ones(2).double())
F.nll_loss(torch.ones(1, 2), torch.tensor([0]), weight=torch.tensor([1, 2]))
F.multi_margin_loss(torch.ones(1, 2), torch.tensor([0]), weight=torch.tensor([1, 2]))
F.multi_margin_loss(torch.ones(2, 2), torch.tensor([[0, 1]]))
F.cross_entropy(torch.ones(1, 2), torch.ones(1, 2), ignore_index=0)
torch.cdist(torch.ones(2, 3), torch.ones(2, 3).double())
torch.add(torch.ones(1), 1, out=[torch.ones(1)])
torch.mean(torch.ones(2), 0, out=torch.empty((), dtype=torch.int32))
torch.topk(torch.ones(2), 1, out=(torch.empty(1),))
torch.topk(torch.ones(2), 1, out=torch.empty(1))
torch.abs(torch.tensor([3j]), out=torch.empty(1, dtype=torch.half))
torch.abs(torch.tensor([3j]), out=torch.empty(1, dtype=torch.int))
torch.abs(torch.tensor([3j]), out=torch.empty(1, dtype=torch.complex128))
torch.tensor([1j]).abs_()
torch.ones(1).float_power_(2)
torch.ones(1).double().float_power_(2)
torch.tensor([True]).pow_(True)
torch.tensor([True, False]).median(0)
torch.tensor([1j]).cummax(0)
torch.zeros(2).repeat_interleave(torch.tensor([1.0, 2.0]))
torch.repeat_interleave(torch.tensor([1, 2]), output_size=5)
torch.ones(4).as_strided((2,), (1,), -1)
torch.tensor(1.0).mH
torch.hann_window(3, layout=torch.sparse_coo)
torch.kaiser_window(3, dtype=torch.complex64)
torch.hann_window(1, dtype=torch.complex64)
torch.hann_window(3, dtype=torch.int64)
torch.bernoulli(torch.tensor([1.5]))
torch.all(torch.tensor([[0.0, 1.0], [2.0, 3.0]]), dim=())
torch.any(torch.tensor([2], dtype=torch.uint8), dim=[])
torch.all(torch.tensor([0.0, 1.0]), dim=None, keepdim=True)
torch.add(torch.ones(1), torch.device("cpu"))
F.mse_loss()
F.mse_loss(torch.ones(1))
F.gumbel_softmax()
"""


@pytest.mark.parametrize("expression", CALLS.strip().splitlines())
def test_calls_are_refused_as_by_pytorch(expression):
    assert_same(expression.replace("F.", "torch.nn.functional."))


OVERLOADED = {
    "sort": lambda m: m.sort(m.ones(2), out=m.empty(1)),
    "scatter": lambda m: m.zeros(1).scatter(0, m.tensor([0])),
    "all": lambda m: m.all(m.ones(1), dtype=m.int8),
}


@pytest.mark.parametrize("name", OVERLOADED)
def test_calls_of_several_signatures_are_refused_in_pytorchs_first_line(name):
    said = []
    for m in (torch, backlight):
        with pytest.raises(TypeError) as caught:
            OVERLOADED[name](m)
        said.append(str(caught.value).splitlines()[0])
    assert said[0] == said[1]


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_of_two_dtypes_have_pytorchs_dtype_or_error(loss):
    for kinds in KINDS:
        one, other = kinds.split()
        arguments = f"torch.tensor([0, 1], dtype=torch.{one}), torch.tensor([1, 1], dtype=torch.{other})"
        assert_same(f"torch.nn.functional.{loss}({arguments}).dtype")


@pytest.mark.parametrize("name, given", [("index_select", (0, 0)), ("flip", ("a",)), ("gather", (0,))])
def test_arguments_of_a_method_that_was_passed_on_are_counted_without_its_tensor(name, given):
    said = []
    for m in (torch, backlight):
        method = getattr(m.ones(1), name)
        with pytest.raises(TypeError) as caught:
            method(*given)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_gather_has_a_sparse_gradient_where_it_is_asked_for():
    found = []
    for m in (torch, backlight):
        x = m.arange(6.0).reshape(2, 3).requires_grad_()
        m.gather(x, 1, m.tensor([[0, 0], [2, 1]]), sparse_grad=True).sum().backward()
        assert x.grad.is_sparse
        found.append(x.grad.to_dense().tolist())
    assert found[0] == found[1]


def test_a_sparse_gradient_of_gather_is_differentiated_again():
    found = []
    for m in (torch, backlight):
        x = m.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=m.float64, requires_grad=True)
        y = m.gather(x, 1, m.tensor([[0, 0], [1, 0]]), sparse_grad=True)
        (first,) = m.autograd.grad((y**3).sum(), x, create_graph=True)
        (second,) = m.autograd.grad(first.to_dense().pow(2).sum(), x)
        found.append((second.to_dense() if second.is_sparse else second).tolist())
    assert found[0] == found[1] == [[144.0, 0.0], [972.0, 2304.0]]


def test_numbers_with_the_other_sign_are_a_view():
    found = []
    for m in (torch, backlight):
        x = m.tensor([1.0, 2.0])
        negative = m._neg_view(x)
        negative.add_(1)
        found.append([x.tolist(), negative.tolist(), negative.is_neg(), negative.clone().is_neg()])
    assert found[0] == found[1]


@pytest.mark.parametrize("layer", ["LSTM(2, 3, 2, bidirectional=True)", "GRU(2, 3)", "RNN(2, 3)", "LSTMCell(2, 3)"])
def test_recurrent_layers_run_on_the_meta_device(layer):
    found = []
    for m in (torch, backlight):
        made = eval(f"m.nn.{layer}", {"m": m}).to("meta")
        out = made(m.ones((4, 2) if "Cell" in layer else (4, 5, 2), device="meta"))
        first = out[0] if isinstance(out, tuple) else out
        first.sum().backward()
        parameter = next(made.parameters())
        found.append([tuple(first.shape), str(first.device), tuple(parameter.grad.shape), str(parameter.grad.device)])
    assert found[0] == found[1]
