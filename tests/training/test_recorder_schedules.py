"""A loop of one's own with a learning rate schedule can be taken up bit for bit, whatever schedule it is."""

import json

import numpy as np
import pytest

import backlight
from backlight import nn
from backlight.data import DataLoader, TensorDataset
from backlight.errors import GraphError, InputError
from backlight.optim import SGD, Adam, lr_scheduler
from backlight.training import Recorder

STEPS_AN_EPOCH, EPOCHS = 6, 4
STEPS = STEPS_AN_EPOCH * EPOCHS

BY_STEP = {
    "cosine": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, STEPS),
    "onecycle": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.05, STEPS),
    "restarts": lambda optimizer: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 5, 2),
    "sequence": lambda optimizer: lr_scheduler.SequentialLR(
        optimizer,
        [lr_scheduler.LinearLR(optimizer, 0.2, total_iters=5), lr_scheduler.MultiStepLR(optimizer, [4, 9])],
        [5],
    ),
    "chain": lambda optimizer: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(optimizer, 0.5, 7), lr_scheduler.ExponentialLR(optimizer, 0.95)]
    ),
}
BY_EPOCH = {
    "step": lambda optimizer: lr_scheduler.StepLR(optimizer, 1, 0.5),
    "lambda": lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.8**epoch),
    "plateau": lambda optimizer: lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=10.0),
}


class StoppedError(Exception):
    """What ends a run in these tests."""


def run(folder, name, stop_at=None, stop_after_epoch=None, optimizer=Adam, **options):
    """Train, ending abruptly where it was asked to, and return the weights."""
    backlight.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
    inputs = backlight.randn(48, 4)
    loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
    optimizer = optimizer(model.parameters(), lr=0.01)
    schedule = (BY_STEP | BY_EPOCH)[name](optimizer)
    recorder = Recorder(folder, model, optimizer, scheduler=schedule, checkpoint_every=5, **options)
    for epoch in recorder.epochs(EPOCHS):
        for batch, labels in recorder.batches(loader):
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if name in BY_STEP:
                schedule.step()
            recorder.step(loss)
            if recorder.steps == stop_at:
                raise StoppedError
        with backlight.no_grad():
            loss = nn.functional.cross_entropy(model(inputs), (inputs.sum(1) > 0).long())
        recorder.evaluation(loss=loss)
        if name in BY_EPOCH:
            schedule.step(*([loss.item()] if name == "plateau" else []))
        if epoch == stop_after_epoch:
            recorder.checkpoint()
            raise StoppedError
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def told(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [[one.get(name) for name in ("step", "loss", "lr", "evaluation")] for one in lines]


@pytest.mark.parametrize("where", [{"stop_at": 8}, {"stop_at": 10}, {"stop_at": 17}, {"stop_after_epoch": 1}], ids=str)
@pytest.mark.parametrize("name", [*BY_STEP, *BY_EPOCH])
def test_a_run_with_a_schedule_that_was_stopped_ends_as_if_it_had_not_been(tmp_path, name, where):
    weights = run(tmp_path / "whole", name)
    with pytest.raises(StoppedError):
        run(tmp_path / "cut", name, **where)
    resumed = run(tmp_path / "cut", name, existing="resume")
    assert told(tmp_path / "cut") == told(tmp_path / "whole")
    for name, array in weights.items():
        np.testing.assert_array_equal(resumed[name], array, strict=True)


def test_momentum_and_the_schedule_that_moves_it_are_restored(tmp_path):
    def with_momentum(params, lr):
        return SGD(params, lr=lr, momentum=0.9)

    weights = run(tmp_path / "whole", "onecycle", optimizer=with_momentum)
    with pytest.raises(StoppedError):
        run(tmp_path / "cut", "onecycle", stop_at=11, optimizer=with_momentum)
    resumed = run(tmp_path / "cut", "onecycle", existing="resume", optimizer=with_momentum)
    for name, array in weights.items():
        np.testing.assert_array_equal(resumed[name], array, strict=True)


def parts():
    model = nn.Linear(2, 2)
    optimizer = SGD(model.parameters(), lr=1.0)
    return model, optimizer, lr_scheduler.ExponentialLR(optimizer, 0.5)


@pytest.mark.parametrize("before", [True, False], ids=["schedule-then-record", "record-then-schedule"])
def test_the_recorded_rate_is_the_one_that_the_step_used(tmp_path, before):
    model, optimizer, schedule = parts()
    recorder = Recorder(tmp_path, model, optimizer, scheduler=schedule)
    for _ in range(3):
        model(backlight.ones(1, 2)).sum().backward()
        optimizer.step()
        if before:
            schedule.step()
        recorder.step(0.0)
        if not before:
            schedule.step()
    assert [line[2] for line in told(tmp_path)] == [1.0, 0.5, 0.25]


def test_a_schedule_that_steps_after_the_recorder_is_told_where_it_belongs(tmp_path):
    model, optimizer, schedule = parts()
    recorder = Recorder(tmp_path, model, optimizer, scheduler=schedule)
    with pytest.raises(GraphError, match=r"scheduler.step\(\) must be called before recorder.step\(…\)"):
        for _ in recorder.batches([1, 2]):
            optimizer.step()
            recorder.step(0.0)
            schedule.step()


def test_a_run_is_not_resumed_with_a_schedule_more_or_less(tmp_path):
    model, optimizer, schedule = parts()
    for folder, scheduler in (("with", schedule), ("without", None)):
        recorder = Recorder(tmp_path / folder, model, optimizer, scheduler=scheduler)
        recorder.step(0.0)
        recorder.checkpoint()
    with pytest.raises(InputError, match="it had one, and this one has none"):
        Recorder(tmp_path / "with", model, optimizer, existing="resume")
    with pytest.raises(InputError, match="it had none, and this one has one"):
        Recorder(tmp_path / "without", model, optimizer, scheduler=schedule, existing="resume")


def test_the_page_names_the_schedule_and_what_was_evaluated_on_what(tmp_path):
    model, optimizer, schedule = parts()
    recorder = Recorder(tmp_path, model, optimizer, scheduler=schedule)
    recorder.step(1.0, accuracy=0.4)
    recorder.evaluation(on="validation", accuracy=0.5)
    recorder.evaluation(on="test", accuracy=0.25)
    page = recorder.report().read_text()
    assert "<dt>Schedule</dt><dd>ExponentialLR</dd>" in page
    assert "<dt>Best validation accuracy</dt><dd>50.00 % at step 1</dd>" in page
    assert "<dt>Test accuracy</dt><dd>25.00 %</dd>" in page
    for look in ("evaluated", "tested"):
        assert f'class="spot {look}"' in page
