"""Schedules that multiply the rate: by a function's value, at milestones, or at every step."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable

from backlight.errors import ArgumentError, ValueProblem
from backlight.optim.optimizer import Optimizer
from backlight.optim.schedules.scheduler import LRScheduler, state_of_function


class _FunctionLR(LRScheduler):
    """A schedule by functions of the step, one for all groups or one for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | list[Callable], last_epoch: int = -1):
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueProblem(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        for function in self.lr_lambdas:
            if not callable(function):
                raise ArgumentError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict:
        """Return the schedule's state, including that of callable objects among its functions."""
        state = super().state_dict()
        del state["lr_lambdas"]
        return {**state, "lr_lambdas": [state_of_function(function) for function in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict) -> None:
        """Load the state from `state_dict`, including that of callable objects; functions stay."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for function, remembered in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if remembered is not None:
                function.__dict__.update(remembered)


class LambdaLR(_FunctionLR):
    """The first rate times `lr_lambda(step)`."""

    def _next_rates(self) -> list:
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_FunctionLR):
    """The last rate times `lr_lambda(step)`."""

    def _next_rates(self) -> list:
        if self._is_initial:
            return self._rates()
        groups = self.optimizer.param_groups
        return [group["lr"] * function(self.last_epoch) for function, group in zip(self.lr_lambdas, groups)]


class StepLR(LRScheduler):
    """Multiply the rate by `gamma` every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates()
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list:
        return [rate * self.gamma ** (self.last_epoch // self.step_size) for rate in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiply the rate by `gamma` at each milestone."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list:
        if self.last_epoch not in self.milestones:
            return self._rates()
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list:
        passed = bisect_right(sorted(Counter(self.milestones).elements()), self.last_epoch)  # a loaded one is a dict
        return [rate * self.gamma**passed for rate in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times `factor` for the first `total_iters` steps, and the full rate after."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if factor > 1.0 or factor < 0:
            raise ValueProblem("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._rates() if self.last_epoch != self.total_iters else self._scaled(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list:
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [rate * factor for rate in self.base_lrs]


class LinearLR(LRScheduler):
    """The rate times a factor that goes from `start_factor` to `end_factor` in `total_iters` steps: a warm-up."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueProblem("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueProblem("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        change = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return self._scaled(1.0 + change / before)

    def _get_closed_form_lr(self) -> list:
        change, done = self.end_factor - self.start_factor, min(self.total_iters, self.last_epoch)
        return [rate * (self.start_factor + change * done / self.total_iters) for rate in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiply the rate by `gamma` at every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list:
        return self._rates() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list:
        return [rate * self.gamma**self.last_epoch for rate in self.base_lrs]
