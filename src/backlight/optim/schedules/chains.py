"""Schedules composed of schedules: in sequence, or chained."""

from bisect import bisect_right
from collections.abc import Sequence

from backlight.errors import ArgumentError, ValueProblem
from backlight.optim.optimizer import Optimizer
from backlight.optim.schedules.plateau import ReduceLROnPlateau
from backlight.optim.schedules.scheduler import LRScheduler, set_rate


class _Several(LRScheduler):
    """A schedule composed of others, for one optimizer."""

    def _check(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        for place, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise ArgumentError(f"{name} at index {place} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueProblem(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {place} in the given schedulers sequence."
                )
            if optimizer is not scheduler.optimizer:
                raise ValueProblem(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {place} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )

    def state_dict(self) -> dict:
        """Return the state of the schedule and its parts."""
        return {**super().state_dict(), "_schedulers": [part.state_dict() for part in self._schedulers]}

    def load_state_dict(self, state_dict: dict) -> None:
        """Load the state from `state_dict`."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for part, state in zip(self._schedulers, state_dict["_schedulers"]):
            part.load_state_dict(state)


class SequentialLR(_Several):
    """One schedule after the other: at each milestone the next begins."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ):
        if len(schedulers) < 1:
            raise ValueProblem("SequentialLR expects at least one scheduler, but got no scheduler.")
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueProblem(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        _undo(self)  # each part made its first step in its constructor
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:
        """Step the current schedule."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        part = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            part._update_lr(0)
        else:
            part.step()
        self._last_lr = part.get_last_lr()


def _undo(scheduler: LRScheduler) -> None:
    """Undo the first step of a schedule, or of its parts."""
    if not hasattr(scheduler, "_schedulers"):
        scheduler.last_epoch -= 1
        return
    for part in scheduler._schedulers:
        _undo(part)


class ChainedScheduler(_Several):
    """Several schedules at once: each makes a step on the rate that the one before it set."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if not isinstance(schedulers, Sequence):
            raise ArgumentError(f"object of type '{type(schedulers).__name__}' has no len(): give a list of schedulers")
        if not len(schedulers):
            raise ValueProblem("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        self._check(optimizer, schedulers)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._rates()

    def step(self) -> None:
        """Step each schedule."""
        for part in self._schedulers:
            part.step()
        self._last_lr = self._rates()
