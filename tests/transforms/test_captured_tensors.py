"""What a transformed function may write to, and what it may not do inside: PyTorch's rules, in PyTorch's words."""

import threading
import warnings

import pytest
import torch as pytorch

import backlight
import backlight.utils.checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script")

VALUES = [1.0, 2.0, 3.0]
ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]

TRANSFORMS = {
    "grad": lambda t, f, x: t.func.grad(lambda x: f(x).sum())(x),
    "grad_and_value": lambda t, f, x: t.func.grad_and_value(lambda x: f(x).sum())(x),
    "vjp": lambda t, f, x: t.func.vjp(f, x)[0],
    "jvp": lambda t, f, x: t.func.jvp(f, (x,), (x,)),
    "jacrev": lambda t, f, x: t.func.jacrev(f)(x),
    "jacfwd": lambda t, f, x: t.func.jacfwd(f)(x),
    "hessian": lambda t, f, x: t.func.hessian(lambda x: f(x).sum())(x),
    "grad of grad": lambda t, f, x: t.func.grad(lambda x: t.func.grad(lambda y: f(y).sum())(x).sum())(x),
    "vmap of grad": lambda t, f, x: t.func.vmap(t.func.grad(lambda one: f(one).sum()))(t.stack((x, x))),
    "grad of vmap": lambda t, f, x: t.func.grad(lambda x: t.func.vmap(f)(t.stack((x, x))).sum())(x),
}

# What is written in place, to a captured c of three elements.
WRITES = {
    "add_": lambda t, c, x: c.add_(x),
    "add_ a number": lambda t, c, x: c.add_(1),
    "+=": lambda t, c, x: c.__iadd__(x),
    "sub_": lambda t, c, x: c.sub_(x, alpha=2),
    "mul_": lambda t, c, x: c.mul_(x),
    "mul_ by a number": lambda t, c, x: c.mul_(2),
    "div_": lambda t, c, x: c.div_(x),
    "div_ floor": lambda t, c, x: c.div_(2, rounding_mode="floor"),
    "pow_": lambda t, c, x: c.pow_(x),
    "pow_ of a number": lambda t, c, x: c.pow_(2),
    "fill_": lambda t, c, x: c.fill_(1.0),
    "fill_ with a tensor": lambda t, c, x: c.fill_(x[0]),
    "zero_": lambda t, c, x: c.zero_(),
    "copy_": lambda t, c, x: c.copy_(x),
    "an element": lambda t, c, x: c.__setitem__(0, x[0]),
    "a slice": lambda t, c, x: c.__setitem__(slice(0, 2), x[:2]),
    "a mask": lambda t, c, x: c.__setitem__(c > 0, 1.0),
    "places": lambda t, c, x: c.__setitem__(t.tensor([0, 1]), x[:2]),
    "index_add_": lambda t, c, x: c.index_add_(0, t.tensor([0]), x[:1]),
    "index_fill_": lambda t, c, x: c.index_fill_(0, t.tensor([0]), 1.0),
    "scatter_": lambda t, c, x: c.scatter_(0, t.tensor([0]), x[:1]),
    "scatter_ a value": lambda t, c, x: c.scatter_(0, t.tensor([0]), 1.0),
    "scatter_reduce_": lambda t, c, x: c.scatter_reduce_(0, t.tensor([0]), x[:1], "sum"),
    "masked_fill_": lambda t, c, x: c.masked_fill_(c > 0, 1.0),
    "masked_fill_ with a tensor": lambda t, c, x: c.masked_fill_(c > 0, x[0]),
    "clamp_": lambda t, c, x: c.clamp_(0, 1),
    "clamp_ by tensors": lambda t, c, x: c.clamp_(x),
    "lerp_": lambda t, c, x: c.lerp_(x, 0.5),
    "lerp_ by a tensor": lambda t, c, x: c.lerp_(x, x),
    "round_": lambda t, c, x: c.round_(decimals=1),
    "gt_": lambda t, c, x: c.gt_(1),
    "eq_": lambda t, c, x: c.eq_(x),
    "remainder_": lambda t, c, x: c.remainder_(2),
    "exp_": lambda t, c, x: c.exp_(),
    "relu_": lambda t, c, x: c.relu_(),
    "uniform_": lambda t, c, x: c.uniform_(),
    "cumsum_": lambda t, c, x: c.cumsum_(0),
    "addcmul_": lambda t, c, x: c.addcmul_(x, x),
    "t_": lambda t, c, x: c.t_(),
    "unsqueeze_": lambda t, c, x: c.unsqueeze_(0),
    "squeeze_": lambda t, c, x: c.squeeze_(0),
    "resize_": lambda t, c, x: c.resize_(2),
    "a view": lambda t, c, x: c[0:2].add_(1),
    "what detach gave": lambda t, c, x: c.detach().add_(1),
    ".data": lambda t, c, x: c.data.add_(1),
}


