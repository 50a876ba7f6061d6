"""The rest of torch.func: every public name, `rearrange`, `functionalize` and what modules need for vmap."""

import pytest
import torch as pytorch
from torch.func import rearrange as pytorchs

import backlight
from backlight import func


def test_func_has_all_names_of_pytorchs():
    public = {name for name in dir(pytorch.func) if not name.startswith("_")}
    assert public <= set(func.__all__)


PATTERNS = [
    ("a b c -> c a b", {}),
    ("a b c -> (a b) c", {}),
    ("a b c -> a (c b)", {}),
    ("(a1 a2) b c -> a1 (b a2) c", {"a1": 2}),
    ("(a1 a2) b (c d) -> (a1 c) a2 b d", {"a2": 2, "d": 2}),
    ("a b c -> a 1 b 1 c", {}),
    ("... c -> c ...", {}),
    ("a ... -> (... a)", {}),
    ("a ... c -> (a ...) c", {}),
    ("a b c ... -> ... a b c", {}),
    ("a b c -> (a b c)", {}),
    ("a b c -> () a b (c)", {}),
]


@pytest.mark.parametrize(("pattern", "lengths"), PATTERNS)
def test_rearrange_does_what_pytorchs_does(pattern, lengths):
    values = pytorch.arange(48.0).view(4, 3, 4)
    wanted = pytorchs(values, pattern, **lengths)
    found = func.rearrange(backlight.tensor(values.numpy()), pattern, **lengths)
    assert tuple(found.shape) == tuple(wanted.shape) and found.tolist() == wanted.tolist()


def test_rearrange_stacks_several_tensors_and_is_differentiated():
    rows = [backlight.arange(6.0).view(2, 3), backlight.ones(2, 3)]
    assert func.rearrange(rows, "n a b -> a (n b)").shape == (2, 6)
    slopes = func.grad(lambda x: (func.rearrange(x, "a b -> (b a)") * backlight.arange(6.0)).sum())(rows[0])
    assert slopes.tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    assert backlight.vmap(lambda x: func.rearrange(x, "a b -> b a"))(backlight.stack(rows)).shape == (2, 3, 2)


MISTAKES = [
    ("a b c", {}),
    ("a b -> a b", {}),
    ("a b c d -> a b c d", {}),
    ("a b c -> a b", {}),
    ("a a c -> a c", {}),
    ("a (b c -> a b c", {}),
    ("a b c) -> a b c", {}),
    ("a ... ... -> a", {}),
    ("a b c -> ... a b c", {}),
    ("a 1b c -> a c", {}),
    ("a b c -> a 2 b c", {}),
    ("a b _c -> a b _c", {}),
    ("a.b c -> a", {}),
    ("a ((b) c) -> a", {}),
    ("a b$ c -> a", {}),
    ("(... a) b -> b", {}),
    ("(a1 a2) b c -> a1 a2 b c", {"a1": 1, "q": 3}),
    ("(a1 a2) b c -> a1 a2 b c", {"a1": "x"}),
]


@pytest.mark.parametrize(("pattern", "lengths"), MISTAKES)
def test_rearrange_refuses_in_pytorchs_words(pattern, lengths):
    with pytest.raises((ValueError, TypeError)) as wanted:
        pytorchs(pytorch.zeros(2, 3, 4), pattern, **lengths)
    with pytest.raises(wanted.type) as found:
        func.rearrange(backlight.zeros(2, 3, 4), pattern, **lengths)
    assert str(found.value).startswith(str(wanted.value))


@pytest.mark.parametrize(
    ("lengths", "said"),
    [({}, "cannot infer the sizes of two"), ({"a1": 3}, "inferred"), ({"a1": 2, "a2": 2}, "(2 != 4)")],
)
def test_rearrange_says_which_sizes_do_not_fit(lengths, said):
    with pytest.raises(RuntimeError) as problem:
        func.rearrange(backlight.zeros(2, 3, 4), "(a1 a2) b c -> a1 a2 b c", **lengths)
    assert said in str(problem.value)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_a_functionalized_function_gives_the_same_and_writes_the_same(remove):
    def run(t):
        def function(x, factor):
            x[:1].add_(1)
            made = x.clone().view(-1)
            made.mul_(factor)
            return made, factor

        x = t.tensor([1.0, 2.0])
        made, factor = t.func.functionalize(function, remove=remove)(x, 3)
        slopes = t.func.grad(t.func.functionalize(lambda x: (x * 1).mul_(x).sum(), remove=remove))(x)
        return made.tolist(), factor, x.tolist(), slopes.tolist()

    assert run(backlight) == run(pytorch)


def test_functionalize_refuses_to_remove_something_else():
    with pytest.raises(RuntimeError) as wanted:
        pytorch.func.functionalize(len, remove="views")
    with pytest.raises(RuntimeError) as found:
        func.functionalize(len, remove="views")
    assert str(found.value).startswith(str(wanted.value))


def test_batch_norms_without_statistics_go_with_vmap():
    def run(t):
        model = t.func.replace_all_batch_norm_modules_(t.nn.Sequential(t.nn.BatchNorm1d(3), t.nn.BatchNorm1d(3)))
        alone = t.func.replace_all_batch_norm_modules_(t.nn.BatchNorm1d(3))
        x = t.arange(24.0).view(4, 2, 3) ** 2
        return t.vmap(model)(x).tolist(), t.vmap(alone)(x).tolist(), sorted(model.state_dict())

    (ours, alone, names), (wanted, wanted_alone, wanted_names) = run(backlight), run(pytorch)
    assert names == wanted_names
    assert backlight.allclose(backlight.tensor(ours), backlight.tensor(wanted), atol=1e-5)
    assert backlight.allclose(backlight.tensor(alone), backlight.tensor(wanted_alone), atol=1e-5)


def test_unwrapping_shows_the_whole_batch():
    seen = []

    def inner(x):
        seen.extend([func.debug_unwrap(x).shape, func.debug_unwrap(x, recurse=False).shape])
        return x * 2

    backlight.vmap(backlight.vmap(inner))(backlight.ones(2, 3, 4))
    assert seen == [(2, 3, 4), (3, 4)]
    plain = backlight.ones(2)
    assert func.debug_unwrap(plain) is plain
