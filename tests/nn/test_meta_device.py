"""Ops on the meta device: shapes, strides, dtypes, gradients and errors as in PyTorch, and no values."""

import pytest
import torch
from parity import evaluate

import backlight

SHAPES = """
X + 1; X.sum(1); X @ X.t(); X.t(); X.view(6); X[0]; X[:, 1:]; X.max(1); X > 0; X.double(); X + torch.tensor(1.0)
torch.cat([X, X]); torch.stack([X, X], 1); torch.zeros_like(X); X.new_zeros((2,)); X.expand(4, 2, 3); X.permute(1, 0)
X.split(1); torch.einsum('ij,kj->ik', X, X); X.sort(1); X.clone(); X.detach(); torch.fft.fft(X); X.to(torch.half)
torch.nn.functional.softmax(X, 1); torch.nn.functional.interpolate(X[None], scale_factor=2); X.reshape(3, 2)
torch.ones(2, 3).to('meta'); torch.empty_like(torch.ones(2), device='meta'); torch.arange(5, device='meta')
torch.nn.Linear(3, 5, device='meta')(X); torch.nn.Conv2d(3, 8, 3, device='meta')(torch.empty(2, 3, 9, 9, device='meta'))
X.add_(1); X.copy_(torch.ones(2, 3)); X.t_(); X.requires_grad_() * 2; X.where(X > 0, X); list(X); X.numel(); X.stride()
X.is_contiguous(); X.t().is_contiguous(); X.element_size(); X.type(); X.data_ptr(); format(X); X.to(X.device) is X
torch.empty_like(X, device='cpu').shape; torch.nn.Parameter(X)
"""
ERRORS = """
X.to('cpu'); X.cpu(); X.item(); X.sum().item(); bool(X.sum()); float(X.sum()); X.tolist(); X.numpy()
X + torch.ones(2, 3); torch.ones(2, 3) + X; torch.cat([X, torch.ones(2, 3)]); torch.ones(2, 3).copy_(X); X.view(7)
torch.allclose(X, X); torch.nn.Linear(2, 3, device='meta').to('cpu')
"""


def expressions(text: str) -> list[str]:
    return [one.strip() for one in text.replace("\n", ";").split(";") if one.strip()]


def described(value):
    """Return what is known of a value without its elements."""
    if isinstance(value, (torch.Tensor, backlight.Tensor)):
        return str(value), str(value.device), tuple(value.shape), value.stride(), str(value.dtype), value.requires_grad
    if isinstance(value, (tuple, list)):
        return [described(one) for one in value]
    return str(value)


def run(module, expression: str):
    return evaluate(module, expression, X=module.empty(2, 3, device="meta"))


def test_results_have_pytorchs_shapes_and_no_values():
    for expression in expressions(SHAPES):
        theirs, ours = run(torch, expression), run(backlight, expression)
        assert described(ours) == described(theirs), expression


def test_errors_are_pytorchs():
    for expression in expressions(ERRORS):
        theirs, ours = run(torch, expression), run(backlight, expression)
        assert isinstance(theirs, Exception), expression
        kind = next(one for one in type(theirs).__mro__ if one.__module__ == "builtins")
        assert isinstance(ours, kind), (expression, ours)
        assert str(ours).startswith(str(theirs).rstrip("! .")[:200]), (expression, ours)


@pytest.mark.parametrize("name", ["nonzero", "unique"])
def test_results_that_depend_on_values_are_refused(name):
    with pytest.raises(NotImplementedError):
        getattr(backlight.empty(2, device="meta"), name)()


def test_gradients_stay_on_the_device():
    model = backlight.nn.Sequential(backlight.nn.Linear(2, 3), backlight.nn.ReLU(), backlight.nn.Linear(3, 1)).to(
        "meta"
    )
    out = model(backlight.empty(4, 2, device="meta"))
    assert (out.shape, out.is_meta, out.grad_fn is not None) == ((4, 1), True, True)
    out.sum().backward()
    assert model[0].weight.grad.is_meta
    assert model[0].weight.grad.shape == (3, 2)
    model = model.to_empty(device="cpu")
    assert not model[0].weight.is_meta


def test_meta_tensors_do_not_disturb_parameters_without_values_where_sparse_tensors_were_made():
    backlight.ones(2).to_sparse()
    assert backlight.empty(2, device="meta").add(1).is_meta
    layer = backlight.nn.LazyLinear(2)
    assert layer(backlight.ones(1, 3)).shape == (1, 2)
