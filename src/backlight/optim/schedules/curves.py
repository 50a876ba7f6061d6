"""Schedules along a curve: a polynomial, a cosine, cosines with restarts, and `SWALR`, for averaging weights."""

import math
from collections.abc import Sequence

from backlight.errors import ValueProblem
from backlight.optim.optimizer import Optimizer
from backlight.optim.schedules.scheduler import LRScheduler, Rate, for_each_group


class PolynomialLR(LRScheduler):
    """The rate times (1 − step / total_iters)^power, 0 at the end."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        left = (1.0 - self.last_epoch / self.total_iters) / (1.0 - (self.last_epoch - 1) / self.total_iters)
        return self._scaled(left**self.power)

    def _get_closed_form_lr(self) -> list:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [rate * left**self.power for rate in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the rate down to `eta_min` in `T_max` steps, then up again.

        eta_min + ½ (lr − eta_min) (1 + cos(π · step / T_max))

    Source: Ilya Loshchilov, Frank Hutter: SGDR: Stochastic Gradient Descent with Warm Restarts, 2016, arXiv:1608.03983
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):  # noqa: N803
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list:
        if self._is_initial:
            return self._rates()
        step, rates = self.last_epoch, self._rates()
        if self._step_count == 1 and step > 0:
            return self._get_closed_form_lr()
        if (step - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (first - self.eta_min) * rise for first, rate in zip(self.base_lrs, rates)]
        ratio = (1 + math.cos(math.pi * step / self.T_max)) / (1 + math.cos(math.pi * (step - 1) / self.T_max))
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in rates]

    def _get_closed_form_lr(self) -> list:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (rate - self.eta_min) * height for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines down to `eta_min`: the first in `T_0` steps, each next in `T_mult` times as many as the last.

    Source: Ilya Loshchilov, Frank Hutter: SGDR: Stochastic Gradient Descent with Warm Restarts, 2016, arXiv:1608.03983
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueProblem(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueProblem(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueProblem(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (rate - self.eta_min) * height for rate in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Step, or go to `epoch`, which may be fractional, and set the rates."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        with self._inside_step():
            rates = self.get_lr()
        self._set_rates(rates)

    def _jump(self, epoch: float) -> None:
        """Find the cycle of `epoch`, and the position in it."""
        if epoch < 0:
            raise ValueProblem(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            cycle = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**cycle - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**cycle


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
