"""segment_reduce, gradient, and functions that write into their argument: values and errors as PyTorch's."""

import pytest
from parity import assert_same, lines

EXPRESSIONS = lines(
    """
    torch.segment_reduce(torch.arange(5.), 'mean')
    torch.segment_reduce(torch.arange(5.), 'foo', lengths=torch.tensor([5]))
    torch.segment_reduce(torch.arange(5.), 'sum', lengths=torch.tensor([4]))
    torch.segment_reduce(torch.arange(5.), 'sum', lengths=torch.tensor([6, -1]))
    torch.segment_reduce(torch.ones(2, 3), 'sum', lengths=torch.tensor([1, 1]), axis=1)
    torch.segment_reduce(torch.arange(6.).reshape(2, 3), 'mean', offsets=torch.tensor([0, 0, 2]))
    torch.segment_reduce(torch.arange(6.).reshape(2, 3), 'max', offsets=torch.tensor([0, 0, 2]))
    torch.segment_reduce(torch.arange(6.).reshape(2, 3), 'prod', offsets=torch.tensor([0, 0, 2]), initial=3)
    torch.segment_reduce(torch.arange(6), 'sum', lengths=torch.tensor([6]))
    torch.segment_reduce(torch.arange(6.), 'min', lengths=torch.tensor([2, 1]), unsafe=True)
    torch.gradient(torch.ones(2, 3), edge_order=3)
    torch.gradient(torch.ones(2, 3), edge_order=2)
    torch.gradient(torch.ones(2, 3), dim=5)
    torch.gradient(torch.ones(2, 3), dim=(0, 0))
    torch.gradient(torch.ones(2, 3), spacing=[1., 2.], dim=0)
    torch.gradient(torch.ones(2, 3), spacing=[1.])
    torch.gradient(torch.ones(2, 3), spacing=(torch.tensor([[1., 2.]]), torch.tensor([1., 2., 3.])))
    torch.gradient(torch.ones(2, 3, dtype=torch.uint8))
    torch.gradient(torch.arange(6).reshape(2, 3))
    torch.gradient(torch.arange(6.).reshape(2, 3), spacing=2, dim=1)
    torch.gradient(torch.arange(4.), spacing=(torch.tensor([1, 2, 5, 6]),))
    torch.native_layer_norm(torch.ones(2, 3), (2,), None, None, 1e-5)
    torch.native_group_norm(torch.ones(2, 3), None, None, 2, 3, 1, 2, 1e-5)
    torch.native_dropout(torch.ones(2, 3), 0.5, False)
    torch.native_dropout(torch.ones(2, 3), 2, True)
    torch._safe_softmax(torch.tensor([[-torch.inf, -torch.inf], [0., 0.]]), 1)
    torch.relu_(torch.tensor([-1., 2.]))
    torch.clamp_(torch.tensor([-1., 2.]), min=0)
    torch.exp_(3)
    torch.celu_(torch.tensor([-1., 2.]))
    torch.zero_(torch.ones(2))
    torch.arange(6.).as_strided_((2, 2), (1, 2))
    torch.vander(torch.tensor([1., 2., 3.]))
    torch.vander(torch.tensor([1, 2, 3]), N=2, increasing=True)
    torch.vander(torch.ones(2, 2))
    torch.arange(6.).resize_(2, 2)
    torch.arange(6.).resize_((3, 2)).stride()
    torch.arange(6., requires_grad=True).resize_(2)
    torch.arange(6.)[:2].resize_(3)
    torch.arange(6.).resize_as_(torch.empty(2, 2))
    torch.arange(2.).resize_(5)[:2]
    torch.arange(2.).resize_(0)
    torch.bernoulli(torch.full((3,), 0.5, requires_grad=True)).grad_fn.name()
    torch.normal(torch.zeros(2, requires_grad=True), 1.).grad_fn.name()
    """
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_function_is_pytorchs(expression):
    assert_same(expression.strip())
