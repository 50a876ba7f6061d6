"""The doctor as a callback: of transformers' real Trainer, and of a fake that calls hooks as Lightning does."""

import copy
import pickle

import pytest
import torch
from torch import nn
from transformers import Trainer, TrainingArguments

from backlight.errors import InputError
from backlight.lens.callbacks import LightningDoctor, TransformersDoctor

pytestmark = pytest.mark.filterwarnings("ignore")  # of the trainers


class Net(nn.Module):
    """A model whose second layer never reaches the loss, or whose loss has no single value."""

    def __init__(self, mistake: str = ""):
        super().__init__()
        self.first, self.second = nn.Linear(2, 4), nn.Linear(4, 1)
        self.mistake = mistake

    def forward(self, inputs, labels=None):
        hidden = self.first(inputs)
        output = self.second(hidden.detach() if self.mistake == "cut" else hidden)
        if self.mistake == "crash":
            hidden = hidden.exp()
            loss = hidden.sum()
            hidden.add_(1.0)
        else:
            loss = (output.squeeze(-1) - labels).square().mean()
        return {"loss": loss, "logits": output}


def trainer(tmp_path, mistake: str = "", callbacks=(), steps: int = 4) -> Trainer:
    torch.manual_seed(0)
    rows = [{"inputs": torch.randn(2), "labels": torch.randn(())} for _ in range(16)]
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=steps,
        per_device_train_batch_size=4,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
        dataloader_pin_memory=False,
    )
    return Trainer(Net(mistake), arguments, train_dataset=rows, callbacks=list(callbacks))


def slugs(report) -> list[str]:
    return [found.slug for found in report.findings]


def test_a_trainer_with_a_cut_model_is_reported_when_it_ends(tmp_path, capsys):
    doctor = TransformersDoctor()
    trainer(tmp_path, "cut", [doctor]).train()
    assert slugs(doctor.report) == ["parameters-cut-off"]
    assert "doctor: BL707 warning" in capsys.readouterr().err


def test_a_healthy_trainer_has_no_findings_and_trains_the_same(tmp_path):
    plain, shown = trainer(tmp_path), []
    plain.train()
    examined = trainer(tmp_path, callbacks=[TransformersDoctor(show=shown.append)])
    examined.train()
    assert [len(report) for report in shown] == [0]
    for one, other in zip(plain.model.parameters(), examined.model.parameters()):
        assert torch.equal(one, other)


@pytest.mark.parametrize("added_later", [False, True])
def test_an_exception_is_reported_and_gets_the_finding(added_later, tmp_path):
    shown = []
    doctor = TransformersDoctor(show=shown.append)
    failing = trainer(tmp_path, "crash", [] if added_later else [doctor])
    if added_later:
        failing.add_callback(doctor)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as raised:
        failing.train()
    assert [slugs(report) for report in shown] == [["saved-tensor-modified"]]
    assert any("BL304" in note for note in raised.value.__notes__)
    assert torch.Tensor.backward.__module__ == "torch._tensor" and not hasattr(torch.Tensor.backward, "__wrapped__")


def test_after_the_steps_that_are_wanted_training_goes_on_without_the_doctor(tmp_path):
    at = []
    doctor = TransformersDoctor(steps=2, show=lambda report: at.append(running.state.global_step))
    running = trainer(tmp_path, callbacks=[doctor], steps=6)
    running.train()
    assert at == [2] and running.state.global_step == 6


def test_two_trainings_give_two_reports(tmp_path):
    shown = []
    running = trainer(tmp_path, callbacks=[TransformersDoctor(show=shown.append)])
    running.train()
    running.train()
    assert len(shown) == 2


class Fit:
    """Calls a callback's hooks in the order in which Lightning 2.6 does, around a loop of its own."""

    def __init__(self, callback):
        self.callback = callback

    def fit(self, module: nn.Module, batches: list) -> None:
        hook = self.callback
        try:
            hook.setup(self, module, stage="fit")
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
            hook.on_fit_start(self, module)
            for number, batch in enumerate(batches):
                hook.on_train_batch_start(self, module, batch, number)
                optimizer.zero_grad()
                loss = module(**batch)["loss"]
                hook.on_before_backward(self, module, loss)
                loss.backward()
                optimizer.step()
                hook.on_train_batch_end(self, module, loss, batch, number)
            hook.on_fit_end(self, module)
        except BaseException as problem:
            hook.on_exception(self, module, problem)
            raise
        finally:
            hook.teardown(self, module, stage="fit")


def batches(count: int = 4) -> list[dict]:
    return [{"inputs": torch.randn(4, 2), "labels": torch.randn(4)} for _ in range(count)]


@pytest.mark.parametrize(
    ("mistake", "found"), [("", []), ("cut", ["parameters-cut-off"]), ("crash", ["saved-tensor-modified"])]
)
def test_lightnings_hooks_open_and_close_the_doctor(mistake, found):
    shown = []
    fit = Fit(LightningDoctor(show=shown.append))
    if mistake == "crash":
        with pytest.raises(RuntimeError):
            fit.fit(Net(mistake), batches())
    else:
        fit.fit(Net(mistake), batches())
    assert [slugs(report) for report in shown] == [found]


def test_an_interrupt_reports_what_was_found_so_far():
    shown = []
    doctor = LightningDoctor(show=shown.append)
    doctor.on_train_batch_start = lambda trainer, module, batch, number: number == 3 and _interrupt()
    with pytest.raises(KeyboardInterrupt):
        Fit(doctor).fit(Net("cut"), batches())
    assert [slugs(report) for report in shown] == [["parameters-cut-off"]]


def _interrupt():
    raise KeyboardInterrupt


def test_stages_other_than_fit_are_left_alone():
    doctor = LightningDoctor()
    doctor.setup(None, None, stage="validate")
    doctor.teardown(None, None, stage="validate")
    assert doctor.report is None


@pytest.mark.parametrize("kind", [LightningDoctor, TransformersDoctor])
def test_a_callback_can_be_copied_and_has_no_other_names(kind):
    doctor = kind(steps=3)
    assert copy.deepcopy(doctor).steps == pickle.loads(pickle.dumps(doctor)).steps == 3
    assert doctor.on_anything_at_all(1, two=2) is None and not hasattr(doctor, "state")
    with pytest.raises(InputError, match="steps must be at least 1, got 0"):
        kind(steps=0)
