"""Schedules set PyTorch's learning rates, remember what PyTorch's remember, and warn and refuse in its words."""

import copy
import gc
import math
import warnings
import weakref

import pytest
import torch

import backlight
from backlight.optim import lr_scheduler

SCHEDULES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda step: 0.95**step),
    "LambdaLR, one a group": lambda s, o: s.LambdaLR(o, [lambda step: 0.95**step, lambda step: 1 / (1 + step)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda step: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 7, gamma=0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [5, 5, 20, 30], gamma=0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=9),
    "LinearLR": lambda s, o: s.LinearLR(o, start_factor=0.1, end_factor=0.9, total_iters=30),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, total_iters=40, power=2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, T_max=13, eta_min=0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=7),
    "CosineAnnealingWarmRestarts, longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=4, T_mult=2, eta_min=0.01),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, max_lr=0.5, total_steps=61),
    "OneCycleLR, linear": lambda s, o: s.OneCycleLR(
        o, max_lr=[0.5, 0.2], epochs=10, steps_per_epoch=7, anneal_strategy="linear", three_phase=True, pct_start=0.2
    ),
    "CyclicLR": lambda s, o: s.CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=7),
    "CyclicLR, triangular2": lambda s, o: s.CyclicLR(
        o, base_lr=0.01, max_lr=0.1, step_size_up=5, step_size_down=9, mode="triangular2"
    ),
    "CyclicLR, exp_range": lambda s, o: s.CyclicLR(
        o, base_lr=0.01, max_lr=0.1, step_size_up=5, mode="exp_range", gamma=0.97, cycle_momentum=False
    ),
    "CyclicLR, own scale": lambda s, o: s.CyclicLR(
        o, base_lr=[0.01, 0.02], max_lr=0.1, step_size_up=5, scale_fn=lambda cycle: 1 / cycle
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o,
        [s.LinearLR(o, 0.1, total_iters=10), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 20)],
        milestones=[10, 25],
    ),
    "SequentialLR in SequentialLR": lambda s, o: s.SequentialLR(
        o,
        [s.SequentialLR(o, [s.ConstantLR(o, 0.5), s.StepLR(o, 3)], [6]), s.PolynomialLR(o, 30)],
        milestones=[20],
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 10), s.ExponentialLR(o, 0.95)]),
}
OPTIMIZERS = {
    "SGD": {"lr": 0.2, "momentum": 0.5},
    "Adam": {"lr": 0.2},
}


def optimizer_of(module, name="SGD"):
    groups = [{"params": [module.ones(2, requires_grad=True)]}, {"params": [module.ones(1, requires_grad=True)]}]
    groups[1]["lr"] = 0.05
    return getattr(module.optim, name)(groups, **OPTIMIZERS[name])


def made(module, schedule, name="SGD"):
    optimizer = optimizer_of(module, name)
    with warnings.catch_warnings():  # a SequentialLR inside another warns when it is made, as in PyTorch
        warnings.simplefilter("ignore")
        return optimizer, SCHEDULES[schedule](module.optim.lr_scheduler, optimizer)


def settings(optimizer):
    return [[group[name] for name in ("lr", "momentum", "betas") if name in group] for group in optimizer.param_groups]


def walked(optimizer, scheduler, steps):
    seen = []
    for _ in range(steps):
        seen.append((settings(optimizer), scheduler.get_last_lr()))
        optimizer.step()
        with warnings.catch_warnings():  # PyTorch warns of its own deprecated calls inside SequentialLR
            warnings.simplefilter("ignore")
            scheduler.step()
    return seen


