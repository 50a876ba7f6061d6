"""A `lens.Recorder` tells, on either engine, what each layer's gradients and updates are, and where NaN begins."""

import copy
import gc
import io
import json
import math
import pickle
import weakref

import numpy as np
import pytest
import torch

import backlight
from backlight import lens
from backlight.errors import InputError
from backlight.lens.flow.history import History
from backlight.training.gradient_flow import Forwards, numbers_of
from backlight.training.step_meter import BY_LAYER

ENGINES = {"backlight": backlight, "torch": torch}


@pytest.fixture(params=ENGINES)
def engine(request):
    ENGINES[request.param].manual_seed(0)
    return ENGINES[request.param]


def network(engine):
    nn = engine.nn
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))


def trained(engine, model, optimizer, recorder, steps=4, clear=False):
    """Make some steps and return what was recorded."""
    told = []
    for _ in range(steps):
        loss = (model(engine.randn(6, 3)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if clear:
            optimizer.zero_grad()
        told.append(recorder.step(loss))
    return told


def flat(tensors):
    return np.concatenate([tensor.detach().numpy().ravel() for tensor in tensors]).astype(np.float64)


@pytest.mark.parametrize("clear", [False, True])
def test_norms_and_ratios_are_those_of_the_gradients_and_of_the_weights_before_and_after(engine, clear):
    model = network(engine)
    optimizer = engine.optim.Adam(model.parameters(), lr=0.01)
    recorder = lens.Recorder(model, optimizer)
    for _ in range(3):
        loss = (model(engine.randn(6, 3)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        layer = list(model[0].parameters())
        grads, before = flat([one.grad for one in layer]), flat(layer).copy()
        optimizer.step()
        after = flat(layer)
        if clear:
            optimizer.zero_grad()
        told = recorder.step(loss)
        assert told["loss"] == loss.item()
        assert told["gradient_norms"]["0"] == pytest.approx(np.linalg.norm(grads), rel=1e-5)
        assert told["update_norms"]["0"] == pytest.approx(np.linalg.norm(after - before), rel=1e-5)
        assert told["gradient_ratios"]["0"] == pytest.approx(np.linalg.norm(grads) / np.linalg.norm(after), rel=1e-5)
        assert told["update_ratios"]["0"] == pytest.approx(
            np.linalg.norm(after - before) / np.linalg.norm(after), rel=1e-5
        )
        assert told["zero_gradients"]["0"] == pytest.approx((grads == 0).mean())
        assert told["gradient"] == pytest.approx(math.hypot(*told["gradient_norms"].values()))


def test_both_engines_tell_the_same():
    told = {}
    for name, engine in ENGINES.items():
        model = network(engine)
        with engine.no_grad():
            for place, parameter in enumerate(model.parameters()):
                parameter.copy_(engine.linspace(-1, 1, parameter.numel()).reshape(parameter.shape) / (place + 1))
        optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
        recorder = lens.Recorder(model, optimizer)
        inputs = engine.linspace(-2, 2, 12).reshape(4, 3)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (model(inputs) ** 2).mean()
            loss.backward()
            optimizer.step()
            told.setdefault(name, []).append(recorder.step(loss))
    for ours, theirs in zip(*told.values()):
        for name in (*BY_LAYER, "loss", "gradient", "lr"):
            assert ours[name] == pytest.approx(theirs[name], rel=1e-5), name


def test_the_rate_is_that_of_the_step_and_gradients_are_those_after_clipping(engine):
    model = network(engine)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.5)
    scheduler = engine.optim.lr_scheduler.ExponentialLR(optimizer, 0.1)
    recorder = lens.Recorder(model, optimizer)
    (model(engine.randn(6, 3)) * 100).sum().backward()
    engine.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    told = recorder.step()
    assert told["lr"] == [0.5]
    assert told["gradient"] == pytest.approx(1.0, rel=1e-4)
    assert told["loss"] is None


def test_gradients_are_those_before_the_step_also_if_the_step_changes_them(engine):
    class Clearing(engine.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            self.zero_grad()

    model = network(engine)
    recorder = lens.Recorder(model, optimizer := Clearing(model.parameters(), lr=0.1))
    model(engine.randn(6, 3)).sum().backward()
    expected = sum(float((one.grad**2).sum()) for one in model.parameters()) ** 0.5
    optimizer.step()
    assert recorder.step()["gradient"] == pytest.approx(expected, rel=1e-4)


def test_without_a_call_each_step_of_the_optimizer_is_a_step(engine):
    model = network(engine)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    with lens.Recorder(model, optimizer) as recorder:
        for _ in range(3):
            optimizer.zero_grad()
            model(engine.randn(2, 3)).sum().backward()
            optimizer.step()
    assert [point["step"] for point in recorder.history.points] == [1, 2, 3]
    assert recorder.last["update_norms"]["2"] > 0


def test_two_optimizers_make_one_step_together(engine):
    model = network(engine)
    optimizers = [engine.optim.SGD(layer.parameters(), lr=rate) for layer, rate in ((model[0], 0.1), (model[2], 0.2))]
    recorder = lens.Recorder(model, optimizers)
    for _ in range(2):
        loss = model(engine.randn(2, 3)).square().sum()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        recorder.step(loss)
    assert recorder.steps == 2
    assert recorder.last["lr"] == [0.1, 0.2]
    for layer, rate in (("0", 0.1), ("2", 0.2)):
        moved = rate * recorder.last["gradient_norms"][layer]
        assert recorder.last["update_norms"][layer] == pytest.approx(moved, rel=1e-4)


def test_a_step_that_computes_its_gradients_itself_is_measured_after_them(engine):
    model = network(engine)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    recorder = lens.Recorder(model, optimizer)

    def closure():
        optimizer.zero_grad()
        loss = model(engine.ones(2, 3)).square().sum()
        loss.backward()
        return loss

    told = recorder.step(optimizer.step(closure))
    assert told["update_norms"]["2"] == pytest.approx(0.1 * told["gradient_norms"]["2"], rel=1e-4)


def test_no_gradient_is_none_and_never_0(engine):
    model = network(engine)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    recorder = lens.Recorder(model, optimizer)
    model[2](engine.randn(4, 5)).sum().backward()
    optimizer.step()
    told = recorder.step()
    assert told["gradient_norms"]["0"] is None
    assert told["gradient_norms"]["2"] > 0
    assert recorder.history.by_layer("gradient_norms")["0"] == [None]
    assert "No gradient ever came to 0." in recorder.html()


def test_frozen_layers_are_left_out_and_halves_and_tiny_gradients_are_measured(engine):
    model = network(engine)
    model[0].requires_grad_(False)
    model[2].to(engine.bfloat16)
    for parameter in model[2].parameters():
        parameter.grad = engine.full_like(parameter, 2.0**-80)
    told = lens.Recorder(model, None).step()
    assert list(told["gradient_norms"]) == ["2"]
    assert told["gradient_norms"]["2"] == pytest.approx(2.0**-80 * math.sqrt(12), rel=1e-3)
    assert told["update_norms"] == {"2": None}


def test_units_that_are_never_active_in_the_window_are_dead(engine):
    model = network(engine)
    with engine.no_grad():
        model[0].bias[:2] = -1000.0  # two of five units are 0 whatever comes
    optimizer = engine.optim.SGD(model.parameters(), lr=0.0)
    recorder = lens.Recorder(model, optimizer, window=3)
    for told in trained(engine, model, optimizer, recorder, 30)[10:]:
        assert told["dead_units"]["1"] >= 0.4  # by its outputs
        assert told["dead_units"]["0"] == pytest.approx(told["dead_units"]["1"])  # and by gradients of the bias
    with engine.no_grad():
        model[0].bias[:] = 1000.0
    assert trained(engine, model, optimizer, recorder, 1)[0]["dead_units"]["1"] == 0
    with engine.no_grad():
        model[0].bias[:] = -1000.0
    shares = [told["dead_units"]["1"] for told in trained(engine, model, optimizer, recorder, 4)]
    assert shares == [0.0, 0.0, 1.0, 1.0]  # dead once three steps have passed without a value


def test_units_of_convolutions_are_their_channels(engine):
    nn = engine.nn
    model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU())
    with engine.no_grad():
        model[0].bias[0] = -1000.0
        model[0].bias[1:] = 1000.0
    recorder = lens.Recorder(model)
    model(engine.randn(2, 1, 9)).sum().backward()
    assert recorder.step()["dead_units"]["1"] == 0.25


# --- NaN and inf ------------------------------------------------------------------------------------------------------


def broken_by(engine, breaks, **options):
    model = network(engine)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.01)
    recorder = lens.Recorder(model, optimizer, **options)
    for step in range(1, 6):
        loss = breaks(model, step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recorder.step(loss)
    return recorder


@pytest.mark.parametrize("every", [1, 4])
def test_the_first_output_that_is_not_finite_is_named_with_its_step(engine, every):
    def breaks(model, step):
        if step == 3:
            with engine.no_grad():
                model[2].weight[0, 0] = float("inf")
        return model(engine.randn(4, 3).abs()).square().mean()

    recorder = broken_by(engine, breaks, every=every)
    found = recorder.found
    assert (found["step"], found["what"], found["layer"]) == (3, "output", "2")
    assert found["why"] == "its weights were not finite"
    assert 3 in [point["step"] for point in recorder.history.points]
    assert "first at step 3: in the output of 2 (its weights were not finite)" in recorder.html()


def test_a_loss_that_is_not_finite_while_the_outputs_are_is_named(engine):
    def breaks(model, step):
        return model(engine.randn(4, 3)).square().mean() * (float("inf") if step == 2 else 1.0)

    found = broken_by(engine, breaks).found
    assert (found["step"], found["what"], found["kind"]) == (2, "loss", "inf")


def test_the_gradient_that_the_backward_reached_first_is_named(engine):
    def breaks(model, step):
        hidden = model[1](model[0](engine.randn(4, 3)))
        if step == 4:
            zeros = (hidden * 0).sqrt()  # its derivative is inf, times 0: NaN
            hidden = hidden + zeros
        return model[2](hidden).square().mean()

    found = broken_by(engine, breaks).found
    assert (found["step"], found["what"], found["layer"], found["kind"]) == (4, "gradient", "0", "NaN")
    assert found["why"] == "the loss was finite"


def test_a_mask_of_minus_infinity_that_reaches_no_loss_is_no_trouble(engine):
    class Mask(engine.nn.Module):
        def forward(self, scores):
            return scores.masked_fill(engine.ones(scores.shape).triu(1).bool(), float("-inf"))

    nn = engine.nn
    model = nn.Sequential(nn.Linear(4, 4), Mask(), nn.Softmax(-1), nn.Linear(4, 1))
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    recorder = lens.Recorder(model, optimizer)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(engine.randn(4, 4)).sum()
        loss.backward()
        optimizer.step()
        recorder.step(loss)
    assert recorder.found is None


# --- bounds, files, copies --------------------------------------------------------------------------------------------


def test_memory_is_bounded_and_what_stays_is_spread_evenly(engine):
    model = network(engine)
    recorder = lens.Recorder(model, keep=10)
    for step in range(1, 101):
        recorder.step(float(step))
    steps = [point["step"] for point in recorder.history.points]
    assert len(steps) <= 10
    assert len(set(np.diff(steps))) == 1
    assert steps[0] == 1
    assert recorder.last["step"] == 100
    assert all(len(values) == len(steps) for values in recorder.history.by_layer("gradient_norms").values())


def test_a_file_has_every_step_and_is_taken_up_where_it_was_cut(engine, tmp_path):
    file = tmp_path / "runs" / "flow.jsonl"
    model = network(engine)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    recorder = lens.Recorder(model, optimizer, file=file, keep=4)
    told = trained(engine, model, optimizer, recorder, 9)
    recorder.close()
    with open(file, "a") as out:
        out.write('{"step": 10, "lo')
    with pytest.raises(InputError, match='already exists: pass existing="resume"'):
        lens.Recorder(model, optimizer, file=file)
    resumed = lens.Recorder(model, optimizer, file=file, existing="resume", from_step=7)
    assert resumed.steps == 7
    trained(engine, model, optimizer, resumed, 2)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["step"] for line in lines[1:]] == list(range(1, 10))
    assert lines[3]["update_norms"] == pytest.approx(told[2]["update_norms"], rel=1e-6)
    assert lens.read_history(file).by_layer("update_norms")["0"][2] == pytest.approx(told[2]["update_norms"]["0"], 1e-6)


def test_what_is_not_finite_survives_the_file(engine, tmp_path):
    model = network(engine)
    recorder = lens.Recorder(model, file=tmp_path / "flow.jsonl")
    for parameter in model[0].parameters():
        parameter.grad = engine.full_like(parameter, float("nan"))
    recorder.step(float("inf"), accuracy=float("nan"))
    history = lens.read_history(tmp_path / "flow.jsonl")
    assert history.last["loss"] == math.inf
    assert math.isnan(history.last["metrics"]["accuracy"])
    assert history.by_layer("gradient_norms") == {"0": [math.inf], "2": [None]}
    assert history.found["what"] == "loss"


def test_a_file_that_is_none_is_refused_in_one_line(tmp_path):
    (tmp_path / "a.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"a\.jsonl must be a file that a lens\.Recorder wrote"):
        lens.read_history(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="cannot read"):
        lens.read_history(tmp_path / "none.jsonl")


def test_a_copy_of_the_model_reports_nothing_and_the_hooks_go_with_the_recorder(engine):
    model = network(engine)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    recorder = lens.Recorder(model, optimizer)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other(engine.full((2, 3), float("nan"))).sum().backward()
    told = trained(engine, model, optimizer, recorder, 1)[0]
    assert "first_not_finite" not in told
    gone = weakref.ref(recorder)
    del recorder, told
    gc.collect()
    assert gone() is None
    trained(engine, model, optimizer, lens.Recorder(model, optimizer), 1)


def test_closing_takes_all_hooks_away(engine):
    model = network(engine)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    recorder = lens.Recorder(model, optimizer)
    recorder.close()
    for _ in range(3):
        model(engine.full((2, 3), float("nan"))).sum().backward()
        optimizer.step()
    assert recorder.steps == 0
    told = recorder.step(float("nan"))
    assert (told["first_not_finite"]["what"], told["update_norms"]["0"]) == ("loss", None)


def test_recording_changes_nothing_of_the_training(engine):
    def weights(record):
        engine.manual_seed(1)
        model = network(engine)
        optimizer = engine.optim.Adam(model.parameters(), lr=0.01)
        recorder = lens.Recorder(model, optimizer) if record else None
        for _ in range(5):
            loss = (model(engine.randn(6, 3)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if recorder:
                recorder.step(loss)
        return flat(model.parameters())

    np.testing.assert_array_equal(weights(True), weights(False))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"every": 0}, "every must be a whole number, 1 or more, got 0"),
        ({"keep": True}, "keep must be a whole number, 2 or more"),
        ({"existing": "no", "file": "x"}, "existing must be"),
    ],
)
def test_options_that_cannot_be_are_refused(given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=said):
        lens.Recorder(network(backlight), **given)


def test_an_optimizer_of_another_model_is_refused(engine):
    other = network(engine)
    with pytest.raises(ValueError, match="optimizer must hold parameters of the model"):
        lens.Recorder(network(engine), engine.optim.SGD(other.parameters(), lr=0.1))
    with pytest.raises(TypeError, match="model must be a module"):
        lens.Recorder("model")
    with pytest.raises(ValueError, match="loss must be one number, got a tensor of shape"):
        lens.Recorder(other).step(engine.ones(3))


# --- seen -------------------------------------------------------------------------------------------------------------


def test_lines_come_ever_further_apart_and_at_the_first_nan(engine):
    model = network(engine)
    recorder, out = lens.Recorder(model), io.StringIO()
    with recorder.live(out):
        for step in range(1, 201):
            recorder.step(float("nan") if step == 150 else 1.0, accuracy=0.5)
    lines = out.getvalue().splitlines()
    assert 8 < len(lines) < 20
    assert lines[0].startswith("step 1  loss 1.0000  accuracy 0.5  gradient none")
    assert "NaN first at step 150: in the loss (all outputs of modules were finite)" in lines
    recorder.step(1.0)
    assert out.getvalue().splitlines() == lines


def test_the_picture_in_a_terminal_has_a_line_for_each_layer(engine, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    model = network(engine)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    recorder, out = lens.Recorder(model, optimizer), Terminal()
    with recorder.live(out):
        trained(engine, model, optimizer, recorder, 5)
    shown = out.getvalue()
    for said in ("step ", "gradient norm", "0 Linear", "2 Linear", "update/w"):
        assert said in shown


def test_a_history_forgets(engine):
    history = History({"layers": {}}, 4)
    history.append({"step": 1, "loss": 1.0, "gradient_norms": {"a": 1.0}})
    history.clear()
    assert history.points == []
    assert history.by_layer("gradient_norms") == {}


def test_a_notebook_shows_the_page_in_a_frame(engine):
    recorder = lens.Recorder(network(engine), title='<b>"mine"</b>')
    recorder.step(1.0)
    shown = recorder._repr_html_()
    assert shown.startswith("<iframe")
    assert "<b>" not in shown
    assert "&amp;lt;b&amp;gt;" in shown


# --- off the CPU numbers are read late --------------------------------------------------------------------------------


def test_numbers_that_are_still_tensors_come_in_their_order(engine):
    values = [1.5, engine.tensor(2), engine.tensor(2.5), 3.0, engine.tensor(4), engine.tensor(5.0).double()]
    assert numbers_of(values) == [1.5, 2.0, 2.5, 3.0, 4.0, 5.0]


def test_outputs_that_are_looked_at_late_name_the_same_module(engine):
    model = network(engine)
    forwards = Forwards(model, lambda tensor: tensor.detach().square().sum())
    with engine.no_grad():
        model[2].weight[0, 0] = float("nan")
    model(engine.ones(2, 3))
    broken, _ = forwards.take()
    assert (broken.layer, broken.kind) == ("2", "NaN")
    model[0](engine.ones(2, 3))
    assert forwards.take()[0] is None


def test_sparse_gradients_of_pytorch_are_measured():
    model = torch.nn.Embedding(10, 3, sparse=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    recorder = lens.Recorder(model, optimizer)
    model(torch.tensor([1, 1, 4])).sum().backward()
    optimizer.step()
    told = recorder.step()
    assert told["gradient_norms"]["model"] == pytest.approx(math.sqrt(3 * 4 + 3 * 1))
    assert told["update_norms"]["model"] == pytest.approx(0.5 * math.sqrt(15))


def test_a_recurrent_model_and_several_losses_a_step_are_recorded(engine):
    class Reader(engine.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = engine.nn.LSTM(3, 4, batch_first=True)
            self.head = engine.nn.Linear(4, 1)

        def forward(self, inputs):
            return self.head(self.lstm(inputs)[0][:, -1])

    model = Reader()
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    recorder = lens.Recorder(model, optimizer)
    optimizer.zero_grad()
    for _ in range(3):  # accumulated
        loss = model(engine.randn(2, 5, 3)).square().mean() / 3
        loss.backward()
    optimizer.step()
    told = recorder.step(loss)
    assert recorder.steps == 1
    assert set(told["gradient_norms"]) == {"lstm", "head"}
    assert told["update_norms"]["lstm"] == pytest.approx(0.1 * told["gradient_norms"]["lstm"], rel=1e-3)
