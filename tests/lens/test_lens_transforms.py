"""The lens and anomaly mode leave programs with transforms as they are: each tool, each transform, each engine."""

import warnings

import pytest
from lens_transforms import MODEL, TRANSFORMS, result_of
from under_the_doctor import ENGINES, engine_called

import backlight
from backlight import lens
from backlight.errors import AnomalyError
from backlight.lens.doctor.history import History
from backlight.lens.pictures.html import page_of
from backlight.lens.records.recording import Recording

ENGINE = pytest.mark.parametrize("engine", ENGINES)
PROGRAM = pytest.mark.parametrize("program", TRANSFORMS)
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.script. is deprecated"),  # PyTorch's own: of forward mode
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node"),  # of linearize
]
WATCHES = {
    "summaries": {},
    "shapes": {"values": "none"},
    "whole": {"values": "full"},
    "steps": {"steps": 2},
}


@ENGINE
@PROGRAM
@pytest.mark.parametrize("options", WATCHES.values(), ids=WATCHES)
def test_watching_changes_nothing_and_gives_a_record(engine: str, program: str, options: dict):
    alone = result_of(engine, TRANSFORMS[program])
    with lens.watch(engine=engine, **options) as watch:
        assert result_of(engine, TRANSFORMS[program]) == alone
    for record in watch.records:
        assert record.problem is None
        assert lens.read_record(record.to_json()).to_json() == record.to_json()
        assert record.tree() and page_of(record, replay=True) and record.svg()
        assert all(step.text for step in record.replay().steps)


@ENGINE
@PROGRAM
@pytest.mark.parametrize("strict", [False, True])
def test_the_doctor_changes_nothing_and_finds_nothing(engine: str, program: str, strict: bool):
    alone = result_of(engine, TRANSFORMS[program])
    with lens.doctor(engines=[engine_called(engine)], strict=strict) as report:
        assert result_of(engine, TRANSFORMS[program]) == alone
    assert report.findings == []


@PROGRAM
def test_anomaly_mode_changes_nothing_and_raises_no_false_alarm(program: str):
    alone = result_of("backlight", TRANSFORMS[program])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that anomaly mode is on
        with backlight.autograd.detect_anomaly():
            assert result_of("backlight", TRANSFORMS[program]) == alone


@ENGINE
@pytest.mark.parametrize("program", ["is_grads_batched", "jacobian"])
def test_what_a_batched_gradient_cannot_show_is_said_in_the_record(engine: str, program: str):
    with lens.watch(engine=engine) as watch:
        result_of(engine, TRANSFORMS[program])
    assert watch.record.unread.keys() == {"batched by vmap"}
    assert "tensors unread, batched by vmap" in repr(watch.record)
    steps = [step for backward in watch.record.backwards for step in backward.steps]
    assert [one.shape for step in steps for one in step.incoming] == [(3,)] * len(steps)  # one element's


def test_our_record_shows_what_vmap_records_with_the_batch_in_front():
    with lens.watch(engine="backlight") as watch:
        result_of("backlight", TRANSFORMS["vmap"])
    first = next(node for node in watch.record.nodes if node.type == "MulBackward0")
    assert first.outputs[0].shape == (2, 3) and first.outputs[0].values == [[1.0] * 3] * 2
    assert watch.record.unread == {}


def test_pytorchs_differentiated_tensors_are_read_through_their_wrappers():
    with lens.watch(engine="torch") as watch:
        result_of("torch", TRANSFORMS["grad"])
    (sin,) = [node for node in watch.record.nodes if node.type == "SinBackward0"]
    assert [round(one, 3) for one in sin.outputs[0].values] == [0.479, 0.841, 0.909]
    assert [one.summary.values for one in sin.saved] == [[0.5, 1.0, 2.0]] and watch.record.unread == {}


@ENGINE
def test_a_mistake_of_the_recorders_own_leaves_the_program_alone(engine: str, monkeypatch):
    def fail(*given):
        raise ZeroDivisionError("a mistake")

    torch = engine_called(engine).module
    monkeypatch.setattr(Recording, "ran", fail)
    said = "lens.watch could not go on: ZeroDivisionError"
    with pytest.warns(UserWarning, match=said), lens.watch(engine=engine) as watch:
        x = torch.ones(2, requires_grad=True)
        x.exp().sum().backward()
    assert x.grad is not None and watch.record.problem.startswith("ZeroDivisionError: a mistake")
    assert [node.type for node in watch.record.nodes] == ["AccumulateGrad", "ExpBackward0", "SumBackward0"]


@ENGINE
def test_a_detector_that_fails_leaves_the_program_alone(engine: str, monkeypatch):
    def fail(*given):
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(History, "started", fail)
    torch = engine_called(engine).module
    said = "the doctor's History failed and stopped: ZeroDivisionError"
    with pytest.warns(UserWarning, match=said), lens.doctor(engines=[engine_called(engine)]):
        x = torch.ones(2, requires_grad=True)
        x.exp().sum().backward()
    assert x.grad is not None


NAN = {
    "jacrev": "result = torch.func.jacrev(lambda a: (a - 0.5).sqrt() * 0)(x)",
    "vmap": "w = torch.zeros(3, requires_grad=True)\n"
    "torch.vmap(lambda a: ((a * w).sqrt() * 0).sum())(torch.ones(2, 3)).sum().backward()\nresult = w.grad",
    "is_grads_batched": "y = (x.requires_grad_() * 0).sqrt() * 0\n"
    "result = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)[0]",
    "checkpoint": "checkpoint(lambda a: (a * 0).sqrt() * 0, x.requires_grad_(), use_reentrant=False).sum().backward()\n"
    "result = x.grad",
}


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.filterwarnings("ignore:Error detected in SqrtBackward0")
@pytest.mark.parametrize("source", NAN.values(), ids=NAN)
def test_anomaly_mode_finds_the_nan_inside_a_transform(source: str):
    with pytest.raises(AnomalyError, match="SqrtBackward0"), backlight.autograd.detect_anomaly():
        result_of("backlight", source)


@ENGINE
@pytest.mark.parametrize("source", NAN.values(), ids=NAN)
def test_the_doctor_goes_on_where_a_transform_meets_nan(engine: str, source: str):
    with lens.doctor(engines=[engine_called(engine)], strict=True):
        result_of(engine, source)


RECORDED = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
recorder = Recorder(model, optimizer)
for step in range(2):
    optimizer.zero_grad()
    torch.vmap(lambda a: model(a).sum())(torch.ones(2, 3)).sum().backward()
    torch.vmap(torch.func.grad(lambda a: model(a).sum()))(torch.ones(2, 3))
    torch.func.hessian(lambda a: model(a).sum())(torch.ones(3))
    optimizer.step()
    recorder.step(1.0)
recorder.close()
assert recorder.steps == 2
result = model[0].weight
"""


@ENGINE
def test_the_recorder_of_training_leaves_transforms_alone(engine: str):
    recorded = "from backlight.lens import Recorder\n" + MODEL + RECORDED
    alone = "\n".join(line for line in recorded.splitlines() if "ecorder" not in line)
    assert result_of(engine, recorded) == result_of(engine, alone)
