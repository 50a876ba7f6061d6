"""State of a thread, and how a deeply nested backward continues in another thread.

NOTE [Deep inside backwards]
A hook, a Function's backward, an unpack hook or a checkpoint may start a backward, whose hooks start another. Each one
takes about ten of the thousand calls that Python lets nest in a thread, so from some depth on the next one runs in
a new thread, as in PyTorch, while this one waits: modes, watchers, saved tensor hooks and interpreters are copied to
it, and its changes to them are copied back. The total nesting is limited like that of calls, so that a backward that
starts itself forever is stopped.
"""

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import ClassVar

from backlight.kernels.state_blocks import Block
from backlight.system.lazy_import import function_later

ThreadPoolExecutor = function_later("concurrent.futures", "ThreadPoolExecutor")
MOST_BACKWARDS = 20  # nested in one thread: leaves each about 50 calls


class ThreadState(threading.local):
    """Thread-local state, which follows a backward that continues in another thread."""

    instances: ClassVar[list["ThreadState"]] = []

    def __new__(cls):
        state = super().__new__(cls)
        cls.instances.append(state)
        return state


class _Anywhere:
    """How many backwards run in all threads: a plain attribute, cheap to read, which mostly avoids the exact count."""

    __slots__ = ("backwards",)

    def __init__(self):
        self.backwards = 0


class _Depth(threading.local):
    """How many nested backwards run in this thread, and in those that wait for it."""

    here = 0
    waiting = 0


anywhere = _Anywhere()
depth = _Depth()


def in_another_thread(function: Callable, *args):
    """Call a function in a thread of its own that has this thread's state, and return what it returns.

    Raises:
        RecursionError: too many backwards run one inside the other.
    """
    waiting = depth.waiting + depth.here
    if waiting >= sys.getrecursionlimit():
        raise RecursionError(
            f"maximum recursion depth exceeded: {waiting} backwards run one inside the other; a hook or a Function "
            "that starts a backward should not meet itself in it, else sys.setrecursionlimit() allows more"
        )
    carried = [(state, vars(state)) for state in ThreadState.instances]

    def call():
        depth.waiting = waiting
        for state, values in carried:
            vars(state).update(values)
        try:
            return function(*args)
        finally:
            for state, values in carried:
                values.clear()
                values.update(vars(state))

    with _Alone() as pool:
        return pool.submit(copy_context().run, call).result()


class _Alone(Block):
    """A thread that has this one's state; waiting for it cannot be cut short by an interrupt."""

    def _block_state(self):
        return ThreadPoolExecutor(1)

    def _block_change(self, pool):
        return pool

    def _block_restore(self, pool):
        pool.shutdown(wait=True)
