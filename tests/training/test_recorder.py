"""A recorded run can be read, seen and taken up again bit for bit, whenever it was interrupted."""

import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

import backlight
from backlight import nn
from backlight.data import DataLoader, TensorDataset
from backlight.errors import InputError
from backlight.optim import SGD, Adam
from backlight.report.charts import COLUMNS, LEFT, RIGHT, WIDTH, Series, curves, heat_map
from backlight.report.page import TOKENS, joined
from backlight.training import Recorder
from backlight.training.checkpoint import load_checkpoint, save_checkpoint
from backlight.training.gradient_flow import flow_of, layers_of
from backlight.training.report import report
from backlight.training.run_folder import RunFolder, write_atomically

SAMPLES, BATCH = 48, 8
STEPS_AN_EPOCH = SAMPLES // BATCH


class StoppedError(Exception):
    """What ends a run in these tests."""


def parts(optimizer=Adam):
    """Return a model with dropout and a running mean, an optimizer and a shuffling loader with its own generator."""
    backlight.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    inputs = backlight.randn(SAMPLES, 4)
    labels = (inputs.sum(1) > 0).long()
    loader = DataLoader(
        TensorDataset(inputs, labels), batch_size=BATCH, shuffle=True, generator=backlight.Generator().manual_seed(7)
    )
    return model, optimizer(model.parameters(), lr=0.01), loader


