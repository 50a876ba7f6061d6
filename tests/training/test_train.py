"""`backlight train` runs what a file says, shows it, and bears Ctrl-C and being killed at any moment."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from idx_files import write_idx
from paths import ROOT

import backlight
from backlight.cli.main import main
from backlight.errors import InputError
from backlight.training.checkpoint import load_checkpoint
from backlight.training.config import TrainingConfig, config_of, read_config
from backlight.training.images import images_of
from backlight.training.run_folder import RunFolder
from backlight.training.train import prepare

SMALL = """
out = "{out}"
epochs = {epochs}
batch_size = 8
record_every = 3
checkpoint_every = 7
[model]
sizes = [8]
dropout = 0.2
[data]
name = "{data}"
samples = 100
root = "{root}"
{rest}
"""
SGD = """
[optimizer]
name = "sgd"
lr = 0.1
momentum = 0.9
"""
SCHEDULED = """
validation = 0.2
[optimizer]
name = "adam"
lr = 0.01
[schedule]
name = "cosine"
warmup = 50
"""
BY_EPOCHS = """
validation = 0.2
[optimizer]
name = "sgd"
lr = 0.1
momentum = 0.9
[schedule]
name = "step"
step_size = 7
gamma = 0.8
warmup = 3
"""


@pytest.fixture
def config(tmp_path):
    """Write a small configuration, and return its file and its run folder."""

    def write(out="run", epochs=2, data="synthetic", rest=SGD):
        file = tmp_path / f"{out}.toml"
        file.write_text(SMALL.format(out=tmp_path / out, epochs=epochs, data=data, root=tmp_path, rest=rest))
        return str(file), tmp_path / out

    return write


def small(out, **changes):
    return config_of(
        {
            "out": str(out),
            "epochs": 2,
            "batch_size": 20,
            "record_every": 1,
            "model": {"sizes": [8]},
            "data": {"name": "synthetic", "samples": 100},
            **changes,
        }
    )


def weights_of(folder):
    """Return the last checkpoint's arrays and its step."""
    state = load_checkpoint(RunFolder(folder).checkpoint())
    return state["step"], {name: tensor.numpy() for name, tensor in state["model"].items()}


# --- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_leaves_its_folder_and_says_where_the_page_is(config, capsys):
    file, folder = config()
    assert main(["train", file]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "made up, not a real dataset" in out
    assert "epoch 2/2: test loss" in out
    assert out.endswith(f"The page is in {folder / 'report.html'}\n")
    assert sorted(path.name for path in folder.iterdir()) == [
        "checkpoints",
        "config.json",
        "metrics.jsonl",
        "report.html",
    ]
    assert json.loads((folder / "config.json").read_text())["training"]["data"]["name"] == "synthetic"


def test_what_can_be_learnt_is_learnt(tmp_path):
    run = prepare(
        small(tmp_path / "run", epochs=12, model={"sizes": [32]}, data={"name": "synthetic", "samples": 2000})
    )
    seen = []
    run.train(seen.append)
    found = [one["evaluation"]["accuracy"] for one in seen if "evaluation" in one]
    assert len(found) == 12
    assert found[-1] > 0.95


def test_equal_seeds_give_equal_weights_and_others_give_others(tmp_path):
    found = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        prepare(small(tmp_path / name, seed=seed)).train()
        found.append(weights_of(tmp_path / name)[1]["1.weight"])
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("optimizer", [{"name": "sgd", "momentum": 0.9, "nesterov": True}, {"name": "adamw"}])
def test_each_optimizer_takes_its_options(tmp_path, optimizer):
    run = prepare(small(tmp_path / "run", optimizer={**optimizer, "lr": 0.01, "weight_decay": 0.1}))
    assert type(run.recorder.optimizer).__name__.lower() == optimizer["name"]
    assert run.recorder.optimizer.param_groups[0]["weight_decay"] == 0.1
    run.train()
    assert run.recorder.steps == run.steps == 10


def test_images_are_scaled_to_one_and_the_first_are_taken(tmp_path):
    write_idx(tmp_path / "raw")
    data = {"name": "mnist", "root": str(tmp_path / "raw"), "samples": 40}
    training, test = images_of(config_of({"data": data}).data)
    assert training.images.shape == (40, 1, 28, 28)
    assert (len(test), training.labels.dtype) == (30, backlight.int64)
    assert 0 <= training.images.min().item() < 0.01 < 0.99 < training.images.max().item() <= 1


def test_images_of_another_size_are_refused(tmp_path):
    for stem in ("train", "t10k"):
        for part, shape in (("images-idx3", (2, 32, 32)), ("labels-idx1", (2,))):
            head = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">u4").tobytes()
            (tmp_path / f"{stem}-{part}-ubyte").write_bytes(head + bytes(int(np.prod(shape))))
    with pytest.raises(InputError, match="must be 28 × 28 pixels, got 32 × 32"):
        images_of(config_of({"data": {"name": "mnist", "root": str(tmp_path)}}).data)


