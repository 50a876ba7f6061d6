"""Locks and imports that leave nothing locked in a forked child.

NOTE [Forks]
A forked child has one thread, the one that forked, and a copy of all else: a lock that another thread held at that
moment would never be released there. So a thread that forks first takes all locks that were made here, and releases
them afterwards in both processes: what they guard is complete in the child. They are reentrant, since a thread may hold
some of them where it forks, in a hook for instance; it then holds them in the child, too.

Who waits for one lock with others in hand gives these back after a moment and begins with that one, so no order of
locks has to be kept. The owner of a lock may also wait for the thread that forks, by means that are not known here.
Therefore a fork goes on after PATIENCE seconds; in the child, locks that it did not get are made free all the same.

A module that is being imported is locked by Python, in the child for ever. Modules that backlight imports later than
itself go through `import_unforked`, and a fork waits for them. The kernels' threads are looked after in
csrc/core/pool.c.
"""

import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import chain, compress, islice, repeat, takewhile
from types import ModuleType

PATIENCE = 10.0  # seconds that a fork waits at most
MOMENT = 0.05  # seconds that it waits for a lock while it holds others

RLock = type(threading.RLock())
_acquire, _release = RLock.acquire, RLock.release

_forking = threading.RLock()
_locks: weakref.WeakValueDictionary[int, RLock] = weakref.WeakValueDictionary()  # those that a fork waits for
_long_held: weakref.WeakValueDictionary[int, RLock] = weakref.WeakValueDictionary()
_in_child: list[Callable[[], None]] = []


class _Taken(threading.local):
    """The locks that this thread has taken in order to fork."""

    def __init__(self):
        self.locks: deque[RLock] = deque()


_taken = _Taken()


def fork_safe_lock(*, waited_for: bool = True) -> RLock:
    """Return a reentrant lock that is free in a forked child, unless the thread that forked holds it.

    Args:
        waited_for: whether a fork waits until no other thread holds it; False for a lock that may be held for long.
    """
    lock = threading.RLock()
    (_locks if waited_for else _long_held)[id(lock)] = lock
    return lock


@contextmanager
def no_fork_elsewhere() -> Iterator[None]:
    """Let forks of other threads wait until the block ends; other threads may be in such a block at the same time."""
    with _forking:
        block = fork_safe_lock()
        block.acquire()
    try:
        yield
    finally:
        block.release()


def import_unforked(name: str) -> ModuleType:
    """Import a module, and let forks of other threads wait until it is there."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        return module
    # take our locks before logging's, which modules need while they are imported: who registers last comes first
    if "logging" in sys.modules and not _handled["logging"]:
        _handled["logging"] = True
        os.register_at_fork(before=_take_locks, after_in_parent=_give_back)
    with no_fork_elsewhere():
        return import_module(name)


def in_forked_child(function: Callable[[], None]) -> Callable[[], None]:
    """Let a function be called in each forked child, when all locks are free."""
    _in_child.append(function)
    return function


class cached_property:  # noqa: N801 - functools's name
    """A method's value, computed once. Python 3.11's own holds a lock for all instances while it computes."""

    def __init__(self, function: Callable):
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner, name: str):
        self.name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        value = vars(instance)[self.name] = self.function(instance)
        return value


def _all_locks() -> list[RLock]:
    return [lock for each in _locks.valuerefs() if (lock := each()) is not None]


def _take_locks() -> None:
    """Take all locks before a fork.

    What is taken is noted by the same call in C that takes it, so that Ctrl-C comes before both or after both.
    """
    deadline = time.monotonic() + PATIENCE
    taken, first = _taken.locks, _forking
    before = len(taken)
    while True:
        order = [first, *(lock for lock in (_forking, *_all_locks()) if lock is not first)]
        left = deadline - time.monotonic()
        if left <= 0:
            taken.extend(compress(order, map(_acquire, order, repeat(True), repeat(0.0))))
            return
        waits = chain([left], repeat(MOMENT))
        taken.extend(compress(order, takewhile(bool, map(_acquire, order, repeat(True), waits))))
        count = len(taken) - before
        if count == len(order) and set(_all_locks()) <= set(order):
            return
        first = order[count % len(order)]
        _give_back(count)


def _give_back(count: int | None = None) -> None:
    """Release the locks that were taken, the last `count` of them or all."""
    with suppress(IndexError):
        deque(map(_release, islice(iter(_taken.locks.pop, None), count)), maxlen=0)


def _free_locks() -> None:
    """Make all locks free in the child, but for those that the thread that forked holds."""
    _give_back()
    for lock in (_forking, *_all_locks(), *filter(None, (each() for each in _long_held.valuerefs()))):
        if not lock._is_owned():
            lock._at_fork_reinit()
    for function in _in_child:
        function()


_handled = {"logging": "logging" in sys.modules}


os.register_at_fork(before=_take_locks, after_in_parent=_give_back, after_in_child=_free_locks)
os.register_at_fork(after_in_parent=_give_back)  # again, if Ctrl-C came at the beginning of the first one
