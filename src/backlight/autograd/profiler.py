"""How long each op and each node of a backward takes: `profile`, and user blocks with `record_function`.

NOTE [Profiling]
An interpreter (NOTE [Interpreters] in dispatch/interpreters.py) times the ops that the thread calls, but not the ops
that these are composed of. An observer (NOTE [Watching] in dispatch/observers.py) is called after each node of a
backward: the node began when the one before it ended. While no profile is active, this costs nothing.
"""

import functools
import sys
import threading
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from types import CodeType

from backlight.codegen.declaration import Op
from backlight.dispatch.dispatcher import Observe, interpreting
from backlight.dispatch.interpreters import Interpreter
from backlight.dispatch.observers import Run, Watcher
from backlight.dispatch.profile_events import EventList, FunctionEvent
from backlight.dispatch.profile_names import event_name
from backlight.engine.node import Node
from backlight.engine.provenance import user_frame
from backlight.engine.tensor_state import TensorState
from backlight.engine.threads import ThreadState
from backlight.errors import ArgumentError, GraphError
from backlight.kernels.state_blocks import Block, Several

__all__ = ["profile", "record_function"]


class _Profiling(ThreadState):
    """The active profiles of this thread."""

    def __init__(self):
        self.timers: list[_Timer] = []


_profiling = _Profiling()


class _Timer(Interpreter):
    """Records events while a profile is active."""

    def __init__(self, record_shapes: bool, with_stack: bool):
        self.record_shapes, self.with_stack = record_shapes, with_stack
        self.events: list[FunctionEvent] = []
        self.open: list[FunctionEvent] = []  # `record_function` blocks, the outermost first
        self.zero = perf_counter_ns()

    def now(self) -> float:
        """Return the time in microseconds since the profile began."""
        return (perf_counter_ns() - self.zero) / 1e3

    def op(self, op: Op, function: Callable, args: tuple, kwargs: dict):
        """Run an op, and record its time."""
        event = self.begin(event_name(op.name), self.now(), args)
        event.start = self.now()
        try:
            return function(*args, **kwargs)
        finally:
            event.end = self.now()

    def begin(self, name: str, start: float, args: tuple = (), *, annotates: bool = False) -> FunctionEvent:
        """Record an event, inside the open blocks."""
        event = FunctionEvent(len(self.events), name, threading.get_ident(), start, is_user_annotation=annotates)
        if self.record_shapes:
            event.input_shapes = [_shape(one) for one in args]
        if self.with_stack:
            frame = sys._getframe(1)
            frame, lines = user_frame(frame), []
            while frame is not None:
                lines.append(f"{frame.f_code.co_filename}({frame.f_lineno}): {frame.f_code.co_name}")
                frame = frame.f_back
            event.stack = lines
        if self.open:
            event.cpu_parent = self.open[-1]
            event.cpu_parent.cpu_children.append(event)
        self.events.append(event)
        return event

    def adopt(self, node: FunctionEvent, first: int) -> None:
        """Move the events of a node's backward, those from number `first` on, into the node's own event."""
        for event in self.events[first : node.id]:
            if event.cpu_parent is node.cpu_parent:
                if event.cpu_parent is not None:
                    event.cpu_parent.cpu_children.remove(event)
                event.cpu_parent = node
                node.cpu_children.append(event)


def _shape(value: object) -> list:
    """Return a tensor's shape, the shapes of several, or [] for anything else."""
    if isinstance(value, TensorState):
        return list(value._data.shape)
    several = isinstance(value, (list, tuple)) and value and all(isinstance(one, TensorState) for one in value)
    return [list(one._data.shape) for one in value] if several else []


