"""vmap itself: dims in and out, nesting, randomness, chunks, values that nobody may read, writes."""

import warnings

import numpy as np
import pytest
import torch

import backlight

RNG = np.random.default_rng(0)


def both(function, *arrays, **options):
    """Return what vmap of `function(module, *tensors)` gives on both engines, as arrays."""
    found = []
    for module, vmap in ((torch, torch.func.vmap), (backlight, backlight.vmap)):
        out = vmap(lambda *given, m=module: function(m, *given), **options)(*[module.from_numpy(a) for a in arrays])
        found.append([np.array(one.detach().numpy()) for one in (out if isinstance(out, tuple) else (out,))])
    return found


def agree(function, *arrays, **options):
    theirs, ours = both(function, *arrays, **options)
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


def messages(function, *arrays, **options):
    """Return the errors that both engines raise."""
    found = []
    for module, vmap in ((torch, torch.func.vmap), (backlight, backlight.vmap)):
        with pytest.raises(Exception) as problem:
            vmap(lambda *given, m=module: function(m, *given), **options)(*[module.from_numpy(a) for a in arrays])
        found.append(problem.value)
    return found


def refuse_alike(function, *arrays, begins=None, **options):
    theirs, ours = messages(function, *arrays, **options)
    assert isinstance(ours, type(theirs).__mro__[0]) or type(theirs).__name__ in [
        k.__name__ for k in type(ours).__mro__
    ]
    assert str(ours).startswith(str(theirs).strip() if begins is None else begins), (str(ours), str(theirs))


def n(*shape):
    return RNG.normal(size=shape)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_any_dim_may_be_the_batch(dim):
    agree(lambda m, x: x.sum(0) * 2, n(3, 3, 3), in_dims=dim)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_the_batch_may_stand_anywhere_in_the_output(dim):
    agree(lambda m, x: x.exp(), n(3, 4), out_dims=dim)
    agree(lambda m, x: (x, m.ones(4)), n(3, 4), out_dims=(dim, 0))


def test_an_input_may_be_the_same_for_all():
    agree(lambda m, x, y: x @ y, n(3, 4), n(4, 2), in_dims=(0, None))
    agree(lambda m, x, y: x @ y, n(4), n(3, 4, 2), in_dims=(None, 0))


def test_dims_nest_like_inputs():
    x, y = n(3, 4), n(4, 3)
    found = []
    for m, vmap in ((torch, torch.func.vmap), (backlight, backlight.vmap)):
        tree = {"a": m.from_numpy(x), "b": [m.from_numpy(y), 2.0]}
        out = vmap(
            lambda t: {"s": t["a"] + t["b"][0], "p": (t["a"] * t["b"][1],)}, in_dims=({"a": 0, "b": [1, None]},)
        )(tree)
        found.append((out["s"].numpy(), out["p"][0].numpy()))
    np.testing.assert_allclose(found[1][0], found[0][0])
    np.testing.assert_allclose(found[1][1], found[0][1])


def test_vmap_nests():
    def pairs(m, x, y):
        vmap = backlight.vmap if m is backlight else torch.func.vmap
        return vmap(lambda one: (one * x).sum())(y)

    agree(pairs, n(3, 4), n(5, 4), in_dims=(0, None))
    agree(pairs, n(3, 4), n(3, 5, 4))


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7])
def test_chunks_give_the_same(chunk_size):
    agree(
        lambda m, x, y: (x.cumsum(0), x * y), n(5, 4), n(4), in_dims=(0, None), chunk_size=chunk_size, out_dims=(1, 0)
    )


def test_0d_operands_do_not_promote_as_their_batch_would():
    agree(lambda m, x, y: x + y, n(3, 4).astype(np.float32), n(3))
    agree(lambda m, x, y: x * y, np.arange(3), n(3).astype(np.float32))


