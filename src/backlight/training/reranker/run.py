"""A training of a reranker, from a file of pairs to a model folder with its card.

NOTE [A reranker's folder]
    model.safetensors, config.json, tokenizer.json …   the model: the best so far, in the end calibrated
    README.md                                          the model card
    training/config.json                               what was run: settings, hashes of data and start, versions
    training/metrics.jsonl                             a line for each step and each look at the validation part
    training/prepared.safetensors                      documents that were found, the teacher's scores, figures before
    training/checkpoints/, training/best.safetensors   all that is needed to go on; removed in the end
    training/result.json                               the figures, once training has ended
"""

import hashlib
import importlib
import json
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from backlight.errors import InputError
from backlight.formats.schema import validated
from backlight.formats.strict_json import read_json_file
from backlight.models.checkpoint import WEIGHTS, find_model
from backlight.models.conversion import export_int8
from backlight.models.ranker import load_ranker
from backlight.training.checkpoint import load_checkpoint, save_checkpoint
from backlight.training.reranker.calibration import calibrate
from backlight.training.reranker.card import card_of
from backlight.training.reranker.model import scores_of, starting_model
from backlight.training.reranker.preparation import Prepared, prepare, read_prepared, write_prepared
from backlight.training.reranker.progress import TrainingProgress, Watch
from backlight.training.reranker.result import Result
from backlight.training.reranker.rows import TrainingData, read_training_data
from backlight.training.reranker.settings import RerankerSettings
from backlight.training.reranker.split import split_queries
from backlight.training.reranker.steps import Schedule, Stepper
from backlight.training.reranker.validation import by_domain, figures_of
from backlight.training.run_folder import BEST, RunFolder, jsonable, write_atomically

RUN, RESULT, PREPARED = "training", "result.json", "prepared.safetensors"
TIMED = 3  # steps by which the speed is measured
SLACK = 1.05  # what a step costs beside scores and gradients


def train_reranker(
    data: Path,
    out: Path,
    settings: RerankerSettings | None = None,
    *,
    validation: Path | None = None,
    sources: Sequence[str] = (),
    resume: bool = False,
    int8: bool = False,
    watch: Watch = lambda progress: None,
) -> Result:
    """Train a reranker on a file of pairs (see NOTE [Rows]) and write its folder (see NOTE [A reranker's folder]).

    Ctrl-C ends the training after a step, with a checkpoint from which `resume` goes on, bit for bit.

    Args:
        data: JSON lines or CSV.
        out: the folder to write.
        settings: by default those of `RerankerSettings`.
        validation: a second file, in place of a part of the first.
        sources: where the data comes from, each "name, licence", for the model card.
        resume: go on from the last checkpoint in the folder.
        int8: also write the model with int8 weights, to the folder `int8` in it, for backlight alone.
        watch: is called with how far it is.

    Raises:
        InputError: the data, the settings or the folder cannot be used.
        KeyboardInterrupt: Ctrl-C.
    """
    return RerankerTraining(data, out, settings or RerankerSettings(), validation, sources, watch).train(resume, int8)


