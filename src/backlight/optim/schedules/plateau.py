"""ReduceLROnPlateau: lower the rate when a metric no longer improves."""

import math
import warnings

from backlight.errors import GraphError, ValueProblem
from backlight.optim.optimizer import Optimizer
from backlight.optim.schedules.scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler, check_optimizer, set_rate
from backlight.tensor.tensor import Tensor


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rate by `factor` when a metric has not improved for `patience` steps.

    Args:
        mode: "min" if less is better, "max" if more is.
        threshold: an improvement counts if it is larger than this.
        threshold_mode: "rel" for a share of the best value, "abs" for a difference.
        cooldown: how many steps after a reduction are not counted.
        min_lr: the lowest rate, one for all groups or one for each group.
        eps: a change smaller than this is not made.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ):
        if factor >= 1.0:
            raise ValueProblem(f"Factor should be < 1.0. It is {factor}")
        check_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise ValueProblem(f"mode {mode} is unknown! It is min or max")
        if threshold_mode not in ("rel", "abs"):
            raise ValueProblem(f"threshold mode {threshold_mode} is unknown! It is rel or abs")
        count = len(optimizer.param_groups)
        several = isinstance(min_lr, (list, tuple))
        if several and len(min_lr) != count:
            raise ValueProblem(f"expected {count} min_lrs, got {len(min_lr)}")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._rates()
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        """Reset the best value and all counts."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: float | Tensor, epoch: int | None = None) -> None:
        """Update with the metric of one step, and lower the rate if due."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    @property
    def in_cooldown(self) -> bool:
        """Whether the last reduction is so recent that steps are not counted."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        if self.mode == "min":
            return value < (best * (1.0 - self.threshold) if self.threshold_mode == "rel" else best - self.threshold)
        return value > (best * (self.threshold + 1.0) if self.threshold_mode == "rel" else best + self.threshold)

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise GraphError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs):
            before = float(group["lr"])
            after = max(before * self.factor, lowest)
            if before - after > self.eps:
                set_rate(group, after)
