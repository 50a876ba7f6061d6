"""copy, deepcopy and pickle of tensors, modules and optimizers: what PyTorch gives, warns of and refuses."""

import copy
import pickle
import re
import warnings

import pytest
import torch

import backlight

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def rt(value):
    """Return what comes back from a pickle."""
    return pickle.loads(pickle.dumps(value))


@case
def leaf(module):
    x = module.ones(2, requires_grad=True)
    y = rt(x)
    return y.requires_grad, y.is_leaf, y.tolist(), type(y).__name__


@case
def nonleaf(module):
    x = module.ones(2, requires_grad=True) * 2
    y = rt(x)
    return y.requires_grad, y.is_leaf, y.grad_fn


@case
def nonleaf_deepcopy(module):
    return copy.deepcopy(module.ones(2, requires_grad=True) * 2)


@case
def nonleaf_copy(module):
    x = module.ones(2, requires_grad=True) * 2
    y = copy.copy(x)
    return y.requires_grad, y.is_leaf, y.grad_fn is x.grad_fn, y.data_ptr() == x.data_ptr()


@case
def leaf_copy(module):
    x = module.ones(2, requires_grad=True)
    y = copy.copy(x)
    return y.requires_grad, y.is_leaf, y is x, y.data_ptr() == x.data_ptr()


@case
def leaf_copy_grad(module):
    x = module.ones(2, requires_grad=True)
    x.sum().backward()
    y = copy.copy(x)
    return y.grad


@case
def grad_pickle(module):
    x = module.ones(2, requires_grad=True)
    x.sum().backward()
    return rt(x).grad


@case
def grad_deepcopy(module):
    x = module.ones(2, requires_grad=True)
    x.sum().backward()
    y = copy.deepcopy(x)
    return y.grad, y.grad is x.grad, y.grad.data_ptr() == x.grad.data_ptr()


@case
def shared(module):
    x = module.ones(4)
    a, b = rt((x, x))
    return a is b


@case
def shared_views(module):
    x = module.ones(4)
    a, b = rt((x, x[1:3]))
    a[1] = 7
    return b.tolist()


@case
def shared_views_deep(module):
    x = module.ones(4)
    a, b = copy.deepcopy((x, x[1:3]))
    a[1] = 7
    return b.tolist()


@case
def shared_detach_deep(module):
    x = module.ones(4, requires_grad=True)
    a, b = copy.deepcopy((x, x.detach()))
    b[1] = 7
    return a.tolist()


@case
def view_pickle(module):
    x = module.arange(6.0).reshape(2, 3).t()
    y = rt(x)
    return y.stride(), y.tolist(), y.is_contiguous(), y._is_view()


@case
def view_deep(module):
    x = module.arange(6.0).reshape(2, 3).t()
    y = copy.deepcopy(x)
    return y.stride(), y.tolist(), y._is_view()


@case
def expand_deep(module):
    y = copy.deepcopy(module.ones(1).expand(3))
    return y.stride()


@case
def expand_pickle(module):
    y = rt(module.ones(1).expand(3))
    return y.stride()


@case
def hooks_pickle(module):
    x = module.ones(2, requires_grad=True)
    x.register_hook(print)
    y = rt(x)
    return y.requires_grad


@case
def hooks_deepcopy(module):
    x = module.ones(2, requires_grad=True)
    x.register_hook(lambda g: g * 3)
    y = copy.deepcopy(x)
    y.sum().backward()
    return y.grad.tolist()


@case
def hooks_copy(module):
    x = module.ones(2, requires_grad=True)
    x.register_hook(lambda g: g * 3)
    y = copy.copy(x)
    y.sum().backward()
    return y.grad.tolist()


@case
def param(module):
    x = module.nn.Parameter(module.ones(2))
    y = rt(x)
    return type(y).__name__, y.requires_grad


@case
def param_frozen(module):
    x = module.nn.Parameter(module.ones(2), requires_grad=False)
    y = rt(x)
    z = copy.deepcopy(x)
    return type(y).__name__, y.requires_grad, type(z).__name__, z.requires_grad


@case
def param_grad_deep(module):
    x = module.nn.Parameter(module.ones(2))
    x.sum().backward()
    y = copy.deepcopy(x)
    return y.grad


@case
def param_grad_pickle(module):
    x = module.nn.Parameter(module.ones(2))
    x.sum().backward()
    y = rt(x)
    return y.grad


@case
def param_grad_copy(module):
    x = module.nn.Parameter(module.ones(2))
    x.sum().backward()
    y = copy.copy(x)
    return y.grad, type(y).__name__, y.data_ptr() == x.data_ptr()


@case
def param_attr(module):
    x = module.nn.Parameter(module.ones(2))
    x.foo = [1]
    y = rt(x)
    z = copy.deepcopy(x)
    w = copy.copy(x)
    return getattr(y, "foo", None), getattr(z, "foo", None), getattr(w, "foo", None)


