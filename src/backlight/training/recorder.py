"""`Recorder`: what a training loop did, step by step, in a folder from which the run can be resumed.

NOTE [Going on bit for bit]
A checkpoint holds the model, the optimizer, the schedule, the generators' states and the position in the data: the
epoch, how many batches of it were taken, and the generators' states when it began. Taking a run up, the epoch is begun
again from those states, its first batches are drawn and dropped, and then the generators are set to where they were.
So the rest of the run sees the same batches and the same random numbers. Random numbers from elsewhere (Python's
`random`, NumPy's) are not covered.

What a loop does between the last batch of an epoch and the next epoch (evaluate, step a schedule) is done again if the
checkpoint is of that epoch. So a checkpoint made there holds the generators, the schedule, and the options that it
sets in the optimizer, as they were when the batches ended.
"""

import signal
import threading
import time
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path

from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, InputError
from backlight.nn import Module
from backlight.optim import Optimizer
from backlight.optim.lr_scheduler import LRScheduler, SequentialLR
from backlight.tensor.generators import default_generator
from backlight.training.checkpoint import load_checkpoint, save_checkpoint
from backlight.training.report import report
from backlight.training.run_folder import CONFIG, REPORT, RunFolder, write_atomically
from backlight.training.step_meter import StepMeter, StepRecorder, check_count, check_existing, described