def said(action) -> str:
    with pytest.raises(RuntimeError) as problem:
        action()
    return str(problem.value)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_captured_tensor_may_not_be_written_to(name, constant):
    def written(t):
        captured, x = t.ones(3), t.tensor(VALUES)
        message = said(lambda: TRANSFORMS[name](t, lambda x: captured.add_(1 if constant else x) * x, x))
        assert captured.tolist() == [1.0, 1.0, 1.0]
        return message

    assert written(backlight).startswith(written(pytorch))


@pytest.mark.parametrize("name", WRITES)
def test_each_write_to_a_captured_tensor_is_refused_in_pytorchs_words(name):
    def written(t):
        captured, x = t.ones(3), t.tensor(VALUES)

        def function(x):
            WRITES[name](t, captured, x)
            return x.sum()

        return said(lambda: t.func.grad(function)(x))

    assert written(backlight).startswith(written(pytorch))


def own_copy(t, x):
    made = x * 1
    made.mul_(2)
    made[0] = x[1]
    return made


def new_zeros(t, x):
    made = t.zeros(3)
    made += x
    made[1:].mul_(x[1:])
    return made


def without_a_graph(t, x):
    made = t.ones(3) * 2
    made.add_(1)
    detached = (x * 2).detach()
    detached.add_(1)
    t.exp(x).detach().mul_(2)
    (x * 2).data.mul_(2)
    with t.no_grad():
        counted = t.ones(3) + 1
        counted.t_().add_(x)
    return x * made * detached * counted


def several_outputs(t, x):
    values, places = x.detach().sort()
    values.mul_(2)
    places.add_(1)
    first, second = (x * 2).unbind(0)[:2]
    return values * places + first * second


def a_number_of_no_dims(t, x):
    total = t.tensor(0.0)
    total += x.sum()
    count = t.ones(3).sum()
    count.add_(1)
    return x * total * count


def drawn(t, x):
    noise = t.empty_like(x)
    noise.fill_(0.5)
    t.zeros_like(x).copy_(x)
    x.new_ones(3).sub_(1)
    return x * noise


OWN = [own_copy, new_zeros, without_a_graph, several_outputs, a_number_of_no_dims, drawn]


@pytest.mark.parametrize("function", OWN)
@pytest.mark.parametrize("name", ["grad", "vjp", "jvp", "jacrev", "hessian", "grad of grad"])
def test_what_the_function_makes_may_be_written_to(name, function):
    def run(t):
        found = TRANSFORMS[name](t, lambda x: function(t, x), t.tensor(VALUES))
        return [one.tolist() for one in (found if isinstance(found, tuple) else (found,))]

    assert close(run(backlight), run(pytorch))


def close(found, wanted) -> bool:
    return all(backlight.allclose(backlight.tensor(a), backlight.tensor(b)) for a, b in zip(found, wanted, strict=True))


