"""Batching rules of random functions: elements draw the same numbers, different ones, or must not draw."""

from collections.abc import Callable

from backlight.dispatch.interpreters import UNHANDLED, Interpreter
from backlight.errors import GraphError
from backlight.ops.random import dropout
from backlight.tensor import random_factories
from backlight.tensor.generators import twister_of
from backlight.tensor.methods.random import RandomMethods
from backlight.transforms.vmap.batched_tensor import batched
from backlight.transforms.vmap.function_rules import function_rule
from backlight.transforms.vmap.loop_fallback import loop_over_batch
from backlight.transforms.vmap.rules.memory import is_batched_by

IN_ERROR_MODE = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
UNBATCHED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch. Write to a batched tensor, such as "
    "torch.empty_like(x), instead"
)

SAME_OF_OTHERS = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch. "
    "What is drawn depends on the tensor's values, which differ: draw uniform numbers and compare them"
)

_BY_VALUES = {
    random_factories._sample_dirichlet,
    random_factories._standard_gamma,
    random_factories.bernoulli,
    random_factories.multinomial,
    random_factories.normal,
    random_factories.poisson,
}


def _drawn(level: Interpreter, function: Callable, args: tuple, kwargs: dict, different: Callable):
    """Draw as the vmap's `randomness` says; `different` draws for a full batch at once."""
    if level.randomness == "error":
        raise GraphError(IN_ERROR_MODE)
    if level.randomness == "different":
        return different(level, function, args, kwargs)
    if not level.any_batched(args, kwargs):
        return UNHANDLED
    if function in _BY_VALUES:
        raise GraphError(SAME_OF_OTHERS)
    twister = twister_of(kwargs.get("generator"))
    start = twister.state()

    def alike(*args, **kwargs):
        twister.restore(start)
        return function(*args, **kwargs)

    alike.__name__ = function.__name__
    return loop_over_batch(level, alike, args, kwargs)


@function_rule(random_factories.rand, random_factories.randn, random_factories.randint, always=True)
def of_sizes(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Put the batch in front of the sizes."""
    return _drawn(level, function, args, kwargs, _sized)


def _sized(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    kwargs, args = dict(kwargs), list(args)
    if kwargs.get("size") is not None:
        kwargs["size"] = (level.size, *kwargs["size"])
    elif function is random_factories.randint:
        place = next(i for i, one in enumerate(args) if isinstance(one, (tuple, list)))
        args[place] = (level.size, *args[place])
    elif len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = [(level.size, *args[0])]
    else:
        args = [level.size, *args]
    return batched(function(*args, **kwargs), level)


@function_rule(
    random_factories._sample_dirichlet,
    random_factories._standard_gamma,
    random_factories.bernoulli,
    random_factories.poisson,
    random_factories.rand_like,
    random_factories.randint_like,
    random_factories.randn_like,
    dropout.alpha_dropout,
    dropout.dropout,
    always=True,
)
def of_each_number(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Draw for the full batch as for one tensor."""
    if function in (dropout.dropout, dropout.alpha_dropout) and _is_idle(args, kwargs):
        return UNHANDLED
    return _drawn(level, function, args, kwargs, _for_batch)


def _is_idle(args: tuple, kwargs: dict) -> bool:
    """Tell whether dropout does nothing."""
    given = {**dict(zip(("input", "p", "train"), args)), **kwargs}
    return given.get("p", 0.5) == 0 or not given.get("train", True)


def _for_batch(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    if not is_batched_by(level, args[0]) or level.any_batched(args[1:], kwargs):
        return loop_over_batch(level, function, args, kwargs)
    out = function(args[0].physical, *args[1:], **kwargs)
    return args[0] if out is args[0].physical else batched(out, level)


@function_rule(
    random_factories.multinomial,
    random_factories.normal,
    random_factories.randperm,
    dropout.feature_alpha_dropout,
    dropout.feature_dropout,
    always=True,
)
def one_by_one(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Draw for each element of the batch by itself."""
    if function in (dropout.feature_alpha_dropout, dropout.feature_dropout) and _is_idle(args, kwargs):
        return UNHANDLED
    return _drawn(level, function, args, kwargs, loop_over_batch)


_IN_PLACE = ("uniform_", "normal_", "random_", "bernoulli_", "exponential_", "geometric_", "cauchy_", "log_normal_")


@function_rule(*[RandomMethods.__dict__[name] for name in _IN_PLACE], always=True)
def in_place(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Write different numbers, or the same, to each element of the batch."""
    target = args[0]
    if level.randomness == "error":
        raise GraphError(IN_ERROR_MODE)
    if not is_batched_by(level, target):
        if level.randomness == "different":
            raise GraphError(UNBATCHED)
        return UNHANDLED
    if level.randomness == "different" and not level.any_batched(args[1:], kwargs):
        function(target.physical, *args[1:], **kwargs)
        return target
    twister = twister_of(kwargs.get("generator"))
    start = twister.state()
    for number in range(level.size):
        if level.randomness == "same":
            twister.restore(start)
        own = [one.physical.select(0, number) if is_batched_by(level, one) else one for one in args]
        function(*own, **kwargs)
    return target
