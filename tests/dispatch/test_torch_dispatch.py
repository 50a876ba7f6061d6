"""`__torch_dispatch__` in modes and in tensor classes: what handlers get, and what becomes of their results."""

import gc
import time
import weakref

import pytest
import torch
from torch.utils import _python_dispatch as theirs
from torch.utils._pytree import tree_map

import backlight
from backlight.dispatch.torch_dispatch import torch_dispatch
from backlight.utils import _python_dispatch as ours

ENGINES = ((torch, theirs), (backlight, ours))
BOTH = pytest.mark.parametrize("t, module", ENGINES, ids=["pytorch", "backlight"])


def recorder(module, act=None):
    """Return a mode that notes what it handles, in `seen`."""

    class Noting(module.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            self.seen.append((str(func), [list(one.shape) for one in args if hasattr(one, "shape")]))
            return out if act is None else act(func, out)

    return Noting()


def wrapper_class(t):
    """Return a tensor class that computes with the tensor inside."""

    class Wrapped(t.Tensor):
        @staticmethod
        def __new__(cls, inner, requires_grad=False):
            made = t.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=requires_grad)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            args, kwargs = tree_map(lambda one: one.inner if isinstance(one, cls) else one, (args, kwargs or {}))
            return tree_map(lambda one: cls(one) if isinstance(one, t.Tensor) else one, func(*args, **kwargs))

    return Wrapped


