"""Averages of weights over time: `torch.optim.swa_utils`, number for number."""

import numpy as np
import pytest
import torch

import backlight
import backlight.nn
import backlight.optim
from backlight.utils import averaging

swa = torch.optim.swa_utils
PAIRS = [(torch, swa), (backlight, averaging)]
DATA = np.random.default_rng(0).normal(size=(4, 6, 3)).astype("float32")


def small(engine):
    """Return a model with a batch norm, the same on both engines."""
    model = engine.nn.Sequential(engine.nn.Linear(3, 4), engine.nn.BatchNorm1d(4), engine.nn.Linear(4, 1))
    weights = np.random.default_rng(1)
    for parameter in model.parameters():
        parameter.data = engine.tensor(weights.normal(size=tuple(parameter.shape)).astype("float32"))
    return model


WAYS = {
    "the plain average": lambda names: {},
    "buffers, too": lambda names: {"use_buffers": True},
    "an exponential average": lambda names: {"avg_fn": names.get_ema_avg_fn(0.9)},
    "an exponential average of lists": lambda names: {
        "multi_avg_fn": names.get_ema_multi_avg_fn(0.9),
        "use_buffers": True,
    },
    "a plain average, one by one": lambda names: {"avg_fn": names.get_swa_avg_fn()},
    "a plain average of lists": lambda names: {"multi_avg_fn": names.get_swa_multi_avg_fn()},
    "an average of one's own": lambda names: {"avg_fn": lambda average, current, count: average + current * count},
}


@pytest.mark.parametrize("way", WAYS)
def test_an_average_is_pytorchs(way):
    found = []
    for engine, names in PAIRS:
        model = small(engine)
        average = names.AveragedModel(model, **WAYS[way](names))
        optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
        schedule = names.SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
        rates = []
        for batch in DATA:
            optimizer.zero_grad()
            model(engine.tensor(batch)).square().mean().backward()
            optimizer.step()
            average.update_parameters(model)
            schedule.step()
            rates += schedule.get_last_lr()
        names.update_bn([(engine.tensor(batch), 0) for batch in DATA], average)
        state = {name: each.numpy() for name, each in average.state_dict().items()}
        found.append((rates, state, average(engine.tensor(DATA[0])).detach().numpy()))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    assert list(found[0][1]) == list(found[1][1])
    for name, value in found[0][1].items():
        np.testing.assert_allclose(found[1][1][name], value, rtol=2e-5, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(found[1][2], found[0][2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{"anneal_strategy": "linear"}, {"anneal_epochs": 0}, {"anneal_epochs": 3}])
def test_rates_are_annealed_as_pytorch_anneals_them(options):
    found = []
    for engine, names in PAIRS:
        weights = [engine.nn.Parameter(engine.ones(1)) for _ in range(2)]
        groups = [{"params": [weights[0]], "lr": 1.0}, {"params": [weights[1]], "lr": 0.5}]
        optimizer = engine.optim.SGD(groups, lr=0.1)
        schedule = names.SWALR(optimizer, swa_lr=[0.1, 0.2], **options)
        rates = [schedule.get_last_lr()]
        for _ in range(6):
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr())
        found.append(np.array(rates))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


MISTAKES = {
    "two ways": lambda engine, names: names.AveragedModel(small(engine), avg_fn=max, multi_avg_fn=max),
    "a decay above one": lambda engine, names: names.get_ema_avg_fn(1.5),
    "a decay below zero": lambda engine, names: names.get_ema_multi_avg_fn(-1),
    "a strategy": lambda engine, names: names.SWALR(
        engine.optim.SGD(small(engine).parameters(), lr=0.1), 0.1, anneal_strategy="step"
    ),
    "epochs": lambda engine, names: names.SWALR(engine.optim.SGD(small(engine).parameters(), lr=0.1), 0.1, -1),
    "too many rates": lambda engine, names: names.SWALR(
        engine.optim.SGD(small(engine).parameters(), lr=0.1), [0.1, 0.2]
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_pytorchs_message(mistake):
    said = []
    for engine, names in PAIRS:
        with pytest.raises((ValueError, AssertionError)) as caught:
            MISTAKES[mistake](engine, names)
        said.append(str(caught.value))
    assert said[1].startswith(said[0])


def test_the_statistics_of_a_model_without_batch_norm_stay():
    model = backlight.nn.Linear(2, 1).eval()
    averaging.update_bn([backlight.ones(1, 2)], model)
    assert not model.training
