"""`backlight train` chooses by a validation, clips and accumulates, and takes settings from the command line."""

import re
import tomllib

import numpy as np
import pytest
import torch
from paths import ROOT
from safetensors.torch import load_file as torch_load_file
from small_runs import EPOCHS, STEPS_AN_EPOCH, seen_in, small

import backlight
from backlight.cli.main import main
from backlight.errors import InputError
from backlight.serialization.safe import load_file
from backlight.training.config import OPTIMIZERS, SCHEDULE_OPTIONS, TrainingConfig, as_toml, config_of, read_config
from backlight.training.images import Best, Images, evaluate, held_out
from backlight.training.run_folder import RunFolder
from backlight.training.train import prepare

# --- validation -------------------------------------------------------------------------------------------------------


def numbered(count):
    return Images(
        backlight.arange(count * 784).float().reshape(count, 1, 28, 28), backlight.arange(count, dtype=backlight.int64)
    )


def test_what_is_held_out_is_a_fixed_part_that_is_not_learnt_from():
    images = numbered(50)
    state = backlight.get_rng_state()
    rest, taken = held_out(images, 0.2, seed=3)
    assert (backlight.get_rng_state() == state).all()
    assert (len(rest), len(taken)) == (40, 10)
    assert sorted(rest.labels.tolist() + taken.labels.tolist()) == list(range(50))
    assert held_out(images, 0.2, seed=3)[1].labels.tolist() == taken.labels.tolist()
    assert held_out(images, 0.2, seed=4)[1].labels.tolist() != taken.labels.tolist()
    np.testing.assert_array_equal(taken.images.numpy()[:, 0, 0, 0] // 784, taken.labels.numpy())


def test_nothing_held_out_is_refused():
    with pytest.raises(InputError, match=r"must leave images on both sides, got 0\.01 of 10 images: 0 of them"):
        held_out(numbered(10), 0.01, seed=0)


def test_each_epoch_is_validated_and_the_best_weights_are_tested_in_the_end(tmp_path):
    run, _, evaluations = seen_in(small(tmp_path / "run", 0.2))
    assert [one["on"] for one in evaluations] == ["validation"] * EPOCHS + ["test"]
    reached = [one["evaluation"]["accuracy"] for one in evaluations[:-1]]
    assert run.best.record["epoch"] == int(np.argmax(reached))
    last = {name: tensor.numpy().copy() for name, tensor in run.model.state_dict().items()}
    run.model.load_state_dict(load_file(tmp_path / "run" / "best.safetensors"))
    assert evaluate(run.model, run.parts.validation) == run.best.record["evaluation"]
    assert evaluate(run.model, run.parts.test) == evaluations[-1]["evaluation"]
    checkpoint = prepare(small(tmp_path / "run", 0.2), "resume")  # it goes on from the last weights, not the best
    for name, array in last.items():
        np.testing.assert_array_equal(checkpoint.model.state_dict()[name].numpy(), array)


def test_pytorch_reads_the_best_weights(tmp_path):
    run, _, _ = seen_in(small(tmp_path / "run", 0.2, epochs=1))
    found = torch_load_file(tmp_path / "run" / "best.safetensors")
    for name, tensor in run.model.state_dict().items():
        np.testing.assert_array_equal(found[name].numpy(), tensor.numpy())


def test_without_a_validation_each_epoch_is_tested_as_ever(tmp_path):
    _, _, evaluations = seen_in(small(tmp_path / "run"))
    assert [one["on"] for one in evaluations] == ["test"] * EPOCHS
    assert not (tmp_path / "run" / "best.safetensors").exists()


def record(epoch, **evaluation):
    return {"step": epoch, "epoch": epoch, "evaluation": evaluation}


def test_the_best_is_the_first_of_equals_and_never_what_is_not_finite():
    best = Best("loss")
    told = [best.note(record(epoch, loss=loss)) for epoch, loss in enumerate((float("nan"), 2.0, 1.0, 1.0, None, 3.0))]
    assert told == [False, True, True, False, False, False]
    assert (best.record["epoch"], best.since) == (2, 3)
    best = Best("accuracy", [record(0, accuracy=0.5), record(1, accuracy=0.4)])
    assert (best.note(record(2, accuracy=0.6)), best.since) == (True, 0)


def test_a_run_ends_early_when_the_validation_becomes_no_better_and_stays_so_when_it_is_resumed(tmp_path):
    changes = {"epochs": 50, "patience": 2, "optimizer": {"name": "sgd", "lr": 1e-12}}  # it learns nothing
    run, steps, evaluations = seen_in(small(tmp_path / "run", 0.2, **changes))
    assert run.ended_early
    assert [one["on"] for one in evaluations] == ["validation"] * 3 + ["test"]
    assert len(steps) == 3 * STEPS_AN_EPOCH
    before = RunFolder(tmp_path / "run").records()
    again, steps, _ = seen_in(small(tmp_path / "run", 0.2, **changes), "resume")
    assert again.ended_early
    assert not steps
    told = [
        [(one["step"], one.get("on"), one.get("evaluation")) for one in lines]
        for lines in (before, RunFolder(tmp_path / "run").records())
    ]
    assert told[0] == told[1]
    longer, steps, _ = seen_in(small(tmp_path / "run", 0.2, **{**changes, "patience": 4}), "resume")
    assert (len(steps), longer.best.since) == (2 * STEPS_AN_EPOCH, 4)


def test_the_command_says_which_weights_were_the_best_and_that_it_ended_early(tmp_path, capsys):
    file = tmp_path / "config.toml"
    file.write_text(as_toml(small(tmp_path / "run", 0.2, patience=1, optimizer={"name": "sgd", "lr": 1e-12})))
    assert main(["train", str(file)]) == 0
    out = capsys.readouterr().out
    assert "100 images of synthetic and 25 held out" in out
    assert "epoch 2/4: validation loss" in out
    assert "best weights (epoch 1): test loss" in out
    assert "Stopped early: no improvement on the validation set in 1 epochs." in out
    assert f"The best weights (epoch 1) are in {tmp_path / 'run' / 'best.safetensors'}" in out
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Best validation accuracy" in page
    assert "<dt>Test accuracy</dt>" in page


def test_a_finished_run_that_is_resumed_keeps_its_last_evaluation(tmp_path):
    seen_in(small(tmp_path / "run"))
    before = RunFolder(tmp_path / "run").evaluations()
    _, steps, evaluations = seen_in(small(tmp_path / "run"), "resume")
    assert not steps
    assert not evaluations
    assert RunFolder(tmp_path / "run").evaluations() == before


# --- steps ------------------------------------------------------------------------------------------------------------


def test_accumulated_batches_are_one_large_batch(tmp_path):
    found = []
    for name, size, accumulate in (("large", 40, 1), ("small", 8, 5)):
        run, steps, _ = seen_in(small(tmp_path / name, batch_size=size, accumulate=accumulate))
        found.append((run.steps, [one["loss"] for one in steps], run.model.state_dict()["1.weight"].numpy()))
    assert found[0][0] == found[1][0] == EPOCHS * 3  # of 100 images: 40, 40 and 20
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-4, atol=1e-6)


