"""Which backward is running in this thread, as PyTorch's graph task id says.

Most programs never need it: tasks are counted from the first call of `count_tasks` on.
"""

import itertools

from backlight.engine.backward_pass import BackwardPass
from backlight.engine.node import Node
from backlight.engine.tensor_state import TensorState
from backlight.engine.threads import ThreadState

_next_number = itertools.count().__next__


class GraphTask:
    """One backward, which is `local.task` as long as it runs.

    Args:
        partial: whether only the gradients of given inputs are wanted.
    """

    __slots__ = ("__weakref__", "backward_pass", "number", "partial")

    def __init__(self, *, partial: bool):
        self.number = _next_number()
        self.partial = partial
        self.backward_pass = None  # the engine's, if hooks may see it

    def will_run(self, node: Node | TensorState) -> bool:
        """Tell whether a node, or a leaf in place of its AccumulateGrad, takes part."""
        return self.backward_pass is None or self.backward_pass.reaches(node)


class _Counting:
    """Whether tasks are counted."""

    __slots__ = ("tasks",)

    def __init__(self):
        self.tasks = False


class _Local(ThreadState):
    """The innermost backward that runs in this thread."""

    task: GraphTask | None = None


counting = _Counting()
local = _Local()


def count_tasks() -> None:
    """Number backward runs from now on."""
    counting.tasks = True


def note_pass(backward_pass: BackwardPass) -> None:
    """Note the engine's pass in the current task."""
    if local.task is not None and local.task.backward_pass is None:
        local.task.backward_pass = backward_pass


def current_task() -> GraphTask | None:
    """Return the innermost backward that runs in this thread; None outside of any."""
    return local.task


def unused_number() -> int:
    """Return a number that no task has."""
    return _next_number()