def run(folder, epochs=4, stop_at=None, optimizer=Adam, **options):
    """Train, ending abruptly after the step `stop_at`, and return the losses of the steps done and the weights."""
    model, optimizer, loader = parts(optimizer)
    recorder = Recorder(folder, model, optimizer, **options)
    losses = {}
    for _ in recorder.epochs(epochs):
        for inputs, labels in recorder.batches(loader):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            recorder.step(loss, samples=len(labels))
            losses[recorder.steps] = loss.item()
            if recorder.steps == stop_at:
                raise StoppedError
        recorder.evaluation(accuracy=0.5)
    recorder.checkpoint()
    return losses, {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def lines_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


# --- taking a run up --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", [SGD, Adam])
@pytest.mark.parametrize("stop_at", [1, 3, STEPS_AN_EPOCH, STEPS_AN_EPOCH + 1, 2 * STEPS_AN_EPOCH, 17])
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(tmp_path, stop_at, optimizer):
    losses, weights = run(tmp_path / "whole", optimizer=optimizer)
    with pytest.raises(StoppedError):
        run(tmp_path / "cut", stop_at=stop_at, checkpoint_every=3, optimizer=optimizer)
    rest, resumed = run(tmp_path / "cut", checkpoint_every=3, existing="resume", optimizer=optimizer)
    assert rest == {step: loss for step, loss in losses.items() if step > stop_at // 3 * 3}
    for name, array in weights.items():
        np.testing.assert_array_equal(resumed[name], array, strict=True)


def test_each_step_and_evaluation_is_recorded_once_in_order_after_a_resumption(tmp_path):
    run(tmp_path / "whole")
    with pytest.raises(StoppedError):
        run(tmp_path / "cut", stop_at=16, checkpoint_every=5)
    with open(tmp_path / "cut" / "metrics.jsonl", "ab") as out:
        out.write(b'{"step": 17, "lo')  # what a kill in the middle of a write leaves
    run(tmp_path / "cut", checkpoint_every=5, existing="resume")
    told = [[(one["step"], one.get("loss")) for one in lines_of(tmp_path / name)] for name in ("whole", "cut")]
    assert told[0] == told[1]


def test_a_run_can_be_made_longer(tmp_path):
    _, weights = run(tmp_path / "whole", epochs=3)
    run(tmp_path / "parts", epochs=2)
    rest, longer = run(tmp_path / "parts", epochs=3, existing="resume")
    assert min(rest) == 2 * STEPS_AN_EPOCH + 1
    for name, array in weights.items():
        np.testing.assert_array_equal(longer[name], array)


def test_a_folder_that_holds_a_run_is_not_overwritten_unasked(tmp_path):
    run(tmp_path / "run", epochs=1)
    with pytest.raises(InputError, match='already holds a run: pass existing="resume"'):
        run(tmp_path / "run", epochs=1)
    losses, _ = run(tmp_path / "run", epochs=1, existing="replace")
    assert min(losses) == 1
    assert len(lines_of(tmp_path / "run")) == STEPS_AN_EPOCH + 1


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    run(tmp_path / "run", epochs=1)
    other = nn.Linear(2, 2)
    with pytest.raises(InputError, match="does not fit the model"):
        Recorder(tmp_path / "run", other, SGD(other.parameters(), lr=0.1), existing="resume")


def test_ctrl_c_ends_after_the_step_with_a_checkpoint_and_the_page(tmp_path):
    model, optimizer, loader = parts()
    before = signal.getsignal(signal.SIGINT)
    finished = []
    with pytest.raises(KeyboardInterrupt), Recorder(tmp_path, model, optimizer, checkpoint_every=None) as recorder:
        for _ in recorder.epochs(4):
            for inputs, labels in recorder.batches(loader):
                if recorder.steps == 2:
                    os.kill(os.getpid(), signal.SIGINT)
                loss = nn.functional.cross_entropy(model(inputs), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                finished.append(recorder.steps + 1)
                recorder.step(loss)
    assert finished == [1, 2, 3]
    assert RunFolder(tmp_path).checkpoint().name == "step-00000003.safetensors"
    assert (tmp_path / "report.html").exists()
    assert signal.getsignal(signal.SIGINT) is before


def test_only_the_last_checkpoints_stay(tmp_path):
    run(tmp_path, checkpoint_every=4, keep=2)
    assert [file.name for file in sorted((tmp_path / "checkpoints").iterdir())] == [
        "step-00000020.safetensors",
        "step-00000024.safetensors",
    ]


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_checkpoint_keeps_every_kind_of_value(tmp_path):
    state = {
        "weights": {0: backlight.tensor([[1.5, -0.0], [float("nan"), 2.0]])},
        "halves": [backlight.ones(3, dtype=kind) for kind in (backlight.float16, backlight.bfloat16)],
        "numbers": (1, 2.5, None, True, "text", [1, (2,)]),
        "scalar": backlight.tensor(3, dtype=backlight.int64),
        "transposed": backlight.arange(6).reshape(2, 3).t(),
        "nothing": backlight.zeros(0, 2),
    }
    save_checkpoint(tmp_path / "a.safetensors", state)
    found = load_checkpoint(tmp_path / "a.safetensors")
    assert found["numbers"] == state["numbers"]
    assert list(found["weights"]) == [0]
    for name in ("scalar", "transposed", "nothing"):
        assert found[name].dtype == state[name].dtype
        np.testing.assert_array_equal(found[name].numpy(), state[name].numpy(), strict=True)
    assert found["weights"][0].numpy().tobytes() == state["weights"][0].numpy().tobytes()
    assert [one.dtype for one in found["halves"]] == [backlight.float16, backlight.bfloat16]
    assert found["halves"][1].sum().item() == 3


def test_what_a_checkpoint_cannot_hold_is_named(tmp_path):
    with pytest.raises(InputError, match="got object at optimizer/thing"):
        save_checkpoint(tmp_path / "a.safetensors", {"optimizer": {"thing": object()}})


def test_a_damaged_checkpoint_is_named(tmp_path):
    file = tmp_path / "a.safetensors"
    file.write_bytes(b"not this")
    with pytest.raises(InputError, match=r"cannot read the checkpoint .*a\.safetensors"):
        load_checkpoint(file)


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    write_atomically(tmp_path / "a", b"old")
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "a", "no bytes")
    assert (tmp_path / "a").read_bytes() == b"old"


def test_numbers_that_are_not_finite_are_null_and_the_page_says_so(tmp_path):
    model, optimizer, _ = parts()
    recorder = Recorder(tmp_path, model, optimizer)
    recorder.step(float("nan"), accuracy=float("inf"))
    assert (lines_of(tmp_path)[0]["loss"], lines_of(tmp_path)[0]["accuracy"]) == (None, None)
    assert "not a finite number at 1 steps, first at step 1" in recorder.report().read_text()


def test_every_nth_step_is_recorded_and_the_first(tmp_path):
    model, optimizer, _ = parts()
    recorder = Recorder(tmp_path, model, optimizer, every=4)
    told = [recorder.step(float(step)) for step in range(1, 10)]
    assert [one["step"] for one in lines_of(tmp_path)] == [1, 4, 8]
    assert [one is not None for one in told] == [True, False, False, True, False, False, False, True, False]


# --- gradients --------------------------------------------------------------------------------------------------------


def test_the_flow_is_the_norm_of_each_layers_gradient_and_its_share_of_the_weights():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1, bias=False), nn.Linear(1, 1))
    model[2].requires_grad_(False)
    for parameter, grad in ((model[0].weight, 3.0), (model[0].bias, 4.0)):
        parameter.grad = backlight.full_like(parameter, grad)
    flow = flow_of(layers_of(model))
    assert list(flow.norms) == ["0", "1"]
    assert flow.norms["0"] == pytest.approx((4 * 3**2 + 2 * 4**2) ** 0.5)
    weights = float((model[0].weight.detach() ** 2).sum() + (model[0].bias.detach() ** 2).sum())
    assert flow.ratios["0"] == pytest.approx(flow.norms["0"] / weights**0.5)
    assert flow.norms["1"] is flow.ratios["1"] is None
    assert flow.total == flow.norms["0"]


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_stands_alone_and_says_what_was_reached(tmp_path):
    run(tmp_path / "first & <second>", epochs=2)
    page = report(RunFolder(tmp_path / "first & <second>"))
    assert not re.findall(r"https?:|//[a-z]|@import|url\(| src=|<link", page)
    assert "<h1>first &amp; &lt;second&gt;</h1>" in page
    for said in ("<h2>Loss</h2>", "<h2>Accuracy</h2>", "<h2>Throughput</h2>", "<h2>Gradient flow</h2>", "0 Linear"):
        assert said in page
    assert "50.00 % at step 6" in page
    assert page.count("<svg") == page.count("</svg>") == 3 * 2 + 6


