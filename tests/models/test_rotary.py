"""Rotary positions are those of transformers, and only differences of positions count."""

import numpy as np
import pytest
import torch
from transformers.models.modernbert.modeling_modernbert import apply_rotary_pos_emb

from backlight.autograd import gradgradcheck
from backlight.errors import InputError
from backlight.models.encoders.rotary import Rotation, theta_of
from backlight.tensor.creation import tensor

DIM, THETA = 8, 10_000.0


def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape)


def test_vectors_are_turned_as_in_transformers():
    positions, x = np.array([0, 1, 2, 5, 40]), drawn(5, 3, DIM)
    angles = torch.tensor(positions)[:, None] / THETA ** (torch.arange(0, DIM, 2).double() / DIM)
    angles = torch.cat((angles, angles), -1)
    expected, _ = apply_rotary_pos_emb(torch.tensor(x), torch.tensor(x), angles.cos(), angles.sin())
    turned = Rotation.of(positions, DIM, THETA, np.dtype(np.float64))(tensor(x))
    np.testing.assert_allclose(turned.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_queries_and_keys_may_be_turned_together():
    turn = Rotation.of(np.arange(4), DIM, THETA, np.dtype(np.float64))
    both = drawn(4, 2, 3, DIM)
    together = turn(tensor(both)).numpy()
    assert np.array_equal(together[:, 1], turn(tensor(both[:, 1])).numpy())


def test_products_depend_on_differences_of_positions_alone():
    x = tensor(drawn(6, DIM))
    near, far = (Rotation.of(np.arange(6) + start, DIM, THETA, np.dtype(np.float64))(x) for start in (0, 5000))
    np.testing.assert_allclose((far @ far.mT).numpy(), (near @ near.mT).numpy(), rtol=1e-9)


def test_angles_far_out_are_exact():
    turn = Rotation.of(np.array([1_000_003]), 2, THETA, np.dtype(np.float32))
    assert turn.cosine.item() == np.float32(np.cos(1_000_003.0))


def test_rotations_are_differentiable_twice():
    turn = Rotation.of(np.arange(3), 4, THETA, np.dtype(np.float64))
    assert gradgradcheck(lambda x: (turn(x) ** 3).sum(), [tensor(drawn(3, 2, 4), requires_grad=True)])


def test_the_base_is_read_and_other_kinds_are_refused():
    assert theta_of({"rope_theta": 5e5, "rope_type": "default"}, THETA) == 5e5
    assert theta_of({}, THETA) == THETA
    for rope in ({"rope_type": "yarn"}, {"type": "yarn", "factor": 4.0}):
        with pytest.raises(InputError, match="rope_type must be default, got yarn"):
            theta_of(rope, THETA)
    with pytest.raises(InputError, match="rope_theta must be a number above 0, got None"):
        theta_of({"rope_theta": None}, THETA)
