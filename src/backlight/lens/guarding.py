"""A watcher that makes a mistake of its own leaves the program alone: it hears no more, and says so at the end."""

from collections.abc import Callable
from functools import partial

from backlight.dispatch.observation import EVENTS, wants
from backlight.dispatch.observers import Watcher


class Guarded(Watcher):
    """Tells a watcher of events until one of its methods fails.

    Args:
        watcher: gets the events.
        give_up: what is called, once, with what a method raised.
    """

    def __init__(self, watcher: Watcher, give_up: Callable[[Exception], None]):
        self.watcher = watcher
        guard = _Guard(give_up)  # an object of its own, so that nothing here refers to itself
        for event in EVENTS:
            if wants(watcher, event):
                setattr(self, event, partial(guard.notify, getattr(watcher, event)))

    @property
    def only_nodes(self) -> bool:
        """What the watcher says, who may change his mind."""
        return self.watcher.only_nodes


class _Guard:
    """Calls listeners until one of them fails."""

    def __init__(self, give_up: Callable[[Exception], None]):
        self.give_up = give_up
        self.failed = False

    def notify(self, listener: Callable, *args) -> None:
        """Call a listener with an event."""
        if self.failed:
            return
        try:
            listener(*args)
        except Exception as problem:
            self.failed = True
            self.give_up(problem)
