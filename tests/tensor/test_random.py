"""Equal seeds give PyTorch's numbers, bit for bit, and leave the generator in PyTorch's state, byte for byte."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import assert_same, exact, lines

import backlight
from backlight.kernels.random import distributions
from backlight.kernels.random.generator import MersenneTwister

FLOATS = ("float32", "float64", "float16", "bfloat16")
KINDS = (*FLOATS, "int64", "int32", "int16", "int8", "uint8", "bool")


def drawn(module, expression: str, seed: int):
    """Return what an expression draws after seeding, and the generator's state after that."""
    module.manual_seed(seed)
    found = eval(expression, {"t": module})
    return str(found.dtype), tuple(found.shape), exact(found), bytes(module.get_rng_state().tolist())


def assert_draws_alike(expression: str, seeds=range(4)) -> None:
    for seed in seeds:
        assert drawn(backlight, expression, seed) == drawn(torch, expression, seed), f"{expression}, seed {seed}"


@pytest.mark.parametrize("size", [0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 100, 625, 1000])
@pytest.mark.parametrize("dtype", FLOATS)
def test_rand_and_randn_of_any_size(size, dtype):
    assert_draws_alike(f"t.rand({size}, dtype=t.{dtype})")
    assert_draws_alike(f"t.randn({size}, dtype=t.{dtype})")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(-(2**63), 2**64 - 1),
    size=st.integers(0, 200),
    low=st.integers(-800, 800).map(lambda number: number / 16),
    width=st.integers(0, 800).map(lambda number: number / 16),
    dtype=st.sampled_from(FLOATS),
)
def test_uniform_and_normal_with_any_seed_and_bounds(seed, size, low, width, dtype):
    assert_draws_alike(f"t.empty({size}, dtype=t.{dtype}).uniform_({low}, {low + width})", [seed])
    assert_draws_alike(f"t.empty({size}, dtype=t.{dtype}).normal_({low}, {width})", [seed])


def test_large_draws():
    assert_draws_alike("t.randn(300, 401)", [5])
    assert_draws_alike("t.rand(300, 401)", [5])