def test_the_page_of_a_run_that_has_just_begun_says_so(tmp_path):
    model, optimizer, _ = parts()
    assert "Nothing has been recorded yet" in Recorder(tmp_path, model, optimizer).report().read_text()


def test_the_page_has_the_colours_of_the_other_pages():
    tokens = joined(TOKENS)
    assert re.search(r":root \{.*?\n\}", tokens, re.DOTALL)
    source = Path(backlight.__file__).parent
    for style in ("training/pages/report.css", "web/report.css", "lens/pictures/page/page.css"):
        assert "--paper: light-dark(" not in joined(source / style)


def test_a_curve_begins_and_ends_at_the_edges_and_breaks_where_nothing_is_known():
    drawn = curves([Series("loss", [(0, 1.0), (1, 3.0), (2, None), (3, 2.0), (4, 1.0)])], "loss")
    path = re.search(r'class="line first" d="([^"]*)"', drawn)[1]
    assert path.count("M") == 2
    assert path.startswith(f"M{LEFT}.0 ")
    assert f"L{WIDTH - RIGHT}.0 " in path


def test_a_heat_map_has_the_strongest_shade_at_the_largest_value_and_blanks_for_the_unknown():
    drawn = heat_map({"a": [1.0, 10.0, 100.0], "b <": [None, 0.0, 1.0]}, 3, "flow")
    shades = {float(share): cells.count("M") for share, cells in re.findall(r'--share:([\d.]+)" d="([^"]*)"', drawn)}
    assert list(shades.values()) == [2, 1, 1]
    assert list(shades) == pytest.approx([0.0, 0.5, 1.0], abs=0.03)
    assert "b &lt;" in drawn


def test_long_runs_make_no_long_page():
    values = [1.0 + step % 7 for step in range(20_000)]
    assert len(curves([Series("loss", list(enumerate(values)), smooth=True)], "loss")) < 30_000
    assert heat_map({"a": values}, 20_000, "flow").count("M") <= COLUMNS + 1


def test_a_few_extreme_values_do_not_flatten_a_long_curve():
    points = [(0, 1000.0), *((step, 1.0 + step % 5 / 10) for step in range(1, 200))]
    drawn = curves([Series("loss", points)], "loss", zero=True)
    assert "1k" not in re.findall(r">([^<]*)</text>", drawn)
    assert "1.5" in re.findall(r">([^<]*)</text>", drawn)
