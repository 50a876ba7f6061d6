"""How a handler is called: the topmost mode of this thread, or the classes of the arguments."""

from backlight.dispatch.interpreters import Interpreter, local, without
from backlight.dispatch.torch_dispatch import has_handler
from backlight.dispatch.torch_function import flat
from backlight.errors import ArgumentError
from backlight.ops.aten import OpOverload


class HandlerOfMode(Interpreter):
    """The interpreter of a `TorchDispatchMode`: what it does with calls is in interpreter.py."""

    __slots__ = ("mode",)

    sees_backward = True

    def __init__(self, mode: object):
        self.mode = mode

    def handle(self, func: OpOverload, args: tuple, kwargs: dict):
        """Call the mode's handler."""
        return self.mode.__torch_dispatch__(func, types_of(args, kwargs), args, kwargs)


def handlers_of_modes() -> list[HandlerOfMode]:
    """Return those of this thread, the outermost first."""
    return [one for one in local.interpreters if isinstance(one, HandlerOfMode)]


def types_of(args: tuple, kwargs: dict) -> tuple:
    """Return the classes with handlers among the arguments, subclasses before the classes they derive from."""
    ordered: list = []
    for one in flat((*args, *kwargs.values())):
        cls = type(one)
        if has_handler(one) and cls not in ordered:
            place = next((at for at, other in enumerate(ordered) if issubclass(cls, other)), len(ordered))
            ordered.insert(place, cls)
    return tuple(ordered)


def handle_by_class(func: OpOverload, args: tuple, kwargs: dict):
    """Return the first result of the classes of the arguments that is not NotImplemented.

    Raises:
        TypeError: all returned NotImplemented.
    """
    types = types_of(args, kwargs)
    for cls in types:
        out = cls.__torch_dispatch__(func, types, args, kwargs)
        if out is not NotImplemented:
            return out
    listed = "".join(f"\n  - tensor subclass {cls}" for cls in types)
    raise ArgumentError(
        f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n{listed}"
    )


def call(func: OpOverload, *args: object):
    """Have an op handled that the engine calls itself, by the topmost mode or the classes of the arguments."""
    handlers = handlers_of_modes()
    if not handlers:
        return handle_by_class(func, args, {}) if any(map(has_handler, args)) else func(*args)
    with without(handlers[-1]):
        return handlers[-1].handle(func, args, {})