OF_FLOATS = """
t.empty(50, dtype=t.KIND).exponential_(0.7)
t.empty(50, dtype=t.KIND).cauchy_(0.7, 2)
t.empty(50, dtype=t.KIND).log_normal_(0.7, 0.5)
t.empty(50, dtype=t.KIND).geometric_(0.2)
t.bernoulli(t.rand(50, dtype=t.KIND))
t.empty(50, dtype=t.KIND).bernoulli_(t.rand(50, dtype=t.KIND))
t.poisson(t.rand(200, dtype=t.KIND) * t.tensor(30.0, dtype=t.KIND))
t.multinomial(t.rand(20, dtype=t.KIND), 1)
t.multinomial(t.rand(6, 20, dtype=t.KIND), 30, replacement=True)
t.normal(t.rand(20, dtype=t.KIND), t.rand(20, dtype=t.KIND))
t.normal(0.3, t.rand(20, dtype=t.KIND))
t.normal(t.rand(20, dtype=t.KIND), 0.3)
t.normal(t.rand(20, 1, dtype=t.KIND), t.rand(3, dtype=t.KIND))
t.rand_like(t.empty(5, 20, dtype=t.KIND))
t.randn_like(t.empty(5, 20, dtype=t.KIND))
"""


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("expression", lines(OF_FLOATS))
def test_distributions(expression, dtype):
    assert_draws_alike(expression.replace("KIND", dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "expression",
    [
        "t.empty(5, 20, dtype=t.KIND).t().normal_()",
        "t.empty(5, 20, dtype=t.KIND).t().uniform_()",
        "t.empty(5, 20, dtype=t.KIND).t().exponential_()",
        "t.empty(5, 20, dtype=t.KIND).t().random_(2)",
        "t.empty(9, 8, dtype=t.KIND)[::2, 1].normal_()",
        "t.empty(2, 3, 4, dtype=t.KIND).permute(2, 0, 1).normal_(1, 2)",
        "t.randn_like(t.empty(5, 20, dtype=t.KIND).t())",
        "t.rand_like(t.empty(5, 20, dtype=t.KIND).t())",
    ],
)
def test_strided_tensors_are_filled_in_the_order_of_their_memory(expression, dtype):
    assert_draws_alike(expression.replace("KIND", dtype))


@pytest.mark.parametrize("dtype", KINDS)
def test_whole_numbers_in_every_dtype(dtype):
    assert_draws_alike(f"t.empty(50, dtype=t.{dtype}).random_()")
    assert_draws_alike(f"t.empty(50, dtype=t.{dtype}).random_(2)")
    assert_draws_alike(f"t.randint(0, 2, (50,), dtype=t.{dtype})")
    if dtype != "bool":
        assert_draws_alike(f"t.randint(3, 100, (5, 7), dtype=t.{dtype})")


@pytest.mark.parametrize("limits", ["2**28 - 1", "2**28", "-(2**40), 2**41", "-(2**63), 2**63 - 1", "10"])
def test_randint_of_any_range(limits):
    assert_draws_alike(f"t.randint({limits}, (50,))")
    assert_draws_alike(f"t.randint_like(t.empty(3, 4, dtype=t.int64), {limits})")


@pytest.mark.parametrize("size", [0, 1, 2, 10, 1000, 5000])
def test_randperm(size):
    assert_draws_alike(f"t.randperm({size})")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_multinomial_without_replacement(dtype):
    assert_draws_alike(f"t.multinomial(t.rand(20, dtype=t.{dtype}), 5)", range(20))
    assert_draws_alike(f"t.rand(6, 20, dtype=t.{dtype}).multinomial(1)", range(20))


def test_bernoulli_with_one_probability():
    """On Intel processors PyTorch draws these from MKL's generator, and moves its own by one word only."""
    for dtype in KINDS:
        expression = f"t.empty(50, dtype=t.{dtype}).bernoulli_(0.3)"
        ours, theirs = drawn(backlight, expression, 1), drawn(torch, expression, 1)
        assert ours == theirs or (ours[:2] == theirs[:2] and ours[3] != theirs[3])


def test_the_second_normal_number_of_a_pair_is_kept_for_later():
    assert_draws_alike("t.cat([t.randn(1), t.randn(3), t.rand(2), t.randn(20), t.randn(2), t.randn(5)])", range(10))


def test_the_stream_goes_on_over_the_twister_s_624_words():
    assert_draws_alike("t.rand(624)")
    assert_draws_alike("t.cat([t.rand(624), t.rand(1), t.rand(1300)])")


def test_state_goes_from_pytorch_to_backlight_and_back():
    torch.manual_seed(3)
    torch.randn(5)
    backlight.set_rng_state(backlight.tensor(torch.get_rng_state().numpy()))
    assert backlight.randn(700).tolist() == torch.randn(700).tolist()
    torch.set_rng_state(torch.tensor(backlight.get_rng_state().numpy()))
    assert backlight.randn(9).tolist() == torch.randn(9).tolist()


def test_a_restored_state_repeats_what_followed_it():
    backlight.manual_seed(1)
    for before in (0, 1, 3, 624, 700):
        backlight.rand(before)
        backlight.randn(1)
        state = backlight.get_rng_state()
        first = backlight.randn(40)
        backlight.set_rng_state(state)
        assert backlight.randn(40).tolist() == first.tolist()


def test_fork_rng_leaves_the_stream_where_it_was():
    backlight.manual_seed(2)
    expected = backlight.rand(3).tolist()
    backlight.manual_seed(2)
    with backlight.random.fork_rng():
        backlight.rand(100)
    assert backlight.rand(3).tolist() == expected


def test_a_generator_of_its_own_does_not_move_the_default_one():
    backlight.manual_seed(0)
    before = backlight.get_rng_state()
    ours = backlight.rand(3, generator=backlight.Generator().manual_seed(5))
    theirs = torch.rand(3, generator=torch.Generator().manual_seed(5))
    assert ours.tolist() == theirs.tolist()
    assert backlight.get_rng_state().tolist() == before.tolist()


def test_a_cloned_and_a_pickled_generator_draw_the_same():
    generator = backlight.Generator().manual_seed(7)
    backlight.randn(3, generator=generator)
    copies = generator.clone_state(), pickle.loads(pickle.dumps(generator))
    expected = backlight.randn(20, generator=generator).tolist()
    assert [backlight.randn(20, generator=copy).tolist() for copy in copies] == [expected, expected]


def test_seed_starts_a_stream_nobody_can_foretell():
    first, second = backlight.seed(), backlight.seed()
    assert first != second
    assert backlight.initial_seed() == second
    assert backlight.manual_seed(second) is backlight.default_generator


GENERATORS = """
torch.Generator().initial_seed()
torch.Generator().device
torch.Generator().get_state()
torch.manual_seed(-1).initial_seed()
torch.manual_seed(2**64)
torch.manual_seed("a")
torch.Generator().manual_seed(2**70)
torch.Generator().manual_seed(1.5)
torch.set_rng_state(torch.zeros(3))
torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))
torch.set_rng_state(3)
"""

REFUSED = """
torch.ones(4).uniform_(2, 1)
torch.ones(4).normal_(0, -1)
torch.ones(4).bernoulli_(2)
torch.ones(4).exponential_(0)
torch.ones(4).geometric_(1)
torch.ones(4).cauchy_(0, -1)
torch.ones(4).log_normal_(0, 0)
torch.ones(4).random_(3, 3)
torch.ones(4).random_(0)
torch.ones(4).bernoulli_(torch.tensor([0.5, 0.5]))
torch.ones(4).bernoulli_(torch.tensor([1, 0, 1, 0]))
torch.zeros(2, dtype=torch.int64).uniform_()
torch.zeros(2, dtype=torch.int64).normal_()
torch.zeros(2, dtype=torch.int64).exponential_()
torch.rand(2, dtype=torch.int64)
torch.randn(2, dtype=torch.int64)
torch.rand_like(torch.tensor([1]))
torch.rand(-1)
torch.randn(2, -1)
torch.randint(5, 3, (2,))
torch.randint(2.5, (2,))
torch.randperm(-1)
torch.randperm(2.5)
torch.bernoulli(torch.tensor([1, 0]))
torch.bernoulli(torch.tensor([0.5]), 2)
torch.normal(0.0, torch.tensor([1.0, -2.0]))
torch.normal(torch.zeros(2), torch.ones(3))
torch.poisson(torch.tensor([1.0, -1.0]))
torch.poisson(torch.tensor([1, 2]))
torch.multinomial(torch.tensor([1.0, 2.0]), 3)
torch.multinomial(torch.tensor([1.0, -2.0]), 1)
torch.multinomial(torch.tensor([1.0, float("nan")]), 1)
torch.multinomial(torch.tensor([[0.0, 0.0], [1, 1]]), 1)
torch.multinomial(torch.tensor([0.0, 0.0]), 1, True)
torch.multinomial(torch.tensor([1, 2]), 1)
torch.multinomial(torch.ones(1, 2, 3), 1)
torch.multinomial(torch.ones(3), 0)
torch.ones(4, requires_grad=True).uniform_()
torch.ones(4, requires_grad=True)[:2].normal_()
"""


@pytest.mark.parametrize("expression", lines(GENERATORS) + lines(REFUSED))
def test_generators_and_refusals_are_pytorchs(expression):
    assert_same(expression)


@pytest.mark.parametrize("limits", ["0, 300", "-1, 3"])
def test_randint_refuses_what_the_dtype_does_not_hold(limits):
    with pytest.raises(RuntimeError, match="is out of bounds for unsigned char"):
        eval(f"t.randint({limits}, (2,), dtype=t.uint8)", {"t": backlight})


def test_bernoulli_refuses_what_is_no_probability():
    with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1 to be true, but got false"):
        backlight.bernoulli(backlight.tensor([1.0, 2.0]))


def test_overwriting_a_computed_tensor_stops_its_gradient():
    source = backlight.ones(3, requires_grad=True)
    computed = source * 2
    computed.uniform_()
    computed.sum().backward()
    assert source.grad.tolist() == [0.0, 0.0, 0.0]


def test_a_leaf_is_filled_without_recording():
    leaf = backlight.zeros(20, requires_grad=True)
    with backlight.no_grad():
        assert leaf.normal_() is leaf
    assert leaf.is_leaf
    assert leaf.requires_grad
    assert leaf._version == 1


def test_poisson_means_are_its_rates():
    counts = distributions.poisson(MersenneTwister(1), np.repeat([0.0, 0.5, 9.0, 10.0, 400.0], 2000)).reshape(5, -1)
    np.testing.assert_allclose(counts.mean(1), [0.0, 0.5, 9.0, 10.0, 400.0], rtol=0.05)


def test_modules_and_dropout_start_as_pytorchs_do():
    for module in (backlight, torch):
        module.manual_seed(4)
    ours, theirs = backlight.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    assert ours.weight.tolist() == theirs.weight.tolist()
    assert ours.bias.tolist() == theirs.bias.tolist()


@pytest.mark.parametrize("of_std", ["float32", "float64", "float16"])
@pytest.mark.parametrize("of_mean", ["float32", "float64", "bfloat16"])
def test_normal_numbers_have_the_dtype_of_their_means(of_mean, of_std):
    found = []
    for module in (torch, backlight):
        module.manual_seed(0)
        means = module.full((20,), 0.3, dtype=getattr(module, of_mean))
        numbers = module.normal(means, module.full((20,), 0.7, dtype=getattr(module, of_std)))
        found.append((str(numbers.dtype), numbers.double().tolist()))
    assert found[0] == found[1]
