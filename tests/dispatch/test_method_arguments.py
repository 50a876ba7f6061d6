"""Errors of methods count arguments without the tensor, those of functions with it, as PyTorch's do."""

import pytest
from parity import assert_same, lines

import backlight

CALLS = lines("""
X.mul('a')
torch.mul(X, 'a')
torch.Tensor.mul(X, 'a')
X[0].t().mul('a')
X.mm(1)
torch.mm(X, 1)
X.mul_('a')
X.matmul(3)
X.logical_and(1)
X.index_select(0, 1)
X.sum(dim='a')
X.sum(foo=1)
X.sum('a', keepdim=3)
torch.sum(input=X, dim='a')
X.sort(stable='a', dim='b')
X.std(1, 2, unbiased='a', keepdim=3)
X.mean(foo=1)
X.mean(1, 2, 3)
X.max(foo=1)
X.add()
X.add(1, 2, 3, 4)
X.add(foo=1)
torch.add(X)
X.sub()
X.div()
X.abs(1)
torch.abs(X, 1)
X.clone(1)
X.transpose(0, 1, 2)
torch.transpose(X, 0, 1, 2)
torch.mul(X, X, X)
X.reshape()
X.view()
X.permute()
X.expand()
X.flip()
X.requires_grad_('a')
""")


@pytest.mark.parametrize("call", CALLS)
def test_wrong_arguments(call):
    first = call.replace("X", "torch.ones(2, 3)")
    assert_same_first_line(first)


def assert_same_first_line(expression: str) -> None:
    """Assert that both raise the same kind of error; where signatures are listed, the words before them are equal."""
    try:
        assert_same(expression)
    except AssertionError as difference:
        ours, _, theirs = str(difference).partition("; PyTorch says ")
        start = theirs.split(", but expected one of")[0].splitlines()[0]
        assert theirs, difference
        assert f"says {start}" in ours, difference


def test_a_function_of_a_module_that_is_an_attribute_is_no_method():
    class Holder:
        library = backlight

    with pytest.raises(TypeError, match=r"mul\(\): argument 'other' \(position 2\) must be Tensor, not str"):
        Holder.library.mul(backlight.ones(2), "a")
    with pytest.raises(TypeError, match=r"mul\(\): argument 'other' \(position 1\) must be Tensor, not str"):
        backlight.ones(2).mul("a")


@pytest.mark.parametrize(
    "call",
    lines("""
torch.sum(a=X, axis=0, keepdims=True)
torch.add(x1=X, x2=X)
torch.exp(x=X)
X.softmax(axis=0)
X.unbind(axis=1)
torch.stack([X], axis=1)
torch.maximum(x1=X, x2=X)
torch.argmax(a=X, axis=1)
X.flip(axis=0)
torch.exp(X, x=X)
torch.where(X > 0, X)
X.var(1, True, correction=1)
torch.cdist(X, X, compute_mode='x')
torch.zeros(2, 3)[:, [7]]
torch.zeros(2, 3, 4)[:, [0], [9]]
torch.ones(2, dtype=torch.int32).bitwise_and_(2.5)
torch.empty(0, 3).kthvalue(1, 0)
torch.empty(0, 3).nanmedian(0)
torch.unravel_index(torch.tensor([4, 5]), (2, 3))
X.tensor_split(torch.tensor([1.0]))
torch.tensor([1j]).conj().view(torch.float32)
"""),
)
def test_numpys_names_and_values_that_are_refused(call):
    assert_same_first_line(call.replace("X", "torch.ones(2, 3)"))
