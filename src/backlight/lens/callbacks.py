"""The doctor as a callback of trainers: Lightning's and transformers'.

    trainer = lightning.Trainer(callbacks=[LightningDoctor(steps=20)])
    trainer = transformers.Trainer(model, args, callbacks=[TransformersDoctor(steps=20)])

NOTE [Duck-typed callbacks]
Neither library is imported: a callback has the methods that it needs, and any other hook (`on_…`) does nothing.
Trainers find hooks by name.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from backlight.errors import InputError
from backlight.lens.doctor.doctor_block import DoctorBlock
from backlight.lens.doctor.report import Report


class Examination:
    """Run the doctor during a training, or during its first steps.

    Args:
        steps: the number of batches to examine; then the report is made, and training continues without the doctor. By
            default all, which makes a training two to six times slower.
        strict, notes: as in `lens.doctor`.
        show: called with the report; by default it is printed on stderr.

    Attributes:
        report: the report of the current or last training.
    """

    def __init__(
        self,
        *,
        steps: int | None = None,
        strict: bool = False,
        notes: bool = False,
        show: Callable[[Report], Any] | None = None,
    ):
        if steps is not None and steps < 1:
            raise InputError(f"steps must be at least 1, got {steps}: how many batches to examine")
        self.steps = steps
        self.options = {"strict": strict, "notes": notes}
        self.show = show or _print
        self.report: Report | None = None
        self._block: DoctorBlock | None = None
        self._left = 0

    def __getattr__(self, name: str):
        if name.startswith("on_"):  # NOTE [Duck-typed callbacks]
            return _nothing
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_block": None, "report": None}  # trainers copy and pickle their callbacks

    def _begin(self) -> None:
        """Open the doctor, unless it is open."""
        if self._block is None:
            self._left = self.steps or 0
            self._block = DoctorBlock(**self.options, engines=None)
            self.report = self._block.__enter__()

    def _stepped(self) -> None:
        """Count a batch; close the doctor after the last that is wanted."""
        self._left -= 1
        if self._left == 0:
            self._end(None)

    def _end(self, problem: BaseException | None) -> None:
        """Close the doctor and show its report, once."""
        block, self._block = self._block, None
        if block is None:
            return
        block.__exit__(None if problem is None else type(problem), problem, problem and problem.__traceback__)
        self.show(self.report)


class LightningDoctor(Examination):
    """A callback for Lightning's Trainer: examines `fit`, and reports when it ends, is interrupted or fails."""

    state_key = "LightningDoctor"

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin, before optimizers are made."""
        if stage == "fit":
            self._begin()

    def on_train_batch_end(self, *args, **kwargs) -> None:
        """Count a batch."""
        self._stepped()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Report what was found, and what the exception is the sign of."""
        self._end(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Report at the end."""
        self._end(None)

    def state_dict(self) -> dict:
        """Return nothing: a checkpoint needs nothing of the doctor."""
        return {}

    def load_state_dict(self, state_dict: dict) -> None:
        """Take nothing from a checkpoint."""


class TransformersDoctor(Examination):
    """A callback for transformers' Trainer: examines `train()`, and reports when it ends or fails.

    The Trainer tells its callbacks of no exception. So the callback finds the trainer that calls it and stands around
    one of its methods: around `train` if it is given to the Trainer when that is made, else, by `add_callback`, around
    `training_step`, in which forward and backward run.
    """

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs) -> None:
        """Stand around `train`."""
        trainer = self._trainer(sys._getframe(1))
        if trainer is not None:
            self._around(trainer, "train")

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs) -> None:
        """Begin, unless `train` has."""
        if self._block is None:
            trainer = self._trainer(sys._getframe(1))
            if trainer is not None:
                self._around(trainer, "training_step", to_the_end=False)
            self._begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs) -> None:
        """Count a step."""
        self._stepped()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs) -> None:
        """Report at the end."""
        self._end(None)

    def _trainer(self, frame: FrameType | None) -> Any:
        """Return the trainer that calls: `self` of a frame, and one that has this callback."""
        while frame is not None:
            caller = frame.f_locals.get("self")
            handler = getattr(caller, "callback_handler", None)
            if any(one is self for one in getattr(handler, "callbacks", ())):
                return caller
            frame = frame.f_back
        return None

    def _around(self, trainer: Any, name: str, to_the_end: bool = True) -> None:
        """Stand around a method of a trainer: an exception that leaves it ends the examination."""
        original = getattr(trainer, name)
        if getattr(original, "examination", None) is self:
            return

        def examined(*args, **kwargs):
            if to_the_end:
                self._begin()
            try:
                return original(*args, **kwargs)
            except BaseException as problem:
                self._end(problem)
                raise

        examined.examination = self
        setattr(trainer, name, examined)


def _nothing(*args, **kwargs) -> None:
    """Do nothing at a hook that the doctor does not need."""


def _print(report: Report) -> None:
    print(f"doctor: {report}", file=sys.stderr)
