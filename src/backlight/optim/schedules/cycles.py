"""Schedules up and down: CyclicLR and OneCycleLR, which move the momentum against the rate."""

import math
from collections.abc import Callable

from backlight.errors import ValueProblem
from backlight.optim.optimizer import Optimizer
from backlight.optim.schedules.scheduler import (
    LRScheduler,
    check_optimizer,
    for_each_group,
    set_rate,
    state_of_function,
)


class _Cycled(LRScheduler):
    """A schedule that sets the momentum too: the option "momentum", or the first of "betas"."""

    def _set_up_momentum(
        self, base: float | list[float], highest: float | list[float], last_epoch: int
    ) -> tuple[list, list]:
        """Check that there is a momentum, store its limits in the groups, and return them."""
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueProblem("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults
        bases = for_each_group("base_momentum", self.optimizer, base)
        tops = for_each_group("max_momentum", self.optimizer, highest)
        if last_epoch == -1:
            for group, low, high in zip(self.optimizer.param_groups, bases, tops):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return bases, tops

    def _set_momentum(self, group: dict, momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_Cycled):
    """Move the rate between `base_lr` and `max_lr`, up in `step_size_up` steps and down in `step_size_down`.

    Args:
        mode: "triangular" keeps the height, "triangular2" halves it each cycle, "exp_range" scales it by gamma^step.
        scale_fn: the height's factor by the number of the cycle, in place of `mode`.
        scale_mode: "cycle", or "iterations" if `scale_fn` takes the step.
        cycle_momentum: move the momentum from `max_momentum` to `base_momentum` and back, against the rate.

    Source: Leslie N. Smith: Cyclical Learning Rates for Training Neural Networks, 2015, arXiv:1506.01186
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs):
                set_rate(group, rate)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueProblem(f"mode is invalid and scale_fn is None; got mode={mode!r}")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._set_up_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the height's factor in cycle `x`, or at step `x` if `scale_mode` is "iterations"."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (x - 1)
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list:
        """Return the rates at `self.last_epoch`, one for each group, and set the momentums."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        inside = 1.0 + self.last_epoch / self.total_size - cycle
        rising = inside <= self.step_ratio
        height = inside / self.step_ratio if rising else (inside - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums)
            for group, low, high in limits:
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict:
        """Return the schedule's state, including that of a callable object as scale function."""
        function = self._scale_fn_custom
        remembered = None if function is None else state_of_function(function)
        return {**super().state_dict(), "_scale_fn_custom": remembered}

    def load_state_dict(self, state_dict: dict) -> None:
        """Load the state from `state_dict`, including that of a callable object."""
        function, remembered = self._scale_fn_custom, state_dict["_scale_fn_custom"]
        super().load_state_dict({**state_dict, "_scale_fn_custom": function})
        if remembered is not None:
            function.__dict__.update(remembered)


class OneCycleLR(_Cycled):
    """Raise the rate to `max_lr`, then let it fall far below where it began: one cycle for the full training.

    Args:
        max_lr: the highest rate, one for all groups or one for each group.
        total_steps: how many steps there will be; or give `epochs` and `steps_per_epoch`.
        pct_start: the share of the steps in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: move the momentum from `max_momentum` to `base_momentum` and back, against the rate.
        div_factor: the first rate is max_lr / div_factor.
        final_div_factor: the last rate is the first / final_div_factor.
        three_phase: fall to the first rate in as many steps as it rose, and to the last rate in those left.

    Source: Leslie N. Smith, Nicholay Topin: Super-Convergence: Very Fast Training of Neural Networks Using Large
        Learning Rates, 2017, arXiv:1708.07120
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueProblem(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueProblem(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(pct_start, self.total_steps, three_phase)
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            for group, highest in zip(optimizer.param_groups, for_each_group("max_lr", optimizer, max_lr)):
                group["initial_lr"], group["max_lr"] = highest / div_factor, highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._set_up_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """Return the rates at `self.last_epoch`, one for each group, and set the momentums.

        Raises:
            ValueError: all steps were made.
        """
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueProblem(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}; count a step "
                "for each batch, or give a larger total_steps"
            )
        begin = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        share = (step - begin) / (phase["end_step"] - begin)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*ends, share))
        groups = self.optimizer.param_groups
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], share) for group in groups]

    def _between(self, start: float, end: float, share: float) -> float:
        """Interpolate from start to end."""
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _total(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    """Return how many steps there will be."""
    if total_steps is not None:
        return _positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueProblem("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)


def _positive(name: str, value: int) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueProblem(f"Expected positive integer {name}, but got {value}")
    return value


def _phases(share: float, total: int, three: bool) -> list[dict]:
    """Return where each phase ends, and which options of a group it goes from and to."""
    rise = (float(share * total) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if three:
        fall = (float(2 * share * total) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        phases = [rise, fall, (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
    else:
        phases = [rise, (total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    return [dict(zip(("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum"), phase)) for phase in phases]