def flat(value):
    return [number for each in value for number in flat(each)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_sixty_steps_are_pytorchs(schedule, name):
    ours, theirs = walked(*made(backlight, schedule, name), 60), walked(*made(torch, schedule, name), 60)
    for mine, other in zip(ours, theirs):
        assert flat(mine) == pytest.approx(flat(other), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_state_dicts_have_pytorchs_entries(schedule):
    (step_ours, ours), (step_theirs, theirs) = made(backlight, schedule), made(torch, schedule)
    walked(step_ours, ours, 3)
    walked(step_theirs, theirs, 3)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    assert step_ours.state_dict()["param_groups"][0].keys() == step_theirs.state_dict()["param_groups"][0].keys()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_loaded_schedule_goes_on_where_the_saved_one_was(schedule):
    optimizer, scheduler = made(backlight, schedule)
    walked(optimizer, scheduler, 12)
    twin, loaded = made(backlight, schedule)
    twin.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    loaded.load_state_dict(copy.deepcopy(scheduler.state_dict()))
    assert walked(twin, loaded, 20) == walked(optimizer, scheduler, 20)


PLATEAUS = [
    {},
    {"mode": "max", "patience": 2, "factor": 0.5},
    {"patience": 1, "threshold": 0.1, "threshold_mode": "abs", "cooldown": 3},
    {"patience": 0, "min_lr": [0.01, 0.02], "mode": "max", "threshold_mode": "abs"},
]


@pytest.mark.parametrize("options", PLATEAUS, ids=str)
def test_reduce_on_plateau_is_pytorchs(options):
    measures = [1 / (1 + step) if step % 20 < 8 else 0.3 + 0.1 * math.sin(step) for step in range(60)]
    seen = []
    for module in (backlight, torch):
        optimizer = optimizer_of(module)
        scheduler = module.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rates = []
        for measure in measures:
            scheduler.step(module.tensor(measure, dtype=module.float64))
            rates.append(scheduler.get_last_lr())
        seen.append((rates, scheduler.state_dict()))
    assert seen[0] == seen[1]


def test_going_to_an_epoch_uses_the_closed_form_and_warns():
    for schedule in ("StepLR", "CosineAnnealingLR", "LinearLR", "MultiStepLR", "ConstantLR", "PolynomialLR"):
        rates = []
        for module in (backlight, torch):
            optimizer, scheduler = made(module, schedule)
            optimizer.step()
            with pytest.warns(UserWarning, match="The epoch parameter in"):
                scheduler.step(11)
            rates.append(scheduler.get_last_lr())
        assert rates[0] == pytest.approx(rates[1], rel=1e-12)


def test_a_restart_may_be_set_between_two_steps():
    rates = []
    for module in (backlight, torch):
        _, scheduler = made(module, "CosineAnnealingWarmRestarts, longer")
        found = []
        for epoch in (0.5, 3.25, 4.0, 13.75, 2.0):
            scheduler.step(epoch)
            found.append(scheduler.get_last_lr())
        rates.append(found)
    assert flat(rates[0]) == pytest.approx(flat(rates[1]), rel=1e-12)


def test_a_rate_that_is_a_tensor_stays_the_same_tensor():
    rate = backlight.tensor(0.5)
    optimizer = backlight.optim.Adam([backlight.ones(1, requires_grad=True)], lr=rate)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.5 * 0.5


# --- warnings and mistakes, in PyTorch's words ------------------------------------------------------------------------


def test_the_wrong_order_of_steps_warns_at_the_users_line():
    told = []
    for module in (backlight, torch):
        _, scheduler = made(module, "StepLR")
        with pytest.warns(UserWarning) as caught:
            scheduler.step()
        told.append(str(caught[0].message))
        assert caught[0].filename == __file__
    assert told[0] == told[1]


def test_an_optimizer_whose_step_was_replaced_warns():
    optimizer, scheduler = made(backlight, "StepLR")
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="has been overridden after learning rate scheduler initialization"):
        scheduler.step()


def test_get_lr_outside_a_step_warns():
    _, scheduler = made(backlight, "StepLR")
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`") as caught:
        scheduler.get_lr()
    assert caught[0].filename == __file__


def test_a_schedule_does_not_keep_its_optimizer_alive_in_a_circle():
    optimizer, scheduler = made(backlight, "StepLR")
    gone = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer, scheduler
        assert gone() is None
    finally:
        gc.enable()


MISTAKES = {
    "no optimizer": lambda s, o: s.StepLR("SGD", 3),
    "two functions for three groups": lambda s, o: s.LambdaLR(o, [abs]),
    "no function": lambda s, o: s.MultiplicativeLR(o, 0.5),
    "factor too large": lambda s, o: s.ConstantLR(o, 2.0),
    "start factor": lambda s, o: s.LinearLR(o, 0.0),
    "end factor": lambda s, o: s.LinearLR(o, 1.0, 2.0),
    "resumed without state": lambda s, o: s.StepLR(o, 3, last_epoch=4),
    "T_0": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "T_mult": lambda s, o: s.CosineAnnealingWarmRestarts(o, 1, 0),
    "negative epoch": lambda s, o: s.CosineAnnealingWarmRestarts(o, 1).step(-1),
    "no total": lambda s, o: s.OneCycleLR(o, 0.1),
    "total of 0": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=0),
    "epochs": lambda s, o: s.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=1),
    "pct_start": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=5, pct_start=2.0),
    "strategy": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=5, anneal_strategy="steep"),
    "two rates for one group": lambda s, o: s.OneCycleLR(o, [0.1], total_steps=5),
    "mode of a cycle": lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="square"),
    "mode of a plateau": lambda s, o: s.ReduceLROnPlateau(o, "low"),
    "factor of a plateau": lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    "threshold mode": lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="both"),
    "min_lrs": lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]),
    "no schedulers": lambda s, o: s.SequentialLR(o, [], []),
    "milestones": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 3)], [1]),
    "a plateau in a sequence": lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
    "no chain": lambda s, o: s.ChainedScheduler([]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_pytorchs_words(mistake):
    def make(module):
        return MISTAKES[mistake](module.optim.lr_scheduler, optimizer_of(module))

    with pytest.raises((ValueError, TypeError, KeyError)) as theirs:
        make(torch)
    with pytest.raises(type(theirs.value)) as ours:
        make(backlight)
    assert str(ours.value).startswith(str(theirs.value))


def test_a_cycle_needs_an_optimizer_with_momentum():
    optimizer = backlight.optim.Adagrad([backlight.ones(1, requires_grad=True)])
    with pytest.raises(ValueError, match="optimizer must support momentum or beta1"):
        lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=5)


def test_more_steps_than_one_cycle_has_are_refused():
    optimizer = optimizer_of(backlight)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
    optimizer.step()
    scheduler.step()
    scheduler.step()
    with pytest.raises(ValueError, match=r"Tried to step 3 times\. The specified number of total steps is 2"):
        scheduler.step()


def test_a_schedule_of_the_users_own_needs_get_lr_only():
    class Halved(lr_scheduler.LRScheduler):
        def get_lr(self):
            return [rate / 2**self.last_epoch for rate in self.base_lrs]

    optimizer = optimizer_of(backlight)
    scheduler = Halved(optimizer)
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.2 / 2, 0.05 / 2]
    with pytest.raises(NotImplementedError, match="must have a method get_lr"):
        lr_scheduler.LRScheduler(optimizer_of(backlight))
