"""One hook for the gradients of several tensors."""

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Literal

from backlight.engine.graph_task import GraphTask, count_tasks, current_task
from backlight.engine.hooks import RemovableHandle
from backlight.engine.node import node_and_number
from backlight.engine.tensor_state import TensorState, edge_of
from backlight.errors import BacklightError, ValueProblem
from backlight.system.fork_safety import fork_safe_lock
from backlight.tensor.tensor import Tensor


class NoGradientError(BacklightError, AssertionError):
    """One of the tensors of a multi-grad hook requires no grad."""


class MultiHandle(RemovableHandle):
    """Removes the hooks on all tensors, on `remove()` or at the end of a `with` block."""

    __slots__ = ("handles",)

    def __init__(self, handles: Sequence[RemovableHandle]):
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove the hooks; calling it twice does no harm."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable,
    *,
    mode: Literal["all", "any"] = "all",
) -> MultiHandle:
    """Call `fn` in each backward when the gradients of several tensors are known.

    Args:
        tensors: the tensors to wait for, except those that a backward does not reach.
        fn: with "all" it gets a list of gradients, None where a tensor had none; with "any" the first gradient.
        mode: "all": after the last of the gradients; "any": after the first.

    Raises:
        ValueError: the mode is another.
        AssertionError: with "all", a tensor does not require grad.
    """
    if mode not in ("all", "any"):
        raise ValueProblem(f"Expects mode to be one of ('all', 'any') but got {mode}")
    count_tasks()
    if mode == "any":
        first = _AnyMode(fn)
        return MultiHandle([one.register_hook(first) for one in tensors if one.requires_grad])
    for number, one in enumerate(tensors):
        if not one.requires_grad:
            raise NoGradientError(
                f"Expected gradient function to be set; tensor {number} {list(one.shape)} does not require grad"
            )
    together = _AllMode(fn, [node_and_number(edge_of(one))[0] for one in tensors])
    return MultiHandle([one.register_hook(together.hook(number)) for number, one in enumerate(tensors)])


class _AnyMode:
    """Calls a function with the first gradient of each backward."""

    def __init__(self, fn: Callable):
        functools.update_wrapper(self, fn, updated=())
        self.fn = fn
        self.lock = fork_safe_lock()
        self.seen: weakref.WeakSet[GraphTask] = weakref.WeakSet()

    def __call__(self, grad: TensorState) -> None:
        task = current_task() or _NO_TASK
        with self.lock:
            if task in self.seen:
                return
            self.seen.add(task)
        self.fn(grad)


class _AllMode:
    """Calls a function when all expected gradients of a backward have been computed.

    It refers weakly to the nodes, which hold its hooks, and to each backward: one that fails leaves nothing behind.
    """

    def __init__(self, fn: Callable, nodes: list):
        self.fn = fn
        self.nodes = [weakref.ref(node) for node in nodes]
        self.lock = fork_safe_lock()
        self.found = weakref.WeakKeyDictionary()  # backward -> (how many are still to come, the gradients)

    def hook(self, number: int) -> Callable:
        """Return the hook of one tensor."""

        def gradient_of_several(grad: TensorState) -> None:
            task = current_task() or _NO_TASK
            with self.lock:
                if task not in self.found:
                    self.found[task] = [self.coming(task), [None] * len(self.nodes)]
                found = self.found[task]
                found[0] -= 1
                found[1][number] = grad
                complete = found[0] == 0
            if complete:
                self.fn(found[1])
                del self.found[task]

        return gradient_of_several

    def coming(self, task: GraphTask) -> int:
        """Return how many of the nodes take part in a backward."""
        nodes = (node() for node in self.nodes)
        return sum(node is not None and task.will_run(node) for node in nodes)


_NO_TASK = GraphTask(partial=False)  # key for a backward that began before tasks were counted