def test_indexing_by_tensors_that_differ():
    index = np.array([[0, 2], [1, 1], [3, 0]])
    agree(lambda m, x, i: x[i], n(3, 4, 5), index)
    agree(lambda m, x, i: x[:, i], n(3, 2, 4, 5), index)
    agree(lambda m, x, i: x[i, :, i], n(3, 4, 5, 4), index)
    agree(lambda m, x, i: x[:, i, m.tensor([0, 1])], n(2, 4, 5), index, in_dims=(None, 0))
    agree(lambda m, x, i: x[i], n(4, 5), index, in_dims=(None, 0))
    agree(lambda m, x, i: x.gather(0, i), n(3, 4), index)
    agree(lambda m, x, i: x[i], n(3, 4, 5), np.array([0, 3, 1]))


def test_writes_reach_the_memory_of_the_whole_batch():
    def fill(m, x):
        z = m.zeros_like(x)
        z[1:] = x[:-1]
        z[0] = 7
        z.mul_(2).add_(x)
        return z

    agree(fill, n(3, 4))
    x = backlight.tensor([[1.0, -1.0], [-2.0, 3.0]])
    backlight.vmap(lambda row: row.__setitem__(row < 0, 0.0) or row)(x)  # PyTorch refuses masks here, too
    assert x.tolist() == [[1, 0], [0, 3]]
    x = backlight.ones(2, 3)
    backlight.vmap(lambda row: row.mul_(backlight.tensor([1.0, 2.0, 3.0])))(x)
    assert x.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_gradients_flow_through_vmap_and_writes():
    x, w = n(3, 4), n(4)

    def run(m, vmap):
        a, b = m.from_numpy(x).requires_grad_(), m.from_numpy(w).requires_grad_()

        def f(row):
            z = row * b
            z[0] = row[1] ** 2
            return z.sin().mul_(2).sum()

        return [g.numpy() for g in m.autograd.grad(vmap(f)(a).sum(), (a, b))]

    for ours, theirs in zip(run(backlight, backlight.vmap), run(torch, torch.func.vmap)):
        np.testing.assert_allclose(ours, theirs)


def test_what_is_the_same_for_all_cannot_take_in_what_is_not():
    def write(m, x):
        z = m.zeros(4, dtype=m.float64)
        z.copy_(x)
        return z

    refuse_alike(write, n(3, 4))
    refuse_alike(lambda m, x: m.zeros(4, dtype=m.float64).mul_(x.sum()), n(3, 4))


def test_values_are_never_read():
    refuse_alike(lambda m, x: x.item(), n(3))
    refuse_alike(
        lambda m, x: x if x > 0 else -x, n(3), begins="vmap: It looks like you're attempting to use a Tensor in"
    )
    refuse_alike(lambda m, x: m.tensor(float(x)), n(3))
    refuse_alike(lambda m, x: x.tolist(), n(3, 2))
    refuse_alike(lambda m, x: x.numpy(), n(3, 2))
    refuse_alike(lambda m, x: m.masked_select(x, x > 0), n(3, 4))
    refuse_alike(lambda m, x: m.unique(x), n(3, 4))
    refuse_alike(lambda m, x: m.nonzero(x), n(3, 4), begins="vmap: ")
    refuse_alike(lambda m, x: x[x > 0], n(3, 4), begins="vmap: ")


def test_wrong_arguments_are_refused_in_pytorchs_words():
    x = n(3, 4)
    for options in (
        {"in_dims": (0, 0)},
        {"in_dims": None},
        {"in_dims": 2},
        {"in_dims": 1.5},
        {"out_dims": (0, 0)},
        {"out_dims": None},
        {"out_dims": "a"},
    ):
        refuse_alike(lambda m, x: x, x, **options)
    refuse_alike(lambda m, x: 3, x)
    refuse_alike(lambda m, x: x, x, out_dims=3)
    refuse_alike(lambda m, x, y: x, x, n(2, 4))
    with pytest.raises(RuntimeError, match="Only allowed values for randomness are"):
        backlight.vmap(lambda x: x, randomness="some")
    with pytest.raises(ValueError, match="chunk_size should be None or greater than 0"):
        backlight.vmap(lambda x: x, chunk_size=0)
    with pytest.raises(ValueError, match="got no inputs"):
        backlight.vmap(lambda x: x)()
    with pytest.raises(ValueError, match="We cannot vmap over non-Tensor arguments"):
        backlight.vmap(lambda x: x)(3)