class _Nodes(Watcher):
    """Records the nodes of each backward."""

    def __init__(self, timer: _Timer):
        self.timer = timer
        self.since = []  # for each backward that runs: when its last node ended, and how many events there were

    def started(self, run: Run) -> None:
        """A backward begins."""
        self.since.append((self.timer.now(), len(self.timer.events)))

    def ran(self, run: Run, node: Node, grad_outputs: Sequence, grad_inputs: Sequence) -> None:
        """A node has run."""
        timer, (start, first) = self.timer, self.since[-1]
        event = timer.begin(node.name(), start, tuple(grad_outputs))
        event.end = timer.now()
        timer.adopt(event, first)
        self.since[-1] = timer.now(), len(timer.events)

    def wrote(self, tensor: TensorState, name: str, code: CodeType, lasti: int) -> None:
        """The op that just ran has written its result to a tensor: `add` was `add_`."""
        event = self.timer.events[-1] if self.timer.events else None
        if event is not None and f"{event.name}_" == f"aten::{name}":
            event.name, event.end = f"aten::{name}", self.timer.now()

    def ended(self, run: Run) -> None:
        """A backward ended."""
        self.since.pop()


class profile(Block):  # noqa: N801 - PyTorch's name
    """Measure what this thread computes inside a `with` block: `prof.key_averages().table()` shows it.

    Args:
        enabled: False measures nothing.
        use_device: None or "cpu"; there are no other devices.
        record_shapes: keep the shapes of the tensors that ops were called with.
        with_flops: PyTorch's count of operations; not supported.
        profile_memory: PyTorch's count of memory; not supported.
        with_stack: keep the lines of the program that each event comes from.
        with_modules: only for TorchScript in PyTorch; ignored.

    Raises:
        TypeError: an option that is not supported.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
    ):
        for name, value in (("with_flops", with_flops), ("profile_memory", profile_memory)):
            if value:
                raise ArgumentError(f"{name} must be False, got {value}: backlight measures times, shapes and stacks")
        if use_device not in (None, "cpu"):
            raise ArgumentError(f"use_device must be None or 'cpu', got {use_device!r}: there are no other devices")
        self.enabled = enabled
        self.function_events: EventList | None = None
        self._timer = _Timer(record_shapes, with_stack)
        self._entered = False

    def _block_state(self) -> Several:
        if self._entered:
            raise GraphError("Profiler context manager is not reentrant; make a new profile for each block")
        self._entered = True
        return Several()

    def _block_change(self, blocks: Several) -> "profile":
        if self.enabled:
            blocks.enter(Observe(_Nodes(self._timer)))
            blocks.enter(interpreting(self._timer))
            _profiling.timers.append(self._timer)
        return self

    def _block_restore(self, blocks: Several) -> None:
        if self.enabled:
            _profiling.timers[:] = [one for one in _profiling.timers if one is not self._timer]
            blocks.leave()
            end = self._timer.now()
            for event in self._timer.open:
                event.end = end
            self._timer.open.clear()
            self.function_events = EventList(sorted(self._timer.events, key=lambda event: (event.start, -event.end)))

    def _found(self) -> EventList:
        if self.function_events is None:
            raise GraphError("Profiler didn't finish running; read it after its `with` block")
        return self.function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Group the events by name: see `EventList.key_averages`."""
        return self._found().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self):
        """Return all events as one group."""
        return self._found().total_average()

    def table(self, *args, **kwargs) -> str:
        """Return a table with a row an event: see `EventList.table`."""
        return self._found().table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Write a trace for a browser's tracing page."""
        self._found().export_chrome_trace(path)

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all events' own times, in microseconds."""
        return self._found().self_cpu_time_total

    def __repr__(self) -> str:
        return "<unfinished profile>" if self.function_events is None else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished profile>" if self.function_events is None else str(self.function_events)


class record_function(Block):  # noqa: N801 - PyTorch's name
    """Name a `with` block, or a decorated function, in the active profiles of this thread."""

    def __init__(self, name: str, args: str | None = None):
        self.name = name
        self.args = args

    def _block_state(self) -> list:
        return []

    def _block_change(self, events: list) -> "record_function":
        for timer in _profiling.timers:
            event = timer.begin(self.name, timer.now(), annotates=True)
            events.append((timer, event))
            timer.open.append(event)
        return self

    def _block_restore(self, events: list) -> None:
        for timer, event in events:
            if event in timer.open:
                event.end = timer.now()
                del timer.open[timer.open.index(event) :]

    def __call__(self, function: Callable) -> Callable:
        """Name every call of a function."""

        @functools.wraps(function)
        def named(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return named
