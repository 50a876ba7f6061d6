"""One training run, as a configuration says, recorded from the first step to the last."""

from collections.abc import Callable
from dataclasses import dataclass

from backlight.errors import InputError
from backlight.nn import Module
from backlight.nn.utils import clip_grad_norm_
from backlight.ops.loss.cross_entropy import cross_entropy
from backlight.optim import Optimizer
from backlight.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from backlight.tensor.generators import Generator, manual_seed
from backlight.tensor.tensor import Tensor
from backlight.training.components import network, optimizer_of, schedule_of
from backlight.training.config import ENDING, TrainingConfig, config_of
from backlight.training.images import (
    Batches,
    Best,
    Images,
    evaluate,
    evaluate_weights,
    held_out,
    images_of,
    save_weights,
)
from backlight.training.processes import OneProcess
from backlight.training.recorder import Recorder
from backlight.training.run_folder import BEST, RunFolder, jsonable

MAY_CHANGE = {"out", "epochs", "record_every", "checkpoint_every", "patience"}  # when a run is resumed


@dataclass(frozen=True)
class Parts:
    """What a configuration describes, made: nothing of it is on disk."""

    config: TrainingConfig
    model: Module
    optimizer: Optimizer
    schedule: LRScheduler | None
    batches: Batches
    validation: Images | None
    test: Images

    @property
    def steps(self) -> int:
        """How many steps there are in all."""
        return self.config.epochs * len(self.batches)


@dataclass(frozen=True)
class Run:
    """A run that is ready: `go` trains until the end, or until Ctrl-C."""

    parts: Parts
    recorder: Recorder
    best: Best
    processes: OneProcess

    @property
    def config(self) -> TrainingConfig:
        """The settings."""
        return self.parts.config

    @property
    def model(self) -> Module:
        """The network."""
        return self.parts.model

    @property
    def steps(self) -> int:
        """How many steps there are in all, if the run does not end early."""
        return self.parts.steps

    def train(self, seen: Callable[[dict], None] = lambda record: None) -> None:
        """Train.

        Args:
            seen: called with each record (of a step, or of an evaluation) as it is written.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed; a checkpoint has been written.
        """
        recorder, parts = self.recorder, self.parts
        with recorder:
            for _ in recorder.epochs(self.config.epochs):
                for images, labels in recorder.batches(parts.batches):
                    record = self._step(images, labels)
                    if record is not None:
                        seen(record)
                reached = self._evaluated()
                seen(reached)
                self._end_epoch(reached["evaluation"]["loss"])
                if self.ended_early:
                    break
            if parts.validation is not None:
                seen(recorder.evaluation(on="test", **self._tested()))

    @property
    def ended_early(self) -> bool:
        """Whether the validation has become no better for as long as the patience lasts."""
        return 0 < self.config.patience <= self.best.since

    def _step(self, images: Tensor, labels: Tensor) -> dict | None:
        """Make one step, of as many batches as the configuration accumulates."""
        config, optimizer, processes = self.config, self.parts.optimizer, self.processes
        loss, hits, count = 0.0, 0, len(labels)
        optimizer.zero_grad()
        for start in range(0, count, config.batch_size):
            stop = min(start + config.batch_size, count)
            with processes.computing(last=stop == count):
                mine = processes.part(slice(start, stop))
                scores, answers = processes.model(images[mine]), labels[mine]
                share = len(answers) * processes.count / count  # processes average their gradients
                of_part = cross_entropy(scores, answers, label_smoothing=config.label_smoothing) * share
                of_part = of_part if len(answers) else scores.sum() * 0.0
                of_part.backward()
            loss += of_part.item() / processes.count
            hits += int((scores._data.argmax(1) == answers._data).sum())
        loss, hits, stopping = processes.totals(loss, hits, self.recorder.stopping)
        self.recorder.stopping = stopping > 0
        more = {}
        if config.clip_grad_norm:
            norm = clip_grad_norm_(self.model.parameters(), config.clip_grad_norm)
            more["gradient_before_clipping"] = norm
        optimizer.step()
        if self.parts.schedule is not None and config.schedule.by_step:
            self.parts.schedule.step()
        return self.recorder.step(loss, samples=count, accuracy=hits / count, **more)

    def _evaluated(self) -> dict:
        """Evaluate at the end of an epoch: where images were held out on those, and keep the best weights so far."""
        if self.parts.validation is None:
            return self.recorder.evaluation(on="test", **evaluate(self.model, self.parts.test))
        record = self.recorder.evaluation(on="validation", **evaluate(self.model, self.parts.validation))
        if self.best.note(record):
            save_weights(self.recorder.folder.path / BEST, self.model, record)
        return record

    def _end_epoch(self, loss: float) -> None:
        """Let a schedule by epochs make its step."""
        schedule = self.parts.schedule
        if isinstance(schedule, ReduceLROnPlateau):
            schedule.step(loss)
        elif schedule is not None and not self.config.schedule.by_step:
            schedule.step()

    def _tested(self) -> dict[str, float]:
        file = self.recorder.folder.path / BEST
        if self.best.record is None or not file.is_file():
            return evaluate(self.model, self.parts.test)
        return evaluate_weights(file, self.model, self.parts.test)


