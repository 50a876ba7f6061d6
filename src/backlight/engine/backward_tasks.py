"""Which backward is running in this thread, for those who must tell one from another.

Nobody needs to know in most programs: tasks are counted from the first time that somebody asked for it (`count_tasks`).
"""

import itertools

from backlight.engine.threads import ThreadState

_next_number = itertools.count().__next__


class Task:
    """One backward, which is `local.task` as long as it runs.

    Args:
        partial: whether only the gradients of given inputs are asked for.
    """

    __slots__ = ("__weakref__", "number", "partial", "walk")

    def __init__(self, *, partial: bool):
        self.number = _next_number()
        self.partial = partial
        self.walk = None  # the engine's, where hooks may see it

    def will_run(self, node) -> bool:
        """Tell whether a node, or a leaf in place of its AccumulateGrad, takes part."""
        return self.walk is None or self.walk.reaches(node)


class _Counting:
    """Whether tasks are counted."""

    __slots__ = ("tasks",)

    def __init__(self):
        self.tasks = False


class _Local(ThreadState):
    """The innermost backward that runs in this thread."""

    task: Task | None = None


counting = _Counting()
local = _Local()


def count_tasks() -> None:
    """Let backward say, from now on, which one it is."""
    counting.tasks = True


def note_walk(walk) -> None:
    """Let the task know the engine's walk."""
    if local.task is not None and local.task.walk is None:
        local.task.walk = walk


def current_task() -> Task | None:
    """Return the innermost backward that runs in this thread; None outside of any."""
    return local.task


def unused_number() -> int:
    """Return a number that no task has."""
    return _next_number()