def test_gradients_are_clipped_to_the_norm_that_was_asked_for(tmp_path):
    _, steps, _ = seen_in(small(tmp_path / "run", clip_grad_norm=0.5))
    clipped = [one for one in steps if one["gradient_before_clipping"] > 0.5]
    assert clipped
    for one in clipped:
        assert one["gradient"] == pytest.approx(0.5, rel=1e-4)
    assert all(one["gradient"] <= 0.5 * 1.0001 for one in steps)


def test_labels_are_smoothed_in_training_and_not_in_the_evaluation(tmp_path):
    run = prepare(small(tmp_path / "run", label_smoothing=0.2, epochs=1, batch_size=100))
    images = run.parts.batches.images  # all of them are one batch; their order says nothing to the loss
    scores, labels = (torch.from_numpy(part.detach().numpy()) for part in (run.model(images.images), images.labels))
    seen = []
    run.train(seen.append)
    expected = torch.nn.functional.cross_entropy(scores, labels, label_smoothing=0.2).item()
    assert seen[0]["loss"] == pytest.approx(expected, rel=1e-5)
    assert seen[-1]["evaluation"] == evaluate(run.model, run.parts.test)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_learns_and_takes_a_weight_decay(tmp_path, name):
    run, _, evaluations = seen_in(
        small(tmp_path / "run", epochs=20, optimizer={"name": name, "lr": 0.002, "weight_decay": 0.01})
    )
    assert type(run.parts.optimizer).__name__.lower() == name
    assert run.parts.optimizer.param_groups[0]["weight_decay"] == 0.01
    assert evaluations[-1]["evaluation"]["loss"] < evaluations[0]["evaluation"]["loss"]