def assemble(config: TrainingConfig) -> Parts:
    """Load the data, and make the model, the optimizer and the schedule.

    Raises:
        InputError: the data are missing or too few, or the schedule does not fit the length of the run.
    """
    training, test = images_of(config.data)
    validation = None
    if config.data.validation:
        training, validation = held_out(training, config.data.validation, config.seed)
    manual_seed(config.seed)
    model = network(config.model)
    batches = Batches(training, config.batch_size * config.accumulate, Generator().manual_seed(config.seed))
    optimizer = optimizer_of(config.optimizer, model)
    schedule = schedule_of(config, optimizer, len(batches))
    return Parts(config, model, optimizer, schedule, batches, validation, test)


def prepare(
    config: TrainingConfig, existing: str = "refuse", processes: Callable[[Module], OneProcess] = OneProcess
) -> Run:
    """Make all parts of a run, and open its folder.

    Args:
        processes: makes what divides the work among processes.
        existing: what to do if the folder holds a run, see `Recorder`.

    Raises:
        InputError: the data are missing, the folder cannot be used, or a run that is resumed had other settings.
    """
    if existing == "resume":
        _check_same(config, RunFolder(config.out))
    parts = assemble(config)
    recorder = Recorder(
        config.out,
        parts.model,
        parts.optimizer,
        scheduler=parts.schedule,
        config={"training": config.as_dict()},
        every=config.record_every,
        checkpoint_every=config.checkpoint_every,
        existing=existing,
    )
    return Run(parts, recorder, Best(config.best_by, recorder.folder.evaluations("validation")), processes(parts.model))


def _check_same(config: TrainingConfig, folder: RunFolder) -> None:
    """Raise if the run in a folder had other settings than these, but for those that may change on the way."""
    before = folder.config().get("training")
    if before is None:
        return
    planned = {"epochs"} if config.schedule.name in ENDING else set()
    had, has = _flat(config_of(before)), _flat(config)
    for name in had.keys() - (MAY_CHANGE - planned):
        if had[name] != has[name]:
            raise InputError(
                f"{name} must be as in the run that is resumed, {had[name]!r}, got {has[name]!r}: change it back, "
                "or begin another run"
            )


def _flat(config: TrainingConfig) -> dict:
    """Return all settings by their full names, such as `optimizer.lr`."""
    found = {}
    for name, value in jsonable(config.as_dict()).items():
        is_table = isinstance(value, dict)
        found |= {f"{name}.{entry}": each for entry, each in value.items()} if is_table else {name: value}
    return found
