"""Sobol sequences: PyTorch's numbers, plain and scrambled."""

import pytest
import torch

import backlight
from backlight.tensor.quasirandom import SobolEngine


@pytest.mark.parametrize("dimension", [1, 2, 7, 40, 360, 1111])
@pytest.mark.parametrize("seed", [None, 0, 123])
def test_points_are_those_of_pytorch(dimension, seed):
    options = {} if seed is None else {"scramble": True, "seed": seed}
    ours, theirs = SobolEngine(dimension, **options), torch.quasirandom.SobolEngine(dimension, **options)
    for count in (1, 5, 8):
        assert ours.draw(count).tolist() == theirs.draw(count).tolist()
    ours.fast_forward(100)
    theirs.fast_forward(100)
    assert ours.draw(3, dtype=backlight.float64).tolist() == theirs.draw(3, dtype=torch.float64).tolist()
    assert ours.num_generated == theirs.num_generated
    assert repr(ours) == repr(theirs)
    assert ours.reset().draw(2).tolist() == theirs.reset().draw(2).tolist()


def test_scrambling_without_a_seed_takes_the_default_generator():
    backlight.manual_seed(3)
    torch.manual_seed(3)
    ours, theirs = SobolEngine(3, scramble=True), torch.quasirandom.SobolEngine(3, scramble=True)
    assert ours.draw(4).tolist() == theirs.draw(4).tolist()


def test_points_go_into_a_given_tensor():
    out = backlight.zeros(1)
    assert SobolEngine(2).draw(3, out=out) is out
    assert out.shape == (3, 2)


@pytest.mark.parametrize("dimension", [0, 1112])
def test_a_dimension_out_of_range_is_refused(dimension):
    with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 1111\]"):
        SobolEngine(dimension)


def test_a_number_of_points_that_is_no_power_of_two_is_refused():
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match=r"require n to be a power of 2\. 3 points have been previously generated"):
        engine.draw_base2(2)