class RerankerTraining:
    """A training in a folder; arguments as `train_reranker`."""

    def __init__(
        self,
        data: Path,
        out: Path,
        settings: RerankerSettings,
        validation: Path | None = None,
        sources: Sequence[str] = (),
        watch: Watch = lambda progress: None,
    ):
        self.began = time.monotonic()
        self.settings, self.out, self.sources, self.watch = settings, Path(out), tuple(sources), watch
        self.files = [Path(data), *([Path(validation)] if validation is not None else [])]
        self.run = RunFolder(self.out / RUN)
        self.source = find_model(settings.start)
        self.data = read_training_data(self.files)
        self.split = split_queries(self.data.queries, settings.validation, settings.seed, validation is not None)
        self.best: dict = {"ndcg": -1.0, "step": 0, "since": 0}
        self.seen: dict[str, float] | None = None

    def train(self, resume: bool = False, int8: bool = False) -> Result:
        """Train, or go on, and write the folder."""
        done = self._check_folder(resume)
        if done is not None:
            return done
        self.model = starting_model(self.source, self.settings.max_length, self.settings.seed)
        self.prepared = self._prepare()
        self.eval_rows = self.prepared.validation.sample(self.settings.eval_queries)
        queries, negatives, seed = self.settings.queries, self.settings.negatives, self.settings.seed
        self.schedule = Schedule(self.prepared.training, self.data.documents, queries, negatives, seed)
        self.stepper = self._stepper()
        self._take_up()
        self._train()
        return self._finish(int8)

    @property
    def description(self) -> dict:
        """What a folder's run must have in common with this one to be gone on with."""
        start = hashlib.sha256((self.source / WEIGHTS).read_bytes()).hexdigest() if self._is_one_file else None
        return {
            "settings": jsonable(asdict(self.settings)),
            "data": {"sha256": list(self.data.sha256)},
            "start": {"sha256": start},
        }

    @property
    def _is_one_file(self) -> bool:
        return (self.source / WEIGHTS).is_file()

    def _check_folder(self, resume: bool) -> Result | None:
        """Make the folder; return the result, if the run in it has ended and is gone on with.

        Raises:
            InputError: it holds a run or a model, and that is not asked for, or another one.
        """
        holds = self.run.config() != {} or self.run.holds_a_run()
        if not resume and (holds or (self.out / "config.json").exists()):
            what = "a run: add --resume to resume it, or name" if holds else "a model: name"
            raise InputError(f"{self.out} holds {what} another folder")
        found = self.run.config()
        own = self.description
        for name in own:
            if holds and jsonable(found.get(name)) != own[name]:
                raise InputError(f"{self.out} holds a run with other {name}: give the same, or name another folder")
        file = self.run.path / RESULT
        if holds and file.is_file():
            return validated(Result, read_json_file(file), str(file))
        self.run.make()
        if not holds:
            (self.run.path / PREPARED).unlink(missing_ok=True)
            self.run.write_config(own)
        return None

    # --- before the first step -------------------------------------------------------------------------------------

    def _prepare(self) -> Prepared:
        """Mine negatives, let the teacher score, rank the validation part; or read what was computed before."""
        file = self.run.path / PREPARED
        if file.is_file():
            return read_prepared(file, self.split, self.data.documents)
        found = self._find()
        write_prepared(file, found)
        return found

    def _find(self) -> Prepared:
        start = load_ranker(self.source, "start") if self.model.new_head else self.model.scorer
        return prepare(self.settings, self.split, self.data.documents, start, self.watch)

    def _stepper(self) -> Stepper:
        """Return what makes the steps; how many there are is decided once, and kept."""
        config, temperature = self.run.config(), self.prepared.temperature
        loss = replace(self.settings.loss, temperature=temperature)
        steps = (config.get("training") or {}).get("steps")
        if steps is None:
            steps = self.schedule.steps(self.settings.epochs)
            if self.settings.minutes is not None:
                steps = min(steps, self._steps_in_time())
            versions = {
                "backlight": importlib.import_module("backlight").__version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
            }
            names = {"files": [file.name for file in self.files], "sources": list(self.sources)}
            self.run.write_config(
                {
                    **self.description,
                    **names,
                    "versions": versions,
                    "training": {"steps": steps, "temperature": temperature},
                }
            )
        return Stepper(self.model, steps, self.settings.optimisation, loss)

    def _steps_in_time(self) -> int:
        """Return how many steps fit into the minutes that are left, by the speed of a few."""
        settings = self.settings
        timed = Stepper(self.model, 1, settings.optimisation, settings.loss)
        validation = self.prepared.validation.part(self.eval_rows)
        validation_seconds, seconds = _seconds_of(lambda: scores_of(self.model.scorer, validation.pairs)), []
        for step in range(TIMED):
            seconds.append(_seconds_of(partial(timed.gradients, self.schedule.groups(step))))
        timed.optimizer.zero_grad()
        whole = validation_seconds * len(self.prepared.validation.candidates) / len(self.eval_rows)
        left = (
            60 * settings.minutes - (time.monotonic() - self.began) - settings.evaluations * validation_seconds - whole
        )
        return max(1, int(left / (SLACK * float(np.median(seconds)))))

    def _take_up(self) -> None:
        """Go on from the last checkpoint, if there is one; else look at the model as it is."""
        file = self.run.checkpoint()
        if file is not None:
            state = load_checkpoint(file)
            self.stepper.load(state)
            self.best, self.seen = state["best"], state["seen"]
        else:
            self.seen = by_domain(self.prepared.validation.part(self.eval_rows), self.prepared.before[self.eval_rows])
            if not self.model.new_head:
                self._note_best(self.seen["ndcg"])
        self.run.go_back_to(self.stepper.step, epoch=1)

    # --- steps -----------------------------------------------------------------------------------------------------

    def _train(self) -> None:
        """Make all steps that are left, look now and then, and write checkpoints.

        Raises:
            KeyboardInterrupt: Ctrl-C, after the step and its checkpoint.
        """
        stepper, settings = self.stepper, self.settings
        every = -(-stepper.steps // settings.evaluations)
        began, first, pairs, saved = time.monotonic(), stepper.step, 0, time.monotonic()
        with interruptions() as interrupted:
            while stepper.step < stepper.steps and self.best["since"] < settings.patience:
                at = time.monotonic()
                found = stepper.advance(self.schedule.groups(stepper.step))
                self.run.append({"step": stepper.step, **found, "seconds": time.monotonic() - at})
                if stepper.step % every == 0 or stepper.step == stepper.steps:
                    self._look()
                pairs += found["pairs"]
                seconds = time.monotonic() - began
                left = (stepper.steps - stepper.step) * seconds / (stepper.step - first)
                self.watch(
                    TrainingProgress(
                        "training", stepper.step, stepper.steps, found["loss"], pairs / seconds, left, self.seen
                    )
                )
                if interrupted() or time.monotonic() - saved > 60 * settings.checkpoint_minutes:
                    self.save()
                    saved = time.monotonic()
                if interrupted():
                    raise KeyboardInterrupt

    def _look(self) -> None:
        """Rank the validation queries, record how well, and write the model if it is the best so far."""
        validation, at = self.prepared.validation.part(self.eval_rows), time.monotonic()
        self.seen = by_domain(validation, validation.ndcg(scores_of(self.model.scorer, validation.pairs)))
        record = {"step": self.stepper.step, "epoch": 0, "evaluation": self.seen, "seconds": time.monotonic() - at}
        self.run.append(record)
        self._note_best(self.seen["ndcg"])

    def _note_best(self, ndcg: float) -> None:
        if ndcg > self.best["ndcg"]:
            self.best = {"ndcg": ndcg, "step": self.stepper.step, "since": 0}
            save_checkpoint(self.run.path / BEST, {"weights": self.model.parameters()})
            self.model.write(self.out)
        else:
            self.best = {**self.best, "since": self.best["since"] + 1}

    def save(self) -> None:
        """Write a checkpoint."""
        state = {**self.stepper.state(), "best": self.best, "seen": self.seen}
        save_checkpoint(self.run.checkpoint_at(self.stepper.step), state)
        self.run.keep_last(2)

    # --- after the last step ---------------------------------------------------------------------------------------

    def _finish(self, int8: bool) -> Result:
        """Calibrate the best weights, write them, the card and the result."""
        self.save()
        validation = self.prepared.validation
        self.watch(TrainingProgress("validating", 0, len(validation.candidates)))
        self.model.load(load_checkpoint(self.run.path / BEST)["weights"])
        scores = scores_of(self.model.scorer, validation.pairs)
        calibration = calibrate(scores, validation.labels, validation.units, validation.domains)
        result = Result(
            folder=str(self.out),
            steps=self.stepper.step,
            best_step=self.best["step"],
            minutes=sum(one.get("seconds") or 0 for one in self.run.records()) / 60,
            figures=figures_of(validation, self.prepared.before, validation.ndcg(scores), self.prepared.bm25),
            calibration=calibration,
            counts=self._counts(),
        )
        self.model.fold(calibration.platt.scale, calibration.platt.offset)
        self.model.write(self.out)
        write_atomically(self.out / "README.md", card_of(result, self.run.config(), self.model).encode())
        if int8:
            export_int8(self.out, self.out / "int8")
        text = json.dumps(jsonable(asdict(result)), indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.run.path / RESULT, text.encode())
        for file in [*self.run.checkpoints.glob("step-*"), self.run.path / BEST]:
            file.unlink()
        return result

    def _counts(self) -> dict[str, int]:
        data: TrainingData = self.data
        training, held_out = self.split
        return {
            "rows": data.rows,
            "documents": len(data.documents),
            "training queries": len(training),
            "validation queries": len(held_out),
            "unanswerable queries": sum(not query.answered for query in data.queries),
            "mined negatives": sum(len(one.found) for one in self.prepared.training),
            "positives not used as negatives": self.prepared.left_out["right"],
            "near-duplicates not used as negatives": self.prepared.left_out["near_duplicates"],
            "positive in one row and negative in another": data.contradictions,
        }


@contextmanager
def interruptions() -> Iterator[Callable[[], bool]]:
    """Give a function that tells whether Ctrl-C was pressed: once; a second time it interrupts at once."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    pressed = False
    before = signal.getsignal(signal.SIGINT)

    def press(number: int, frame: object) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