# --- from outside -----------------------------------------------------------------------------------------------------


def test_settings_can_be_given_in_place_of_the_files(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('epochs = 3\n[optimizer]\nname = "sgd"\nlr = 0.5\n')
    changes = ["optimizer.lr=0.1", "optimizer.momentum = 0.9", "model.sizes=[4, 5]", "data.name=synthetic", "out=a b"]
    found = read_config(file, changes)
    assert (found.epochs, found.out, found.data.name, found.model.sizes) == (3, "a b", "synthetic", (4, 5))
    assert (found.optimizer.name, found.optimizer.lr, found.optimizer.momentum) == ("sgd", 0.1, 0.9)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("optimizer.lr", "--set must be given a setting and its value, like optimizer.lr=0.1, got 'optimizer.lr'"),
        ("optimizer.rate=1", "there is no setting optimizer.rate: there are name, lr"),
        ("epochs=many", "epochs must be a whole number, got 'many'"),
        ("epochs.x=1", "epochs must be a table to hold epochs.x, got 3"),
        ("epochs=1\nseed=3", "epochs must be a whole number, got '1 seed=3'"),
    ],
)
def test_a_change_that_cannot_be_made_is_one_line_and_exit_2(tmp_path, capsys, change, said):
    file = tmp_path / "config.toml"
    file.write_text("epochs = 3")
    assert main(["train", str(file), "--set", change]) == 2
    error = capsys.readouterr().err
    assert said in error.replace("\\n", " ")
    assert f"{file} --set" in error
    assert error.count("\n") == 1


def test_all_settings_as_toml_say_the_same(tmp_path):
    for config in (
        TrainingConfig(),
        small(tmp_path / 'a "b" ü', 0.2, schedule={"name": "multistep", "milestones": [1]}),
    ):
        assert config_of(tomllib.loads(as_toml(config))) == config


def test_the_page_about_training_states_the_defaults():
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    stated = tomllib.loads(re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1])
    assert config_of(stated) == TrainingConfig()
    assert stated == {
        **TrainingConfig().as_dict(),
        "model": {**TrainingConfig().model.__dict__, "sizes": [256, 128]},
        "schedule": {"name": "constant"},
    }
    for name, options in SCHEDULE_OPTIONS.items():
        (row,) = re.findall(rf"^\| `{name}` \|(.*)$", page, re.MULTILINE)
        assert {option for option in options if f"`{option}" in row} == options, name


def test_a_dry_run_says_what_would_run_and_writes_nothing(tmp_path, capsys):
    file = tmp_path / "config.toml"
    config = small(tmp_path / "run", 0.2, accumulate=2, schedule={"name": "cosine"})
    file.write_text(as_toml(config))
    assert main(["train", str(file), "--dry-run", "--set", "optimizer.lr=0.25"]) == 0
    out = capsys.readouterr().out
    assert read_config(file, ["optimizer.lr=0.25"]) == config_of(tomllib.loads(out))
    assert "# images:     100 for training, 25 for validation, 500 for testing\n" in out
    assert "# steps:      4 epochs × 3 = 12 steps of 20 × 2 images\n" in out
    assert f"# parameters: {784 * 8 + 8 + 8 * 10 + 10:,}\n" in out
    assert "# schedule:   cosine, by step\n" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml"]
    main(["train", str(file)])
    capsys.readouterr()
    main(["train", str(file), "--dry-run"])
    assert "already holds a run: pass --resume or --replace" in capsys.readouterr().out