# Ops whose forward and backward a mode sees as the same calls as in PyTorch
CALLS = {
    "a sum of products": lambda t, x, w: (x * x + x).sum(),
    "a linear layer": lambda t, x, w: t.nn.functional.linear(x, w, w[:, 0]).relu().mean(),
    "a product": lambda t, x, w: (x @ w.t()).tanh().sum(),
    "softmax": lambda t, x, w: x.softmax(-1).log_softmax(0).sum(),
    "cross entropy": lambda t, x, w: t.nn.functional.cross_entropy(x, t.tensor([0, 1, 2])),
    "mean squared error": lambda t, x, w: t.nn.functional.mse_loss(x, w[:3]),
    "broadcasting": lambda t, x, w: (x + w[0] - w[0, 0]).exp().sum(),
    "pictures": lambda t, x, w: t.nn.functional.gelu(x.view(1, 1, 3, 4).sigmoid()).sum(),
    "powers": lambda t, x, w: (x**2).sum() + (w**3).sum(),
    "writes": lambda t, x, w: x.mul(2).add_(1).sum(),
    "layer norm": lambda t, x, w: t.nn.functional.layer_norm(x, (4,), w[0], w[1]).sum(),
    "binary cross entropy": lambda t, x, w: t.nn.functional.binary_cross_entropy_with_logits(x, t.full((3, 4), 0.5)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_mode_sees_the_ops_of_a_forward_and_of_its_backward_as_in_pytorch(name):
    seen, grads = [], []
    for t, module in ENGINES:
        x = t.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
        w = t.linspace(-2, 3, 20).reshape(5, 4).requires_grad_()
        with recorder(module) as mode:
            CALLS[name](t, x, w).backward()
        assert mode.seen
        seen.append([func for func, _ in mode.seen if "lift_fresh" not in func])
        grads.append([None if one.grad is None else one.grad.tolist() for one in (x, w)])
    assert seen[1] == seen[0]
    for found, wanted in zip(grads[1], grads[0]):
        assert found == wanted or torch.allclose(torch.tensor(found), torch.tensor(wanted), atol=1e-5)


@BOTH
def test_the_result_is_what_a_handler_returns_and_the_gradient_is_the_ops(t, module):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    with recorder(module, lambda func, out: out * 10 if str(func) == "aten.sin.default" else out):
        y = x.sin()
    assert t.allclose(y, 10 * x.sin()) and y.grad_fn.name() == "SinBackward0"
    assert t.allclose(t.autograd.grad(y.sum(), x)[0], x.cos())


@BOTH
def test_a_saved_result_is_what_the_handler_returned(t, module):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    with recorder(module, lambda func, out: out * 3 if str(func) == "aten.exp.default" else out):
        y = x.exp()
        y.sum().backward()
    assert t.allclose(x.grad, 3 * x.exp().detach())


@BOTH
def test_gradients_are_the_same_inside_a_mode_and_outside(t, module):
    def loss(x):
        hidden = t.nn.functional.layer_norm(x, (4,))
        values, _ = (hidden @ hidden.t()).max(1)
        image = t.nn.functional.max_pool2d(hidden.reshape(1, 1, 3, 4), 2)
        return values.sum() + hidden.std() + image.sum() + hidden[t.tensor([0, 2])].prod() + hidden[1:].var(0).sum()

    found = []
    for inside in (False, True):
        x = t.linspace(-1, 2, 12).sin().reshape(3, 4).requires_grad_()
        if inside:
            with recorder(module):
                loss(x).backward()
        else:
            loss(x).backward()
        found.append(x.grad)
    assert t.allclose(*found)


@BOTH
def test_a_mode_is_left_also_when_its_handler_raises_and_is_only_this_threads(t, module):
    def fail(func, out):
        raise ValueError(str(func))

    x = t.ones(2)
    with pytest.raises(ValueError, match=r"aten\.cos\.default"), recorder(module, fail):
        x.cos()
    assert module._get_current_dispatch_mode() is None
    with recorder(module) as mode, module._disable_current_modes():
        x.cos()
    assert mode.seen == []


@BOTH
def test_a_wrapper_computes_with_the_tensor_inside_and_has_gradients_of_its_class(t, module):
    cls = wrapper_class(t)
    x = cls(t.tensor([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
    y = (x @ x.t()).exp().log_softmax(-1).sum()
    assert type(y) is cls and y.requires_grad and y.shape == () and y.grad_fn.name() == "SumBackward0"
    y.backward()
    plain = t.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (plain @ plain.t()).exp().log_softmax(-1).sum().backward()
    assert type(x.grad) is cls and t.allclose(x.grad.inner, plain.grad)
    y = x.tanh() * 2
    (first,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = t.autograd.grad(first.sum(), x)
    slope = plain.detach().cosh() ** -2
    assert t.allclose(second.inner, -4 * plain.detach().tanh() * slope, rtol=1e-3)


@BOTH
def test_wrappers_of_ops_with_several_results_and_with_writes_have_gradients(t, module):
    cls = wrapper_class(t)
    numbers = t.tensor([[1.0, 5.0], [4.0, 3.0]])
    x = cls(numbers.clone(), requires_grad=True)
    values, places = x.max(1)
    assert type(values) is cls and places.inner.tolist() == [1, 0]
    (grad,) = t.autograd.grad(values.sum(), x)
    assert grad.inner.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    y = x * 2
    y.mul_(3)
    assert y.inner.tolist() == (numbers * 6).tolist()
    (grad,) = t.autograd.grad(y.sum(), x)
    assert grad.inner.tolist() == [[6.0, 6.0], [6.0, 6.0]]


LOSSES = {
    "layer norm": lambda t, x: t.nn.functional.layer_norm(x, (4,)).sin().sum(),
    "batch norm": lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True).sin().sum(),
    "cross entropy": lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([0, 1, 2])),
    "binary cross entropy": lambda t, x: t.nn.functional.binary_cross_entropy_with_logits(x, t.ones(3, 4)),
    "means": lambda t, x: (x.mean(0) * x.mean()).sum(),
    "norms": lambda t, x: x.norm() + x.std() + x.var(1).sum(),
    "extremes": lambda t, x: x.amax(1).sum() + x.max() + x.topk(2, 1)[0].sum(),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(*[x[None]] * 3).sum(),
    "einsum": lambda t, x: t.einsum("ij,kj->ik", x, x).sum(),
    "linear": lambda t, x: t.nn.functional.linear(x, t.ones(2, 4), t.ones(2)).relu().sum(),
    "indexing": lambda t, x: (x[t.tensor([0, 2])] * x[1:, :1]).sum() + x[0].prod(),
    "embedding": lambda t, x: t.nn.functional.embedding(t.tensor([0, 1, 1]), x).tanh().sum(),
    "writes in place": lambda t, x: (x * 1).relu_().sum() + (x * 2).add_(x).mul_(2).sum(),
    "choices": lambda t, x: t.where(x > 0, x * 2, x**3).sum() if x.sum() > -100 else x,
    "convolution": lambda t, x: t.nn.functional.conv2d(x[None, None], t.ones(1, 1, 2, 2)).sum(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_wrapper_has_the_gradient_that_the_tensor_inside_would_have(name):
    cls = wrapper_class(backlight)
    numbers = backlight.linspace(-1, 2, 12).sin().reshape(3, 4)
    x, plain = cls(numbers.clone(), requires_grad=True), numbers.clone().requires_grad_()
    LOSSES[name](backlight, x).backward()
    LOSSES[name](backlight, plain).backward()
    assert type(x.grad) is cls and backlight.allclose(x.grad.inner, plain.grad, atol=1e-5)


def test_an_op_of_a_wrapper_whose_node_needs_more_than_a_handler_returns_is_refused():
    x = wrapper_class(backlight)(backlight.ones(1, 1, 4, 4), requires_grad=True)
    with pytest.raises(
        NotImplementedError, match="its backward needs places, which __torch_dispatch__ does not return"
    ):
        backlight.nn.functional.max_pool2d(x, 2)
    assert backlight.nn.functional.max_pool2d(x.detach(), 2).inner.tolist() == [[[[1.0, 1.0], [1.0, 1.0]]]]


@BOTH
def test_saved_tensors_hooks_work_inside_a_mode_and_while_a_class_exists(t, module):
    cls = wrapper_class(t)
    for mode in (recorder(module), module._disable_current_modes()):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        with t.autograd.graph.saved_tensors_hooks(lambda one: one * 3, lambda one: one), mode:
            (x**2).sum().backward()
        assert x.grad.tolist() == [6.0, 12.0]
    del cls


def test_leaves_do_not_share_the_memory_of_their_gradients_inside_a_mode():
    x, y = (backlight.ones(2, requires_grad=True) for _ in range(2))
    with recorder(ours):
        (x + y).sum().backward()
    x.grad.mul_(5)
    assert y.grad.tolist() == [1.0, 1.0]


@BOTH
def test_a_parameter_may_be_a_wrapper_and_a_mode_sees_wrappers_first(t, module):
    cls = wrapper_class(t)
    weight = t.nn.Parameter(cls(t.ones(2, 3)))
    assert isinstance(weight, t.nn.Parameter) and type(weight.detach()) is cls
    rows = t.ones(1, 3)
    with recorder(module) as mode:
        t.nn.functional.linear(rows, weight)
    assert mode.seen == [("aten.t.default", [[2, 3]]), ("aten.mm.default", [[1, 3], [3, 2]])]


@BOTH
def test_handlers_that_all_decline_are_an_error(t, module):
    cls = type(
        "Declining", (t.Tensor,), {"__torch_dispatch__": classmethod(lambda cls, *call, **options: NotImplemented)}
    )
    x = t.Tensor._make_wrapper_subclass(cls, (2,))
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for '.*sin.*'|no implementation found for '.*sin"):
        x.sin()


def test_reading_the_numbers_of_a_wrapper_is_refused():
    x = wrapper_class(backlight)(backlight.ones(2))
    with pytest.raises(NotImplementedError, match="Cannot access data pointer of Tensor that doesn't have storage"):
        x.numpy()


@BOTH
def test_only_classes_with_a_handler_have_no_storage(t, module):
    with pytest.raises((RuntimeError, TypeError), match="__torch_dispatch__"):
        t.Tensor._make_wrapper_subclass(type("Plain", (t.Tensor,), {}), (2,))


def test_without_a_mode_and_a_class_nothing_is_dispatched():
    gc.collect()
    started = time.monotonic()
    while torch_dispatch.classes and time.monotonic() - started < 60:
        gc.collect()
    before = torch_dispatch.classes
    cls = wrapper_class(backlight)
    reference = weakref.ref(cls)
    assert torch_dispatch.classes == before + 1 and torch_dispatch.active
    del cls
    gc.collect()
    assert reference() is None and torch_dispatch.classes == before
    with recorder(ours):
        assert torch_dispatch.modes
    assert not torch_dispatch.modes


@BOTH
def test_names_of_ops_compare_and_can_be_called(t, module):
    aten = t.ops.aten
    assert aten.add.Tensor == aten.add.Tensor != aten.add.Scalar and aten.mm.default.overloadpacket == aten.mm
    assert (str(aten.mm.default), aten.mm.default.name(), aten.add.Tensor.name()) == (
        "aten.mm.default",
        "aten::mm",
        "aten::add.Tensor",
    )
    assert aten.add.Tensor.__name__ == "add.Tensor" and aten.add.Tensor._schema.overload_name == "Tensor"
    assert aten.add_.Tensor._schema.is_mutable and not aten.add.Tensor._schema.is_mutable
    x = t.arange(6.0).reshape(2, 3)
    assert t.equal(aten.sum.dim_IntList(x, [1], True), x.sum(1, keepdim=True))
    assert t.equal(aten._softmax.default(x, -1, False), x.softmax(-1))
    assert t.equal(aten.slice.Tensor(x, 1, 1, 9223372036854775807), x[:, 1:])
    with pytest.raises(AttributeError):
        aten.no_such_op.default  # noqa: B018