@case
def attr(module):
    x = module.ones(2)
    x.foo = [1]
    y = rt(x)
    z = copy.deepcopy(x)
    w = copy.copy(x)
    return (
        getattr(y, "foo", None),
        getattr(z, "foo", None),
        getattr(w, "foo", None),
        getattr(w, "foo", None) is x.foo,
        getattr(z, "foo", None) is x.foo,
    )


@case
def attr_none(module):
    x = module.ones(2)
    y = rt(x)
    return y.__dict__


@case
def module_deep(module):
    m = module.nn.Linear(2, 2)
    m(module.ones(1, 2)).sum().backward()
    n = copy.deepcopy(m)
    return n.weight.grad is None, n.weight is m.weight, n.weight.requires_grad, [k for k, _ in n.named_parameters()]


@case
def module_tied(module):
    m = module.nn.ModuleList([module.nn.Linear(2, 2), module.nn.Linear(2, 2)])
    m[1].weight = m[0].weight
    n = copy.deepcopy(m)
    o = rt(m)
    return n[0].weight is n[1].weight, o[0].weight is o[1].weight


@case
def module_pickle(module):
    m = module.nn.Sequential(module.nn.Linear(2, 2), module.nn.BatchNorm1d(2), module.nn.Dropout(0.3)).eval()
    n = rt(m)
    return str(n), n.training, list(n.state_dict())


@case
def module_hook_pickle(module):
    m = module.nn.Linear(2, 2)
    m.register_forward_hook(print)
    return type(rt(m)).__name__


@case
def module_hook_deep(module):
    m = module.nn.Linear(2, 2)
    L = []
    m.register_forward_hook(lambda *a: L.append(1))
    n = copy.deepcopy(m)
    n(module.ones(1, 2))
    return len(L)


@case
def module_copy(module):
    m = module.nn.Linear(2, 2)
    n = copy.copy(m)
    return n.weight is m.weight, n._parameters is m._parameters


@case
def module_activation(module):
    m = module.nn.Linear(2, 2)
    m.cache = m(module.ones(1, 2))
    return copy.deepcopy(m)


@case
def optim_deep(module):
    m = module.nn.Linear(2, 2)
    o = module.optim.Adam(m.parameters())
    m(module.ones(1, 2)).sum().backward()
    o.step()
    p = copy.deepcopy(o)
    return len(p.state), p.param_groups[0]["params"][0] is m.weight, list(p.state_dict()["state"][0])


@case
def optim_pickle(module):
    m = module.nn.Linear(2, 2)
    o = module.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    m(module.ones(1, 2)).sum().backward()
    o.step()
    p = rt(o)
    return len(p.state), p.param_groups[0]["lr"], type(p).__name__, p.defaults["momentum"]


@case
def optim_and_module(module):
    m = module.nn.Linear(2, 2)
    o = module.optim.SGD(m.parameters(), lr=0.1)
    n, p = copy.deepcopy((m, o))
    return p.param_groups[0]["params"][0] is n.weight


@case
def optim_and_module_pickle(module):
    m = module.nn.Linear(2, 2)
    o = module.optim.SGD(m.parameters(), lr=0.1)
    n, p = rt((m, o))
    return p.param_groups[0]["params"][0] is n.weight


@case
def sched(module):
    m = module.nn.Linear(2, 2)
    o = module.optim.SGD(m.parameters(), lr=0.1)
    s = module.optim.lr_scheduler.StepLR(o, 2)
    t = copy.deepcopy(s)
    return t.last_epoch, type(rt(o)).__name__


@case
def state_dict_deep(module):
    m = module.nn.Linear(2, 2)
    s = copy.deepcopy(m.state_dict())
    return type(s).__name__, list(s), s["weight"].requires_grad, hasattr(s, "_metadata")


@case
def dtypes(module):
    return (
        [str(rt(d)) for d in (module.float32, module.bfloat16, module.bool)],
        rt(module.float32) is module.float32,
        copy.deepcopy(module.float32) is module.float32,
    )


@case
def size(module):
    x = module.ones(2, 3).shape
    return type(rt(x)).__name__, rt(x) == x


@case
def device(module):
    return str(rt(module.device("cpu")))


@case
def bf16(module):
    x = module.ones(2).bfloat16()
    return str(rt(x).dtype), str(copy.deepcopy(x).dtype), rt(x).tolist()


@case
def zerod(module):
    x = module.tensor(3.0)
    return rt(x).tolist(), copy.deepcopy(x).shape == x.shape, rt(module.ones(0, 2)).shape == (0, 2)


@case
def memo(module):
    x = module.ones(2)
    m = {}
    y = copy.deepcopy(x, m)
    return m[id(x)] is y