def test_data_that_are_not_there_are_one_line_and_exit_2(config, capsys):
    file, _ = config(data="kmnist")
    assert main(["train", file]) == 2
    error = capsys.readouterr().err
    assert "train-images-idx3-ubyte.gz" in error
    assert error.count("\n") == 1


def test_a_cnn_halves_the_image_at_each_block_and_trains(tmp_path):
    model = {"kind": "cnn", "sizes": [2, 3], "dropout": 0.1}
    run = prepare(small(tmp_path / "run", epochs=1, model=model))
    assert [name for name, _ in run.model.named_parameters()][-2:] == ["8.weight", "8.bias"]
    assert run.model[8].in_features == 3 * 7 * 7
    seen = []
    run.train(seen.append)
    assert all(norm > 0 for norm in seen[0]["gradient_norms"].values())


# --- ending and going on ----------------------------------------------------------------------------------------------


def start(file, *options):
    """Start the command in a process of its own; its lines come through a pipe."""
    source = ROOT / "src"
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "backlight", "train", file, *options],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        text=True,
    )


def after_some_lines(process, lines, wait):
    """Read so many lines, and wait a little longer."""
    for _ in range(lines):
        process.stdout.readline()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(wait)


@pytest.mark.parametrize(
    ("rest", "steps_an_epoch"), [(SGD, 13), (SCHEDULED, 10), (BY_EPOCHS, 10)], ids=["sgd", "adam-cosine", "sgd-step"]
)
def test_a_run_killed_again_and_again_ends_with_the_weights_of_one_that_was_not(config, tmp_path, rest, steps_an_epoch):
    """The moments are drawn anew each time; a failure prints their seed."""
    write_idx(tmp_path / "FashionMNIST" / "raw")
    whole, whole_folder = config("whole", epochs=100, data="fashion-mnist", rest=rest)
    cut, cut_folder = config("cut", epochs=100, data="fashion-mnist", rest=rest)
    assert main(["train", whole]) == 0
    seed = random.randrange(10**6)
    moments = random.Random(seed)
    kills = 0
    for _ in range(6):
        process = start(cut, "--resume")
        after_some_lines(process, moments.randint(1, 4), moments.random() / 20)
        kills += process.poll() is None
        process.kill()
        process.communicate()
    assert main(["train", cut, "--resume"]) == 0
    assert kills >= 3
    (whole_step, expected), (step, found) = weights_of(whole_folder), weights_of(cut_folder)
    assert step == whole_step == 100 * steps_an_epoch
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=f"seed {seed}")
    told = [
        [[one.get(name) for name in ("step", "loss", "lr", "on", "evaluation")] for one in RunFolder(folder).records()]
        for folder in (whole_folder, cut_folder)
    ]
    assert told[0] == told[1], f"seed {seed}"
    best = [folder / "best.safetensors" for folder in (whole_folder, cut_folder)]
    assert best[0].exists() == best[1].exists() == ("validation" in rest)
    assert not best[0].exists() or best[0].read_bytes() == best[1].read_bytes(), f"seed {seed}"


def test_ctrl_c_ends_with_a_checkpoint_and_says_how_to_go_on(config):
    file, folder = config()
    process = start(file, "--set", "epochs=2000")
    after_some_lines(process, 3, 0)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert process.returncode == 130
    step = weights_of(folder)[0]
    assert f"Stopped after step {step:,}; resume with: backlight train {file} --set epochs=2000 --resume" in out
    assert (folder / "report.html").exists()


def test_a_second_run_into_the_same_folder_has_to_be_asked_for(config, capsys):
    file, _ = config()
    assert main(["train", file]) == 0
    assert main(["train", file]) == 2
    assert "already holds a run: add --resume to resume it" in capsys.readouterr().err
    assert main(["train", file, "--replace"]) == 0


