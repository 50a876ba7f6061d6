"""`train_reranker`: a tiny model learns, goes on bit for bit, ends early, is calibrated, and its folder can be read."""

import hashlib
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from model_folders import CASES, write_reranker
from pair_files import rows, write_rows
from safetensors.numpy import load_file
from tiny_bert import write_bert, write_cross_encoder
from tiny_fused import write_fused
from transformers import AutoModelForSequenceClassification

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.models.ranker import load_ranker
from backlight.training.reranker import LossWeights, Optimisation, RerankerSettings, RerankerTraining, train_reranker
from backlight.training.reranker.calibration import calibrate
from backlight.training.reranker.candidates import Candidates
from backlight.training.reranker.model import scores_of, starting_model
from backlight.training.reranker.rows import Judged
from backlight.training.reranker.validation import Validation
from backlight.training.run_folder import RunFolder

FAST = Optimisation(learning_rate=3e-3)
WRONG = ("air", "water", "food")
PAIRS = [("make a leaf", "the leaf of a"), ("make b water", "the leaf of a")]


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Return a folder with a tiny cross-encoder."""
    return write_cross_encoder(tmp_path_factory.mktemp("models") / "cross")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Return a folder with a tiny bi-encoder."""
    return write_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Return a file of 64 rows."""
    return write_rows(tmp_path_factory.mktemp("data") / "pairs.jsonl", rows())


@pytest.fixture(scope="module")
def settings(start):
    """Return settings for the tiny model, which reads 32 tokens."""
    return RerankerSettings(
        start=str(start),
        max_length=32,
        epochs=6,
        evaluations=3,
        queries=8,
        near_duplicates=1.0,
        validation=0.2,
        optimisation=FAST,
    )


@pytest.fixture(scope="module")
def trained(pairs, settings, tmp_path_factory):
    """Return the result of a training of the tiny model, and what was watched."""
    stands = []
    out = tmp_path_factory.mktemp("out") / "model"
    return train_reranker(pairs, out, settings, sources=["made up, CC0"], int8=True, watch=stands.append), stands


def weights(folder) -> dict[str, np.ndarray]:
    return load_file(Path(folder) / "model.safetensors")


def test_training_ranks_held_out_queries_better(settings, tmp_path):
    told = [
        {**row, "positive": f"{row['positive']} sunlight", "negatives": [f"{row['positive']} {word}" for word in WRONG]}
        for row in rows()
    ]
    file = write_rows(tmp_path / "pairs.jsonl", told)
    result = train_reranker(file, tmp_path / "out", replace(settings, candidates=4))
    figures = result.figures["all"]
    assert figures.after.value > figures.before.value + 0.2 and figures.gain.low > 0
    assert figures.queries == 13 and figures.after.value > 0.9
    assert figures.gain.value == pytest.approx(figures.after.value - figures.before.value)


def test_the_folder_is_read_by_reranker_and_by_transformers_with_the_same_logits(trained):
    result, _ = trained
    ours = Reranker.from_pretrained(result.folder)
    theirs = AutoModelForSequenceClassification.from_pretrained(result.folder).eval()
    read = ours.scorer.read(PAIRS)
    with torch.no_grad():
        expected = [
            theirs(torch.tensor(one.ids)[None], token_type_ids=torch.tensor(one.type_ids)[None]).logits.item()
            for one in read
        ]
    np.testing.assert_allclose(ours.predict(PAIRS, activation="identity"), expected, atol=1e-4)
    np.testing.assert_allclose(ours.predict(PAIRS), 1 / (1 + np.exp(-np.array(expected))), atol=1e-4)
    small = Reranker.from_pretrained(Path(result.folder) / "int8")
    np.testing.assert_allclose(small.predict(PAIRS), ours.predict(PAIRS), atol=0.05)


def test_the_calibration_is_folded_into_the_last_layer(pairs, settings, tmp_path, monkeypatch):
    logits = []
    monkeypatch.setattr(
        "backlight.training.reranker.run.calibrate",
        lambda scores, *more: logits.append(scores) or calibrate(scores, *more),
    )
    training = RerankerTraining(pairs, tmp_path / "out", replace(settings, epochs=1))
    result = training.train()
    platt = result.calibration.platt
    assert platt.scale > 0 and (platt.scale, platt.offset) != (1.0, 0.0)
    after = scores_of(load_ranker(tmp_path / "out"), training.prepared.validation.pairs)
    np.testing.assert_allclose(after, platt.scale * logits[0] + platt.offset, atol=1e-4)


def test_progress_says_what_is_done_and_how_well_it_goes(trained):
    _, stands = trained
    assert [stand.doing for stand in stands if stand.doing != "mining"][:2] == ["indexing", "validating"]
    steps = [stand for stand in stands if stand.doing == "training"]
    assert [stand.done for stand in steps] == list(range(1, 40)) and {stand.total for stand in steps} == {39}
    assert all(stand.pairs_per_second > 0 and stand.loss > 0 for stand in steps) and steps[-1].seconds_left == 0
    assert len({stand.validation["ndcg"] for stand in steps}) > 1


def test_metrics_have_a_line_for_each_step_and_look(trained):
    result, _ = trained
    run = RunFolder(Path(result.folder) / "training")
    records = run.records()
    assert [one["step"] for one in records if "loss" in one] == list(range(1, 40))
    assert [one["step"] for one in run.evaluations()] == [13, 26, 39]
    assert sum(one["pairs"] for one in records if "loss" in one) == 39 * 8 * 4
    best = max(one["evaluation"]["ndcg"] for one in run.evaluations())
    assert run.evaluations()[result.best_step // 13 - 1]["evaluation"]["ndcg"] == best
    assert not list(run.checkpoints.glob("*"))


def test_the_card_states_data_sources_figures_and_versions(trained, pairs):
    result, _ = trained
    card = (Path(result.folder) / "README.md").read_text()
    digest = hashlib.sha256(pairs.read_bytes()).hexdigest()
    figures = result.figures["all"]
    for said in (
        f"| pairs.jsonl | `{digest}` |",
        "- made up, CC0",
        f"| all | 13 | {figures.bm25.value:.3f} | {figures.before.value:.3f} | {figures.after.value:.3f} |",
        "| seed | 0 |",
        "1 × softmax cross-entropy + 0.3 × logistic",
        "| versions | backlight ",
        f"{figures.gain.value:+.3f} ({figures.gain.low:+.3f} to {figures.gain.high:+.3f})",
        f"| all | {result.calibration.before['all']:.3f} | {result.calibration.after['all']:.3f} |",
    ):
        assert said in card


class Stopped(Exception):
    """What a training is stopped with."""


def stop_at(step):
    def watch(stand):
        if stand.doing == "training" and stand.done == step:
            raise Stopped

    return watch


@pytest.mark.parametrize("step", [5, 27])
def test_a_training_that_was_stopped_goes_on_bit_for_bit(trained, pairs, settings, tmp_path, step):
    result, _ = trained
    often = replace(settings, checkpoint_minutes=1e-9)
    with pytest.raises(Stopped):
        train_reranker(pairs, tmp_path / "out", often, watch=stop_at(step))
    assert len(list((tmp_path / "out/training/checkpoints").glob("step-*"))) == 2
    seen = []
    again = train_reranker(pairs, tmp_path / "out", often, resume=True, watch=seen.append)
    assert [stand.done for stand in seen if stand.doing == "training"] == list(range(step, 40))
    assert (again.best_step, again.steps, again.figures) == (result.best_step, 39, result.figures)
    whole, stopped = weights(result.folder), weights(tmp_path / "out")
    assert whole.keys() == stopped.keys()
    for name in whole:
        np.testing.assert_array_equal(whole[name], stopped[name])
    assert train_reranker(pairs, tmp_path / "out", often, resume=True) == again  # it has ended: nothing is done


def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(pairs, start, tmp_path):
    command = [sys.executable, "-m", "backlight.cli.main", "train-reranker", str(pairs), "--out", str(tmp_path / "out")]
    command += ["--from", str(start), "--max-length", "32", "--epochs", "4000", "--patience", "4000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert any(line.startswith("training") for line in iter(process.stderr.readline, ""))
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130 and f"--out {tmp_path / 'out'}" in rest and rest.rstrip().endswith("--resume")
    run = RunFolder(tmp_path / "out/training")
    last = [one["step"] for one in run.records() if "loss" in one][-1]
    assert run.checkpoint() == run.checkpoint_at(last)
    assert Reranker.from_pretrained(tmp_path / "out").predict(PAIRS).shape == (2,)


def test_a_folder_is_not_written_over_and_is_gone_on_with_only_by_the_same(trained, pairs, settings, start):
    result, _ = trained
    with pytest.raises(InputError, match="holds a run: add --resume to resume it"):
        train_reranker(pairs, result.folder, settings)
    with pytest.raises(InputError, match="with other settings"):
        train_reranker(pairs, result.folder, replace(settings, seed=1), resume=True)
    with pytest.raises(InputError, match="holds a model: name another folder"):
        train_reranker(pairs, start, settings)


def test_training_ends_early_and_keeps_the_best(pairs, settings, tmp_path):
    wild = replace(settings, epochs=60, evaluations=30, patience=2, optimisation=Optimisation(learning_rate=1.0))
    result = train_reranker(pairs, tmp_path / "out", wild)
    evaluations = RunFolder(tmp_path / "out/training").evaluations()
    assert result.steps < 384 and len(evaluations) < 30
    assert result.figures["all"].after.value >= result.figures["all"].before.value
    best = max((one["evaluation"]["ndcg"] for one in evaluations), default=0)
    assert result.figures["all"].after.value == pytest.approx(max(best, result.figures["all"].before.value))


def test_minutes_set_the_number_of_steps(pairs, settings, tmp_path):
    short = train_reranker(pairs, tmp_path / "short", replace(settings, epochs=10_000, minutes=0.02, patience=10_000))
    assert 1 <= short.steps < 2000
    assert json.loads((tmp_path / "short/training/config.json").read_text())["training"]["steps"] == short.steps
    long = train_reranker(pairs, tmp_path / "long", replace(settings, epochs=1, minutes=60))
    assert long.steps == 7


def test_a_bi_encoder_gets_a_new_head_and_is_compared_by_its_cosine(pairs, bert, settings, tmp_path):
    mine = replace(settings, start=str(bert), mining_model=str(bert), teacher=str(bert), epochs=1)
    training = RerankerTraining(pairs, tmp_path / "out", mine)
    result = training.train()
    validation = training.prepared.validation
    cosine = validation.ndcg(scores_of(load_ranker(bert), validation.pairs))
    assert result.figures["all"].before.value == pytest.approx(cosine.mean())
    model = load_ranker(tmp_path / "out")
    assert model.score_name == "logit" and training.model.new_head
    assert training.stepper.loss.temperature == 0.05
    assert all(np.isfinite(one.teacher).all() for one in training.prepared.training)
    rates = {group["highest"] for group in training.stepper.optimizer.param_groups}
    assert rates == {3e-3, 1e-3}


def test_what_was_found_is_read_again_as_it_was(pairs, bert, settings, tmp_path):
    mine = replace(settings, teacher=str(bert), epochs=1)
    with pytest.raises(Stopped):
        train_reranker(pairs, tmp_path / "out", mine, watch=stop_at(1))
    training = RerankerTraining(pairs, tmp_path / "out", mine)
    training.model = starting_model(training.source, 32)
    read, found = training._prepare(), training._find()
    assert (read.training, read.left_out, read.temperature) == (found.training, found.left_out, found.temperature)
    assert [one.documents for one in read.validation.candidates] == [
        one.documents for one in found.validation.candidates
    ]
    np.testing.assert_array_equal(read.before, found.before)


def test_domains_are_measured_apart_and_queries_that_nothing_answers_are_only_calibrated(settings, tmp_path):
    named = [{**row, "domain": "first" if row["query"][5] in "abcd" else "second"} for row in rows()]
    nothing = [
        {"query": f"food {letter}", "positive": None, "negatives": [f"the air {letter}"], "domain": "second"}
        for letter in "ijklmnop"
    ]
    file = write_rows(tmp_path / "pairs.jsonl", named + nothing)
    training = RerankerTraining(file, tmp_path / "out", replace(settings, epochs=1))
    result = training.train()
    assert list(result.figures) == ["all", "first", "second"]
    assert result.figures["all"].queries == result.figures["first"].queries + result.figures["second"].queries == 13
    assert result.counts["validation queries"] == 14 and result.counts["unanswerable queries"] == 8
    assert set(result.calibration.after) == {"all", "first", "second"}
    evaluations = training.run.evaluations()
    assert set(evaluations[0]["evaluation"]) == {"ndcg", "first", "second"}
    card = (tmp_path / "out/README.md").read_text()
    assert "| second | 7 |" in card and "unknown: no source was named" in card


@pytest.mark.parametrize("case", CASES)
def test_a_model_of_each_family_is_written_as_it_was_read_and_folded(case, tmp_path):
    start = write_reranker(tmp_path / "start", case)
    model = starting_model(start)
    model.write(tmp_path / "same")
    before, after = weights(start), weights(tmp_path / "same")
    assert before.keys() - {"model.embeddings.position_ids"} == after.keys()
    for name in after:
        np.testing.assert_array_equal(before[name], after[name])
    logits = scores_of(model.scorer, PAIRS)
    model.fold(2.0, -1.0)
    model.write(tmp_path / "folded")
    np.testing.assert_allclose(scores_of(load_ranker(tmp_path / "folded"), PAIRS), 2 * logits - 1, atol=1e-5)


def test_a_fused_model_trains_its_logit_and_keeps_its_cosine(pairs, settings, tmp_path):
    start = write_fused(tmp_path / "start", cosine_weight=0.1)  # with more this one ranks right before it is trained
    found = train_reranker(pairs, tmp_path / "out", replace(settings, start=str(start)), int8=True)
    assert found.steps > 1
    before, after = weights(start), weights(tmp_path / "out")
    assert before.keys() == after.keys()
    kept = [name for name in before if ".similarity." in name or "word_embeddings" in name]
    for name in kept:
        np.testing.assert_array_equal(after[name], before[name])
    learnt = "bert.encoder.layer.0.output.dense.weight"
    assert not np.array_equal(after[learnt], before[learnt])
    scale = json.loads((tmp_path / "out/training/result.json").read_text())["calibration"]["platt"]["scale"]
    np.testing.assert_allclose(after["cosine_weight"], before["cosine_weight"] * scale, rtol=1e-5)
    scores = [
        load_ranker(tmp_path / "out" / name).rank_scores("make a leaf", ["the leaf of a"]) for name in ("", "int8")
    ]
    np.testing.assert_allclose(*scores, atol=0.1)


def test_a_sample_is_even_over_domains_and_within_each():
    judged = [Judged(f"q{n}", (0,), (1.0,), (0.0,), "a" if n < 80 else "b") for n in range(100)]
    whole = Validation(tuple(Candidates(one, (), (0.0,)) for one in judged), ("d",))
    assert whole.sample(8).tolist() == [0, 20, 40, 60, 80, 85, 90, 95]
    assert whole.sample(200).tolist() == list(range(100)) and len(whole.part(whole.sample(50)).candidates) == 50


def test_a_run_that_died_while_it_was_prepared_is_begun_anew_by_another(pairs, settings, tmp_path):
    def die(stand):
        if stand.doing == "validating":
            raise Stopped

    with pytest.raises(Stopped):
        train_reranker(pairs, tmp_path / "out", settings, watch=die)
    with pytest.raises(InputError, match="with other settings"):
        train_reranker(pairs, tmp_path / "out", replace(settings, seed=1), resume=True)
    assert train_reranker(pairs, tmp_path / "out", settings, resume=True).steps == 39


def test_the_command_prints_the_figures(pairs, start, tmp_path, capsys):
    options = ["train-reranker", str(pairs), "--from", str(start), "--max-length", "32", "--epochs", "1", "--quiet"]
    assert main([*options, "--out", str(tmp_path / "text"), "--validation", "0.3", "--distillation-loss", "kl"]) == 0
    captured = capsys.readouterr()
    assert "nDCG@10 on 19 held-out queries" in captured.out and captured.err == ""
    held_out = write_rows(pairs.parent / "held_out.jsonl", rows("ij"))
    assert main([*options, "--out", str(tmp_path / "json"), "--validation", str(held_out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["validation queries"] == 16 and found["figures"]["all"]["queries"] == 16
    assert main([*options, "--out", str(tmp_path / "other")]) == 0
    assert main([*options, "--out", str(tmp_path / "other")]) == 2
    assert "holds a run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--epochs", "0"], "epochs must be above 0, got 0"),
        (["--validation", "0.95"], "validation must be above 0 and at most 0.9, got 0.95"),
        (["--imitation-loss", "huber"], "distillation_loss must be kl or margin-mse, got huber"),
        (["--listwise-weight", "0", "--logistic", "0", "--distillation-weight", "0"], "nothing would be learnt"),
        (["--mining-model", "{start}"], "mining_model must be a bi-encoder"),
        (["--from", "nowhere"], "there is no model folder nowhere"),
        (["--queries", "many"], "argument --queries: invalid int value: 'many'"),
    ],
)
def test_settings_that_cannot_be_are_one_line(pairs, start, tmp_path, capsys, options, says):
    options = [option.format(start=start) for option in options]
    given = ["train-reranker", str(pairs), "--from", str(start), "--quiet", "--out", str(tmp_path / "out"), *options]
    assert main(given) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


def test_a_step_in_parts_is_the_step(pairs, settings, tmp_path):
    training = RerankerTraining(pairs, tmp_path / "out", replace(settings, loss=LossWeights(distillation=0.0)))
    training.train()
    groups = training.schedule.groups(0)
    whole = training.stepper.gradients(groups)
    gradients = {name: weight.grad.numpy().copy() for name, weight in training.model.parameters().items()}
    training.stepper.optimisation = Optimisation(tokens_per_pass=60)
    assert len(training.stepper._parts(groups)) > 3
    parts = training.stepper.gradients(groups)
    assert parts == whole | {"loss": pytest.approx(whole["loss"], rel=1e-5)}
    for name, weight in training.model.parameters().items():
        np.testing.assert_allclose(weight.grad.numpy(), gradients[name], atol=1e-5)