@case
def retains(module):
    x = module.ones(2, requires_grad=True) * 1
    x.retain_grad()
    return rt(x).requires_grad


@case
def inference(module):
    with module.inference_mode():
        x = module.ones(2)
    return copy.deepcopy(x).is_inference(), rt(x).is_inference()


@case
def nograd_deep(module):
    with module.no_grad():
        y = copy.deepcopy(module.ones(2, requires_grad=True))
    return y.requires_grad


@case
def grad_fn_pickle(module):
    return rt((module.ones(2, requires_grad=True) * 2).grad_fn)


@case
def grad_fn_deep(module):
    return copy.deepcopy((module.ones(2, requires_grad=True) * 2).grad_fn)


@case
def protocols(module):
    return [pickle.loads(pickle.dumps(module.ones(2), p)).tolist() for p in range(2, 6)]


@case
def protocol0(module):
    return [pickle.loads(pickle.dumps(module.ones(2), p)).tolist() for p in range(0, 2)]


@case
def uninit(module):
    m = module.nn.LazyLinear(2)
    return type(rt(m)).__name__, type(copy.deepcopy(m).weight).__name__


@case
def buffer(module):
    m = module.nn.Module()
    m.register_buffer("b", module.ones(2), persistent=False)
    n = copy.deepcopy(m)
    o = rt(m)
    return list(n.state_dict()), n.b.tolist(), o.b.tolist()


@case
def parametrized(module):
    m = module.nn.utils.parametrizations.weight_norm(module.nn.Linear(2, 2))
    return type(copy.deepcopy(m)).__name__


def shown(function, module):
    """Return what a case gives or raises, and what it warned of."""
    error = given = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            given = function(module)
        except Exception as problem:
            error = problem
    words = [(one.category, re.sub("0x[0-9a-f]+", "0x", str(one.message))) for one in caught]
    return given, error, words


@pytest.mark.parametrize("name", CASES)
def test_copies_and_pickles_as_pytorch_does(name):
    theirs, their_error, their_words = shown(CASES[name], torch)
    ours, error, words = shown(CASES[name], backlight)
    if their_error is not None:
        assert isinstance(error, type(their_error)), error
        assert str(error).startswith(str(their_error))
    else:
        assert error is None
        assert str(ours) == str(theirs)
    assert words == their_words


def test_a_slice_keeps_its_strides_and_is_pickled_without_the_rest():
    x = backlight.arange(4000.0).reshape(1000, 4)
    assert rt(x[:, ::2]).stride() == (4, 2)
    assert rt(x[:, ::2]).tolist() == x[:, ::2].tolist()
    assert len(pickle.dumps(x[3])) < 1000


def test_deepcopy_of_views_counts_writes_together():
    x = backlight.ones(4)
    base, part = copy.deepcopy((x, x[1:3]))
    w = backlight.ones(2, requires_grad=True)
    y = (w * part).sum()
    base.fill_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    assert x.tolist() == [1, 1, 1, 1]


def test_a_marked_hook_is_left_out_of_a_pickle_in_silence():
    from backlight.utils.hooks import unserializable_hook

    x = backlight.ones(2, requires_grad=True)
    x.register_hook(unserializable_hook(lambda grad: grad * 2))
    assert rt(x).requires_grad


def test_a_subclass_keeps_its_class_and_its_attributes(monkeypatch):
    class Tagged(backlight.Tensor):
        __qualname__ = "Tagged"  # as pickle finds it

    monkeypatch.setitem(globals(), "Tagged", Tagged)
    x = backlight.ones(2).as_subclass(Tagged)
    x.tag = ["a"]
    for twin in (rt(x), copy.deepcopy(x), copy.copy(x)):
        assert type(twin) is Tagged
        assert twin.tag == ["a"]
    assert copy.copy(x).tag is x.tag
    assert copy.copy(x).data_ptr() == x.data_ptr()
    assert not hasattr(x + 1, "tag")


def test_a_buffer_keeps_whether_it_is_persistent():
    buffer = backlight.nn.Buffer(backlight.ones(2), persistent=False)
    assert copy.deepcopy(buffer).persistent is rt(buffer).persistent is False


def test_a_trained_optimizer_goes_on_after_a_pickle():
    model = backlight.nn.Linear(2, 1)
    optimizer = backlight.optim.AdamW(model.parameters(), lr=0.1)
    schedule = backlight.optim.lr_scheduler.StepLR(optimizer, 1)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(backlight.ones(1, 2)).sum().backward()
        optimizer.step()

    step(model, optimizer)
    schedule.step()
    twin, other = rt((model, optimizer))
    for _ in range(3):
        step(model, optimizer)
        step(twin, other)
    assert twin.weight.tolist() == model.weight.tolist()