def test_a_run_is_not_resumed_with_other_settings(config, capsys):
    file, folder = config()
    assert main(["train", file]) == 0
    Path(file).write_text(Path(file).read_text().replace("lr = 0.1", "lr = 0.2"))
    assert main(["train", file, "--resume"]) == 2
    assert "optimizer.lr must be as in the run that is resumed, 0.1, got 0.2" in capsys.readouterr().err
    config(epochs=3)
    assert main(["train", file, "--resume"]) == 0
    assert weights_of(folder)[0] == 3 * 13


# --- configurations ---------------------------------------------------------------------------------------------------


def test_what_a_file_leaves_out_has_its_default(tmp_path):
    (tmp_path / "empty.toml").write_text("")
    assert read_config(tmp_path / "empty.toml") == TrainingConfig()


def test_json_says_the_same(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"epochs": 3, "model": {"kind": "cnn", "sizes": [4]}}))
    found = read_config(tmp_path / "a.json")
    assert (found.epochs, found.model.kind, found.model.sizes) == (3, "cnn", (4,))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("epochs = 0", "epochs must be 1 or more, got 0"),
        ("epochs = 1.5", "epochs must be a whole number, got 1.5"),
        ("epochs = true", "epochs must be a whole number, got True"),
        ("epoch = 3", "there is no setting epoch: there are out, seed, epochs"),
        ("model = 3", "model must be a table, got 3"),
        ('[model]\nkind = "rnn"', "model.kind must be one of mlp, cnn, got 'rnn'"),
        ("[model]\nsizes = 3", "model.sizes must be a list of whole numbers, got 3"),
        ("[model]\nsizes = [0]", "model.sizes must hold numbers of 1 or more, got [0]"),
        ('[model]\nkind = "cnn"\nsizes = []', "model.sizes must hold one to four numbers for a cnn, got []"),
        ("[model]\ndropout = 1", "model.dropout must be in [0, 1), got 1.0"),
        ('[data]\nname = "cats"', "data.name must be one of fashion-mnist, mnist, kmnist, synthetic, got 'cats'"),
        ("[optimizer]\nlr = -1", "optimizer.lr must be a number above 0, got -1.0"),
        ("[optimizer]\nmomentum = 0.9", "optimizer.momentum must be left out: only sgd and rmsprop have it, got 0.9"),
        ("accumulate = 0", "accumulate must be 1 or more, got 0"),
        ("clip_grad_norm = -1", "clip_grad_norm must be 0 (none) or more, got -1.0"),
        ("label_smoothing = 1", "label_smoothing must be in [0, 1), got 1.0"),
        ('best_by = "speed"', "best_by must be one of accuracy, loss, got 'speed'"),
        ("patience = 2", "patience must be left out, or data.validation be above 0"),
        ("[data]\nvalidation = 1.0", "data.validation must be in [0, 1), a share of the images, got 1.0"),
        ('[optimizer]\nname = "adadelta"', "optimizer.name must be one of sgd, adam, adamw, adagrad, rmsprop, adamax"),
        ('[schedule]\nname = "spiral"', "schedule.name must be one of constant, linear, cosine, step, multistep"),
        ("[schedule]\nwarm_up = 3", "there is no setting schedule.warm_up: there are name, by, warmup"),
        ("[schedule]\nstep_size = 3", "schedule.step_size must be left out for constant: it is for step, got 3"),
        ('[schedule]\nname = "step"', "schedule.step_size must be 1 or more, got 0"),
        ('[schedule]\nname = "multistep"', "schedule.milestones must hold ascending numbers from 1 on, got []"),
        ('[schedule]\nname = "cosine"\nmin_lr = 1', "schedule.min_lr must be in [0, 0.001], optimizer.lr, got 1.0"),
        ('[schedule]\nname = "step"\nstep_size = 1\nwarmup = 5', "schedule.warmup must be less than the 5 epochs"),
        ('[schedule]\nname = "reduce_on_plateau"', "schedule.name must be another, or data.validation be above 0"),
        ('[optimizer]\nname = "sgd"\nnesterov = true', "optimizer.momentum must be above 0 with nesterov, got 0.0"),
        ("= 3", "is not TOML"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_2(tmp_path, capsys, text, said):
    file = tmp_path / "config.toml"
    file.write_text(text)
    assert main(["train", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"backlight: {file}")
    assert said in error
    assert error.count("\n") == 1


def test_a_missing_file_is_named(tmp_path, capsys):
    assert main(["train", str(tmp_path / "none.toml")]) == 2
    assert capsys.readouterr().err == f"backlight: cannot read {tmp_path / 'none.toml'}: No such file or directory\n"
