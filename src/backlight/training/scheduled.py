"""An optimizer with its learning rate schedule, as a recorder sees them: the rate of each step, and both states."""

from copy import deepcopy

from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, InputError
from backlight.optim import Optimizer
from backlight.optim.lr_scheduler import SequentialLR


class Scheduled:
    """An optimizer and its schedule, if it has one (see NOTE [Going on bit for bit] in training/recorder.py)."""

    def __init__(self, optimizer: Optimizer, scheduler=None):
        self.optimizer, self.scheduler = optimizer, scheduler
        self._used: float | None = None  # the rate of the optimizer's last step
        self._noted = self._position()
        self._ended: dict | None = None  # the state when the batches of the epoch ended
        optimizer.register_step_post_hook(self._note_rate)

    def _note_rate(self, optimizer, args, kwargs) -> None:
        self._used = self._current()

    def _current(self) -> float:
        rate = self.optimizer.param_groups[0]["lr"]
        return float(rate.item() if isinstance(rate, TensorState) else rate)

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
