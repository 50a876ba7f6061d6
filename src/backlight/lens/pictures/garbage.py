"""Python's garbage collector, at rest while a large picture is made."""

import functools
import gc


def gc_paused(function):
    """Let the collector rest while a function runs.

    A picture makes some hundred thousand small objects and leaves no circle of them behind. The collector would walk
    through all that the program holds again and again, which doubles the time if PyTorch is loaded.
    """

    @functools.wraps(function)
    def paused(*args, **kwargs):
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return paused
