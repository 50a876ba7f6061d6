"""Each example runs, shortened, and is short."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from idx_files import write_idx
from paths import ROOT
from tiny_bert import write_bert

from backlight.training.config import read_config

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CONFIGS = sorted((ROOT / "examples" / "train").glob("*.toml"))


def run(name, *arguments):
    """Run an example, and return what it printed."""
    done = ended(name, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ended(name, *arguments):
    """Run an example in a process of its own to its end."""
    return subprocess.run(
        [sys.executable, ROOT / "examples" / name, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"},  # tests share the cores
        capture_output=True,
        text=True,
    )


def test_processes_of_which_there_is_one(monkeypatch):
    monkeypatch.setenv("RANK", "0")  # tests/process_groups runs it with two
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert re.fullmatch(r"1 processes, accuracy (0\.9\d|1\.00)\n", run("data_parallel.py"))


@pytest.mark.parametrize("name", ["fashion_mnist_mlp.py", "fashion_mnist_cnn.py"])
def test_clothes(name, tmp_path):
    write_idx(tmp_path / "FashionMNIST" / "raw", training=200)
    out = run(name, "--epochs", "1", "--data", tmp_path)
    assert re.fullmatch(r"epoch 1: loss \d+\.\d{4}, test accuracy \d+\.\d\d %\n", out)


def test_clothes_recorded(tmp_path):
    write_idx(tmp_path / "FashionMNIST" / "raw")
    run("fashion_mnist_mlp.py", "--epochs", "1", "--data", tmp_path, "--record", tmp_path / "run")
    assert "<h2>Gradient flow</h2>" in (tmp_path / "run" / "report.html").read_text()


def test_a_language_model_learns_a_text_and_writes(tmp_path):
    (tmp_path / "text.txt").write_text("the moon pulls the tides. " * 20)
    out = run("char_language_model.py", tmp_path / "text.txt", "--steps", "50")
    losses = [float(loss) for loss in re.findall(r"loss (\d+\.\d+)", out)]
    assert losses[0] > 2 > losses[-1]
    assert set(out.splitlines()[-1]) <= set("the moon pulls the tides. ")


def test_texts_are_told_apart_by_fine_tuning(tmp_path):
    out = run("classify_text.py", write_bert(tmp_path / "bert"), "--epochs", "2")
    assert len(re.findall(r"^(?:right|WRONG)  ", out, re.MULTILINE)) == 6
    assert len(re.findall(r"^epoch \d: loss \d", out, re.MULTILINE)) == 2


def test_the_reranker_says_in_a_line_which_data_it_misses(tmp_path):  # test_train_reranker.py trains one
    done = ended("train_reranker.py", tmp_path, "--out", tmp_path / "run", "--model", write_bert(tmp_path / "bert"))
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "give the folder that holds squad and question_sentence" in done.stderr


def test_pairs_for_the_reranker_say_in_a_line_which_data_they_miss(tmp_path):  # test_reranker_sources.py makes some
    done = ended("reranker_pairs.py", tmp_path, "--out", tmp_path / "pairs.jsonl")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "squad-36-articles.json" in done.stderr and "give the folder" in done.stderr
    assert not (tmp_path / "pairs.jsonl").exists()


def test_pairs_to_broaden_the_reranker_with_must_be_there(tmp_path):  # test_reranker_breadth.py trains on some
    done = ended("broaden_reranker.py", tmp_path / "pairs.jsonl", "--from", "builtin", "--out", tmp_path / "breadth")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "pairs.jsonl" in done.stderr and "reranker_pairs.py" in done.stderr


def test_the_cosine_is_added_to_a_finished_third_stage(tmp_path):  # test_reranker_breadth.py trains one
    done = ended("fuse_reranker.py", tmp_path / "breadth", "--out", tmp_path / "fused")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "broaden_reranker.py" in done.stderr and not (tmp_path / "fused").exists()


def test_only_a_finished_run_is_packaged(tmp_path):  # test_reranker_breadth.py packages one
    done = ended(
        "package_reranker.py", tmp_path, tmp_path / "breadth", tmp_path / "fused", "--out", tmp_path / "package"
    )
    assert done.returncode == 2 and "must hold finished stages" in done.stderr
    assert not (tmp_path / "package").exists()


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_configurations_can_be_read_and_name_their_command(config):
    assert read_config(config).data.name == "fashion-mnist"
    assert config.read_text().startswith(f"# backlight train examples/train/{config.name}\n")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_tested(example):
    source = example.read_text()
    assert len(source.splitlines()) < 80
    assert "import backlight as torch" in source
    assert f'"{example.name}"' in Path(__file__).read_text()