def test_the_arguments_may_be_written_to():
    def run(t):
        x, other, named = t.tensor(VALUES), t.ones(3), t.ones(3)

        def function(x, other, *, named):
            x.detach().mul_(2)
            with t.no_grad():
                x[:1].add_(1)
            other.add_(x.detach())
            named.data.add_(1)
            return (x * other * named).sum()

        gradient = t.func.grad(function)(x, other, named=named)
        _, moved = t.func.jvp(lambda a: a.mul_(3).sin(), (t.tensor(VALUES),), (t.ones(3),))
        return [one.tolist() for one in (gradient, x, other, named, moved)]

    assert close(run(backlight), run(pytorch))


def test_an_argument_of_an_inner_transform_is_captured_by_the_outer_one():
    def run(t):
        outer = t.ones(3)

        def function(x):
            return t.func.jvp(lambda y: y.mul_(2) * x, (outer,), (outer,))[1].sum()

        return said(lambda: t.func.grad(function)(t.tensor(VALUES)))

    assert run(backlight).startswith(run(pytorch).partition("(aten::")[0])  # PyTorch names the op that it is made of


def test_what_an_outer_function_made_is_captured_by_the_inner_one():
    def run(t):
        def function(x):
            made = x * 2
            return t.func.grad(lambda y: made.mul_(y).sum())(x).sum()

        return said(lambda: t.func.grad(function)(t.tensor(VALUES)))

    assert run(backlight).startswith(run(pytorch))


@pytest.mark.parametrize("write", [lambda x: x.mul_(2), lambda x: x[:2].add_(1), lambda x: x.zero_()])
@pytest.mark.parametrize("name", ["grad", "vjp", "jacrev", "vmap of grad"])
def test_what_is_differentiated_for_is_a_leaf(name, write):
    def run(t):
        return said(lambda: TRANSFORMS[name](t, lambda x: write(x) * 1, t.tensor(VALUES)))

    assert run(backlight).startswith(run(pytorch))


def test_a_result_may_be_written_to_when_the_transform_is_over():
    result = backlight.func.grad(lambda x: (x * x).sum())(backlight.tensor(VALUES))
    kept = []
    backlight.func.vjp(lambda x: kept.append(backlight.zeros(3)) or x * 2, backlight.tensor(VALUES))
    result.add_(1)
    kept[0].add_(1)
    assert result.tolist() == [3.0, 5.0, 7.0] and kept[0].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        backlight.func.grad(lambda x: kept[0].add_(x).sum())(backlight.tensor(VALUES))


def test_another_thread_may_write_to_what_it_likes():
    shared = backlight.ones(3)
    other = threading.Thread(target=lambda: shared.add_(1))

    def function(x):
        other.start()
        other.join()
        return x.sum()

    backlight.func.grad(function)(backlight.tensor(VALUES))
    assert shared.tolist() == [2.0, 2.0, 2.0]


def test_running_statistics_move_as_in_pytorch():
    def run(t):
        mean, variance = t.zeros(3), t.ones(3)
        norm = t.nn.functional.batch_norm
        x = t.tensor([*ROWS, [0.5, 7.0, 1.0]])
        found = t.func.grad(lambda x: norm(x, mean, variance, training=True).pow(3).sum())(x)
        return [one.tolist() for one in (found, mean, variance)]

    def module(t):
        layer = t.nn.BatchNorm1d(3)
        return said(lambda: t.func.grad(lambda x: layer(x).sum())(t.tensor(ROWS)))

    assert close(run(backlight), run(pytorch))
    assert module(backlight).startswith(module(pytorch))


VMAP_WRITES = {
    name: WRITES[name]
    for name in (
        "add_",
        "+=",
        "sub_",
        "mul_",
        "div_",
        "pow_",
        "fill_ with a tensor",
        "copy_",
        "an element",
        "a slice",
        "places",
        "index_add_",
        "scatter_",
        "scatter_reduce_",
        "masked_fill_ with a tensor",
        "clamp_ by tensors",
        "lerp_",
        "eq_",
        "addcmul_",
    )
}