class Scheduled:
    """An optimizer and its schedule, if it has one (see NOTE [Going on bit for bit] in training/recorder.py)."""

    def __init__(self, optimizer: Optimizer, scheduler: LRScheduler | None = None):
        self.optimizer, self.scheduler = optimizer, scheduler
        self._used: float | None = None  # the rate of the optimizer's last step
        self._noted = self._position()
        self._ended: dict | None = None  # the state when the batches of the epoch ended
        optimizer.register_step_post_hook(self._note_rate)

    def _note_rate(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        self._used = self._current()

    def _current(self) -> float:
        return _number(self.optimizer.param_groups[0]["lr"])

    @property
    def name(self) -> str | None:
        """What the schedule is called; if it is made of others, what those are called."""
        parts = getattr(self.scheduler, "_schedulers", None) or [self.scheduler]
        between = ", then " if isinstance(self.scheduler, SequentialLR) else " and "
        return None if self.scheduler is None else between.join(type(part).__name__ for part in parts)

    @property
    def rate(self) -> float:
        """The rate that the optimizer's last step used, or else the one that its next step will use."""
        return self._current() if self._used is None else self._used

    def _position(self) -> int | None:
        return getattr(self.scheduler, "last_epoch", None)

    def note_step(self) -> None:
        """Note where the schedule stands as the recorder's step ends."""
        self._noted = self._position()

    def check_order(self) -> None:
        """Raise if the schedule made a step between the recorder's step and the next batch.

        Raises:
            RuntimeError: it did; a checkpoint that the recorder's step wrote would not know.
        """
        if self._position() != self._noted:
            raise GraphError(
                "scheduler.step() must be called before recorder.step(…), right after optimizer.step(): a checkpoint "
                "is written in recorder.step, and would lack the schedule's step"
            )

    def batches_ended(self) -> None:
        """Note the state before what a loop does at the end of an epoch."""
        self._ended = self._state()

    def epoch_ended(self) -> None:
        """Forget that state: what was done at the end of the epoch is done for good."""
        self._ended = None

    def _state(self) -> dict | None:
        if self.scheduler is None:
            return None
        options = [{name: group[name] for name in group if name != "params"} for group in self.optimizer.param_groups]
        return deepcopy({"options": options, "scheduler": self.scheduler.state_dict()})

    def state_dict(self) -> dict:
        """Return the states of both; after the batches of an epoch, the schedule's is that of their end."""
        optimizer = self.optimizer.state_dict()
        state = self._state() if self._ended is None else self._ended
        if state is None:
            return {"optimizer": optimizer, "scheduler": None}
        groups = [{**group, **options} for group, options in zip(optimizer["param_groups"], state["options"])]
        return {"optimizer": {**optimizer, "param_groups": groups}, "scheduler": state["scheduler"]}

    def load_state_dict(self, state: dict) -> None:
        """Take over what `state_dict` returned.

        Raises:
            ValueError: the optimizer's state does not fit, or only one of the two runs has a schedule.
        """
        scheduler = state.get("scheduler")
        if (scheduler is None) != (self.scheduler is None):
            had, has = ("none", "one") if scheduler is None else ("one", "none")
            raise InputError(f"scheduler must be as in the run that is resumed: it had {had}, and this one has {has}")
        self.optimizer.load_state_dict(state["optimizer"])
        if scheduler is not None:
            self.scheduler.load_state_dict(scheduler)
            self.optimizer._opt_called = state["step"] > 0  # else a schedule by epochs would warn of the wrong order
        self._noted = self._position()


class Recorder(StepRecorder):
    """Record a training loop: losses, metrics, throughput and gradients; checkpoints; a page with curves.

    Two lines in a loop of your own suffice:

        recorder = Recorder("runs/first", model, optimizer)
        for images, labels in loader:
            …
            optimizer.step()
            recorder.step(loss, samples=len(labels), accuracy=accuracy)

    With `with recorder:` around the loop, Ctrl-C ends it after the step that runs, with a checkpoint, and the page is
    written at the end. With `recorder.epochs` and `recorder.batches` the loop can be taken up where it stopped:

        with Recorder("runs/first", model, optimizer, existing="resume") as recorder:
            for epoch in recorder.epochs(5):
                for images, labels in recorder.batches(loader):
                    …

    A schedule is saved and restored with the rest. One that goes by steps makes its step before the recorder does:
    `optimizer.step()`, `scheduler.step()`, `recorder.step(…)`; one that goes by epochs after the batches of the epoch.

    Args:
        folder: where the run is written (NOTE [A run folder] in training/run_folder.py).
        scheduler: the learning rate schedule of the optimizer.
        config: what else config.json should say: plain values.
        every: of so many steps one is recorded; the first one always is.
        checkpoint_every: steps from one checkpoint to the next; None leaves them to `checkpoint()` and to the end.
        keep: how many checkpoints stay.
        existing: what to do if the folder holds a run: "refuse", "resume" or "replace" it.

    Attributes:
        stopping: whether the loop ends, with a checkpoint, in the next `step`: Ctrl-C sets it.

    Raises:
        InputError: the folder holds a run already, or what it holds does not fit the model.
    """

    def __init__(
        self,
        folder: Path | str,
        model: Module,
        optimizer: Optimizer,
        *,
        scheduler: LRScheduler | None = None,
        config: dict | None = None,
        every: int = 1,
        checkpoint_every: int | None = 500,
        keep: int = 2,
        existing: str = "refuse",
    ):
        super().__init__(every)
        if checkpoint_every is not None:
            check_count("checkpoint_every", checkpoint_every)
        check_count("keep", keep)
        check_existing(existing)
        self.folder = RunFolder(folder)
        self.model, self.optimizer = model, optimizer
        self._scheduled = Scheduled(optimizer, scheduler)
        self.checkpoint_every, self.keep = checkpoint_every, keep
        self.epoch = self.batch = 0  # the position in the data: `batch` batches of `epoch` were taken
        self._generators = [default_generator]
        self._epoch_began: list | None = None  # the generators' states then
        self._epoch_ended: list | None = None  # their states when its batches ended
        self._resumed: list | None = None  # their states at the checkpoint, until the epoch has been begun again
        self._meter = StepMeter(model, [optimizer])
        self.stopping = False
        self._handler = None
        self._resume(existing)
        self._expect_step()
        self.folder.write_config(self._described(config or {}))
        self._restart_clock()

    # --- what a loop calls -----------------------------------------------------------------------------------------

    def step(self, loss: TensorState | float, *, samples: int | None = None, **metrics) -> dict | None:
        """Note one step, after `optimizer.step()` and before the gradients are cleared.

        Args:
            loss: a tensor of one element or a number.
            samples: how many samples the step took, for the throughput.
            metrics: numbers, or tensors of one element.

        Returns:
            What was recorded, if this step was.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed in a `with` block; a checkpoint has been written.
        """
        self.steps += 1
        self._scheduled.note_step()
        self._clock_steps += 1
        self._clock_samples = None if samples is None else (self._clock_samples or 0) + samples
        record, loss = None, _number(loss)
        measured = self._measured(loss)
        if measured is not None:
            record = self._record(loss, metrics, measured)
            self.folder.append(record)
            self._restart_clock()
        self._expect_step()
        if self.stopping:
            self.checkpoint()
            raise KeyboardInterrupt
        if self.checkpoint_every and self.steps % self.checkpoint_every == 0:
            self.checkpoint()
        return record

    def evaluation(self, *, on: str | None = None, **metrics) -> dict:
        """Note what the model reached on data that it does not learn from; the time that took does not count.

        Args:
            on: what the data are called, such as "validation" or "test".
            metrics: numbers, or tensors of one element.
        """
        record = {
            "step": self.steps,
            "epoch": self.epoch,
            "seconds": self._seconds(),
            **({"on": on} if on else {}),
            "evaluation": {name: _number(value) for name, value in metrics.items()},
        }
        self.folder.append(record)
        self._restart_clock()
        return record

    def epochs(self, count: int) -> Iterator[int]:
        """Yield the numbers of the epochs from 0, or from the one that a resumed run stopped in."""
        while self.epoch < count:
            yield self.epoch
            self.epoch, self.batch, self._epoch_began = self.epoch + 1, 0, None
            self._epoch_ended = None
            self._scheduled.epoch_ended()

    def batches(self, loader: Iterable) -> Iterator:
        """Yield the batches of one epoch; of a resumed epoch those that are left (see NOTE [Going on bit for bit])."""
        self._generators = _generators_of(loader)
        self._epoch_ended = None
        self._scheduled.epoch_ended()
        if self._resumed is not None:
            self._set_generators(self._epoch_began or self._resumed)
        begun_again = self._resumed if self._epoch_began else None
        self._resumed = None
        self._epoch_began = self._states()
        batches = iter(loader)
        for _ in range(self.batch):
            next(batches, None)
        if begun_again is not None:
            self._set_generators(begun_again)
        for batch in batches:
            self.batch += 1
            steps = self.steps
            yield batch
            if self.steps > steps:
                self._scheduled.check_order()
        self._epoch_ended = self._states()
        self._scheduled.batches_ended()

    def checkpoint(self) -> Path:
        """Write a checkpoint of this moment, and return its file."""
        file = self.folder.checkpoint_at(self.steps)
        save_checkpoint(file, self._state())
        self.folder.keep_last(self.keep)
        return file

    def report(self) -> Path:
        """Write the page as things stand, and return its file."""
        file = self.folder.path / REPORT
        write_atomically(file, report(self.folder).encode())
        return file

    # --- with recorder: --------------------------------------------------------------------------------------------

    def __enter__(self) -> "Recorder":
        if threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, kind: type[BaseException] | None, *problem: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._handler = None
        if kind is None:
            self.checkpoint()
        self.report()

    def _interrupted(self, number: int, frame: object) -> None:
        """End after this step; a second Ctrl-C ends at once, without a checkpoint."""
        if self.stopping:
            raise KeyboardInterrupt
        self.stopping = True

    # --- what is written -------------------------------------------------------------------------------------------

    def _record(self, loss: float, metrics: dict, measured: dict) -> dict:
        elapsed = max(time.perf_counter() - self._clock, 1e-9)
        unit, done = "samples", self._clock_samples
        if done is None:
            unit, done = "steps", self._clock_steps
        return {
            "step": self.steps,
            "epoch": self.epoch,
            "seconds": self._seconds(),
            "loss": loss,
            **{name: _number(value) for name, value in metrics.items()},
            "lr": self._scheduled.rate,
            f"{unit}_per_second": done / elapsed,
            **measured,
        }

    def _restart_clock(self) -> None:
        self._clock, self._clock_steps, self._clock_samples = time.perf_counter(), 0, None

    def _described(self, config: dict) -> dict:
        return {
            **config,
            **described(self.model),
            "layers": {name: type(module).__name__ for name, module in self.model.named_modules() if name},
            "optimizer": repr(self.optimizer),
            "schedule": self._scheduled.name,
            "recorded_every": self.every,
            "checkpoint_every": self.checkpoint_every,
        }

    def _state(self) -> dict:
        return {
            "step": self.steps,
            "epoch": self.epoch,
            "batch": self.batch,
            "seconds": self._seconds(),
            "model": dict(self.model.state_dict()),
            **self._scheduled.state_dict(),
            "generators": self._states() if self._epoch_ended is None else self._epoch_ended,
            "epoch_began": self._epoch_began,
        }

    def _states(self) -> list:
        return [generator.get_state() for generator in self._generators]

    # --- taking a run up -------------------------------------------------------------------------------------------

    def _resume(self, existing: str) -> None:
        """Begin at nothing, or at the last checkpoint."""
        if self.folder.holds_a_run() and existing == "refuse":
            raise InputError(
                f'{self.folder.path} already holds a run: pass existing="resume" to resume it, '
                'existing="replace" to start over, or another folder'
            )
        self.folder.make()
        if existing == "replace":
            self.folder.clear()
        last = self.folder.checkpoint()
        if last is not None:
            self._restore(last)
        self.folder.go_back_to(self.steps, self.epoch)

    def _restore(self, file: Path) -> None:
        state = load_checkpoint(file)
        for name, kind in STATE.items():
            if not isinstance(state.get(name), kind) or isinstance(state[name], bool):
                raise InputError(f"cannot read the checkpoint {file}: it holds no {name}, so it is damaged")
        if not all(isinstance(one, TensorState) for one in state["generators"]) or not state["generators"]:
            raise InputError(f"cannot read the checkpoint {file}: it holds no states of generators, so it is damaged")
        try:
            self.model.load_state_dict(state["model"])
            self._scheduled.load_state_dict(state)
        except InputError:
            raise
        except (RuntimeError, ValueError, KeyError, TypeError, IndexError, AttributeError) as problem:
            said = " ".join(str(problem).split())  # a state dict's error has a line for each key
            raise InputError(
                f"{file} does not fit the model; {self.folder.path / CONFIG} says which one was trained: {said}"
            ) from problem
        self.steps, self.epoch, self.batch = state["step"], state["epoch"], state["batch"]
        self._before = state["seconds"]
        self._epoch_began, self._resumed = state.get("epoch_began"), state["generators"]
        default_generator.set_state(state["generators"][0])

    def _set_generators(self, states: list) -> None:
        if len(states) != len(self._generators):
            raise InputError(
                "the loader must have a generator of its own just as in the run that is resumed: there are "
                f"{len(self._generators)} generators, and states of {len(states)}"
            )
        for generator, state in zip(self._generators, states):
            generator.set_state(state)


STATE = {"model": dict, "step": int, "epoch": int, "batch": int, "seconds": (int, float), "generators": (list, tuple)}


def _generators_of(loader: object) -> list:
    owners = (loader, getattr(loader, "sampler", None))
    found = [default_generator, *(getattr(owner, "generator", None) for owner in owners)]
    return list({id(generator): generator for generator in found if generator is not None}.values())


def _number(value: TensorState | float) -> float:
    return float(value.item() if isinstance(value, TensorState) else value)
