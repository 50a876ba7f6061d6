"""`LRScheduler`: sets the learning rates of an optimizer's groups, one step after the other.

NOTE [Writing a schedule]
Write `get_lr()`: it returns the rate of every group at `self.last_epoch`. Attributes of a schedule are its state, and
part of `state_dict()`.
"""

import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from weakref import ref

from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, MissingMethodError, ValueProblem
from backlight.kernels.state_blocks import block
from backlight.optim.optimizer import Optimizer
from backlight.tensor.tensor import Tensor

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    "PyTorch skipping the first value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure "
    "to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


Rate = float | Tensor


class LRScheduler:
    """Base class of all schedules (see NOTE [Writing a schedule]).

    Args:
        last_epoch: how many steps were made before; −1 for none. To resume, load the optimizer's state first.

    Raises:
        TypeError: `optimizer` is none.
        KeyError: steps were made before, and the optimizer has no initial rates.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for place, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{place}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
                    "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a "
                    "fresh training run (not recommended)"
                )
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the first rates; here a call before the optimizer's first step is correct."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict:
        """Return the schedule's state, without the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict) -> None:
        """Load the state from `state_dict`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list:
        """Return the rates that were set last, one for each group."""
        return self._last_lr

    def get_lr(self) -> list:
        """Return the rates at `self.last_epoch`, one a group.

        Raises:
            NotImplementedError: the subclass has none.
        """
        self._warn_outside_step()
        return self._next_rates()

    def _next_rates(self) -> list:
        raise MissingMethodError(f"{type(self).__name__} must have a method get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Step, or go to `epoch`, and set the rates."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(OVERRIDDEN, UserWarning, stacklevel=3)
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(ORDER, UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._inside_step():
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
            rates = self.get_lr() if closed is None else closed()
        self._set_rates(rates)

    def _set_rates(self, rates: list) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_rate(group, rate)
        self._last_lr = self._rates()

    def _rates(self) -> list:
        """Return the current rates of the optimizer."""
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def _scaled(self, factor: float) -> list:
        """Return the current rates of the optimizer, times `factor`."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    @block
    def _inside_step(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_outside_step(self) -> None:
        """Warn if the user calls `get_lr` instead of `get_last_lr`."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )


class OlderLRScheduler(LRScheduler):
    """PyTorch's `_LRScheduler`: the first name of the class, which own schedules may still extend."""


def check_optimizer(optimizer: Optimizer) -> None:
    """Raise unless this is an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer; give the optimizer, then the options")


def set_rate(group: dict, rate: Rate, name: str = "lr") -> None:
    """Set an option of a group; one that is a tensor stays the same tensor."""
    if isinstance(group[name], TensorState):
        group[name].fill_(rate.item() if isinstance(rate, TensorState) else rate)
    else:
        group[name] = rate


def for_each_group(name: str, optimizer: Optimizer, value: Rate | Sequence[Rate]) -> list:
    """Return an option as a list of one value for each group.

    Raises:
        ValueError: it is a list of another length.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueProblem(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {count}."
        )
    return [_copied(each) for each in value]


def state_of_function(function: Callable) -> dict | None:
    """Return the state of a callable object; None for a plain function, which cannot be saved."""
    return None if isinstance(function, types.FunctionType) else dict(function.__dict__)


def _copied(value: Rate) -> Rate:
    return value.clone() if isinstance(value, TensorState) else value


def _watch_steps(optimizer: Optimizer) -> None:
    """Let the optimizer record its steps, so that a schedule can warn of the wrong order."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    plain, owner = type(optimizer).step, ref(optimizer)

    def step(*args, **kwargs):
        optimizer = owner()
        optimizer._opt_called = True
        return plain(optimizer, *args, **kwargs)

    step._wrapped_by_lr_sched = True
    optimizer.step = wraps(plain)(step)
