"""Native draws give, bit for bit, the numbers of their references, and leave the same state."""

import numpy as np
import pytest
import torch

import backlight
from backlight.kernels import twister

FLOATS = np.dtype(np.float32), np.dtype(np.float64)
DRAWS = [
    (twister.random_words, ()),
    *((twister.random_units, (kind,)) for kind in FLOATS),
    *((twister.random_choices, (p,)) for p in (0.0, 1e-17, 0.3, 0.5, 1.0)),
    *((twister.random_noise, (p, 1 / p, kind)) for p in (0.1, 0.9) for kind in FLOATS),
]


@pytest.mark.parametrize(("draw", "options"), DRAWS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_draws_equal_their_references(level, draw, options):
    ours, theirs = twister.seeded(7), twister.seeded(7)
    for count in (0, 1, 3, 16, 617, 624, 1, 2000, 5, 12345):
        found, expected = draw(ours, count, *options), draw.__wrapped__(theirs, count, *options)
        assert found.dtype == expected.dtype and np.array_equal(found, expected)
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.999, 1e-9])
def test_dropout_draws_what_pytorch_draws(p):
    for library in (torch, backlight):
        library.manual_seed(3)
    ours = backlight.nn.functional.dropout(backlight.ones(40, 77), p)
    theirs = torch.nn.functional.dropout(torch.ones(40, 77), p)
    assert np.array_equal(ours.numpy(), theirs.numpy())
    assert backlight.get_rng_state().numpy().tobytes() == torch.get_rng_state().numpy().tobytes()
