"""`backlight train` follows a learning rate schedule, and goes on with it where it stopped."""

import numpy as np
import pytest
import torch
from small_runs import EPOCHS, LR, STEPS, STEPS_AN_EPOCH, seen_in, small

from backlight.errors import InputError
from backlight.training.config import SCHEDULE_OPTIONS
from backlight.training.train import prepare

lr = torch.optim.lr_scheduler


def rates(tmp_path, optimizer="sgd", **schedule):
    config = small(tmp_path / "run", schedule=schedule, optimizer={"name": optimizer, "lr": LR})
    return [one["lr"] for one in seen_in(config)[1]]


def torch_rates(make, every=1):
    """Return the rates that PyTorch's schedule gives to each step, going on after each `every` steps."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LR)
    schedule, found = make(optimizer), []
    for step in range(STEPS):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if (step + 1) % every == 0:
            schedule.step()
    return found


# --- schedules --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "make", "every"),
    [
        ({"name": "linear"}, lambda o: lr.LinearLR(o, 1.0, 0.0, STEPS), 1),
        ({"name": "linear", "min_lr": 0.02}, lambda o: lr.LinearLR(o, 1.0, 0.2, STEPS), 1),
        ({"name": "cosine", "min_lr": 0.01}, lambda o: lr.CosineAnnealingLR(o, STEPS, 0.01), 1),
        ({"name": "cosine", "by": "epoch"}, lambda o: lr.CosineAnnealingLR(o, EPOCHS), STEPS_AN_EPOCH),
        ({"name": "step", "step_size": 2}, lambda o: lr.StepLR(o, 2), STEPS_AN_EPOCH),
        ({"name": "step", "step_size": 3, "gamma": 0.5, "by": "step"}, lambda o: lr.StepLR(o, 3, 0.5), 1),
        ({"name": "multistep", "milestones": [1, 3]}, lambda o: lr.MultiStepLR(o, [1, 3]), STEPS_AN_EPOCH),
        ({"name": "exponential", "gamma": 0.9}, lambda o: lr.ExponentialLR(o, 0.9), STEPS_AN_EPOCH),
        (
            {"name": "onecycle", "pct_start": 0.4, "div_factor": 10.0},
            lambda o: lr.OneCycleLR(o, LR, STEPS, pct_start=0.4, div_factor=10.0, cycle_momentum=False),
            1,
        ),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else None,
)
def test_each_schedule_gives_the_rates_of_pytorchs(tmp_path, schedule, make, every):
    assert rates(tmp_path, **schedule) == pytest.approx(torch_rates(make, every), rel=1e-9, abs=1e-15)


def test_the_rate_stays_where_nothing_is_said(tmp_path):
    assert rates(tmp_path) == [LR] * STEPS


def test_a_warm_up_rises_evenly_and_the_schedule_begins_after_it(tmp_path):
    found = rates(tmp_path, name="cosine", warmup=4)
    assert found[:5] == pytest.approx([LR * part / 5 for part in (1, 2, 3, 4, 5)])
    assert found[4:] == pytest.approx(
        [LR / 2 * (1 + np.cos(np.pi * step / (STEPS - 4))) for step in range(STEPS - 4)], abs=1e-12
    )


def test_a_warm_up_alone_ends_at_the_rate(tmp_path):
    found = rates(tmp_path, warmup=3)
    assert found == pytest.approx([LR / 4, LR / 2, LR * 3 / 4, *[LR] * (STEPS - 3)])


def test_milestones_count_from_the_beginning_of_the_run(tmp_path):
    found = rates(tmp_path, name="multistep", milestones=[3], warmup=1)
    assert found[::STEPS_AN_EPOCH] == pytest.approx([LR / 2, LR, LR, LR / 10])


def test_onecycle_moves_the_momentum_where_there_is_one(tmp_path):
    for name, options, there in (("sgd", {"momentum": 0.9}, True), ("sgd", {}, False), ("adagrad", {}, False)):
        optimizer = {"name": name, "lr": LR, **options}
        run = prepare(small(tmp_path / f"{name}{there}", optimizer=optimizer, schedule={"name": "onecycle"}))
        assert run.parts.schedule.cycle_momentum is there
        run.train()


def test_a_plateau_of_the_validation_loss_lowers_the_rate(tmp_path):
    schedule = {"name": "reduce_on_plateau", "patience": 0, "factor": 0.5}
    optimizer = {"name": "sgd", "lr": 100.0}  # far too much: the loss gets worse
    config = small(tmp_path / "run", 0.2, schedule=schedule, optimizer=optimizer, epochs=6)
    _, steps, evaluations = seen_in(config)
    best, rate, expected = float("inf"), 100.0, []
    for one in evaluations[:-1]:
        expected += [rate] * STEPS_AN_EPOCH
        loss = one["evaluation"]["loss"]
        best, rate = (loss, rate) if loss < best * (1 - 1e-4) else (best, rate / 2)
    assert [one["lr"] for one in steps] == expected
    assert len(set(expected)) > 1


@pytest.mark.parametrize("name", sorted(SCHEDULE_OPTIONS))
def test_a_run_with_any_schedule_that_was_interrupted_goes_on_with_the_same_rates_and_weights(tmp_path, name):
    more = {"step": {"step_size": 1}, "multistep": {"milestones": [2, 3]}}.get(name, {"warmup": 0})
    schedule = {"name": name, **more}
    changes = {"schedule": schedule, "checkpoint_every": 3, "optimizer": {"name": "nadam", "lr": 0.01}}
    whole, expected, _ = seen_in(small(tmp_path / "whole", 0.2, **changes))
    for stop in (4, 10, 13):
        run = prepare(small(tmp_path / "cut", 0.2, **changes), "resume")
        with pytest.raises(ZeroDivisionError):
            run.train(lambda record, stop=stop: 1 / (record["step"] != stop))
    resumed, _, _ = seen_in(small(tmp_path / "cut", 0.2, **changes), "resume")
    found = [one for one in resumed.recorder.folder.records() if "loss" in one]
    assert [(one["step"], one["loss"], one["lr"]) for one in found] == [
        (one["step"], one["loss"], one["lr"]) for one in expected
    ]
    for name, tensor in whole.model.state_dict().items():
        np.testing.assert_array_equal(resumed.model.state_dict()[name].numpy(), tensor.numpy())


def test_the_rate_is_a_column_of_the_metrics_and_a_curve_of_the_page(tmp_path):
    run, _, _ = seen_in(small(tmp_path / "run", schedule={"name": "exponential", "gamma": 0.5, "warmup": 1}))
    lines = run.recorder.folder.records()
    assert [one["lr"] for one in lines if "loss" in one][-1] == pytest.approx(LR / 4)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<h2>Learning rate</h2>" in page
    assert "LinearLR, then ExponentialLR" in page


def test_a_planned_schedule_is_not_resumed_with_other_epochs(tmp_path):
    for name, refused in (("cosine", True), ("exponential", False)):
        seen_in(small(tmp_path / name, schedule={"name": name}))
        longer = small(tmp_path / name, schedule={"name": name}, epochs=EPOCHS + 1)
        if refused:
            with pytest.raises(InputError, match=r"epochs must be as in the run that is resumed, 4, got 5"):
                prepare(longer, "resume")
        else:
            assert len(seen_in(longer, "resume")[1]) == STEPS_AN_EPOCH


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ({"name": "cosine", "warmup": 20}, "schedule.warmup must be less than the 20 steps of the run, got 20"),
        ({"name": "onecycle", "pct_start": 0.05}, "schedule.pct_start must leave more than one of the 20 steps"),
    ],
)
def test_a_schedule_that_does_not_fit_into_the_run_is_refused(tmp_path, schedule, said):
    with pytest.raises(InputError, match=said):
        prepare(small(tmp_path / "run", schedule=schedule))
