"""Gradients by depth: which vanish and which explode, in the record, in the answer of `why` and on the page."""

import pytest
import torch

import backlight as bl
from backlight import lens
from backlight.lens.records.depths import EXPLODING, VANISHED, depths_of
from backlight.lens.records.record import Record


@pytest.fixture(params=[torch, bl], ids=["torch", "backlight"])
def engine(request):
    engine = request.param
    engine.manual_seed(0)
    return engine


def stack_of(engine, count: int, activation: str, scale: float = 1.0):
    """Return a model of `count` layers of 16 units, its weights times a scale."""
    layers = [part for _ in range(count) for part in (engine.nn.Linear(16, 16), getattr(engine.nn, activation)())]
    model = engine.nn.Sequential(*layers)
    with engine.no_grad():
        for weight in model.parameters():
            weight.mul_(scale)
    return model


def recorded(engine, model) -> tuple[Record, str]:
    """Return the record of a step, and what `why` says of the first weight's gradient."""
    with lens.watch() as watch:
        model(engine.randn(8, 16)).square().mean().backward()
        said = str(lens.why(next(iter(model.parameters()))))
    return watch.record, said


def test_gradients_through_a_stack_of_sigmoids_vanish(engine):
    record, said = recorded(engine, stack_of(engine, 16, "Sigmoid"))
    found = depths_of(record.nodes, record.backwards[-1])
    assert found.word == VANISHED
    norms = [level.norm for level in found.levels]
    assert max(norms[found.at :]) < 2**-23 * max(norms[: found.at])
    assert "it vanished" in said and "16 × SigmoidBackward0" in said
    assert len(said.splitlines()) < 25


def test_large_weights_make_gradients_explode(engine):
    record, _ = recorded(engine, stack_of(engine, 12, "Identity", 20.0))
    found = depths_of(record.nodes, record.backwards[-1])
    assert found.word == EXPLODING
    assert found.levels[found.at].norm >= 1e4 * max(level.norm for level in found.levels[:3])


@pytest.mark.parametrize("activation", ["ReLU", "Tanh", "GELU"])
def test_what_trains_has_neither_word(engine, activation):
    record, said = recorded(engine, stack_of(engine, 6, activation))
    assert depths_of(record.nodes, record.backwards[-1]).word == ""
    assert "vanished" not in said


def test_a_bias_that_a_normalisation_takes_out_again_has_not_vanished(engine):
    model = engine.nn.Sequential(engine.nn.Linear(16, 16), engine.nn.BatchNorm1d(16), engine.nn.Linear(16, 1))
    with lens.watch() as watch:
        model(engine.randn(32, 16)).square().mean().backward()
        said = str(lens.why(model[0].bias))
    assert model[0].bias.grad.norm().item() < 1e-6
    assert "vanished" not in said
    assert depths_of(watch.record.nodes, watch.record.backwards[-1]).word == ""