@pytest.mark.parametrize("name", VMAP_WRITES)
def test_a_tensor_without_a_batch_takes_in_none(name):
    def run(t):
        captured = t.ones(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return said(lambda: t.vmap(lambda x: WRITES[name](t, captured, x))(t.tensor(ROWS)))

    assert run(backlight).startswith(run(pytorch))


def test_resize_changes_the_memory_of_the_whole_batch():
    def run(t):
        return t.vmap(lambda x: x.resize_(2) * 2)(t.tensor(ROWS)).tolist()

    assert run(backlight) == run(pytorch)


INSIDE = {
    "requires_grad_": lambda t, x: x.requires_grad_().sum(),
    "requires_grad_ of a new one": lambda t, x: t.ones(3).requires_grad_().sum() + x.sum(),
    "retain_grad": lambda t, x: (x.retain_grad(), x.sum())[1],
    "backward": lambda t, x: x.sum().backward(),
    "hooks": lambda t, x: (t.autograd.graph.saved_tensors_hooks(len, len).__enter__(), x.sum())[1],
    "save_on_cpu": lambda t, x: (t.autograd.graph.save_on_cpu().__enter__(), x.sum())[1],
}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("transform", ["grad", "vjp", "jacrev"])
def test_what_pytorch_refuses_inside_a_transform_is_refused(transform, name):
    def run(t):
        return said(
            lambda: getattr(t.func, transform)(lambda x: INSIDE[name](t, x), *given(t, transform)[0])(
                *given(t, transform)[1]
            )
        )

    def given(t, transform):
        x = t.tensor(VALUES)
        return ((x,), ()) if transform == "vjp" else ((), (x,))

    assert run(backlight).startswith(run(pytorch))


def test_requires_grad_is_refused_inside_vmap():
    def run(t):
        return said(lambda: t.vmap(lambda x: t.ones(2).requires_grad_() * x.sum())(t.tensor(ROWS)))

    assert run(backlight).startswith(run(pytorch))


def test_hooks_around_a_transform_are_refused_where_pytorch_refuses_them():
    def run(t):
        x = t.tensor(VALUES)
        with t.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one):
            forward = t.func.jvp(lambda x: x.sin().sum(), (x,), (x,))
            rows = t.vmap(lambda x: x.sin().sum())(t.tensor(ROWS))
            message = said(lambda: t.func.grad(lambda x: x.sin().sum())(x))
        return message, [one.tolist() for one in (*forward, rows)]

    (ours, found), (wanted_message, wanted) = run(backlight), run(pytorch)
    assert ours.startswith(wanted_message) and close(found, wanted)
    with backlight.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one):
        assert backlight.ones(1).tolist() == [1.0]  # they may be used again


def test_a_checkpoint_goes_with_transforms_where_pytorch_refuses_it():
    checkpoint = backlight.utils.checkpoint.checkpoint
    x = backlight.tensor(VALUES)

    def inside(x):
        return checkpoint(lambda x: (x.sin() * x).sum(), x, use_reentrant=False)

    plain = backlight.func.grad(lambda x: (x.sin() * x).sum())(x)
    assert backlight.equal(backlight.func.grad(inside)(x), plain)
    leaf = x.clone().requires_grad_()
    around = checkpoint(lambda x: backlight.func.grad(lambda y: (y.sin() * y).sum())(x) * x, leaf, use_reentrant=False)
    around.sum().backward()
    assert leaf.grad is not None


@pytest.mark.parametrize("name", ["normal_", "uniform_", "rand_like", "dropout"])
def test_elements_draw_the_same_from_a_generator_of_their_own(name):
    generator = backlight.Generator().manual_seed(3)
    draws = {
        "normal_": lambda x: x.clone().normal_(generator=generator),
        "uniform_": lambda x: x.clone().uniform_(generator=generator),
        "rand_like": lambda x: backlight.rand_like(x, generator=generator),
        "dropout": lambda x: x * backlight.rand(3, generator=generator),
    }
    first, second = backlight.vmap(draws[name], randomness="same")(backlight.ones(2, 3))
    assert backlight.equal(first, second)
    other = backlight.Generator().manual_seed(3)
    assert backlight.equal(first, getattr(backlight, "randn" if name == "normal_" else "rand")(3, generator=other))
