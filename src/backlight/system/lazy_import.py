"""What is imported when it is first asked for: few programs do, and each module costs every program its import."""

import sys
from collections.abc import Callable, Iterable
from functools import cache

from backlight.system.fork_safety import import_unforked


def names_later(module: str, places: dict[str, str], rooms: Iterable[str] = ()) -> tuple[Callable, Callable]:
    """Return the `__getattr__` and the `__dir__` of a module some of whose names are imported later.

    Args:
        module: its `__name__`.
        places: for each name the module that has it.
        rooms: names of modules in that package, which are imported later themselves.
    """
    namespace = vars(sys.modules[module])
    rooms = {name: f"{module}.{name}" for name in rooms}

    def find(name: str):
        if name in rooms:
            found = import_unforked(rooms[name])
        elif name in places:
            found = getattr(import_unforked(places[name]), name)
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        namespace[name] = found
        return found

    def names() -> list[str]:
        return sorted({*namespace, *places, *rooms})

    return find, names


def function_later(module: str, name: str) -> Callable:
    """Return a function that does what the one of this name in a module does, which is imported at the first call."""

    @cache
    def found() -> Callable:
        return getattr(import_unforked(module), name)

    def call(*args, **kwargs):
        return found()(*args, **kwargs)

    return call