RANDOM = {
    "rand": lambda m, x: m.rand(4),
    "randn": lambda m, x: m.randn((2, 2)),
    "randint": lambda m, x: m.randint(0, 100, (4,)),
    "randperm": lambda m, x: m.randperm(6),
    "rand_like": lambda m, x: m.rand_like(x),
    "bernoulli": lambda m, x: m.bernoulli(x.abs().clamp(max=1)),
    "dropout": lambda m, x: m.nn.functional.dropout(m.ones_like(x)),
    "dropout2d": lambda m, x: m.nn.functional.dropout2d(x.reshape(1, 4, 1, 1) * 0 + 1),
    "normal_": lambda m, x: m.empty_like(x).normal_(),
    "multinomial": lambda m, x: m.multinomial(x.abs(), 20, replacement=True),
    "_standard_gamma": lambda m, x: m._standard_gamma(x.abs()),
    "_sample_dirichlet": lambda m, x: m._sample_dirichlet(x.abs()),
}
BY_VALUES = ("bernoulli", "multinomial", "_standard_gamma", "_sample_dirichlet")


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_differ_agree_or_are_refused(name):
    function = RANDOM[name]
    x = n(1, 4).repeat(64, 0)
    refuse_alike(function, x)
    if name in BY_VALUES:
        refuse_alike(function, x, randomness="same")
    else:
        same = both(function, x, randomness="same")[1][0]
        assert (same == same[:1]).all()
    different = both(function, x, randomness="different")[1][0]
    assert not (different == different[:1]).all()


@pytest.mark.parametrize("name", ["rand", "randint", "rand_like"])
def test_the_numbers_are_pytorchs(name):
    def seeded(m, x):
        return RANDOM[name](m, x)

    torch.manual_seed(3)
    backlight.manual_seed(3)
    for randomness in ("different", "same"):
        theirs, ours = both(seeded, n(3, 4), randomness=randomness)
        np.testing.assert_array_equal(ours[0], theirs[0])


def test_a_loop_over_the_batch_warns_in_pytorchs_words():
    with pytest.warns(
        UserWarning, match="There is a performance drop because we have not yet implemented the batching"
    ):
        out = backlight.vmap(lambda x: x.median())(backlight.tensor([[1.0, 2.0, 3.0], [6.0, 4.0, 5.0]]))
    assert out.tolist() == [2, 5]


def test_a_batched_tensor_that_escaped_has_no_values():
    kept = []
    backlight.vmap(lambda x: kept.append(x) or x)(backlight.ones(2, 3))
    assert kept[0].shape == (3,)
    with pytest.raises(RuntimeError):
        kept[0] + 1
    with pytest.raises(RuntimeError):
        kept[0] @ kept[0]
    with pytest.raises(RuntimeError):
        kept[0].tolist()
    assert "BatchedTensor(lvl=1" in repr(kept[0])


def test_a_batched_tensor_prints_as_in_pytorch():
    def printed(t) -> list[str]:
        shown = []
        x = t.ones(2, 3)
        t.vmap(lambda row: shown.append(repr(row)) or t.vmap(lambda one: shown.append(repr(one)) or one)(row))(x)
        return shown

    assert printed(backlight) == printed(torch)


