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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from backlight.errors import InputError
from backlight.formats.array_files import read_arrays
from backlight.formats.schema import validated
from backlight.formats.strict_json import read_json_file
from backlight.models.bi_encoder import BiEncoder
from backlight.models.checkpoint import WEIGHTS, find_model
from backlight.models.conversion import export_int8
from backlight.models.ranker import load_ranker
from backlight.training.checkpoint import load_checkpoint, save_checkpoint
from backlight.training.reranker.calibration import calibrate
from backlight.training.reranker.candidates import (
    Candidates,
    Miner,
    taught,
    training_candidates,
    validation_candidates,
)
from backlight.training.reranker.card import card_of
from backlight.training.reranker.loss import COSINES
from backlight.training.reranker.model import scores_of, starting_model
from backlight.training.reranker.result import Result
from backlight.training.reranker.rows import TrainingData, read_training_data
from backlight.training.reranker.settings import RerankerSettings
from backlight.training.reranker.split import split_queries
from backlight.training.reranker.steps import Schedule, Stepper
from backlight.training.reranker.validation import Validation, by_domain, figures_of
from backlight.training.run_folder import BEST, RunFolder, jsonable, write_atomically

RUN, RESULT, PREPARED = "training", "result.json", "prepared.safetensors"
TIMED = 3  # steps by which the speed is measured
SLACK = 1.05  # what a step costs beside scores and gradients


@dataclass(frozen=True)
class Stand:
    """How far a training is.

    Args:
        doing: what is being done: "embedding", "mining", "teaching", "validating" or "training".
        done: how many queries, or steps.
        total: of how many; 0 where that is not known.
        loss: of the last step.
        pairs_per_second: of this process.
        seconds_left: of training.
        validation: nDCG@10 of the last look, of all ("ndcg") and of each domain.
    """

    doing: str
    done: int = 0
    total: int = 0
    loss: float | None = None
    pairs_per_second: float | None = None
    seconds_left: float | None = None
    validation: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Prepared:
    """What is known before the first step."""

    training: list[Candidates]
    validation: Validation
    before: np.ndarray  # nDCG@10 of the start, (queries,)
    bm25: np.ndarray
    left_out: dict[str, int]
    temperature: float  # of the teacher's scores


Watch = Callable[[Stand], None]


