"""Hooks before and after steps: those of one optimizer, and those of all."""

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps

from backlight.engine.hooks import RemovableHandle
from backlight.errors import GraphError


class StepHooks:
    """Hooks on the steps of all optimizers."""

    def __init__(self):
        self.before = OrderedDict()
        self.after = OrderedDict()


EVERYWHERE = StepHooks()


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of any optimizer; it may return other (args, kwargs)."""
    return RemovableHandle(EVERYWHERE.before, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of any optimizer."""
    return RemovableHandle(EVERYWHERE.after, hook)


def between_hooks(step: Callable, args: tuple, kwargs: dict):
    """Call a step, whose first argument is the optimizer, between the hooks on it.

    Raises:
        RuntimeError: a hook before it returned something else than two things, or None.
    """
    optimizer = args[0]
    for hook in [*EVERYWHERE.before.values(), *optimizer._optimizer_step_pre_hooks.values()]:
        answer = hook(optimizer, args, kwargs)
        if answer is None:
            continue
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise GraphError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {answer}.")
        args, kwargs = answer
    result = step(*args, **kwargs)
    for hook in [*optimizer._optimizer_step_post_hooks.values(), *EVERYWHERE.after.values()]:
        hook(optimizer, args, kwargs)
    return result


def hooked(step: Callable) -> Callable:
    """Return the `step` of a class that overrides ours, between the hooks."""

    @wraps(step)
    def wrapper(*args, **kwargs):
        return between_hooks(step, args, kwargs)

    wrapper.hooked = True
    return wrapper