def test_layers_take_batches():
    def net(m, x, w, b):
        f = m.nn.functional
        y = f.conv2d(x, w, b, padding=1).relu()
        y = f.max_pool2d(y, 2)
        y = f.layer_norm(y, y.shape[1:])
        return f.cross_entropy(y.flatten(1), m.tensor([1, 0]))

    agree(net, n(3, 2, 1, 4, 4), n(2, 1, 3, 3), n(2), in_dims=(0, None, None))
    agree(net, n(3, 2, 1, 4, 4), n(3, 2, 1, 3, 3), n(3, 2))
    agree(net, n(2, 1, 4, 4), n(3, 2, 1, 3, 3), n(3, 2), in_dims=(None, 0, 0))


# --- memory ----------------------------------------------------------------------------------------------------------

SHOWN = {
    "an offset": lambda m, x: x.as_strided((2, 3), (3, 1), 1),
    "no offset": lambda m, x: x[2:].as_strided((2, 3), (3, 1)),
    "an offset of a part": lambda m, x: x[2:].as_strided((2, 2), (2, 1), 3),
    "overlapping windows": lambda m, x: x.as_strided((4, 3), (1, 1), 2),
    "a copy": lambda m, x: m.as_strided_copy(x, (2, 2), (3, 1), 1),
    "where it begins": lambda m, x: x[3:] + x[3:].storage_offset(),
    "its own steps": lambda m, x: x.as_strided((2,), x.stride(), 1) * x.stride(0),
    "in two batches": lambda m, x: (m.func.vmap if hasattr(m, "func") else m.vmap)(
        lambda z: z.as_strided((2,), (1,), 0), in_dims=0
    )(x.reshape(3, 4)),
    "its gradient": lambda m, x: m.func.grad(lambda z: (z.as_strided((2, 3), (2, 1), 1) ** 2).sum())(x),
    "the windows' gradient": lambda m, x: m.func.grad(lambda z: (z.as_strided((4, 3), (1, 1), 2) ** 2).sum())(x),
}
OUTSIDE = {
    "before": lambda m, x: x[2:].as_strided((2, 3), (3, 1), 1),
    "behind": lambda m, x: x.as_strided((2, 3), (3, 1), 7),
    "of nothing": lambda m, x: x[:0].as_strided((1,), (1,)),
}


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("dim", [0, 1])
def test_a_place_in_memory_is_counted_in_each_element_of_the_batch(name, dim):
    values = n(3, 12) if dim == 0 else np.asfortranarray(n(12, 3))
    agree(SHOWN[name], values, in_dims=dim)


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_element_of_a_batch_shows_memory_of_another(name):
    refuse_alike(OUTSIDE[name], n(3, 12))


def test_what_replaces_strided_places_is_counted_in_each_element_of_the_batch():
    x, part = backlight.from_numpy(n(3, 12)), backlight.from_numpy(n(3, 2, 2))
    with pytest.warns(UserWarning, match="performance drop"):
        found = backlight.vmap(lambda a, b: a[1:].as_strided_scatter(b, (2, 2), (3, 1), 2))(x, part)
    alone = [a[1:].clone().as_strided_scatter(b, (2, 2), (3, 1), 1) for a, b in zip(x, part)]
    np.testing.assert_array_equal(found.numpy(), backlight.stack(alone).numpy())


@pytest.mark.parametrize("function", ["x.as_strided((2, 2), (1, 1))", "x.as_strided((3,), (1,), 1) * x[0]"])
def test_derivatives_of_memory_shown_again_are_not_looped_over(function):
    array = np.random.default_rng(0).normal(size=5)
    found = []
    for m in (torch, backlight):

        def called(x, m=m):
            y = x * x
            part = y[1:]
            part.mul_(2)
            return eval(function, {"x": y}) + part[0]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if m is torch else "error", UserWarning)
            jacobian = m.func.jacrev(called)(m.tensor(array))
            found.append(jacobian.detach().numpy())
    np.testing.assert_allclose(found[1], found[0])