def train_reranker(
    data: Path,
    out: Path,
    settings: RerankerSettings | None = None,
    *,
    validation: Path | None = None,
    sources: Sequence[str] = (),
    resume: bool = False,
    int8: bool = False,
    watch: Watch = lambda stand: None,
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
    return RerankerTraining(data, out, settings or RerankerSettings(), validation, sources, watch).go(resume, int8)


class RerankerTraining:
    """A training in a folder; arguments as `train_reranker`."""

    def __init__(
        self,
        data: Path,
        out: Path,
        settings: RerankerSettings,
        validation: Path | None = None,
        sources: Sequence[str] = (),
        watch: Watch = lambda stand: None,
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

    def go(self, resume: bool = False, int8: bool = False) -> Result:
        """Train, or go on, and write the folder."""
        done = self._check_folder(resume)
        if done is not None:
            return done
        self.model = starting_model(self.source, self.settings.max_length, self.settings.seed)
        self.prepared = self._prepare()
        self.looked_at = self.prepared.validation.sample(self.settings.looked_at)
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
            what = "a run: go on with it by --resume, or name" if holds else "a model: name"
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
        """Find wrong documents, let the teacher score, rank the validation part: or read what was found before."""
        file = self.run.path / PREPARED
        found = self._read_prepared(file) if file.is_file() else self._find()
        if not file.is_file():
            self._write_prepared(file, found)
        return found

    def _find(self) -> Prepared:
        settings, texts, (asked, kept) = self.settings, self.data.documents, self.split
        miner = Miner(texts, self._bi_encoder(settings.miner), settings.alike)
        self.watch(Stand("embedding" if settings.miner else "indexing", 0, len(texts)))
        miner.embed()
        sizes = settings.negatives, settings.mined, settings.seed
        training = training_candidates(asked, miner, *sizes, self._counter("mining", asked))
        held_out = validation_candidates(kept, miner, settings.candidates, self._counter("mining", kept))
        temperature = settings.loss.temperature or 1.0
        if settings.teacher is not None:
            teacher = load_ranker(find_model(settings.teacher), settings.teacher)
            temperature = settings.loss.temperature or (COSINES if isinstance(teacher, BiEncoder) else 1.0)
            known = miner.embeddings if settings.teacher == settings.miner else None
            training = taught(training, texts, teacher, self._counter("teaching", training), known)
        validation = Validation(tuple(held_out), texts)
        self.watch(Stand("validating", 0, len(held_out)))
        start = load_ranker(self.source, "start") if self.model.new_head else self.model.scorer
        before = validation.ndcg(scores_of(start, validation.pairs))
        bm25 = validation.ndcg(validation.bm25_scores(miner.bm25))
        return Prepared(training, validation, before, bm25, asdict(miner.left_out), temperature)

    def _bi_encoder(self, name: str | None) -> BiEncoder | None:
        if name is None:
            return None
        found = load_ranker(find_model(name), name)
        if not isinstance(found, BiEncoder):
            raise InputError(f"miner must be a bi-encoder, got {name}, which reads query and document together")
        return found

    def _counter(self, doing: str, queries: Sequence) -> Callable[[int], None]:
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            self.watch(Stand(doing, done, len(queries)))

        return count

    def _write_prepared(self, file: Path, found: Prepared) -> None:
        arrays = {"before": found.before, "bm25": found.bm25}
        for name, some in (("training", found.training), ("validation", found.validation.candidates)):
            arrays[f"{name}.sizes"] = np.array([len(one.found) for one in some], np.int64)
            arrays[f"{name}.found"] = np.array([number for one in some for number in one.found], np.int64)
            arrays[f"{name}.teacher"] = np.array([score for one in some for score in one.teacher], np.float64)
        write_atomically(
            file, save(arrays, {"left_out": json.dumps(found.left_out), "temperature": repr(found.temperature)})
        )

    def _read_prepared(self, file: Path) -> Prepared:
        arrays, texts = read_arrays(file, "what was found in ")
        parts = {}
        for name, queries in zip(("training", "validation"), self.split):
            ends = np.cumsum(arrays[f"{name}.sizes"])[:-1]
            found = [tuple(some.tolist()) for some in np.split(arrays[f"{name}.found"], ends)]
            ends = np.cumsum([len(query.documents) + len(more) for query, more in zip(queries, found)])[:-1]
            teacher = [tuple(some.tolist()) for some in np.split(arrays[f"{name}.teacher"], ends)]
            parts[name] = [Candidates(*one) for one in zip(queries, found, teacher)]
        validation = Validation(tuple(parts["validation"]), self.data.documents)
        left_out, temperature = json.loads(texts["left_out"]), float(texts["temperature"])
        return Prepared(parts["training"], validation, arrays["before"], arrays["bm25"], left_out, temperature)

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
        validation = self.prepared.validation.part(self.looked_at)
        looks, seconds = _seconds_of(lambda: scores_of(self.model.scorer, validation.pairs)), []
        for step in range(TIMED):
            seconds.append(_seconds_of(partial(timed.gradients, self.schedule.groups(step))))
        timed.optimizer.zero_grad()
        whole = looks * len(self.prepared.validation.candidates) / len(self.looked_at)
        left = 60 * settings.minutes - (time.monotonic() - self.began) - settings.looks * looks - whole
        return max(1, int(left / (SLACK * float(np.median(seconds)))))

    def _take_up(self) -> None:
        """Go on from the last checkpoint, if there is one; else look at the model as it is."""
        file = self.run.checkpoint()
        if file is not None:
            state = load_checkpoint(file)
            self.stepper.load(state)
            self.best, self.seen = state["best"], state["seen"]
        else:
            self.seen = by_domain(self.prepared.validation.part(self.looked_at), self.prepared.before[self.looked_at])
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
        every = -(-stepper.steps // settings.looks)
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
                    Stand("training", stepper.step, stepper.steps, found["loss"], pairs / seconds, left, self.seen)
                )
                if interrupted() or time.monotonic() - saved > 60 * settings.checkpoint_minutes:
                    self.save()
                    saved = time.monotonic()
                if interrupted():
                    raise KeyboardInterrupt

    def _look(self) -> None:
        """Rank the validation queries, record how well, and write the model if it is the best so far."""
        validation, at = self.prepared.validation.part(self.looked_at), time.monotonic()
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
        self.watch(Stand("validating", 0, len(validation.candidates)))
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
            "queries that nothing answers": sum(not query.answered for query in data.queries),
            "documents found": sum(len(one.found) for one in self.prepared.training),
            "left out as right for the query": self.prepared.left_out["right"],
            "left out as versions of a right one": self.prepared.left_out["alike"],
            "wrong in one row and right in another": data.contradictions,
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
