"""Tensors print character for character as PyTorch prints them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from parity import assert_same, lines

import backlight
from backlight.tensor.printing import get_printoptions, printoptions

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")


def pair(array: np.ndarray, dtype: str):
    """Return an array as a tensor of either module."""
    return (
        backlight.from_numpy(array).to(getattr(backlight, dtype)),
        torch.from_numpy(array).to(getattr(torch, dtype)),
    )


def assert_prints_alike(array: np.ndarray, dtype: str) -> None:
    ours, theirs = pair(array, dtype)
    assert repr(ours) == repr(theirs)


shapes = st.one_of(
    arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7),
    st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple),
)
VALUES = {
    "any": st.floats(width=32),
    "whole": st.integers(-1000, 1000).map(float),
    "large": st.integers(-(2**40), 2**40).map(float),
    "small": st.floats(-1e-3, 1e-3),
    "ordinary": st.floats(-10, 10),
    "special": st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), float("-inf")]),
}


@pytest.mark.parametrize("values", VALUES)
@given(data=st.data(), shape=shapes, dtype=st.sampled_from(["float64", "float32", "float16", "bfloat16"]))
def test_floats_print_as_pytorchs(values, data, shape, dtype):
    array = data.draw(arrays.arrays(np.float64, shape, elements=VALUES[values], fill=VALUES[values]))
    assert_prints_alike(array, dtype)


@given(data=st.data(), shape=shapes, dtype=st.sampled_from(DTYPES[4:]))
def test_integers_and_bools_print_as_pytorchs(data, shape, dtype):
    high = {"bool": 1, "uint8": 255, "int8": 127, "int16": 32767, "int32": 2**31 - 1}.get(dtype, 2**62)
    low = 0 if dtype in ("bool", "uint8") else -high
    array = data.draw(arrays.arrays(np.int64, shape, elements=st.integers(low, high)))
    assert_prints_alike(array, dtype)


@pytest.mark.parametrize(
    "shape", [(1000,), (1001,), (10, 101), (7, 150), (150, 7), (6, 6, 40), (2, 3, 4, 50), (1, 1, 1, 1001)]
)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_more_than_a_thousand_elements_are_summarised(shape, dtype):
    assert_prints_alike(np.random.default_rng(0).normal(0, 5, shape), dtype)


def test_a_summary_is_formatted_by_what_it_shows():
    array = np.ones(2000)
    array[1000] = 1e20
    assert_prints_alike(array, "float32")
    array[0] = 1e20
    assert_prints_alike(array, "float32")


SUFFIXES = """
torch.zeros(0)
torch.zeros(0, 3)
torch.zeros(2, 0, 3)
torch.zeros(0, dtype=torch.int64)
torch.zeros(0, 2, dtype=torch.bool)
torch.zeros(2, dtype=torch.float64)
torch.ones(2, requires_grad=True)
torch.ones(2, requires_grad=True) * 2
torch.ones((), requires_grad=True)
(torch.ones((), requires_grad=True) + 1)
torch.ones(2, dtype=torch.float64, requires_grad=True).sum()
torch.zeros(0, requires_grad=True)
torch.arange(19.0, requires_grad=True) + 1
torch.arange(20.0, dtype=torch.float64, requires_grad=True)
torch.arange(21.0, dtype=torch.float64, requires_grad=True) * 1
torch.ones(3, 4, dtype=torch.float64, requires_grad=True) * 2
torch.tensor(5)
torch.tensor(True)
torch.tensor(-0.0)
torch.tensor([[-0.0]])
torch.tensor(float("nan"))
torch.tensor(1e-30)
torch.tensor(1e30)
torch.tensor([1e-5, 1])
torch.tensor([100000.0, 1.5])
torch.tensor([1000.5, 1])
torch.tensor([99999999.0])
torch.tensor([100000001.0], dtype=torch.float64)
torch.tensor([0.0001])
torch.tensor([0.00009])
str(torch.tensor([1.0]))
f"{torch.tensor([1.0])}"
[torch.tensor(1), torch.tensor([2.0])]
{"a": torch.tensor(1)}
"""


@pytest.mark.parametrize("expression", lines(SUFFIXES))
def test_what_is_not_the_default_is_printed_after_the_values(expression):
    assert_same(f"str({expression})")


FORMATS = """
f"{torch.tensor(2.5):.3f}"
f"{torch.tensor(2.5)}"
f"{torch.tensor(2):05d}"
f"{torch.tensor(2.5, requires_grad=True) * 2:.2e}"
f"{torch.tensor([1.0, 2.0])}"
f"{torch.tensor([1.0, 2.0]):.2f}"
f"{torch.tensor(True)}"
"%.3f" % torch.tensor(2.5)
"%d" % torch.tensor(2.5)
"%s" % torch.tensor([1, 2])
"{:>8}".format(torch.tensor(1.5))
"""


@pytest.mark.parametrize("expression", lines(FORMATS))
def test_formatting(expression):
    assert_same(expression)


@pytest.fixture
def options():
    """Set the printing options of both modules, and put the defaults back afterwards."""

    def set_both(**given):
        for module in (backlight, torch):
            module.set_printoptions(**given)

    yield set_both
    set_both(profile="default")


@pytest.mark.parametrize(
    "given_options",
    [
        {"precision": 2},
        {"precision": 8, "linewidth": 40},
        {"threshold": 5},
        {"threshold": 5, "edgeitems": 1},
        {"threshold": 5, "edgeitems": 0},
        {"edgeitems": 0},
        {"linewidth": 20},
        {"linewidth": 200, "threshold": 50, "edgeitems": 2},
        {"profile": "short"},
        {"profile": "full"},
        {"profile": "full", "precision": 1},
        {"sci_mode": True},
        {"sci_mode": False},
    ],
    ids=str,
)
def test_options_change_the_print_as_in_pytorch(options, given_options):
    options(**given_options)
    rng = np.random.default_rng(1)
    for array in (
        rng.normal(size=(3, 4)),
        rng.normal(size=30) * 1e5,
        rng.normal(size=(40, 30)),
        np.arange(12.0),
        np.array(2.5),
    ):
        for dtype in ("float32", "float64", "int64"):
            assert_prints_alike(array, dtype)


def test_sci_mode_is_forgotten_by_the_next_call_as_in_pytorch(options):
    options(sci_mode=True)
    options(precision=3)
    assert_prints_alike(np.array([1.5, 2.5]), "float32")


def test_printoptions_hold_inside_the_block_only():
    with printoptions(precision=1, linewidth=30):
        assert repr(backlight.tensor([1.25])) == "tensor([1.2])"
        assert get_printoptions()["linewidth"] == 30
    assert repr(backlight.tensor([1.25])) == "tensor([1.2500])"


def test_an_unknown_profile_is_refused():
    with pytest.raises(ValueError, match="profile must be one of default, short, full, got 'tiny'"):
        backlight.set_printoptions(profile="tiny")


def test_default_dtype_decides_which_dtype_is_shown():
    backlight.set_default_dtype(backlight.float64)
    torch.set_default_dtype(torch.float64)
    try:
        assert_same("str([torch.zeros(2), torch.zeros(2, dtype=torch.float32), torch.zeros(0)])")
    finally:
        backlight.set_default_dtype(backlight.float32)
        torch.set_default_dtype(torch.float32)


def test_a_parameter_says_what_it_is():
    assert_same("str(torch.nn.Parameter(torch.ones(2)))")
    assert_same("repr([torch.nn.Parameter(torch.ones(2, 2))])")


def test_nodes_print_their_name_and_address():
    node = (backlight.ones(2, requires_grad=True) + 1).grad_fn
    assert repr(node) == f"<AddBackward0 object at {hex(id(node))}>"


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_strided_memory_prints_by_its_elements(seed):
    array = np.random.default_rng(seed).normal(size=(4, 6))[::2, 1::2].T
    assert_prints_alike(array, "float64")
