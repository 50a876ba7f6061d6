"""Flow files, run folders and data files damaged at random, and what becomes of them."""

import gzip
import json
import math
import pickle
import random
import shutil
from functools import cache
from pathlib import Path

import numpy as np
from damage import damaged, described, one_line
from damage_models import bytes_damaged

import backlight
from backlight.data.vision import read_idx
from backlight.errors import BacklightError
from backlight.lens.flow.flow_page import flow_page
from backlight.lens.flow.history import History, line_of, read_history
from backlight.serialization import load_file, save_file
from backlight.training.config import read_config
from backlight.training.recorder import Recorder
from backlight.training.report import report
from backlight.training.run_folder import RunFolder

ABOUT = {
    "lens": "flow",
    "format": 1,
    "engine": "backlight",
    "title": "net",
    "model": "Net(\n)",
    "parameters": 12,
    "layers": {"first": "Linear", "last": "Linear"},
    "optimizers": ["SGD (\n)"],
}


@cache
def flow_lines() -> list[str]:
    """Return the lines of a flow file, NaN and none among the numbers."""
    found = [line_of(ABOUT)]
    for step in range(1, 8):
        norms = {"first": 1 / step, "last": None if step < 3 else math.inf if step == 5 else 0.0}
        told = {"step": step, "seconds": step / 10, "loss": math.nan if step == 5 else 1 / step, "lr": [0.1, 0.2]}
        told |= {"metrics": {"accuracy": 0.5}, "gradient": 1.0, "gradient_norms": norms, "dead_units": {"first": 0.5}}
        if step == 5:
            told["first_not_finite"] = {"step": 5, "what": "output", "layer": "last", "kind": "NaN", "why": "it was"}
        found.append(line_of(told))
    return found


def play_flows(rng: random.Random, folder: Path) -> tuple[str, bool]:
    """Damage a flow file; return what went wrong, if anything, and whether it was accepted."""
    lines = flow_lines()[:]
    number = rng.randrange(len(lines))
    kind, text = damaged(rng, lines[number].rstrip("\n"))
    lines[number] = text + "\n" * (rng.random() < 0.9)
    file = folder / "flow.jsonl"
    file.write_text("".join(lines), encoding="utf-8")

    def use() -> None:
        history: History = read_history(file)
        flow_page(history)

    return _played(use, f"{kind} in line {number + 1} of a flow file")


@cache
def _run_folder(folder: Path) -> Path:
    model = backlight.nn.Linear(2, 1)
    optimizer = backlight.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    place = folder / "original-run"
    with Recorder(place, model, optimizer, checkpoint_every=2, existing="replace") as recorder:
        for epoch in recorder.epochs(2):
            for row in recorder.batches([backlight.ones(3, 2), backlight.zeros(3, 2)]):
                optimizer.zero_grad()
                loss = (model(row) ** 2).mean()
                loss.backward()
                optimizer.step()
                recorder.step(loss, accuracy=epoch / 2)
            recorder.evaluation(on="test", loss=0.5, accuracy=0.25)
    return place


def play_runs(rng: random.Random, folder: Path) -> tuple[str, bool]:
    """Damage a file of a run folder; return what went wrong, if anything, and whether it could be used."""
    place = folder / "run"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(_run_folder(folder), place)
    file = rng.choice(sorted(one for one in place.rglob("*") if one.suffix in (".json", ".jsonl", ".safetensors")))
    if file.suffix == ".safetensors":
        kind = bytes_damaged(rng, file)
    elif file.suffix == ".json":
        kind, text = damaged(rng, file.read_text())
        file.write_text(text)
    else:
        lines = file.read_text().splitlines(keepends=True)
        number = rng.randrange(len(lines))
        kind, text = damaged(rng, lines[number].rstrip("\n"))
        file.write_text("".join([*lines[:number], text + "\n", *lines[number + 1 :]]))

    def use() -> None:
        report(RunFolder(place))
        model = backlight.nn.Linear(2, 1)
        Recorder(place, model, backlight.optim.SGD(model.parameters(), 0.1, momentum=0.9), existing="resume")

    return _played(use, f"{kind} in {file.name}")


def play_data(rng: random.Random, folder: Path) -> tuple[str, bool]:
    """Damage an idx file, a PyTorch file or a safetensors file; return what went wrong, if anything."""
    kind = rng.choice(["idx", "idx.gz", "pt", "safetensors"])
    file = folder / f"data.{kind}"
    content = bytes([0, 0, 8, 3]) + np.array([4, 3, 2], ">u4").tobytes() + bytes(24)
    tensors = {"a": backlight.ones(3, 2), "b": backlight.arange(4)}
    if kind.startswith("idx"):
        file.write_bytes(gzip.compress(content) if kind == "idx.gz" else content)
    elif kind == "pt":
        backlight.save(tensors, file)
    else:
        save_file(tensors, file)
    how = bytes_damaged(rng, file)
    readers = {"pt": backlight.load, "safetensors": load_file}
    return _played(lambda: readers.get(kind, read_idx)(file), f"{how} in {kind}")


def play_settings(rng: random.Random, folder: Path) -> tuple[str, bool]:
    """Damage the settings of a training run; return what went wrong, if anything."""
    file = folder / "settings.json"
    plain = {"out": "r", "epochs": 2, "model": {"kind": "mlp", "sizes": [3]}, "optimizer": {"name": "adam", "lr": 0.1}}
    kind, text = damaged(rng, json.dumps(plain))
    file.write_text(text)
    return _played(lambda: read_config(file), f"{kind} in settings")


def _played(use, what: str) -> tuple[str, bool]:
    try:
        use()
    except (BacklightError, pickle.UnpicklingError) as problem:
        trouble = one_line(problem) if isinstance(problem, BacklightError) else None
        return (f"{what}: {trouble}" if trouble else ""), False
    except Exception as problem:
        return f"{what}: ended in {described(problem)}", False
    return "", True
