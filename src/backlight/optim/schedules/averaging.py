"""`SWALR`: the rates for averaging weights (utils/averaging.py has the average)."""

import math
from collections.abc import Sequence

from backlight.errors import ValueProblem
from backlight.optim.optimizer import Optimizer
from backlight.optim.schedules.scheduler import LRScheduler, Rate, for_each_group

__all__ = ["SWALR"]


class SWALR(LRScheduler):
    """Anneals every group's rate to `swa_lr`, one for all or one for each group, and keeps it.

    Args:
        anneal_epochs: in how many steps.
        anneal_strategy: "cos" or "linear".

    Raises:
        ValueError: another strategy, or fewer than 0 epochs.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Rate | Sequence[Rate],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        for rate, group in zip(for_each_group("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueProblem(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueProblem(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """Return the rates, interpolated between the initial ones, recovered from the current ones, and `swa_lr`."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        return [
            group["swa_lr"] * now + _first_rate(group["lr"], group["swa_lr"], before) * (1 - now)
            for group in self.optimizer.param_groups
        ]

    def _share(self, step: int) -> float:
        """Return the interpolation weight after a step, from 0 to 1."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2


def _first_rate(rate: Rate, swa_rate: Rate, share: float) -> Rate:
    """Return the initial rate, given the interpolated one."""
    return swa_rate if share == 1 else (rate - share * swa_rate) / (1 - share)
