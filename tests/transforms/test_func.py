"""backlight.func: transforms of functions, and transforms of these; torch.func is the oracle."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import backlight
import backlight.func
from backlight.transforms.pytrees import tree_leaves

RNG = np.random.default_rng(0)
BOTH = ((torch, torch.func), (backlight, backlight.func))
PYTORCHS_OWN = (
    "ignore:`torch.jit:DeprecationWarning",
    "ignore:Attempted to insert a get_attr Node:UserWarning",
    "ignore:There is a performance drop .* aten..(_scaled_dot_product_flash|native_layer_norm):UserWarning",
)
pytestmark = [pytest.mark.filterwarnings(one) for one in PYTORCHS_OWN]
X, W, Y = RNG.normal(size=4), RNG.normal(size=(4, 3)), RNG.normal(size=(5, 4))


def agree(program, *arrays):
    """Compare what `program(module, func, *tensors)` returns on both engines, and whether it requires grad."""
    theirs, ours = (tree_leaves(program(m, f, *[m.from_numpy(a.copy()) for a in arrays])) for m, f in BOTH)
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours):
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype) == str(b.dtype)
        assert a.requires_grad == b.requires_grad
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(force=True), rtol=1e-8, atol=1e-10)


def wave(x):
    return (x.sin() * x).sum()


def layer(w, x):
    return (x @ w).tanh()


def with_writes(x):
    z = x * 1
    z[0] = z[1] * 2
    z.mul_(x)
    return z.sin().sum()


PROGRAMS = {
    "grad": lambda m, f, x, w, y: f.grad(wave)(x),
    "grad of grad": lambda m, f, x, w, y: f.grad(lambda z: f.grad(wave)(z).pow(2).sum())(x),
    "grad for two": lambda m, f, x, w, y: f.grad(lambda a, b: layer(b, a).sum(), argnums=(0, 1))(x, w),
    "grad with aux": lambda m, f, x, w, y: f.grad(lambda a: (wave(a), a * 2), has_aux=True)(x),
    "grad_and_value": lambda m, f, x, w, y: f.grad_and_value(lambda a, b: ((a * b).sum(), a), 1, True)(x, x),
    "grad of a dict": lambda m, f, x, w, y: f.grad(lambda t: layer(t["w"], t["x"][0]).sum())({"w": w, "x": [x]}),
    "vmap of grad": lambda m, f, x, w, y: f.vmap(f.grad(lambda v, z: layer(v, z).sum()), in_dims=(None, 0))(w, y),
    "grad of vmap": lambda m, f, x, w, y: f.grad(lambda v: f.vmap(lambda z: layer(v, z).sum())(y).sum())(w),
    "grad of vmap of grad": lambda m, f, x, w, y: f.grad(
        lambda v: f.vmap(f.grad(lambda z: layer(v, z).sum()))(y).pow(2).sum()
    )(w),
    "vmap of vmap of grad": lambda m, f, x, w, y: f.vmap(
        lambda a: f.vmap(lambda b: f.grad(lambda q: (q * a * b).sin().sum())(a))(y)
    )(y),
    "vjp": lambda m, f, x, w, y: f.vjp(lambda z: (z.sin(), z.sum()), x)[1]((x, x.sum())),
    "vjp for one": lambda m, f, x, w, y: f.vjp(m.sin, x)[1](x)[0],
    "vjp for a dict": lambda m, f, x, w, y: f.vjp(lambda d: d["a"] * x, {"a": x})[1](x)[0]["a"],
    "vmap of vjp": lambda m, f, x, w, y: f.vmap(f.vjp(lambda z: layer(w, z), x)[1])(m.ones(2, 3, dtype=m.float64)),
    "jvp": lambda m, f, x, w, y: f.jvp(lambda z: z.sin() * z, (x,), (x * 2,)),
    "jvp with aux": lambda m, f, x, w, y: f.jvp(lambda z: (z.sin(), z.cos()), (x,), (x,), has_aux=True),
    "jvp of jvp": lambda m, f, x, w, y: f.jvp(lambda z: f.jvp(lambda q: q.sin() * q, (z,), (z * 2,))[1], (x,), (x,)),
    "vmap of jvp": lambda m, f, x, w, y: f.vmap(lambda z: f.jvp(lambda a: (a * a).sin(), (z,), (z.cos(),)))(y),
    "vmap of jvp, tangents only": lambda m, f, x, w, y: f.vmap(lambda t: f.jvp(lambda a: a.sin() * x, (x,), (t,)))(y),
    "jvp of vmap": lambda m, f, x, w, y: f.jvp(f.vmap(lambda a: (a * a).sin().cumsum(0)), (y,), (y * 2,)),
    "jvp of grad": lambda m, f, x, w, y: f.jvp(f.grad(wave), (x,), (x * 2,)),
    "grad of jvp": lambda m, f, x, w, y: f.grad(lambda z: f.jvp(wave, (z,), (z * 2,))[1])(x),
    "vmap of jvp of grad": lambda m, f, x, w, y: f.vmap(lambda z: f.jvp(f.grad(wave), (z,), (m.ones_like(z),)))(y),
    "jacrev": lambda m, f, x, w, y: f.jacrev(lambda v: layer(v, x))(w),
    "jacrev for two": lambda m, f, x, w, y: f.jacrev(lambda v, z: (layer(v, z), {"s": z.sum()}), argnums=(0, 1))(w, x),
    "jacrev in chunks": lambda m, f, x, w, y: f.jacrev(lambda v: layer(v, x), chunk_size=2)(w),
    "jacfwd": lambda m, f, x, w, y: f.jacfwd(lambda v: layer(v, x))(w),
    "jacfwd with aux": lambda m, f, x, w, y: f.jacfwd(lambda v: (layer(v, x), v * 2), has_aux=True)(w),
    "jacfwd for two": lambda m, f, x, w, y: f.jacfwd(lambda v, z: (layer(v, z), z.sum()), argnums=(0, 1))(w, x),
    "vmap of jacrev": lambda m, f, x, w, y: f.vmap(f.jacrev(lambda z: layer(w, z)))(y),
    "jacrev of jacrev": lambda m, f, x, w, y: f.jacrev(f.jacrev(wave))(x),
    "jacrev of jacfwd": lambda m, f, x, w, y: f.jacrev(f.jacfwd(wave))(x),
    "jacfwd of jacfwd": lambda m, f, x, w, y: f.jacfwd(f.jacfwd(wave))(x),
    "hessian": lambda m, f, x, w, y: f.hessian(wave)(x),
    "vmap of hessian": lambda m, f, x, w, y: f.vmap(f.hessian(wave))(y),
    "hessian of vmap": lambda m, f, x, w, y: f.hessian(lambda z: f.vmap(lambda a: (a * z).sin().sum())(y).sum())(x),
    "grad of writes": lambda m, f, x, w, y: f.vmap(f.grad(with_writes))(y),
    "jvp of writes": lambda m, f, x, w, y: f.vmap(lambda z: f.jvp(with_writes, (z,), (z * 2,)))(y),
    "linearize": lambda m, f, x, w, y: f.linearize(lambda z: z.sin() * z, x)[0],
    "perturbations of grad": lambda m, f, x, w, y: f.grad(lambda a: a * f.grad(lambda b: a + b)(x[1]))(x[0]),
    "perturbations of jvp": lambda m, f, x, w, y: f.jvp(
        lambda a: a * f.jvp(lambda b: a + b, (x[1],), (x[2],))[1], (x[0],), (x[2],)
    ),
    "perturbations of both": lambda m, f, x, w, y: f.grad(lambda a: a * f.jvp(lambda b: a * b, (a,), (x[2],))[1])(x[0]),
    "what does not depend": lambda m, f, x, w, y: (
        f.grad(lambda z: x.sum())(x),
        f.jvp(lambda z: x, (x,), (x,)),
        f.jacrev(lambda z: x)(x),
    ),
    "an outer graph": lambda m, f, x, w, y: f.grad(lambda z: (z * z).sin().sum())(x.requires_grad_()),
    "no outer graph": lambda m, f, x, w, y: under_no_grad(m, lambda: f.grad(wave)(x.requires_grad_())),
}


def under_no_grad(m, function):
    with m.no_grad():
        return function()


@pytest.mark.parametrize("name", PROGRAMS)
def test_transforms_compose_as_pytorchs(name):
    agree(PROGRAMS[name], X, W, Y)


def test_a_transform_leaves_outer_gradients_alone():
    x = backlight.from_numpy(X.copy()).requires_grad_()
    value = backlight.func.grad(wave)(x)
    (second,) = backlight.autograd.grad(value.sum(), x)
    expected = torch.autograd.grad(torch.func.grad(wave)(z := torch.tensor(X, requires_grad=True)).sum(), z)[0]
    np.testing.assert_allclose(second.numpy(), expected.numpy())
    assert x.grad is None


def test_a_linear_part_is_called_many_times():
    _, moved = backlight.func.linearize(lambda z: (z.sin() * z, z.sum()), backlight.from_numpy(X))
    for factor in (1, 2):
        _, expected = torch.func.jvp(
            lambda z: (z.sin() * z, z.sum()), (torch.from_numpy(X),), (torch.from_numpy(X) * factor,)
        )
        for a, b in zip(moved(backlight.from_numpy(X) * factor), expected):
            np.testing.assert_allclose(a.numpy(), b.numpy())
            assert not a.requires_grad
    with pytest.raises(RuntimeError, match="doesn't match the shape"):
        moved(backlight.ones(3, dtype=backlight.float64))


def test_autograd_grad_runs_inside_vmap():
    def program(m, f, w, v):
        w.requires_grad_()
        y = layer(w, m.ones(4, dtype=m.float64))
        return f.vmap(lambda one: m.autograd.grad(y, w, one, retain_graph=True)[0])(v)

    agree(program, W, RNG.normal(size=(5, 3)))
    x = backlight.from_numpy(Y.copy()).requires_grad_()
    each = backlight.vmap(lambda one: backlight.autograd.grad(wave(one), one)[0])(x)
    np.testing.assert_allclose(each.detach().numpy(), np.cos(Y) * Y + np.sin(Y))


def test_value_and_grad_has_the_order_of_its_name():
    value, gradient = backlight.func.value_and_grad(wave)(backlight.from_numpy(X))
    assert value.item() == pytest.approx(float(np.sum(np.sin(X) * X)))
    np.testing.assert_allclose(gradient.numpy(), np.cos(X) * X + np.sin(X))


WRONG = {
    "not scalar": lambda m, f, x: f.grad(lambda z: z)(x),
    "no tensor": lambda m, f, x: f.grad(lambda z: 3.0)(x),
    "no pair": lambda m, f, x: f.grad(lambda z: z.sum(), has_aux=True)(x),
    "text beside": lambda m, f, x: f.grad(lambda z: (z.sum(), "text"), has_aux=True)(x),
    "a number beside": lambda m, f, x: f.jvp(lambda z: (z.sum(), (z, 3)), (x,), (x,), has_aux=True),
    "nothing beside": lambda m, f, x: f.vjp(lambda z: (z.sum(), None), x, has_aux=True),
    "argnums": lambda m, f, x: f.grad(lambda z: z.sum(), argnums=1)(x),
    "argnums twice": lambda m, f, x: f.grad(lambda z: z.sum(), argnums=(0, 0))(x),
    "no argnums": lambda m, f, x: f.grad(lambda z: z.sum(), argnums=())(x),
    "float argnums": lambda m, f, x: f.grad(lambda z: z.sum(), argnums=0.5)(x),
    "a number": lambda m, f, x: f.grad(lambda z: z * x.sum())(3.0),
    "integers": lambda m, f, x: f.grad(lambda z: z.sum())(m.arange(3)),
    "nothing": lambda m, f, x: f.vjp(lambda z: (), x),
    "vjp of a number": lambda m, f, x: f.vjp(lambda z: 3, x),
    "vjp of integers": lambda m, f, x: f.vjp(lambda z: m.arange(3), x),
    "primals": lambda m, f, x: f.jvp(lambda z: z, x, x),
    "tangents": lambda m, f, x: f.jvp(lambda z: z, (x,), (x, x)),
    "strict": lambda m, f, x: f.jvp(lambda z: x, (x,), (x,), strict=True),
    "jvp of a number": lambda m, f, x: f.jvp(lambda z: 3, (x,), (x,)),
    "jvp of numbers": lambda m, f, x: f.jvp(lambda z: z, (3.0,), (x,)),
    "chunk_size": lambda m, f, x: f.jacrev(lambda z: z, chunk_size=0)(x),
    "two dicts": lambda m, f, x: f.functional_call(m.nn.Linear(1, 1), [{"weight": x}, {"weight": x}], x),
    "no dict": lambda m, f, x: f.functional_call(m.nn.Linear(1, 1), 3, x),
    "no dicts": lambda m, f, x: f.functional_call(m.nn.Linear(1, 1), [3], x),
    "names": lambda m, f, x: f.functional_call(m.nn.Linear(1, 1, bias=False), {"wait": x}, x, strict=True),
    "a name in a weight": lambda m, f, x: f.functional_call(m.nn.LayerNorm(1), {"weight.x": x}, x),
    "a name in nothing": lambda m, f, x: f.functional_call(m.nn.Linear(1, 1), {"sub.x": x}, x),
    "no name": lambda m, f, x: f.functional_call(m.nn.Linear(1, 1), {"": x}, x),
    "name of a number": lambda m, f, x: f.functional_call(m.nn.Linear(1, 1), {"in_features": x}, x),
    "a number for a weight": lambda m, f, x: f.functional_call(m.nn.Linear(1, 1), {"weight": 3}, x),
    "no models": lambda m, f, x: f.stack_module_state([]),
    "models": lambda m, f, x: f.stack_module_state([m.nn.Linear(1, 1), m.nn.ReLU()]),
    "modes": lambda m, f, x: f.stack_module_state([m.nn.Linear(1, 1), m.nn.Linear(1, 1).eval()]),
    "frozen": lambda m, f, x: f.stack_module_state([m.nn.Linear(1, 1), m.nn.Linear(1, 1).requires_grad_(False)]),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_told_in_pytorchs_words(name):
    found = []
    for m, f in BOTH:
        with pytest.raises(Exception) as problem:
            WRONG[name](m, f, m.from_numpy(X.copy()))
        found.append(problem.value)
    theirs, ours = found
    assert isinstance(ours, type(theirs))
    said = str(theirs).strip(), str(theirs).replace("torch.Tensor", "backlight.Tensor").strip()
    assert str(ours).startswith(said), (str(ours), said)


# --- models ----------------------------------------------------------------------------------------------------------


def networks(m, seed):
    """Return a small CNN and a transformer layer with the same weights on both engines."""
    m.manual_seed(seed)
    cnn = m.nn.Sequential(
        m.nn.Conv2d(1, 3, 3, padding=1),
        m.nn.GroupNorm(1, 3),
        m.nn.ReLU(),
        m.nn.MaxPool2d(2),
        m.nn.Flatten(),
        m.nn.Linear(12, 3),
    )
    former = m.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    return cnn.double(), former.double()


@pytest.mark.parametrize("which", [0, 1])
def test_gradients_of_each_example(which):
    inputs = RNG.normal(size=(4, 1, 4, 4) if which == 0 else (4, 5, 4))
    targets = np.array([0, 2, 1, 0])

    def program(m, f, x, t):
        model = networks(m, 1)[which]
        parameters = {name: one.detach() for name, one in model.named_parameters()}

        def loss(weights, one, target):
            out = f.functional_call(model, weights, (one.unsqueeze(0),))
            out = out if which == 0 else out.mean(1)
            return m.nn.functional.cross_entropy(out, target.unsqueeze(0))

        return f.vmap(f.grad(loss), in_dims=(None, 0, 0))(parameters, x, t)

    agree(program, inputs, targets)


@pytest.mark.parametrize("which", [0, 1])
def test_an_ensemble_is_one_call(which):
    inputs = RNG.normal(size=(2, 1, 4, 4) if which == 0 else (2, 5, 4))

    def program(m, f, x):
        models = [networks(m, seed)[which] for seed in range(3)]
        parameters, buffers = f.stack_module_state(models)
        out = f.vmap(lambda p, b: f.functional_call(models[0], (p, b), (x,)))(parameters, buffers)
        first = m.autograd.grad(out.sum(), list(parameters.values()))
        return out, first

    agree(program, inputs)
    models = [networks(backlight, seed)[which] for seed in range(3)]
    parameters, buffers = backlight.func.stack_module_state(models)
    x = backlight.from_numpy(inputs)
    out = backlight.vmap(lambda p, b: backlight.func.functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    for number, model in enumerate(models):
        np.testing.assert_allclose(out[number].detach().numpy(), model(x).detach().numpy(), atol=1e-12)


def test_tied_weights_are_replaced_together():
    for m, f in BOTH:
        model = m.nn.Sequential(m.nn.Linear(2, 2, bias=False), m.nn.Linear(2, 2, bias=False)).double()
        model[1].weight = model[0].weight
        own = model[0].weight
        x, eye = m.ones(2, dtype=m.float64), m.eye(2, dtype=m.float64)
        assert f.functional_call(model, {"0.weight": eye * 3}, (x,)).tolist() == [9, 9]
        kept = f.functional_call(model, {"0.weight": eye * 3}, (x,), tie_weights=False)
        np.testing.assert_allclose(kept.detach().numpy(), 3 * own.detach().numpy().sum(1))
        with pytest.raises(ValueError, match="which are tied"):
            f.functional_call(model, {"0.weight": eye, "1.weight": eye * 2}, (x,))
        assert model[0].weight is own
        assert model[1].weight is own


def test_a_name_that_a_module_lacks_is_an_attribute_during_the_call():
    for m, f in BOTH:

        class Scaled(m.nn.Linear):
            def forward(self, x):
                return super().forward(x) * getattr(self, "scale", 1) + self.shift

        model = Scaled(2, 2, bias=False)
        model.shift = shift = m.zeros(2)
        eye, given = m.eye(2), {"weight": m.eye(2), "scale": m.tensor(3.0), "shift": m.ones(2), "unused": m.ones(1)}
        assert f.functional_call(model, given, (m.ones(2),)).tolist() == [4, 4]
        assert model.shift is shift
        assert not hasattr(model, "scale")
        assert not hasattr(model, "unused")
        with pytest.raises(RuntimeError, match="Unexpected key"):
            f.functional_call(model, {"weight": eye, "scale": eye}, (m.ones(2),), strict=True)


# --- random programs -------------------------------------------------------------------------------------------------

UNARY = (
    lambda m, x: x.sin(),
    lambda m, x: x * x,
    lambda m, x: (x * 0.5).exp(),
    lambda m, x: x.tanh(),
    lambda m, x: x.cumsum(0),
    lambda m, x: x.softmax(-1),
    lambda m, x: x.flip(0),
    lambda m, x: m.cat([x[1:], x[:1]]),
    lambda m, x: m.where(x > 0, x, x * 0.3),
    lambda m, x: x.reshape(1, -1).sum(0),
    lambda m, x: x / (x.abs().amax() + 1),
    lambda m, x: x.sort()[0],
    lambda m, x: m.outer(x, x).sum(1),
    lambda m, x: x[m.tensor([2, 0, 1])],
)
TRANSFORMS = ("grad", "jvp", "vmap", "jacrev", "jacfwd", "close over")


def transformed(m, f, function, names):
    """Return a function of a vector and a vector to use beside it, after the named transforms: a vector again."""
    for name in names:
        inner = function
        function = {
            "grad": lambda x, y, g=inner: f.grad(lambda z: g(z, y).sin().sum())(x),
            "jvp": lambda x, y, g=inner: f.jvp(lambda z: g(z, y), (x,), (y * 0.5,))[1],
            "vmap": lambda x, y, g=inner: f.vmap(lambda z: g(x * z, y))(m.stack([y, x, y + x])).sum(0),
            "jacrev": lambda x, y, g=inner: f.jacrev(lambda z: g(z, y))(x).sum(1),
            "jacfwd": lambda x, y, g=inner: f.jacfwd(lambda z: g(z, x))(y).sum(0),
            "close over": lambda x, y, g=inner: x * g(y, x) * 0.1,
        }[name]
    return function


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.integers(0, len(UNARY) - 1), min_size=1, max_size=4),
    names=st.lists(st.sampled_from(TRANSFORMS), min_size=1, max_size=3),
    values=st.lists(st.floats(-2, 2, width=16), min_size=6, max_size=6, unique=True),
)
def test_random_compositions_agree(steps, names, values):
    def program(m, f, x, y):
        def function(z, other):
            for step in steps:
                z = UNARY[step](m, z) + other * 0.25
            return z

        return transformed(m, f, function, names)(x, y)

    agree(program, np.array(values[:3]), np.array(values[3:]))
